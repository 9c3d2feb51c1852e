//! Nurseries: borrowing, results, panics, cancellation, deadlines.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fiber_nursery::{JoinError, nursery, spawn};
use fiber_rt::{Cancelled, Runtime, is_cancelled, shield, sleep, yield_now};

fn runtimes() -> impl Iterator<Item = Runtime> {
    [1, 2, 4].into_iter().map(|workers| Runtime::builder().workers(workers).build().unwrap())
}

const LONG: Duration = Duration::from_secs(1000);

#[test]
fn a_fiber_borrows_and_its_result_is_joined() {
    for runtime in runtimes() {
        let text = String::from("outside");
        let length = runtime.run(|| {
            let local = vec![1, 2, 3];
            nursery(|n| {
                let sum = n.spawn(|| local.iter().sum::<usize>());
                let length = n.spawn(|| text.len());
                sum.join().unwrap() + length.join().unwrap()
            })
        });
        assert_eq!(length, 13);
    }
}

#[test]
fn a_nursery_waits_for_fibers_nobody_joins() {
    for runtime in runtimes() {
        let count = AtomicUsize::new(0);
        runtime.run(|| {
            nursery(|n| {
                for _ in 0..1000 {
                    n.spawn(|| {
                        yield_now().unwrap();
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
            assert_eq!(count.load(Ordering::Relaxed), 1000);
        });
    }
}

#[test]
fn fibers_spawn_into_their_own_nursery() {
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

#[test]
fn a_panic_is_carried_to_the_join() {
    for runtime in runtimes() {
        runtime.run(|| {
            nursery(|n| {
                let handle = n.spawn(|| std::panic::panic_any(7u32));
                let Err(JoinError::Panicked(payload)) = handle.join() else { panic!("no panic") };
                assert_eq!(payload.downcast_ref::<u32>(), Some(&7));
            });
        });
    }
}

#[test]
fn a_panic_nobody_joins_cancels_the_siblings_and_goes_on() {
    for runtime in runtimes() {
        let cancelled = AtomicUsize::new(0);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.run(|| {
                nursery(|n| {
                    for _ in 0..10 {
                        n.spawn(|| {
                            if sleep(LONG) == Err(Cancelled) {
                                cancelled.fetch_add(1, Ordering::Relaxed);
                            }
                        });
                    }
                    n.spawn(|| {
                        yield_now().unwrap();
                        std::panic::panic_any("it broke");
                    });
                });
            });
        }));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"it broke"));
        assert!(cancelled.load(Ordering::Relaxed) <= 10);
    }
}

#[test]
fn a_panic_of_the_body_cancels_the_fibers_and_goes_on() {
    for runtime in runtimes() {
        runtime.run(|| {
            let caught = std::panic::catch_unwind(|| {
                nursery(|n| {
                    n.spawn(|| sleep(LONG));
                    yield_now().unwrap();
                    std::panic::panic_any(1u8);
                })
            });
            assert_eq!(caught.unwrap_err().downcast_ref::<u8>(), Some(&1));
        });
    }
}

#[test]
fn results_nobody_takes_are_dropped_before_the_nursery_ends() {
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
                std::mem::forget(n.spawn(|| Counts(&dropped)));
                while !late.is_finished() {
                    yield_now().unwrap();
                }
                drop(late);
            });
            assert_eq!(dropped.load(Ordering::Relaxed), 3);
        });
    }
}

#[test]
fn cancellation_is_sticky_and_ends_every_wait() {
    for runtime in runtimes() {
        runtime.run(|| {
            nursery(|n| {
                let seen = n.spawn(|| {
                    let first = sleep(LONG);
                    let again = sleep(LONG);
                    (first, again, yield_now(), is_cancelled())
                });
                for _ in 0..100 {
                    yield_now().unwrap();
                }
                n.cancel();
                assert!(n.is_cancelled());
                match seen.join() {
                    Ok(seen) => {
                        assert_eq!(seen, (Err(Cancelled), Err(Cancelled), Err(Cancelled), true));
                    }
                    Err(error) => assert!(matches!(error, JoinError::Cancelled), "{error}"),
                }
                assert!(n.try_spawn(|| ()).unwrap_err().is_closing());
                assert!(matches!(n.spawn(|| ()).join(), Err(JoinError::Cancelled)));
            });
        });
    }
}

#[test]
fn one_fiber_is_cancelled_and_its_sibling_is_not() {
    for runtime in runtimes() {
        runtime.run(|| {
            nursery(|n| {
                let one = n.spawn(|| sleep(LONG));
                let other = n.spawn(|| sleep(Duration::from_millis(20)));
                sleep(Duration::from_millis(5)).unwrap();
                one.cancel();
                assert_eq!(one.join().unwrap(), Err(Cancelled));
                assert_eq!(other.join().unwrap(), Ok(()));
            });
        });
    }
}

#[test]
fn a_shield_masks_the_cancellation() {
    for runtime in runtimes() {
        runtime.run(|| {
            nursery(|n| {
                let fiber = n.spawn(|| {
                    let shielded = shield(|| sleep(Duration::from_millis(20)));
                    (shielded, sleep(LONG))
                });
                sleep(Duration::from_millis(5)).unwrap();
                n.cancel();
                assert_eq!(fiber.join().unwrap(), (Ok(()), Err(Cancelled)));
            });
        });
    }
}

#[test]
fn a_deadline_cancels_and_an_inner_nursery_passes_it_on() {
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

#[test]
fn a_deadline_that_is_not_met_does_nothing() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.run(|| {
        nursery(|n| {
            n.cancel_after(LONG);
            assert_eq!(n.spawn(|| sleep(Duration::from_millis(1))).join().unwrap(), Ok(()));
            assert!(!n.is_cancelled());
        });
    });
    assert_eq!(runtime.stats().timers, 0);
}

#[test]
fn run_waits_for_what_was_spawned_into_the_root() {
    for runtime in runtimes() {
        let count = std::sync::Arc::new(AtomicUsize::new(0));
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

#[test]
fn a_cancelled_run_of_spawns_loses_none() {
    for runtime in runtimes() {
        let began = Instant::now();
        let ran = AtomicUsize::new(0);
        runtime.run(|| {
            nursery(|n| {
                let handles: Vec<_> = (0..500)
                    .map(|i| {
                        if i == 250 {
                            n.cancel();
                        }
                        n.spawn(|| ran.fetch_add(1, Ordering::Relaxed))
                    })
                    .collect();
                let joined = handles.into_iter().filter(|_| true).map(|h| h.join());
                let ok = joined.filter(Result::is_ok).count();
                assert_eq!(ok, ran.load(Ordering::Relaxed));
                assert!(ok <= 250);
            });
        });
        assert!(began.elapsed() < LONG);
    }
}
