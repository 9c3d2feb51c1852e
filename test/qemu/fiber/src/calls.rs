//! Calls and other operations that only the fiber waits for.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use abi_types::{CapSlot, Opcode, Sqe, Status};
use capos_rt::io::status_of;
use capos_rt::now_ns;
use capos_rt::park::park_sqe;
use demo_schema::counter;
use fiber::channel::{bounded, unbounded};
use fiber::ring::{Caller, serve, submit};
use fiber::{Runtime, Thread, blocking, nursery, yield_now};
use fiber_cases::{runtime, settle};
use schema::{park_space, system_info, timer};
use schema_wire::{Answer, CallError, NoResult};
use test_kit::{Outcome, T, check, check_eq, require_ok};
use test_user::Env;

type Test<'a> = T<'a, Env>;

const MS: u64 = 1_000_000;
const FOR_EVER: u64 = 1 << 60;

fn timer_of(env: Env) -> Result<CapSlot, capos_rt::NoCap> {
    env.cap("timer", timer::INTERFACE_ID)
}

fn sleep_in_kernel(slot: CapSlot, ns: u64) -> Result<(), CallError> {
    timer::Client::new(Caller::new(), slot).sleep(ns).map(|_| ())
}

fn is_cancelled(result: &Result<(), CallError>) -> bool {
    *result == Err(CallError::Status(Status::Cancelled))
}

/// One worker, and no other ever.
fn alone() -> Runtime {
    Runtime::builder().workers(1).elastic(false).build().unwrap()
}

pub fn others_go_on(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    let ran = AtomicU32::new(0);
    let (slept, early) = alone().run(|| {
        nursery(|n| {
            let caller = n.spawn(|| {
                let begun_ns = now_ns();
                let result = sleep_in_kernel(slot, 3 * MS);
                (result, now_ns() - begun_ns < 3 * MS, ran.load(Ordering::Relaxed))
            });
            for _ in 0..10 {
                n.spawn(|| {
                    yield_now().unwrap();
                    ran.fetch_add(1, Ordering::Relaxed);
                });
            }
            let (result, is_early, seen) = caller.join().unwrap();
            assert_eq!(seen, 10, "they ran while it waited");
            (result, is_early)
        })
    });
    check_eq!(t, (slept, early), (Ok(()), false));
    Ok(())
}

pub fn more_than_the_ring_holds(t: &mut Test<'_>) -> Outcome {
    const CALLERS: usize = 150;
    let slot = require_ok!(t, timer_of(t.env));
    for runtime in [alone(), runtime(3)] {
        let begun = AtomicU32::new(0);
        let good = runtime.run(|| {
            nursery(|n| {
                let callers: Vec<_> = (0..CALLERS)
                    .map(|_| {
                        n.spawn(|| {
                            begun.fetch_add(1, Ordering::Relaxed);
                            sleep_in_kernel(slot, 2 * MS)
                        })
                    })
                    .collect();
                callers
                    .into_iter()
                    .filter(|_| true)
                    .map(|c| c.join().unwrap())
                    .filter(Result::is_ok)
                    .count()
            })
        });
        check_eq!(t, (good, begun.into_inner()), (CALLERS, CALLERS as u32));
    }
    Ok(())
}

pub fn raw_operations(t: &mut Test<'_>) -> Outcome {
    let statuses = runtime(2).run(|| {
        [Opcode::Nop, Opcode::Yield, Opcode::Finish].map(|opcode| {
            let sqe = Sqe { opcode: opcode as u8, user_data: 7, ..Sqe::default() };
            submit(sqe, &[], &mut [0; 16]).map(|cqe| status_of(&cqe))
        })
    });
    check_eq!(t, statuses, [Ok(Status::Ok), Ok(Status::Ok), Ok(Status::UnsupportedOpcode)]);
    Ok(())
}

struct Sum(u64);

impl counter::Server for Sum {
    fn add(&mut self, params: counter::AddParams) -> Answer<counter::AddResults> {
        if params.amount == NEVER_ANSWERED {
            return Err(NoResult::Later);
        }
        self.0 += params.amount;
        Ok(counter::AddResults { total: self.0 })
    }
}

/// The service keeps this call and does not answer it.
const NEVER_ANSWERED: u64 = u64::MAX;

