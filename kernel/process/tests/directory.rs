//! What a ProcessDirectory tells of a machine of host threads: waits of every kind, and processes that come and go.

use abi_types::{CapSlot, NEVER, Opcode, Sqe, Status};
use core_manifest::{Name, Profile};
use core_sched_policy::Weight;
use core_thread::State;
use kernel_ops::capability::ProcessKey;
use kernel_process::NewProcess;
use kernel_process::directory::{self, CapabilityKind, PendingKinds, ProcessState, SeenThread};
use schema::process_directory::{
    LedgerParams, OwnResults, ProcessesParams, ThreadsParams, ThreadsResults, methods,
};
use schema::process_directory_capnp::{DirectoryResult, WaitsFor};
use schema_wire::Message;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use test_machine::{Body, Config, Done, Grant, HostObject, Process, User, run, with_machine};
use zerocopy::IntoBytes;

fn sqe(opcode: Opcode, cap: CapSlot) -> Sqe {
    Sqe { opcode: opcode as u8, cap: cap.to_bits(), ..Sqe::default() }
}

fn body(body: impl Fn(User) + Send + Sync + 'static) -> Body {
    Arc::new(body)
}

fn bytes_of(done: &Done) -> &[u8] {
    assert_eq!(done.status(), Status::Ok);
    &done.words.as_bytes()[..done.cqe.length as usize]
}

fn reader(name: &'static str, main: impl Fn(User) + Send + Sync + 'static) -> Process {
    Process::new(name, main)
        .with("directory", Grant::Object(HostObject::ProcessDirectory))
        .with("endpoint", Grant::Endpoint)
}

/// The process of a thread, by its own word.
fn own(user: &mut User) -> ProcessKey {
    let directory = user.cap("directory");
    let done = user.call(User::calling_of::<methods::Own>(directory));
    let own: OwnResults = Message::new(bytes_of(&done)).unwrap().get().unwrap();
    ProcessKey { slot: own.pid, generation: own.generation }
}

/// All threads of a process, as the kernel sees them.
fn threads_of(user: &User, of: ProcessKey) -> Vec<SeenThread> {
    let m = user.machine();
    let records = 0..kernel_process::Machine::records(m).threads().len() as u32;
    records.filter_map(|slot| directory::thread_at(m, of, slot)).collect()
}

/// A thread of a test: how it begins to wait, and what it is then said to wait for.
type Wait = (fn(&mut User), WaitsFor, fn(&PendingKinds) -> u16);

fn sleeps(user: &mut User) {
    let sleep = user.sleeping(0, 1_000_000_000);
    user.submit(sleep);
}

fn parks(user: &mut User) {
    user.space().map(0x5_0000, 1, true);
    let park = user.cap("park");
    user.submit(Sqe { arg: 0x5_0000, result_address: NEVER, ..sqe(Opcode::Park, park) });
}

fn receives(user: &mut User) {
    let endpoint = user.cap("endpoint");
    user.submit(sqe(Opcode::Recv, endpoint));
}

fn calls(user: &mut User) {
    // Served by nobody.
    let service = user.cap("service");
    user.submit(User::calling(service, 1, 0));
}

fn joins(user: &mut User) {
    let idle = user.spawn(0, 0).unwrap();
    let join = user.joining(idle);
    user.submit(join);
}

const WAITS: [Wait; 5] = [
    (sleeps, WaitsFor::Sleep, |pending| pending.sleeps),
    (parks, WaitsFor::Park, |pending| pending.parks),
    (receives, WaitsFor::Receive, |pending| pending.receives),
    (calls, WaitsFor::Call, |pending| pending.calls),
    (joins, WaitsFor::Join, |pending| pending.joins),
];

