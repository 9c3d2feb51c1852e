//! Panics in nurseries, where they unwind. All else about nurseries is in //test/fiber.
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use fiber_chan::{Receiver, RecvError, Sender, bounded};
use fiber_nursery::{JoinError, nursery};
use fiber_rt::{Cancelled, Mutex, Runtime, What, sleep, yield_now};

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
        let (asleep, cancelled) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.run(|| {
                nursery(|n| {
                    for _ in 0..10 {
                        n.spawn(|| {
                            asleep.fetch_add(1, Ordering::Relaxed);
                            if sleep(LONG) == Err(Cancelled) {
                                cancelled.fetch_add(1, Ordering::Relaxed);
                            }
                        });
                    }
                    n.spawn(|| {
                        // Those that have not run are cancelled before they do.
                        while asleep.load(Ordering::Relaxed) < 10 {
                            yield_now().unwrap();
                        }
                        std::panic::panic_any("it broke");
                    });
                });
            });
        }));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"it broke"));
        assert_eq!(cancelled.load(Ordering::Relaxed), 10);
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

/// What a fiber panics with that panics again when it is dropped.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        std::panic::panic_any("a payload");
    }
}

#[test]
fn a_payload_that_panics_when_it_is_dropped_ends_nothing() {
    for runtime in runtimes() {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.run(|| {
                let release = &AtomicUsize::new(0);
                nursery(|n| {
                    for _ in 0..3 {
                        n.spawn(|| {
                            // The first cancels those that have not run.
                            release.fetch_add(1, Ordering::Relaxed);
                            while release.load(Ordering::Relaxed) < 3 {
                                let _ = yield_now();
                            }
                            std::panic::panic_any(Payload);
                        });
                    }
                });
            });
        }));
        let payload = caught.unwrap_err();
        assert!(payload.is::<Payload>());
        std::mem::forget(payload);
        assert_eq!(runtime.run(|| nursery(|n| n.spawn(|| 7).join().unwrap())), 7);
    }
}

/// A waker that panics, and counts how often.
#[derive(Default)]
struct Bomb(AtomicUsize);

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::panic::panic_any("a waker");
    }
}

/// Who wakes has nothing to do with what a waker does: neither the worker that fires a timer, nor the
/// fiber that sends, nor those that are to be woken after it.
#[test]
fn a_waker_that_panics_is_nobody_elses_matter() {
    for runtime in runtimes() {
        let bomb = Arc::new(Bomb::default());
        let waker = Waker::from(bomb.clone());
        let mut context = Context::from_waker(&waker);
        let mut sleep = pin!(runtime.sleep(Duration::from_millis(1)));
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        while bomb.0.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        let (sender, receiver) = bounded::<u32>(0);
        let mut receive = pin!(receiver.recv_async());
        assert!(receive.as_mut().poll(&mut context).is_pending());
        let after = runtime.run(|| {
            nursery(|n| {
                let next = n.spawn(|| receiver.recv());
                while !runtime.dump().fibers.iter().any(|it| it.waits_for == What::Receive) {
                    yield_now().unwrap();
                }
                // Two are woken; the first panics.
                sender.close();
                next.join()
            })
        });
        assert_eq!(after.unwrap(), Err(RecvError::Disconnected));
        assert_eq!(bomb.0.load(Ordering::Relaxed), 2);
    }
}

/// Calls the closure when dropped, and shows that the thread stays the same.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        assert!(std::thread::panicking());
        let thread = std::thread::current().id();
        (self.0)();
        assert_eq!(std::thread::current().id(), thread, "the panic is counted on another thread");
        assert!(std::thread::panicking());
    }
}

/// What fibers of the next test meet.
struct World {
    sender: Sender<u32>,
    receiver: Receiver<u32>,
    mutex: Mutex<u32>,
}

/// Panics, and waits for something while it unwinds.
fn unwind(world: &World, kind: u8) {
    let _on_drop = OnDrop(|| match kind {
        0 => assert_eq!(world.receiver.recv(), Ok(7)),
        1 => sleep(Duration::from_millis(2)).unwrap(),
        2 => *world.mutex.lock() += 1,
        3 => (0..1000).for_each(|_| yield_now().unwrap()),
        _ => nursery(|n| n.spawn(yield_now).join().unwrap().unwrap()),
    });
    std::panic::panic_any(kind);
}

/// Lets fibers of these kinds meet a mutex that is locked and a channel nobody sends to, for a while.
fn let_unwind(world: &World, kinds: &[u8]) {
    nursery(|n| {
        let guard = world.mutex.lock();
        let fibers: Vec<_> = kinds.iter().map(|kind| n.spawn(|| unwind(world, *kind))).collect();
        sleep(Duration::from_millis(3)).unwrap();
        drop(guard);
        if kinds.contains(&0) {
            world.sender.send(7).unwrap();
        }
        for (kind, fiber) in kinds.iter().zip(fibers) {
            let Err(JoinError::Panicked(payload)) = fiber.join() else { panic!("{kind}") };
            assert_eq!(payload.downcast_ref::<u8>(), Some(kind));
        }
    });
}

/// A fiber that waits while it unwinds, for whatever it is, goes on on the thread that counts its panic;
/// and when all is over no thread counts any.
#[test]
fn a_wait_while_unwinding_stays_on_its_thread() {
    for runtime in runtimes() {
        runtime.run(|| {
            let (sender, receiver) = bounded(0);
            let world = World { sender, receiver, mutex: Mutex::new(0) };
            (0..5).for_each(|kind| let_unwind(&world, &[kind]));
            // Each keeps a thread, of which there are at most twice as many as workers.
            if runtime.stats().workers.len() >= 8 {
                let_unwind(&world, &[0, 1, 2, 3, 4]);
            }
            nursery(|n| {
                for _ in 0..200 {
                    n.spawn(|| {
                        assert!(!std::thread::panicking());
                        yield_now().unwrap();
                        assert!(!std::thread::panicking());
                    });
                }
            });
        });
    }
}
