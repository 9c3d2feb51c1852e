//! Lives of threads and processes, on a machine of host threads: begin, join, kill, exit, and what is left.

use abi_ring::Outcome;
use abi_types::{NEVER, Opcode, Sqe, SqeFlags, Status};
use core_thread::ThreadKey;
use kernel_ops::complete::complete;
use kernel_ops::machine::Defect;
use kernel_ops::party::{Fit, Party};
use schema::thread_control::{ExitThreadParams, methods};
use schema_wire::Exception;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use test_machine::{Body, Config, Done, Grant, Process, Report, User, run};
use zerocopy::IntoBytes;

fn sqe(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, ..Sqe::default() }
}

fn body(body: impl Fn(User) + Send + Sync + 'static) -> Body {
    Arc::new(body)
}

fn run_one(
    config: Config,
    main: impl Fn(User) + Send + Sync + 'static,
    bodies: Vec<Body>,
) -> Report {
    run(config, vec![Process::new("main", main)], bodies)
}

fn ended_with(report: &Report) -> Vec<(&str, i64)> {
    report.ends.iter().map(|(name, code)| (name.as_str(), *code)).collect()
}

/// Ends the thread with a code.
fn exit_thread(mut user: User, code: i64) {
    let control = user.cap("control");
    let exit = user.typed::<methods::ExitThread>(control, 0, &ExitThreadParams { code });
    user.call(exit);
    unreachable!("it has ended");
}

fn joined(user: &mut User, handle: abi_types::CapSlot) -> (Status, i64) {
    let join = user.joining(handle);
    let done = user.call(join);
    (done.status(), code_of(&done))
}

/// The exit code that a join brought.
fn code_of(done: &Done) -> i64 {
    if done.status() != Status::Ok {
        return 0;
    }
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    let message = schema_wire::Message::new(bytes).unwrap();
    message.get::<schema::thread_handle::JoinResults>().unwrap().exit_code
}

fn sentence(done: &Done) -> String {
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    Exception::decode(bytes).unwrap().message().to_string()
}

#[test]
fn a_join_brings_the_code_before_and_after_the_end() {
    let bodies = vec![body(|user| {
        let code = user.argument as i64 - 10;
        exit_thread(user, code)
    })];
    let main = |mut user: User| {
        let (early, late) = (user.spawn(0, 3).unwrap(), user.spawn(0, 30).unwrap());
        assert_eq!(joined(&mut user, early), (Status::Ok, -7));
        for _ in 0..20 {
            user.compute_a_slice();
        }
        assert_eq!(joined(&mut user, late), (Status::Ok, 20));
        assert_eq!(joined(&mut user, late).0, Status::Exception, "joined twice");
        for handle in [early, late] {
            let release = Sqe { cap: handle.to_bits(), ..sqe(Opcode::Release) };
            assert_eq!(user.call(release).status(), Status::Ok);
        }
        user.exit(4)
    };
    assert_eq!(ended_with(&run_one(Config::default(), main, bodies)), [("main", 4)]);
}

/// Whether a thread has ended, and with what.
fn looked_at(user: &mut User, handle: abi_types::CapSlot) -> Option<i64> {
    use schema::thread_handle::{ExitCodeResults, methods};
    let done = user.call(User::calling_of::<methods::ExitCode>(handle));
    assert_eq!(done.status(), Status::Ok);
    let bytes = &done.words.as_bytes()[..done.cqe.length as usize];
    let message = schema_wire::Message::new(bytes).unwrap();
    let seen = message.get::<ExitCodeResults>().unwrap();
    seen.exited.then_some(seen.exit_code)
}

#[test]
fn a_look_at_a_thread_does_not_wait_and_does_not_join() {
    let bodies = vec![body(|mut user| {
        let sleep = user.sleeping(0, 50_000_000);
        user.call(sleep);
        exit_thread(user, -5)
    })];
    let main = |mut user: User| {
        let handle = user.spawn(0, 0).unwrap();
        assert_eq!(looked_at(&mut user, handle), None);
        let sleep = user.sleeping(0, 200_000_000);
        user.call(sleep);
        assert_eq!(looked_at(&mut user, handle), Some(-5));
        assert_eq!(looked_at(&mut user, handle), Some(-5), "looking took it");
        assert_eq!(joined(&mut user, handle), (Status::Ok, -5));
    };
    assert_eq!(ended_with(&run_one(Config::default(), main, bodies)), [("main", 0)]);
}