#[test]
fn each_thread_is_said_to_wait_for_what_is_pending() {
    for (number, (begin, expected, count)) in WAITS.into_iter().enumerate() {
        let idle = body(|mut user| {
            // Nothing is pending: the time limit alone.
            user.enter(1, 2_000_000_000);
        });
        let waiter = body(move |mut user| {
            begin(&mut user);
            user.enter(1, NEVER);
        });
        let main = move |mut user: User| {
            let waiter = user.spawn(1, 0).unwrap();
            let sleep = user.sleeping(0, 1_000_000);
            assert_eq!(user.call(sleep).status(), Status::Ok);
            let of = own(&mut user);
            let seen = threads_of(&user, of);
            let kinds =
                |thread: &&SeenThread| thread.pending.is_some_and(|kinds| count(&kinds) == 1);
            assert_eq!(seen.iter().filter(kinds).count(), 1, "{number}: {seen:?}");
            let me = seen.iter().find(|thread| thread.key.slot == user.slot()).unwrap();
            assert_eq!((me.state, me.pending), (State::Running, None));
            assert!(!me.is_killed && me.account.voluntary_blocks > 0);
            // The same by the interface, an entry a page.
            let (mut from, mut told) = (0, Vec::new());
            loop {
                let params = ThreadsParams { pid: of.slot, generation: of.generation, from };
                let directory = user.cap("directory");
                let ask = user.typed::<methods::Threads>(directory, 0, &params);
                let done = user.call(ask);
                let message = Message::new(bytes_of(&done)).unwrap();
                let page: ThreadsResults<'_> = message.get().unwrap();
                assert_eq!(page.result, DirectoryResult::Ok);
                told.extend(page.threads.iter().map(|entry| entry.unwrap().waits_for));
                if !page.more {
                    break;
                }
                from = page.next;
            }
            assert_eq!(told.len(), seen.len());
            assert_eq!(told.iter().filter(|kind| **kind == expected).count(), 1, "{told:?}");
            let others = told.iter().filter(|kind| **kind == WaitsFor::Time).count();
            assert_eq!(others, usize::from(expected == WaitsFor::Join));
            let _ = waiter;
            user.exit(0)
        };
        let silent = Process::new("silent", |user: User| {
            let mut user = user;
            let sleep = user.sleeping(0, 3_000_000_000);
            user.call(sleep);
        })
        .with("endpoint", Grant::Endpoint);
        let main = reader("main", main).with("service", Grant::Client(1, 0, 7));
        run(Config::default(), vec![main, silent], vec![idle, waiter]);
    }
}

#[test]
fn hundreds_of_pending_operations_are_counted_in_portions() {
    let waiter = body(|mut user| {
        for _ in 0..300 {
            let sleep = user.sleeping(0, 1_000_000_000);
            assert!(user.submit(sleep));
            user.enter(0, 0);
        }
        receives(&mut user);
        user.enter(1, NEVER);
    });
    let mut main = reader("main", |mut user: User| {
        user.spawn(0, 0).unwrap();
        let sleep = user.sleeping(0, 100_000_000);
        assert_eq!(user.call(sleep).status(), Status::Ok);
        let of = own(&mut user);
        let seen = threads_of(&user, of);
        let waiting = seen.iter().find_map(|thread| thread.pending).unwrap();
        assert_eq!((waiting.sleeps, waiting.receives), (300, 1));
        user.exit(0)
    });
    main.profile.sleep_waiters = 400;
    main.profile.ring_entries = 256;
    main.profile.frames = 1000;
    main.profile.kernel_bytes = 1 << 23;
    run(Config::default(), vec![main], vec![waiter]);
}

#[test]
fn capabilities_are_told_by_name_and_kind() {
    let main = reader("main", |mut user: User| {
        let of = own(&mut user);
        let mut into = [None; 16];
        let looked = directory::capabilities(user.machine(), of, 0, &mut into).unwrap();
        assert!(!looked.has_more, "{looked:?}");
        let kind = |of| into.iter().flatten().filter(|cap| cap.kind == of).count();
        assert_eq!(kind(CapabilityKind::Endpoint), 1);
        assert_eq!(kind(CapabilityKind::Client), 0);
        for name in ["timer", "console", "threads", "control", "park", "directory", "endpoint"] {
            let slot = user.cap(name);
            let cap = into.iter().flatten().find(|cap| cap.slot == slot).unwrap();
            assert!(cap.interface_id != 0, "{name}");
        }
        // From the middle, one at a time, is the same list.
        let (mut from, mut slots) = (0, Vec::new());
        loop {
            let mut one = [None];
            let looked = directory::capabilities(user.machine(), of, from, &mut one).unwrap();
            slots.extend(one.iter().take(looked.count).flatten().map(|cap| cap.slot));
            if !looked.has_more {
                break;
            }
            from = looked.next;
        }
        assert!(slots.iter().eq(into.iter().flatten().map(|cap| &cap.slot)));
        user.exit(0)
    });
    run(Config::default(), vec![main], vec![]);
}

