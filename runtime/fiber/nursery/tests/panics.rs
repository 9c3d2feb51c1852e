//! Panics in nurseries, where they unwind. All else about nurseries is in //test/fiber.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fiber_nursery::{JoinError, nursery};
use fiber_rt::{Cancelled, Runtime, sleep, yield_now};

fn runtimes() -> impl Iterator<Item = Runtime> {
    [1, 2, 4].into_iter().map(|workers| Runtime::builder().workers(workers).build().unwrap())
}

const LONG: Duration = Duration::from_secs(1000);

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