#[test]
fn no_thread_is_made_without_a_record_and_its_ring_is_kept_for_the_next() {
    let bodies = vec![body(|mut user| {
        let sleep = user.sleeping(0, 50_000_000);
        user.call(sleep);
    })];
    let main = |mut user: User| {
        let only = user.spawn(0, 0).unwrap();
        for _ in 0..20 {
            assert_eq!(user.spawn(0, 0), Err(Status::Exception), "one record was left");
        }
        assert_eq!(joined(&mut user, only), (Status::Ok, 0));
        let release = Sqe { cap: only.to_bits(), ..sqe(Opcode::Release) };
        assert_eq!(user.call(release).status(), Status::Ok);
        for _ in 0..6 {
            user.compute_a_slice();
        }
        let next = user.spawn(0, 0).expect("its record is free again");
        assert_eq!(joined(&mut user, next), (Status::Ok, 0));
    };
    // The reaper, the first thread, and one more.
    let config = Config { threads: 3, ..Config::default() };
    let report = run_one(config, main, bodies);
    assert_eq!(ended_with(&report), [("main", 0)]);
    // A stack, a ring and a record for the only one; a stack for each that was refused, and a ring for the first of them.
    // Each of the two rings has two lists of cells and one of timers on the heap.
    assert_eq!(
        report.allocations,
        3 + 20 + 1 + 1 + 2 * 3,
        "the ring of a thread that was refused was lost"
    );
}

#[test]
fn a_pending_join_can_be_cancelled_and_made_again() {
    let bodies = vec![body(|mut user| {
        let sleep = user.sleeping(0, 50_000_000);
        user.call(sleep);
    })];
    let main = |mut user: User| {
        let handle = user.spawn(0, 0).unwrap();
        let join = Sqe { user_data: 5, ..user.joining(handle) };
        assert!(user.submit(join));
        user.enter(0, 0);
        assert!(user.submit(Sqe { arg: 5, user_data: 6, ..sqe(Opcode::Cancel) }));
        user.enter(2, NEVER);
        assert_eq!(user.take().unwrap().status(), Status::Cancelled);
        assert_eq!(user.take().unwrap().status(), Status::Ok);
        assert_eq!(joined(&mut user, handle), (Status::Ok, 0));
    };
    assert_eq!(ended_with(&run_one(Config::default(), main, bodies)), [("main", 0)]);
}

#[test]
fn records_of_threads_that_nobody_joins_come_back() {
    let bodies = vec![body(|_| {})];
    let main = |mut user: User| {
        for _ in 0..100 {
            let handle = user.spawn(0, 0).expect("16 threads are allowed, and one lives");
            let release = Sqe { cap: handle.to_bits(), ..sqe(Opcode::Release) };
            assert_eq!(user.call(release).status(), Status::Ok);
            for _ in 0..6 {
                user.compute_a_slice();
            }
        }
    };
    let report = run_one(Config { threads: 6, ..Config::default() }, main, bodies);
    assert_eq!(ended_with(&report), [("main", 0)]);
}

#[test]
fn each_line_of_a_profile_has_its_own_sentence() {
    let sleeper = || {
        body(|mut user| {
            let sleep = user.sleeping(0, 1 << 30);
            user.call(sleep);
        })
    };
    let refusal = |mut user: User, expected: &str| {
        let said = loop {
            let spawner = user.cap("threads");
            let create = schema::thread_spawner::CreateParams {
                entry: 0,
                stack_top: 0,
                arg: 0,
                fs_base: 0,
                flags: 0,
            };
            let sqe = user.typed::<schema::thread_spawner::methods::Create>(spawner, 0, &create);
            let done = user.call(sqe);
            if done.status() != Status::Ok {
                break sentence(&done);
            }
        };
        assert!(said.contains(expected), "{said}");
        user.exit(0)
    };
    let cases: [(&str, fn(&mut core_manifest::Profile)); 5] = [
        ("threads", |profile| profile.threads = 3),
        ("kernel-stack pages", |profile| profile.kernel_stack_pages = 3),
        ("slot for the handle", |profile| profile.cap_slots = 8),
        ("no frames left: ", |profile| profile.frames = 3),
        ("no kernel memory left: ", |profile| profile.kernel_bytes = 9_000),
    ];
    for (expected, shrink) in cases {
        let mut process = Process::new("main", move |user| refusal(user, expected));
        shrink(&mut process.profile);
        let report = run(Config::default(), vec![process], vec![sleeper()]);
        assert_eq!(ended_with(&report), [("main", 0)]);
    }
}