#[test]
fn an_account_is_that_of_the_process_and_of_no_other() {
    let main = reader("main", |mut user: User| {
        let of = own(&mut user);
        for (generation, expected) in [(of.generation, true), (of.generation + 2, false)] {
            let slot = user.cap("directory");
            let params = LedgerParams { pid: of.slot, generation };
            let ask = user.typed::<methods::Ledger>(slot, 0, &params);
            let told = directory::account(user.machine(), ProcessKey { generation, ..of });
            assert_eq!(told.is_some(), expected);
            // 128 bytes of an inline slot do not hold an account: it is refused before it is read.
            assert_eq!(user.call(ask).status(), Status::ResultTooLarge);
        }
        let seen = directory::process_at(user.machine(), of.slot).unwrap();
        assert_eq!((seen.key, seen.name.as_str(), seen.state), (of, "main", ProcessState::Running));
        assert_eq!((seen.live_threads, seen.parent, seen.ended), (1, None, None));
        let slot = user.cap("directory");
        let ask = user.typed::<methods::Processes>(slot, 0, &ProcessesParams { from: 0 });
        assert_eq!(user.call(ask).status(), Status::Exception);
        user.exit(0)
    });
    run(Config::default(), vec![main], vec![]);
}

/// What threads ran is counted once, whether they live or have ended: the sum never goes back.
#[test]
fn time_of_a_process_never_goes_back() {
    static LEFT: AtomicU32 = AtomicU32::new(0);
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    LEFT.store(40, SeqCst);
    let worker = body(|mut user| user.compute_a_slice());
    let main = reader("main", |mut user: User| {
        while LEFT.fetch_sub(1, SeqCst) > 1 {
            let one = user.spawn(0, 0).unwrap();
            let join = user.joining(one);
            user.call(join);
            user.call(sqe(Opcode::Release, one));
        }
        IS_OVER.store(true, SeqCst);
        user.exit(0)
    });
    let watcher = Process::new("watcher", |mut user: User| {
        let (mut last, mut looks) = (0, 0);
        while !IS_OVER.load(SeqCst) {
            if let Some(seen) = directory::process_at(user.machine(), 0)
                && seen.name.as_str() == "main"
            {
                assert!(seen.cpu_time_ns >= last, "{} after {last}", seen.cpu_time_ns);
                assert!(seen.is_cpu_time_whole);
                last = seen.cpu_time_ns;
                looks += 1;
            }
            user.compute();
        }
        assert!(looks > 0);
        user.exit(0)
    });
    run(Config { cpus: 2, ..Config::default() }, vec![main, watcher], vec![worker]);
}

/// Between its new name and all the rest a record says nothing of who was in it before.
#[test]
fn a_record_that_is_being_made_anothers_tells_of_nobody() {
    with_machine(Config::default(), |m, records| {
        let profile = Profile { cap_slots: 1, kernel_bytes: 1 << 12, ..Profile::NONE };
        let new = NewProcess {
            name: Name::new("who was there"),
            profile,
            weight: Weight::DEFAULT,
            is_essential: false,
            serves: &[],
            handles: 0,
            lent: None,
        };
        let (process, _) = records.begin_process(m, new).unwrap();
        let (slot, of) = (process.slot(), process.key());
        let seen = directory::process_at(m, slot).unwrap();
        assert_eq!((seen.key, seen.name.as_str()), (of, "who was there"));
        assert_eq!((seen.state, seen.live_threads), (ProcessState::Starting, 0));
        assert!(directory::account(m, of).is_some() && directory::is_there(m, of));
        assert!(records.vacate(m, process));
        assert_eq!(directory::process_at(m, slot), None);
        assert!(directory::account(m, of).is_none() && !directory::is_there(m, of));
        assert!(process.ops.begin(slot, 99, &profile));
        assert_eq!(directory::process_at(m, slot), None, "a new name and old contents");
        assert_eq!(directory::account(m, process.key()), None);
        let mut into = [None];
        let looked = directory::capabilities(m, process.key(), 0, &mut into).unwrap();
        assert_eq!((looked.count, looked.has_more), (0, false));
        assert!(process.ops.vacate());
    });
}