fn serve_sum(endpoint: CapSlot) -> Status {
    let mut sum = Sum(0);
    serve(endpoint, |call, results| counter::dispatch(&mut sum, call.method, call.params, results))
}

pub fn a_service_of_fibers(t: &mut Test<'_>) -> Outcome {
    const CALLERS: u64 = 20;
    const CALLS: u64 = 10;
    let endpoint = require_ok!(t, t.env.cap("own", schema::endpoint::INTERFACE_ID));
    let slot = require_ok!(t, t.env.cap("own-client", counter::INTERFACE_ID));
    for runtime in [alone(), runtime(4)] {
        let (ended, total) = runtime.run(|| {
            nursery(|n| {
                let service = n.spawn(move || serve_sum(endpoint));
                let callers: Vec<_> = (0..CALLERS)
                    .map(|_| {
                        n.spawn(move || {
                            let mut client = counter::Client::new(Caller::new(), slot);
                            let mut last = 0;
                            for _ in 0..CALLS {
                                let total = client.add(3).unwrap().total;
                                assert!(total >= last + 3, "{total} after {last}");
                                last = total;
                            }
                        })
                    })
                    .collect();
                callers.into_iter().for_each(|caller| caller.join().unwrap());
                let total = counter::Client::new(Caller::new(), slot).add(0).unwrap().total;
                service.cancel();
                (service.join().unwrap(), total)
            })
        });
        check_eq!(t, (ended, total), (Status::Cancelled, CALLERS * CALLS * 3));
    }
    Ok(())
}

pub fn another_process(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, t.env.cap("counter", counter::INTERFACE_ID));
    let mut expected = counter::Client::new(t.env.io.caller(), slot).add(0).map_or(0, |a| a.total);
    for runtime in [alone(), runtime(4)] {
        runtime.run(|| {
            nursery(|n| {
                for _ in 0..8 {
                    n.spawn(|| {
                        let mut client = counter::Client::new(Caller::new(), slot);
                        assert!((0..25).all(|_| client.add(2).is_ok()));
                    });
                }
            });
        });
        expected += 8 * 25 * 2;
        let total = counter::Client::new(t.env.io.caller(), slot).add(0).map(|a| a.total);
        check_eq!(t, total, Ok(expected));
    }
    Ok(())
}

pub fn large_results(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, t.env.cap("info", system_info::INTERFACE_ID));
    let (large, small) = alone().run(|| {
        let mut large = system_info::Client::new(Caller::large(), slot);
        let syscalls = large.cpu(0).map(|cpu| cpu.counters.syscalls > 0);
        let mut small = system_info::Client::new(Caller::new(), slot);
        (syscalls, small.cpu(0).map(|_| ()))
    });
    check_eq!(t, large, Ok(true));
    check_eq!(t, small, Err(CallError::Status(Status::ResultTooLarge)));
    Ok(())
}

pub fn errors(t: &mut Test<'_>) -> Outcome {
    let info = require_ok!(t, t.env.cap("info", system_info::INTERFACE_ID));
    let (nothing, exception) = alone().run(|| {
        let nothing = timer::Client::new(Caller::new(), CapSlot::new(60, 1)).now().map(|_| ());
        let mut info = system_info::Client::new(Caller::large(), info);
        (nothing, matches!(info.cpu(100_000).map(|_| ()), Err(CallError::Exception(_))))
    });
    check_eq!(t, nothing, Err(CallError::Status(Status::Disconnected)));
    check!(t, exception);
    Ok(())
}

pub fn a_thread_blocks(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    // The first thread, and one of the program's: neither is a worker.
    check_eq!(t, sleep_in_kernel(slot, MS), Ok(()));
    let (tx, rx) = bounded(1);
    let thread =
        require_ok!(t, Thread::spawn("calls", move || tx.send(sleep_in_kernel(slot, MS)).unwrap()));
    check_eq!(t, rx.recv(), Ok(Ok(())));
    thread.join();
    Ok(())
}