#[test]
fn every_allocation_of_a_thread_can_fail_and_nothing_is_lost() {
    let program = |tried: Arc<AtomicU32>| {
        move |mut user: User| {
            let mut live = Vec::new();
            for n in 0..3 {
                match user.spawn(0, n) {
                    Ok(handle) => live.push(handle),
                    Err(status) => {
                        assert_eq!(status, Status::Exception);
                        tried.fetch_add(1, SeqCst);
                        live.push(user.spawn(0, n).expect("memory is back"));
                    }
                }
            }
            for handle in live {
                assert_eq!(joined(&mut user, handle), (Status::Ok, 0));
            }
        }
    };
    let refused = Arc::new(AtomicU32::new(0));
    let bodies = || vec![body(|_| {})];
    let all = run_one(Config::default(), program(refused.clone()), bodies()).allocations;
    assert!(all >= 4, "a thread needs a stack and a ring: {all}");
    for at in 0..all {
        let config = Config { out_of_memory_at: Some(at), ..Config::default() };
        let report = run_one(config, program(refused.clone()), bodies());
        assert_eq!(ended_with(&report), [("main", 0)], "allocation {at} failed");
    }
    assert_eq!(refused.load(SeqCst), all as u32, "an allocation that failed was not noticed");
}

#[test]
fn an_exit_ends_threads_wherever_they_are() {
    let bodies = vec![
        body(|mut user| {
            let sleep = user.sleeping(0, 1 << 40);
            user.call(sleep);
        }),
        body(|mut user| {
            loop {
                user.compute();
            }
        }),
        body(|mut user| {
            loop {
                user.call(sqe(Opcode::Yield));
            }
        }),
        body(|mut user| {
            let cap = user.cap("park").to_bits();
            let park = Sqe { cap, arg: 0x10_0000, result_address: NEVER, ..sqe(Opcode::Park) };
            user.call(park);
        }),
        body(|mut user| {
            let cap = user.cap("endpoint").to_bits();
            user.call(Sqe { cap, ..sqe(Opcode::Recv) });
        }),
        body(|mut user| {
            let service = user.cap("service");
            user.call(User::calling(service, 0, 0));
        }),
    ];
    for cpus in [1, 2, 3] {
        let main = |mut user: User| {
            user.space().map(0x10_0000, 3, true);
            let handles: Vec<_> = (0..6).map(|entry| user.spawn(entry, 0).unwrap()).collect();
            let join = Sqe { user_data: 9, ..user.joining(handles[0]) };
            assert!(user.submit(join));
            for _ in 0..30 {
                user.compute_a_slice();
            }
            user.enter(0, 0);
            user.exit(-3)
        };
        let main = Process::new("main", main)
            .with("endpoint", Grant::Endpoint)
            .with("service", Grant::Client(0, 0, 1));
        let report = run(Config { cpus, ..Config::default() }, vec![main], bodies.clone());
        assert_eq!(ended_with(&report), [("main", -3)]);
    }
}

#[test]
fn a_thread_made_by_a_process_that_ends_does_not_outlive_it() {
    // The spawner is at a preemption point of its spawn when its sibling ends the process.
    let bodies = vec![
        body(|mut user| {
            for _ in 0..3 {
                user.compute_a_slice();
            }
            user.exit(1)
        }),
        body(|mut user| {
            loop {
                user.compute_a_slice();
            }
        }),
    ];
    for cpus in [1, 2] {
        let main = |mut user: User| {
            user.spawn(0, 0).unwrap();
            loop {
                if user.spawn(1, 0).is_err() {
                    user.compute_a_slice();
                }
            }
        };
        let report = run_one(Config { cpus, ..Config::default() }, main, bodies.clone());
        assert_eq!(ended_with(&report), [("main", 1)]);
    }
}

/// Clients that are killed while their calls are at each of their stages; the server goes on.
#[test]
fn a_server_outlives_its_clients() {
    const CLIENTS: u64 = 6;
    let server = |mut user: User| {
        let endpoint = user.cap("endpoint").to_bits();
        let mut next = Sqe { cap: endpoint, ..sqe(Opcode::Recv) };
        loop {
            let done = user.call(next);
            assert_eq!(done.status(), Status::Ok);
            if done.cqe.badge == CLIENTS {
                user.exit(0);
            }
            for _ in 0..done.cqe.badge {
                user.compute_a_slice();
            }
            let flags = SqeFlags::THEN_RECV;
            next = Sqe { cap: endpoint, flags, arg: done.cqe.token, ..sqe(Opcode::Return) };
        }
    };
    let caller = body(|mut user| {
        let service = user.cap("service");
        loop {
            user.call(User::calling(service, 0, 0));
        }
    });
    for cpus in [1, 2] {
        let left = Arc::new(AtomicU32::new(CLIENTS as u32));
        let all = left.clone();
        let closer = move |mut user: User| {
            while all.load(SeqCst) > 0 {
                user.compute_a_slice();
            }
            let service = user.cap("service");
            assert_eq!(user.call(User::calling(service, 0, 0)).status(), Status::Disconnected);
        };
        let mut processes = vec![
            Process::new("server", server).with("endpoint", Grant::Endpoint),
            Process::new("closer", closer).with("service", Grant::Client(0, 0, CLIENTS)),
        ];
        for badge in 0..CLIENTS {
            let left = left.clone();
            let killer = move |mut user: User| {
                user.spawn(0, 0).unwrap();
                for _ in 0..badge {
                    user.compute_a_slice();
                }
                left.fetch_sub(1, SeqCst);
                user.exit(1)
            };
            let client = Process::new("client", killer);
            processes.push(client.with("service", Grant::Client(0, 0, badge)));
        }
        let config = Config { cpus, ..Config::default() };
        let report = run(config, processes, vec![caller.clone()]);
        assert_eq!(report.ends.len(), 2 + CLIENTS as usize);
    }
}

