//! What processes write to the console: every line that was taken is on the line, once, whole and in order, from
//! processes that flood it at once, that cancel, that end with writes pending, and at the end of the system.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use abi_report::Exit;
use qemu_command::{Lane, Machine, Media, Serial};

/// As in `writer.rs`.
const FLOOD: usize = 700;
const FEW: usize = 60;

fn input(variable: &str) -> PathBuf {
    PathBuf::from(std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set")))
}

/// What a boot said on the console, and its exit status.
fn boot(name: &str, lane: Lane, cpus: u32) -> (String, Option<i32>) {
    let folder = PathBuf::from(std::env::var("TEST_TMPDIR").expect("run by bazel"));
    let run = format!("{name}-{lane:?}-{cpus}");
    let (console, records) = (folder.join(format!("{run}.log")), folder.join(run));
    let upper = name.to_uppercase();
    let media = Media::Direct {
        stub: input(&format!("{upper}_STUB")),
        bundle: input(&format!("{upper}_BUNDLE")),
    };
    let mut machine = Machine::new(media);
    machine.lane = lane;
    machine.cpus = cpus;
    machine.append = match lane {
        Lane::Deterministic => "exit=debug section=20000".into(),
        Lane::Racing => "exit=debug".into(),
    };
    machine.exit_port = true;
    machine.serial = Serial::Files { console: console.clone(), records };
    let mut child = Command::new("/usr/bin/qemu-system-x86_64")
        .args(machine.arguments().expect("a valid machine"))
        .stdin(Stdio::null())
        .spawn()
        .expect("qemu starts");
    // A guard against a guest that hangs; nothing is timed.
    let guard = Duration::from_secs(200);
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("qemu can be waited for") {
            break status.code();
        }
        if started.elapsed() > guard {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let console = std::fs::read(&console).unwrap_or_default();
    (String::from_utf8_lossy(&console).into_owned(), status)
}

/// How many lines each writer has on the console; they are whole, and in order.
fn lines(console: &str) -> HashMap<char, usize> {
    let mut counts = HashMap::new();
    for line in console.lines().map(|line| line.trim_end_matches('\r')) {
        if !line.contains("....") {
            continue;
        }
        let who = line.chars().next().unwrap();
        let count: &mut usize = counts.entry(who).or_default();
        assert_eq!(line, format!("{who}{count:08}{}", ".".repeat(54)), "line {count} of {who}");
        *count += 1;
    }
    counts
}

/// What the kernel says a process ended with.
fn code_of(console: &str, name: &str) -> i64 {
    let words = format!("\"{name}\" ended with ");
    let rest = console.split(&words).nth(1).unwrap_or_else(|| panic!("{name}: {console}"));
    rest.split(';').next().unwrap().parse().unwrap()
}

fn floods(lane: Lane, cpus: u32) {
    let (console, status) = boot("floods", lane, cpus);
    assert_eq!(status, Some(Exit::Fail.qemu_status()), "d ends with what it wrote: {console}");
    let counts = lines(&console);
    for who in ['a', 'b', 'c'] {
        assert_eq!(code_of(&console, &who.to_string()), 0);
        assert_eq!(counts[&who], FLOOD, "lines of {who}");
    }
    assert_eq!(code_of(&console, "x"), 0, "nothing was cancelled");
    let taken = code_of(&console, "d");
    println!("{cpus} CPUs: {counts:?}, d: {taken} taken");
    // Those that pended when it ended may have been let in before they were claimed.
    assert!(taken > 0 && (taken as usize..taken as usize + 9).contains(&counts[&'d']), "{taken}");
}

fn ends(lane: Lane, cpus: u32) {
    let (console, status) = boot("ends", lane, cpus);
    assert_eq!(status, Some(Exit::Pass.qemu_status()), "{console}");
    let counts = lines(&console);
    println!("{cpus} CPUs: {counts:?}");
    for who in ['e', 'f'] {
        assert_eq!(counts[&who], FEW, "lines of {who}");
    }
}

#[test]
fn floods_on_one_cpu() {
    floods(Lane::Deterministic, 1);
}

#[test]
fn floods_on_two_cpus() {
    floods(Lane::Racing, 2);
}

#[test]
fn floods_on_four_cpus() {
    floods(Lane::Racing, 4);
}

#[test]
fn the_end_of_the_system_on_one_cpu() {
    ends(Lane::Deterministic, 1);
}

#[test]
fn the_end_of_the_system_on_two_cpus() {
    ends(Lane::Racing, 2);
}

#[test]
fn the_end_of_the_system_on_four_cpus() {
    ends(Lane::Racing, 4);
}