pub fn cancelled(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    let endpoint = require_ok!(t, t.env.cap("own", schema::endpoint::INTERFACE_ID));
    let client = require_ok!(t, t.env.cap("own-client", counter::INTERFACE_ID));
    for runtime in [alone(), runtime(4)] {
        let results = runtime.run(|| {
            nursery(|n| {
                // A sleep; a call nobody has received; one that was received and is not answered; a
                // receive.
                let sleep = n.spawn(|| sleep_in_kernel(slot, FOR_EVER));
                let queued =
                    n.spawn(|| counter::Client::new(Caller::new(), client).add(1).map(|_| ()));
                settle(&runtime);
                // The worker has nothing to do meanwhile, and enters the kernel.
                fiber::sleep(Duration::from_millis(1)).unwrap();
                queued.cancel();
                let queued = queued.join().unwrap();
                let service = n.spawn(|| serve_sum(endpoint));
                let kept = n.spawn(|| {
                    counter::Client::new(Caller::new(), client).add(NEVER_ANSWERED).map(|_| ())
                });
                settle(&runtime);
                fiber::sleep(Duration::from_millis(1)).unwrap();
                n.cancel();
                let again = sleep_in_kernel(slot, 1);
                let service = service.join().unwrap();
                ([sleep.join().unwrap(), queued, kept.join().unwrap()], service, again)
            })
        });
        check!(t, results.0.iter().all(is_cancelled), "{:?}", results.0);
        check_eq!(t, (results.1, results.2), (Status::Cancelled, Ok(())));
    }
    Ok(())
}

pub fn cancelled_in_the_backlog(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    let runtime = alone();
    let cancelled = runtime.run(|| {
        nursery(|n| {
            let callers: Vec<_> =
                (0..150).map(|_| n.spawn(|| sleep_in_kernel(slot, FOR_EVER))).collect();
            // All of them wait: some in the kernel, some for a place.
            settle(&runtime);
            n.cancel();
            let ended = callers.into_iter().map(|caller| caller.join());
            ended.filter(|ended| matches!(ended, Ok(ended) if is_cancelled(ended))).count()
        })
    });
    check_eq!(t, cancelled, 150);
    Ok(())
}

/// Cancels meet answers at every moment: each call has one end, and nothing comes for the wrong one.
pub fn cancelled_or_answered(t: &mut Test<'_>) -> Outcome {
    let endpoint = require_ok!(t, t.env.cap("own", schema::endpoint::INTERFACE_ID));
    let client = require_ok!(t, t.env.cap("own-client", counter::INTERFACE_ID));
    for runtime in [alone(), runtime(3)] {
        let (answered, cancelled) = (AtomicU32::new(0), AtomicU32::new(0));
        runtime.run(|| {
            nursery(|n| {
                let service = n.spawn(|| serve_sum(endpoint));
                for round in 0..20u32 {
                    nursery(|n| {
                        for _ in 0..6 {
                            n.spawn(|| {
                                let mut counter = counter::Client::new(Caller::new(), client);
                                loop {
                                    match counter.add(1) {
                                        Ok(_) => answered.fetch_add(1, Ordering::Relaxed),
                                        Err(error) => {
                                            let status = CallError::Status(Status::Cancelled);
                                            assert_eq!(error, status);
                                            cancelled.fetch_add(1, Ordering::Relaxed);
                                            return;
                                        }
                                    };
                                }
                            });
                        }
                        fiber::sleep(Duration::from_micros(u64::from(round % 7 * 60))).unwrap();
                        n.cancel();
                    });
                }
                // It is as good as before.
                let total = counter::Client::new(Caller::new(), client).add(0).unwrap().total;
                assert!(total >= answered.load(Ordering::Relaxed).into());
                service.cancel();
                assert_eq!(service.join().unwrap(), Status::Cancelled);
            });
        });
        check!(t, cancelled.load(Ordering::Relaxed) <= 120);
        t.metric("answered", answered.load(Ordering::Relaxed).into(), "calls");
        t.metric("cancelled", cancelled.load(Ordering::Relaxed).into(), "calls");
    }
    Ok(())
}

