//! Shares and accounts on a machine of host threads: by a thread's own capability, and of any thread by its name.

use abi_types::{CapSlot, ExceptionKind, Pid, Status, ThreadRef, Tid};
use core_sched_policy::Weight;
use kernel_process::scheduling;
use schema::scheduler_control::methods as control;
use schema::scheduler_control::{SetWeightParams, SnapshotParams, ThreadsParams, ThreadsResults};
use schema::scheduler_control::{SetWeightResults, SnapshotResults, ThreadAccount, ThreadName};
use schema::scheduler_control_capnp::ControlResult;
use schema::scheduling_policy as policy;
use schema_wire::{Exception, Message, Value};
use std::sync::Arc;
use test_machine::{Body, Config, Done, Grant, HostObject, Process, User, run};
use zerocopy::IntoBytes;

fn on(cpus: usize) -> Config {
    Config { cpus, ..Config::default() }
}

fn process(name: &'static str, main: impl Fn(User) + Send + Sync + 'static) -> Process {
    Process::new(name, main)
        .with("own", Grant::Object(HostObject::SchedulingPolicy(None)))
        .with("low", Grant::Object(HostObject::SchedulingPolicy(Weight::new(100).ok())))
        .with("scheduler", Grant::Object(HostObject::SchedulerControl))
}

fn body(body: impl Fn(User) + Send + Sync + 'static) -> Body {
    Arc::new(body)
}

fn bytes(done: &Done) -> &[u8] {
    &done.words.as_bytes()[..done.cqe.length as usize]
}

fn results<T: for<'m> Value<'m>>(done: &Done) -> Result<T, ExceptionKind> {
    match done.status() {
        Status::Ok => Ok(Message::new(bytes(done)).unwrap().get().unwrap()),
        Status::Exception => Err(Exception::decode(bytes(done)).unwrap().kind()),
        other => panic!("{other:?}"),
    }
}

fn weigh_self(user: &mut User, cap: &str, weight: u16) -> Status {
    let slot = user.cap(cap);
    let params = policy::SetWeightParams { weight };
    let sqe = user.typed::<policy::methods::SetWeight>(slot, 0, &params);
    user.call(sqe).status()
}

fn own(user: &mut User) -> policy::SnapshotResults {
    let slot = user.cap("own");
    results(&user.call(User::calling_of::<policy::methods::Snapshot>(slot))).unwrap()
}

fn wire(of: ThreadRef) -> ThreadName {
    ThreadName {
        pid: of.pid.0,
        process_generation: of.process_generation,
        tid: of.tid.0,
        thread_generation: of.thread_generation,
    }
}

fn weigh(user: &mut User, thread: ThreadRef, weight: u16) -> Result<ControlResult, ExceptionKind> {
    let slot = user.cap("scheduler");
    let params = SetWeightParams { thread: wire(thread), weight };
    let sqe = user.typed::<control::SetWeight>(slot, 0, &params);
    results::<SetWeightResults>(&user.call(sqe)).map(|results| results.result)
}

fn seen(user: &mut User, thread: ThreadRef) -> (ControlResult, ThreadAccount) {
    let slot = user.cap("scheduler");
    let sqe = user.typed::<control::Snapshot>(slot, 0, &SnapshotParams { thread: wire(thread) });
    let SnapshotResults { result, account } = results(&user.call(sqe)).unwrap();
    (result, account)
}

/// The threads of the machine, a page of one after the other: results are inline.
fn all(user: &mut User) -> Vec<ThreadRef> {
    let slot = user.cap("scheduler");
    let (mut found, mut after) =
        (Vec::new(), ThreadName { pid: 0, process_generation: 0, tid: 0, thread_generation: 0 });
    loop {
        let sqe = user.typed::<control::Threads>(slot, 0, &ThreadsParams { after });
        let done = user.call(sqe);
        let message = Message::new(bytes(&done)).unwrap();
        let page: ThreadsResults<'_> = message.get().unwrap();
        for one in page.accounts.iter().map(Result::unwrap) {
            let name = ThreadRef {
                pid: Pid(one.pid),
                process_generation: one.process_generation,
                tid: Tid(one.tid),
                thread_generation: one.thread_generation,
            };
            after = wire(name);
            found.push(name);
        }
        if !page.more {
            return found;
        }
    }
}

fn name(user: &User) -> ThreadRef {
    scheduling::name_at(user.machine(), user.slot()).expect("it runs")
}

