//! Nurseries: borrowing, results, cancellation, deadlines.
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;

use fiber_chan::{bounded, unbounded};
use fiber_nursery::{JoinError, Nursery, nursery, spawn};
use fiber_rt::{
    Cancelled, Mutex, Runtime, Thread, What, is_cancelled, scope, shield, sleep, yield_now,
};

use crate::{runtime, scaled, settle, until};

fn runtimes() -> impl Iterator<Item = Runtime> {
    [1, 2, 4].into_iter().map(runtime)
}

/// Lets them run for long enough that whoever could run has.
fn let_others_run() {
    for _ in 0..100 {
        yield_now().unwrap();
        Thread::pause();
    }
}

const LONG: Duration = Duration::from_secs(1000);

/// Fibers at once, where it is about many.
const MANY: usize = scaled(1000, 200) as usize;

pub fn a_fiber_borrows_and_its_result_is_joined() {
    for runtime in runtimes() {
        let text = String::from("outside");
        let length = runtime.run(|| {
            let local = [1, 2, 3];
            nursery(|n| {
                let sum = n.spawn(|| local.iter().sum::<usize>());
                let length = n.spawn(|| text.len());
                sum.join().unwrap() + length.join().unwrap()
            })
        });
        assert_eq!(length, 13);
    }
}