/// What a planted bug in the end of threads does is noticed.
fn is_found(defect: Defect, main: fn(User), bodies: Vec<Body>) -> bool {
    let config = Config { defect: Some(defect), ..Config::default() };
    let process = Process::new("main", main)
        .with("endpoint", Grant::Endpoint)
        .with("service", Grant::Client(0, 0, 1));
    let runs = AssertUnwindSafe(|| run(config, vec![process], bodies));
    catch_unwind(runs).is_err()
}

#[test]
fn planted_bugs_in_the_end_of_threads_are_found() {
    let sleeper = body(|mut user| {
        let sleep = user.sleeping(0, 1 << 40);
        user.call(sleep);
    });
    let main = |mut user: User| {
        user.spawn(0, 0).unwrap();
        for _ in 0..6 {
            user.compute_a_slice();
        }
        user.exit(0)
    };
    assert!(is_found(Defect::SleepNotCountedOut, main, vec![sleeper]));
    let server = body(|mut user| {
        let cap = user.cap("endpoint").to_bits();
        user.call(Sqe { cap, ..sqe(Opcode::Recv) });
    });
    let served = |mut user: User| {
        user.spawn(0, 0).unwrap();
        let service = user.cap("service");
        assert_eq!(user.call(User::calling(service, 0, 0)).status(), Status::Disconnected);
    };
    assert!(is_found(Defect::ServesOn, served, vec![server]));
}

#[test]
fn planted_bugs_in_accounts_are_found() {
    let main = |mut user: User| {
        let handle = user.spawn(0, 0).unwrap();
        joined(&mut user, handle);
    };
    for defect in [Defect::RecordChargeKept, Defect::StackChargeKept] {
        assert!(is_found(defect, main, vec![body(|_| {})]), "{defect:?} is not noticed");
    }
    // Frames for the ring of the first thread only.
    let refused = |mut user: User| assert!(user.spawn(0, 0).is_err());
    let config = Config { defect: Some(Defect::ReservationKept), ..Config::default() };
    let mut process = Process::new("main", refused);
    process.profile.frames = 2;
    let runs = AssertUnwindSafe(|| run(config, vec![process.clone()], vec![body(|_| {})]));
    assert!(catch_unwind(runs).is_err(), "what stays reserved is not noticed");
    let whole = run(Config::default(), vec![process], vec![body(|_| {})]);
    assert_eq!(ended_with(&whole), [("main", 0)]);
}

/// A completion that comes late, for a thread whose record is another's by now, reaches nobody.
fn late_completion(defect: Option<Defect>) -> Report {
    let first = body(|_| {});
    let second = body(|mut user| {
        let sleep = Sqe { user_data: 77, ..user.sleeping(0, 1_000_000_000) };
        assert_eq!(user.call(sleep).status(), Status::Ok, "another thread's completion");
    });
    let main = |mut user: User| {
        let m = user.machine();
        let ended = user.spawn(0, 0).unwrap();
        assert_eq!(joined(&mut user, ended), (Status::Ok, 0));
        let release = Sqe { cap: ended.to_bits(), ..sqe(Opcode::Release) };
        assert_eq!(user.call(release).status(), Status::Ok);
        let heir = user.spawn(1, 0).unwrap();
        for _ in 0..2 {
            user.compute_a_slice();
        }
        // The reaper and this thread came before it.
        let stale = m.name_of_thread(3).generation - 1;
        let thread = ThreadKey { slot: 3, generation: stale };
        let party = Party { thread, cell: 0, room: Fit::NONE };
        complete(m, party, &Outcome::plain(Status::Cancelled));
        assert_eq!(joined(&mut user, heir), (Status::Ok, 0));
    };
    run_one(Config { defect, ..Config::default() }, main, vec![first, second])
}

#[test]
fn a_completion_for_a_thread_that_is_gone_reaches_nobody() {
    assert_eq!(ended_with(&late_completion(None)), [("main", 0)]);
    let planted = AssertUnwindSafe(|| late_completion(Some(Defect::StaleGeneration)));
    assert!(catch_unwind(planted).is_err(), "a stale completion is not noticed");
}