#[test]
fn a_thread_weighs_itself_up_to_its_ceiling() {
    let main = |mut user: User| {
        assert_eq!(own(&mut user).weight, 64);
        for (cap, weight, status) in [
            ("own", 64, Status::Ok),
            ("own", 65, Status::Exception),
            ("own", 0, Status::Exception),
            ("low", 101, Status::Exception),
            ("low", 100, Status::Ok),
        ] {
            assert_eq!(weigh_self(&mut user, cap, weight), status, "{cap} {weight}");
        }
        // It has run on since: the weight is not in effect, and time passes by the one that is.
        let before = own(&mut user);
        assert_eq!(before.weight, 64);
        user.compute();
        let after = own(&mut user);
        assert!(after.runtime_ns > before.runtime_ns);
        let passed = after.virtual_runtime_ns - before.virtual_runtime_ns;
        assert_eq!(passed, after.runtime_ns - before.runtime_ns);
        let sleep = user.sleeping(1, 1_000_000);
        assert_eq!(user.call(sleep).status(), Status::Ok);
        let slept = own(&mut user);
        assert_eq!(slept.weight, 100);
        assert!(slept.voluntary_blocks > after.voluntary_blocks);
        user.exit(0);
    };
    let report = run(
        on(1),
        vec![process("main", main).with("timer", Grant::Object(HostObject::Timer))],
        vec![],
    );
    assert_eq!(report.ends, [("main".to_string(), 0)]);
}

#[test]
fn threads_are_weighed_by_name_wherever_they_are() {
    for cpus in [1, 2, 4] {
        let bodies = vec![body(|mut user: User| {
            for _ in 0..user.argument {
                user.compute_a_slice();
            }
            weigh_self(&mut user, "own", 3);
        })];
        let main = |mut user: User| {
            let handles: Vec<CapSlot> =
                (0..3).map(|number| user.spawn(0, 10 + number).unwrap()).collect();
            let me = name(&user);
            for round in 1..=20u16 {
                let there = all(&mut user);
                assert!(there.windows(2).all(|pair| pair[0] < pair[1]), "{there:?}");
                assert!(there.contains(&me));
                for thread in there {
                    let weight = 1 + round * 50;
                    let stale =
                        ThreadRef { process_generation: thread.process_generation + 2, ..thread };
                    assert_eq!(weigh(&mut user, stale, weight), Ok(ControlResult::StaleGeneration));
                    assert_eq!(weigh(&mut user, thread, 0), Err(ExceptionKind::InvalidArgument));
                    if weigh(&mut user, thread, weight) == Ok(ControlResult::Ok) {
                        let (result, account) = seen(&mut user, thread);
                        let is_its = account.tid == thread.tid.0 && account.pid == thread.pid.0;
                        assert!(result == ControlResult::StaleGeneration || is_its);
                    }
                }
                user.compute_a_slice();
            }
            for handle in handles {
                let join = user.joining(handle);
                assert_eq!(user.call(join).status(), Status::Ok);
            }
            assert_eq!(all(&mut user), [me], "the ended and the kernel's own have no names");
            user.exit(0);
        };
        let report = run(on(cpus), vec![process("main", main)], bodies);
        assert_eq!(report.ends, [("main".to_string(), 0)]);
    }
}

#[test]
fn a_name_is_stale_once_its_thread_or_process_has_ended() {
    let bodies = vec![body(|user: User| drop(user))];
    let main = |mut user: User| {
        let m = user.machine();
        let handle = user.spawn(0, 0).unwrap();
        let me = name(&user);
        let other = all(&mut user).into_iter().find(|name| *name != me);
        let join = user.joining(handle);
        assert_eq!(user.call(join).status(), Status::Ok);
        let other = other.expect("a thread that nobody let run");
        assert_eq!(weigh(&mut user, other, 7), Ok(ControlResult::StaleGeneration));
        assert_eq!(seen(&mut user, other).0, ControlResult::StaleGeneration);
        assert!(scheduling::account(m, other).is_none());
        // Numbers that are nobody's.
        for slot in [u32::MAX, 1 << 20] {
            let nobody = ThreadRef { tid: Tid(slot), ..me };
            assert_eq!(weigh(&mut user, nobody, 7), Ok(ControlResult::StaleGeneration));
            let nobody = ThreadRef { pid: Pid(slot), ..me };
            assert_eq!(weigh(&mut user, nobody, 7), Ok(ControlResult::StaleGeneration));
        }
        assert!(scheduling::load(m, 0).is_some_and(|load| load.runnable >= 1));
        assert_eq!((scheduling::load(m, 1), scheduling::load(m, u32::MAX)), (None, None));
        user.exit(0);
    };
    let report = run(on(1), vec![process("main", main)], bodies);
    assert_eq!(report.ends, [("main".to_string(), 0)]);
}