/// A service that is cancelled while it works for a caller still gives the answer it has.
pub fn cancelled_with_an_answer_in_hand(t: &mut Test<'_>) -> Outcome {
    let endpoint = require_ok!(t, t.env.cap("own", schema::endpoint::INTERFACE_ID));
    let client = require_ok!(t, t.env.cap("own-client", counter::INTERFACE_ID));
    for runtime in [alone(), runtime(3)] {
        let (ended, answer) = runtime.run(|| {
            let is_at_work = AtomicBool::new(false);
            nursery(|n| {
                let service = n.spawn(|| {
                    let mut sum = Sum(0);
                    serve(endpoint, |call, results| {
                        is_at_work.store(true, Ordering::Relaxed);
                        while yield_now().is_ok() {}
                        counter::dispatch(&mut sum, call.method, call.params, results)
                    })
                });
                let caller =
                    n.spawn(|| counter::Client::new(Caller::new(), client).add(3).map(|a| a.total));
                while !is_at_work.load(Ordering::Relaxed) {
                    fiber::sleep(Duration::from_micros(100)).unwrap();
                }
                service.cancel();
                let ended = service.join().unwrap();
                // The answer is there by now, and counts.
                caller.cancel();
                (ended, caller.join().unwrap())
            })
        });
        check_eq!(t, (ended, answer), (Status::Cancelled, Ok(3)));
    }
    Ok(())
}

/// A worker that sleeps with a call under way is woken by another thread, and by the completion.
pub fn both_wake_a_worker(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    let (ask, asked) = unbounded();
    let (answer, answered) = unbounded();
    let thread = Thread::spawn("asks", move || {
        for i in 0..50u32 {
            ask.send(i).unwrap();
            assert_eq!(answered.recv(), Ok(i));
        }
    });
    let thread = require_ok!(t, thread);
    let runtime = alone();
    let slept = runtime.run(|| {
        nursery(|n| {
            let long = n.spawn(|| sleep_in_kernel(slot, FOR_EVER));
            let short =
                n.spawn(|| (0..20).map(|_| sleep_in_kernel(slot, MS / 4)).all(|r| r.is_ok()));
            asked.iter().for_each(|value| answer.send(value).unwrap());
            let short = short.join().unwrap();
            settle(&runtime);
            long.cancel();
            is_cancelled(&long.join().unwrap()) && short
        })
    });
    thread.join();
    check!(t, slept);
    Ok(())
}

/// What was asked for through a worker that is then blocked comes all the same.
pub fn a_blocked_worker(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    let slept = runtime(1).run(|| {
        let is_done = AtomicBool::new(false);
        nursery(|n| {
            let caller = n.spawn(|| {
                let result = sleep_in_kernel(slot, MS);
                is_done.store(true, Ordering::Release);
                result
            });
            // Until the call is with the worker, which then does nothing else.
            yield_now().unwrap();
            blocking(|| {
                while !is_done.load(Ordering::Acquire) {
                    Thread::pause();
                }
            });
            caller.join().unwrap()
        })
    });
    check_eq!(t, slept, Ok(()));
    Ok(())
}

/// What found no place in the ring of a worker that is then blocked goes through others.
pub fn a_blocked_worker_with_a_backlog(t: &mut Test<'_>) -> Outcome {
    const CALLERS: u32 = 150;
    let slot = require_ok!(t, timer_of(t.env));
    let done = AtomicU32::new(0);
    let done = &done;
    runtime(1).run(|| {
        nursery(|n| {
            for _ in 0..CALLERS {
                n.spawn(move || {
                    sleep_in_kernel(slot, MS).unwrap();
                    done.fetch_add(1, Ordering::Release);
                });
            }
            yield_now().unwrap();
            // Does not enter the kernel.
            blocking(|| {
                while done.load(Ordering::Acquire) < CALLERS {
                    core::hint::spin_loop();
                }
            });
        });
    });
    check_eq!(t, done.load(Ordering::Relaxed), CALLERS);
    Ok(())
}

/// A PARK is a thread's: one of a fiber's would take the place of its worker's own.
pub fn a_fiber_does_not_park(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    let space = require_ok!(t, t.env.cap("park", park_space::INTERFACE_ID));
    let word = AtomicU32::new(0);
    let parked = alone().run(|| {
        let sqe = park_sqe(space, &word, 0, MS);
        let parked = submit(sqe, &[], &mut [0; 16]).map(|cqe| status_of(&cqe));
        // Its worker sleeps and wakes as ever.
        sleep_in_kernel(slot, MS).unwrap();
        parked
    });
    check_eq!(t, parked, Err(Status::InvalidArgument));
    Ok(())
}