pub fn a_nursery_waits_for_fibers_nobody_joins() {
    for runtime in runtimes() {
        let count = AtomicUsize::new(0);
        runtime.run(|| {
            nursery(|n| {
                for _ in 0..MANY {
                    n.spawn(|| {
                        yield_now().unwrap();
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
            assert_eq!(count.load(Ordering::Relaxed), MANY);
        });
    }
}

/// Takes so many bytes along, and brings as many back.
fn carry<const BYTES: usize>(runtime: &Runtime) {
    let bytes: [u8; BYTES] = core::array::from_fn(|at| (at % 251) as u8);
    let back = runtime.run(|| {
        nursery(|n| {
            let fiber = n.spawn(move || {
                yield_now().unwrap();
                bytes
            });
            fiber.join().unwrap()
        })
    });
    assert_eq!(back, bytes);
}

/// As an atomic for other cores' lines is aligned, and more.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(256))]
struct Aligned(u8);

pub fn what_a_fiber_takes_along_and_brings_back_may_be_of_any_size() {
    for runtime in runtimes() {
        carry::<0>(&runtime);
        carry::<1000>(&runtime);
        carry::<1016>(&runtime);
        carry::<1024>(&runtime);
        carry::<1100>(&runtime);
        carry::<2000>(&runtime);
        let aligned = [Aligned(1), Aligned(2), Aligned(3)];
        let back = runtime.run(|| {
            nursery(|n| {
                let fiber = n.spawn(move || {
                    assert!(aligned.iter().all(|it| ptr::from_ref(it).addr() % 256 == 0));
                    aligned
                });
                fiber.join().unwrap()
            })
        });
        assert_eq!(back, aligned);
    }
}

pub fn fibers_spawn_into_their_own_nursery() {
    for runtime in runtimes() {
        let count = AtomicUsize::new(0);
        runtime.run(|| {
            nursery(|n| {
                n.spawn(|| {
                    for _ in 0..10 {
                        n.spawn(|| count.fetch_add(1, Ordering::Relaxed));
                    }
                });
            });
        });
        assert_eq!(count.load(Ordering::Relaxed), 10);
    }
}

pub fn results_nobody_takes_are_dropped_before_the_nursery_ends() {
    struct Counts<'a>(&'a AtomicUsize);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for runtime in runtimes() {
        let dropped = AtomicUsize::new(0);
        runtime.run(|| {
            nursery(|n| {
                // Dropped at once, dropped after the end, forgotten.
                drop(n.spawn(|| Counts(&dropped)));
                let late = n.spawn(|| Counts(&dropped));
                core::mem::forget(n.spawn(|| Counts(&dropped)));
                until(|| late.is_finished());
                drop(late);
            });
            assert_eq!(dropped.load(Ordering::Relaxed), 3);
        });
    }
}

/// Fibers that are there at once, each with a stack of its own.
fn stacks_are_not_shared() {
    nursery(|n| {
        for number in 0..8 {
            n.spawn(move || {
                let mine = [number; 64];
                for _ in 0..4 {
                    let _ = yield_now();
                    assert!(mine.iter().all(|value| *value == number), "two fibers on one stack");
                }
            });
        }
    });
}

pub fn a_forgotten_result_that_is_a_handle_gives_its_frame_back_once() {
    for runtime in runtimes() {
        runtime.run(|| {
            nursery(|n| core::mem::forget(n.spawn(move || n.spawn(|| String::from("inner")))));
            stacks_are_not_shared();
            // The same with what a scope keeps.
            scope(|s| {
                s.keep(s.spawn(|| String::from("kept")).unwrap());
            });
            stacks_are_not_shared();
        });
        assert!(runtime.dump().fibers.is_empty(), "{}", runtime.dump());
    }
}

pub fn what_is_dropped_last_spawns_nothing() {
    struct Spawns<'scope, 'env>(&'scope Nursery<'scope, 'env>, &'env AtomicUsize);
    impl Drop for Spawns<'_, '_> {
        fn drop(&mut self) {
            let ran = self.1;
            let handle = self.0.spawn(move || ran.fetch_add(1, Ordering::Relaxed));
            assert!(matches!(handle.join(), Err(JoinError::Cancelled)));
            ran.fetch_add(100, Ordering::Relaxed);
        }
    }
    for runtime in runtimes() {
        let ran = AtomicUsize::new(0);
        runtime.run(|| nursery(|n| core::mem::forget(n.spawn(|| Spawns(n, &ran)))));
        assert_eq!(ran.load(Ordering::Relaxed), 100);
    }
}

pub fn a_result_is_dropped_on_a_fibers_stack_whenever_its_handle_goes() {
    const ROUNDS: usize = scaled(20_000, 100) as usize;
    /// Waits for a fiber when it is dropped, which only a fiber can.
    struct Waits<'a>(&'a AtomicUsize);
    impl Drop for Waits<'_> {
        fn drop(&mut self) {
            nursery(|n| n.spawn(|| ()).join().unwrap());
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let runtime = runtime(2);
    let dropped = AtomicUsize::new(0);
    runtime.run(|| {
        let has_begun = AtomicBool::new(false);
        nursery(|n| {
            let (give, take) = unbounded();
            // On one worker fibers end, on the other their handles go, sooner or later.
            n.spawn(|| {
                let take = take;
                for round in 0..ROUNDS {
                    let handle = loop {
                        match take.try_recv() {
                            Ok(handle) => break handle,
                            Err(_) if yield_now().is_err() => return,
                            Err(_) => {}
                        }
                    };
                    while !has_begun.swap(false, Ordering::Acquire) {
                        if yield_now().is_err() {
                            return;
                        }
                    }
                    for _ in 0..round % 32 {
                        core::hint::spin_loop();
                    }
                    drop(handle);
                }
            });
            for round in 0..ROUNDS {
                let handle = n.spawn(|| {
                    has_begun.store(true, Ordering::Release);
                    Waits(&dropped)
                });
                give.send(handle).unwrap();
                while dropped.load(Ordering::Relaxed) <= round {
                    assert!(!n.is_cancelled(), "a drop panicked");
                    let _ = yield_now();
                }
            }
        });
    });
    assert_eq!(dropped.load(Ordering::Relaxed), ROUNDS);
}

pub fn cancellation_is_sticky_and_ends_every_wait() {
    for runtime in runtimes() {
        runtime.run(|| {
            nursery(|n| {
                let seen = n.spawn(|| {
                    let first = sleep(LONG);
                    let again = sleep(LONG);
                    (first, again, yield_now(), is_cancelled())
                });
                settle(&runtime);
                n.cancel();
                assert!(n.is_cancelled());
                let expected = (Err(Cancelled), Err(Cancelled), Err(Cancelled), true);
                assert_eq!(seen.join().unwrap(), expected);
                assert!(n.try_spawn(|| ()).unwrap_err().is_closing());
                assert!(matches!(n.spawn(|| ()).join(), Err(JoinError::Cancelled)));
            });
        });
    }
}

pub fn one_fiber_is_cancelled_and_its_sibling_is_not() {
    for runtime in runtimes() {
        runtime.run(|| {
            nursery(|n| {
                let one = n.spawn(|| sleep(LONG));
                let other = n.spawn(|| sleep(Duration::from_millis(20)));
                settle(&runtime);
                one.cancel();
                assert_eq!(one.join().unwrap(), Err(Cancelled));
                assert_eq!(other.join().unwrap(), Ok(()));
            });
        });
    }
}

pub fn a_wait_for_a_fiber_that_is_interrupted_loses_no_result() {
    for runtime in runtimes() {
        let is_interrupted = &AtomicBool::new(false);
        runtime.run(|| {
            nursery(|n| {
                let (go, gone) = bounded::<u32>(1);
                let waits = n.spawn(move || {
                    let mut handle = n.spawn(move || shield(|| gone.recv()));
                    assert_eq!(handle.wait(), Err(Cancelled));
                    assert!(!handle.is_finished());
                    is_interrupted.store(true, Ordering::Relaxed);
                    shield(|| handle.wait()).unwrap();
                    shield(|| handle.wait()).unwrap();
                    assert!(handle.is_finished());
                    // Cancelled or not, there is nothing to wait for.
                    handle.join()
                });
                until(|| runtime.dump().fibers.iter().any(|f| f.waits_for == What::Join));
                waits.cancel();
                until(|| is_interrupted.load(Ordering::Relaxed));
                go.send(1).unwrap();
                assert_eq!(waits.join().unwrap().unwrap(), Ok(1));
                // One that has ended, dropped after a wait.
                let mut ended = n.spawn(|| String::from("dropped"));
                ended.wait().unwrap();
            });
        });
    }
}

pub fn a_shield_masks_the_cancellation() {
    for runtime in runtimes() {
        runtime.run(|| {
            nursery(|n| {
                let fiber = n.spawn(|| {
                    let shielded = shield(|| sleep(Duration::from_millis(20)));
                    (shielded, sleep(LONG))
                });
                settle(&runtime);
                n.cancel();
                assert_eq!(fiber.join().unwrap(), (Ok(()), Err(Cancelled)));
            });
        });
    }
}

pub fn a_shield_within_a_shield_leaves_the_outer_one() {
    for runtime in runtimes() {
        let waits = || runtime.dump().fibers.iter().any(|fiber| fiber.waits_for == What::Receive);
        runtime.run(|| {
            nursery(|n| {
                let (go, gone) = bounded::<u32>(0);
                let fiber = n.spawn(move || {
                    let inner = shield(|| (shield(|| gone.recv()), gone.recv()));
                    (inner, sleep(LONG))
                });
                until(waits);
                fiber.cancel();
                let_others_run();
                assert!(waits(), "the inner shield has ended the outer one");
                go.send(1).unwrap();
                until(waits);
                let_others_run();
                assert!(waits(), "the inner shield has ended the outer one");
                go.send(2).unwrap();
                assert_eq!(fiber.join().unwrap(), ((Ok(1), Ok(2)), Err(Cancelled)));
            });
        });
    }
}

pub fn a_mutex_in_a_shield_is_waited_for_by_who_is_cancelled() {
    for runtime in runtimes() {
        let (mutex, has_entered) = (&Mutex::new(0), &AtomicBool::new(false));
        let waits = || runtime.dump().fibers.iter().any(|fiber| fiber.waits_for == What::Mutex);
        runtime.run(|| {
            nursery(|n| {
                let mut guard = mutex.lock();
                let fiber = n.spawn(|| {
                    shield(|| {
                        let mut guard = mutex.lock();
                        has_entered.store(true, Ordering::Relaxed);
                        *guard *= 10;
                    });
                });
                until(waits);
                fiber.cancel();
                // If it takes the cancellation for the lock, it enters meanwhile.
                let_others_run();
                assert!(!has_entered.load(Ordering::Relaxed), "two have the lock");
                *guard = 1;
                drop(guard);
                fiber.join().unwrap();
                assert_eq!(*mutex.lock(), 10);
            });
        });
    }
}

pub fn a_nursery_in_a_shield_waits_for_its_fibers_when_its_owner_is_cancelled() {
    for runtime in runtimes() {
        let is_left = &AtomicBool::new(false);
        let waits = || runtime.dump().fibers.iter().any(|fiber| fiber.waits_for == What::Scope);
        runtime.run(|| {
            nursery(|n| {
                let (go, gone) = bounded::<u32>(0);
                let owner = n.spawn(move || {
                    let mut got = None;
                    shield(|| nursery(|inner| _ = inner.spawn(|| got = gone.recv().ok())));
                    is_left.store(true, Ordering::Relaxed);
                    got
                });
                until(waits);
                owner.cancel();
                let_others_run();
                assert!(!is_left.load(Ordering::Relaxed), "a fiber has outlived its nursery");
                go.send(1).unwrap();
                assert_eq!(owner.join().unwrap(), Some(1));
            });
        });
    }
}

pub fn a_deadline_cancels_and_an_inner_nursery_passes_it_on() {
    for runtime in runtimes() {
        runtime.run(|| {
            let inner = nursery(|n| {
                n.cancel_after(Duration::from_millis(5));
                let fiber = n.spawn(|| nursery(|inner| inner.spawn(|| sleep(LONG)).join()));
                fiber.join()
            });
            // Whichever wait saw it first.
            match inner {
                Ok(Ok(slept)) => assert_eq!(slept, Err(Cancelled)),
                Ok(Err(error)) | Err(error) => assert!(!matches!(error, JoinError::Panicked(_))),
            }
        });
    }
}

pub fn a_deadline_that_is_not_met_does_nothing() {
    let runtime = runtime(2);
    runtime.run(|| {
        nursery(|n| {
            n.cancel_after(LONG);
            assert_eq!(n.spawn(|| sleep(Duration::from_millis(1))).join().unwrap(), Ok(()));
            assert!(!n.is_cancelled());
        });
    });
    assert_eq!(runtime.stats().timers, 0);
}

pub fn a_later_deadline_replaces_an_earlier_one() {
    let runtime = runtime(2);
    runtime.run(|| {
        nursery(|n| {
            n.cancel_after(Duration::from_millis(5));
            n.cancel_after(LONG);
            assert_eq!(runtime.stats().timers, 1);
            sleep(Duration::from_millis(20)).unwrap();
            assert!(!n.is_cancelled());
            n.cancel_after(Duration::from_millis(1));
            assert_eq!(n.spawn(|| sleep(LONG)).join().unwrap_or(Err(Cancelled)), Err(Cancelled));
        });
        // Many that expire while they are replaced.
        for _ in 0..scaled(2000, 50) {
            nursery(|n| {
                n.cancel_after(Duration::from_micros(50));
                n.spawn(|| sleep(Duration::from_micros(60)));
                let _ = sleep(Duration::from_micros(40));
                n.cancel_after(LONG);
            });
        }
    });
    assert_eq!(runtime.stats().timers, 0);
}

pub fn run_waits_for_what_was_spawned_into_the_root() {
    for runtime in runtimes() {
        let count = Arc::new(AtomicUsize::new(0));
        let handle = runtime.run({
            let count = count.clone();
            move || {
                for _ in 0..10 {
                    let count = count.clone();
                    spawn(move || {
                        yield_now().unwrap();
                        count.fetch_add(1, Ordering::Relaxed)
                    });
                }
                spawn(|| String::from("kept"))
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 10);
        // The handle outlives `run`, and even the runtime.
        drop(runtime);
        assert_eq!(handle.join().unwrap(), "kept");
    }
}

pub fn a_cancelled_run_of_spawns_loses_none() {
    for runtime in runtimes() {
        let ran = AtomicUsize::new(0);
        runtime.run(|| {
            nursery(|n| {
                let handles: Vec<_> = (0..MANY / 2)
                    .map(|i| {
                        if i == MANY / 4 {
                            n.cancel();
                        }
                        n.spawn(|| ran.fetch_add(1, Ordering::Relaxed))
                    })
                    .collect();
                let joined = handles.into_iter().filter(|_| true).map(|h| h.join());
                let ok = joined.filter(Result::is_ok).count();
                assert_eq!(ok, ran.load(Ordering::Relaxed));
                assert!(ok <= MANY / 4);
            });
        });
    }
}
