//! What is fixed for good, written down a second time and by hand: numbers of methods and enum
//! values, and types of fields, of the interfaces that were designed before this schema.
use schema::INTERFACES;

const LAYOUT: &str = include_str!("layout.golden");

/// Interface, then its methods in order; more may follow.
const METHODS: [(&str, &[&str]); 8] = [
    ("ThreadSpawner", &["create"]),
    ("ThreadHandle", &["join", "exitCode"]),
    ("ThreadControl", &["getFsBase", "setFsBase", "exitThread"]),
    ("SchedulingPolicyCap", &["setWeight", "setLatencyClass", "snapshot"]),
    ("SchedulingContext", &["info", "create", "bindCallerThread", "revoke", "drainNotifications"]),
    ("CpuIsolationLease", &["create", "info", "preflight", "activate", "revoke"]),
    ("VirtualMemory", &["map", "unmap", "protect"]),
    ("MemoryObject", &["map", "unmap", "protect"]),
];

/// A struct or enum, then lines it has.
const LINES: [(&str, &[&str]); 13] = [
    (
        "ThreadSpawner.create$Params",
        &[
            "@0 entry :UInt64",
            "@1 stackTop :UInt64",
            "@2 arg :UInt64",
            "@3 fsBase :UInt64",
            "@4 flags :UInt64",
        ],
    ),
    ("ThreadHandle.join$Results", &["@0 exitCode :Int64"]),
    ("ThreadHandle.exitCode$Results", &["@0 exited :Bool", "@1 exitCode :Int64"]),
    ("ThreadControl.getFsBase$Results", &["@0 fsBase :UInt64"]),
    ("ThreadControl.setFsBase$Params", &["@0 fsBase :UInt64"]),
    ("ThreadControl.exitThread$Params", &["@0 code :Int64"]),
    ("SchedulingPolicyCap.setWeight$Params", &["@0 weight :UInt16"]),
    (
        "SchedulingPolicyCap.snapshot$Results",
        &[
            "@0 weight :UInt16",
            "@1 class :LatencyClass",
            "@2 runtimeNs :UInt64",
            "@3 virtualRuntimeNs :UInt64",
        ],
    ),
    ("LatencyClass", &["@0 interactive", "@1 normal", "@2 batch", "@3 ipcServer"]),
    ("ProcessHandle.wait$Results", &["@0 exitCode :Int64"]),
    (
        "ExceptionKind",
        &[
            "@0 failed",
            "@1 overloaded",
            "@2 disconnected",
            "@3 unimplemented",
            "@4 invalidArgument",
        ],
    ),
    ("SchedulingContextSpec", &["@0 budgetNs :UInt64", "@1 periodNs :UInt64", "@3 cpuMask :Data"]),
    ("ProcessSpawner.spawn$Params", &["@2 weight :UInt16"]),
];

#[test]
fn methods_keep_their_numbers() {
    for (name, methods) in METHODS {
        let interface = INTERFACES.iter().find(|one| one.name == name).unwrap();
        for (ordinal, method) in methods.iter().enumerate() {
            assert_eq!(interface.methods[ordinal].name, *method, "{name}@{ordinal}");
        }
    }
}

#[test]
fn fields_keep_their_types_and_enums_their_numbers() {
    for (name, lines) in LINES {
        let is_head = |line: &&str| line.split_whitespace().nth(2) == Some(name);
        let mut rest = LAYOUT.lines().skip_while(|line| !is_head(line)).skip(1);
        let body: Vec<&str> =
            rest.by_ref().map(str::trim).take_while(|line| line.starts_with('@')).collect();
        for line in lines {
            let found = body.iter().any(|one| one == line || one.starts_with(&format!("{line} ")));
            assert!(found, "{name}: {line} is not among {body:?}");
        }
    }
}

/// C3: every interface the kernel serves.
#[test]
fn the_kernels_interfaces_are_there() {
    let names: Vec<&str> = INTERFACES.iter().map(|one| one.name).collect();
    for name in [
        "Console",
        "Timer",
        "ProcessSpawner",
        "ProcessHandle",
        "ThreadSpawner",
        "ThreadHandle",
        "ThreadControl",
        "Endpoint",
        "ParkSpace",
        "VirtualMemory",
        "MemoryObject",
        "FrameAllocator",
        "Interrupt",
        "SchedulingPolicyCap",
        "SchedulerControl",
        "SchedulingContext",
        "CpuIsolationLease",
        "RealtimeIsland",
        "UserSession",
        "SystemInfo",
        "Trace",
        "ProcessDirectory",
        "Entropy",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}