/// A worker's thread asks for something itself while its fibers have all the places of its ring.
pub fn a_thread_beside_a_full_ring(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    let runtime = alone();
    let cancelled = runtime.run(|| {
        nursery(|n| {
            let callers: Vec<_> =
                (0..70).map(|_| n.spawn(|| sleep_in_kernel(slot, FOR_EVER))).collect();
            settle(&runtime);
            Thread::spawn("beside", || ()).unwrap().join();
            n.cancel();
            let ended = callers.into_iter().map(|caller| caller.join());
            ended.filter(|ended| matches!(ended, Ok(ended) if is_cancelled(ended))).count()
        })
    });
    check_eq!(t, cancelled, 70);
    Ok(())
}

/// A fiber waits for a thread, which waits for another fiber to be cancelled.
pub fn cancelled_while_a_thread_is_joined(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    let (over, is_over) = bounded::<()>(0);
    let thread = require_ok!(
        t,
        Thread::spawn("waits", move || {
            let _ = is_over.recv();
        })
    );
    let runtime = runtime(1);
    let result = runtime.run(|| {
        nursery(|n| {
            let long = n.spawn(move || {
                let result = sleep_in_kernel(slot, FOR_EVER);
                drop(over);
                result
            });
            settle(&runtime);
            n.spawn(|| {
                fiber::sleep(Duration::from_millis(1)).unwrap();
                n.cancel();
            });
            blocking(|| thread.join());
            long.join().unwrap()
        })
    });
    check!(t, is_cancelled(&result), "{result:?}");
    Ok(())
}

/// The same when the fiber has no place in the ring to wait for the thread alone, and keeps its worker in the
/// kernel: the cancelled one's call is under way through that worker.
pub fn cancelled_while_a_thread_is_joined_beside_a_full_ring(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    let (over, is_over) = bounded::<()>(0);
    let thread = require_ok!(
        t,
        Thread::spawn("waits", move || {
            let _ = is_over.recv();
        })
    );
    let runtime = runtime(1);
    let result = runtime.run(|| {
        nursery(|n| {
            let long = n.spawn(move || {
                let result = sleep_in_kernel(slot, FOR_EVER);
                drop(over);
                result
            });
            settle(&runtime);
            // The rest of the ring, and some that find no place and go through another worker.
            (0..70).for_each(|_| drop(n.spawn(|| sleep_in_kernel(slot, FOR_EVER))));
            settle(&runtime);
            let cancels = n.spawn(move || {
                fiber::sleep(Duration::from_millis(1)).unwrap();
                long.cancel();
                long.join().unwrap()
            });
            blocking(|| thread.join());
            let result = cancels.join().unwrap();
            n.cancel();
            result
        })
    });
    check!(t, is_cancelled(&result), "{result:?}");
    Ok(())
}

/// A thread that has as much under way as it can have wakes a worker all the same.
pub fn a_thread_with_much_under_way(t: &mut Test<'_>) -> Outcome {
    let io = &t.env.io;
    let runtime = alone();
    check_eq!(t, runtime.run(|| 4), 4);
    let pending: Vec<_> = core::iter::from_fn(|| io.submit(Sqe::default(), &[]).ok()).collect();
    check_eq!(t, pending.len(), capos_rt::io::PENDING);
    check_eq!(t, runtime.run(|| 5), 5);
    for name in pending {
        check_eq!(t, status_of(&io.wait(name, &mut [0; 16])), Status::Ok);
    }
    Ok(())
}

/// A worker for which a completion is to come does not end, also if it is one too many.
pub fn a_surplus_worker_stays(t: &mut Test<'_>) -> Outcome {
    let slot = require_ok!(t, timer_of(t.env));
    let runtime = runtime(1);
    let release = Arc::new(AtomicBool::new(false));
    let slept = runtime.run(|| {
        nursery(|n| {
            let release = &release;
            let blocks = n.spawn(move || {
                blocking(|| {
                    while !release.load(Ordering::Acquire) {
                        Thread::pause();
                    }
                });
            });
            // The substitute runs these, and is surplus as soon as the first one is released.
            let callers: Vec<_> = (0..4)
                .map(|_| {
                    n.spawn(move || {
                        release.store(true, Ordering::Release);
                        sleep_in_kernel(slot, 120 * MS)
                    })
                })
                .collect();
            blocks.join().unwrap();
            callers.into_iter().map(|caller| caller.join().unwrap()).all(|r| r.is_ok())
        })
    });
    check!(t, slept);
    while runtime.stats().live_workers > 1 {
        Thread::pause();
    }
    Ok(())
}
