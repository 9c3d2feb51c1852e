//! What each operation of a channel means: for fibers on one and more workers, and for threads.
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;

use fiber_chan::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError, after,
    bounded, never, oneshot, select, tick, unbounded,
};
use fiber_nursery::nursery;
use fiber_rt::{Condvar, Mutex, Runtime, Thread, yield_now};

use crate::{runtime, scaled, settle};

pub(crate) const SHORT: Duration = Duration::from_millis(5);
pub(crate) const LONG: Duration = Duration::from_secs(1000);

/// Runs `f` on one worker and on several, with their runtime.
pub(crate) fn everywhere(f: impl Fn(&Runtime) + Sync) {
    for workers in [1, 3] {
        let runtime = runtime(workers);
        runtime.run(|| f(&runtime));
    }
}

pub fn a_bounded_channel_holds_its_capacity_in_order() {
    let check = || {
        let (tx, rx) = bounded(3);
        assert_eq!((tx.capacity(), rx.capacity()), (Some(3), Some(3)));
        assert!(tx.is_empty() && !tx.is_full());
        for i in 0..3 {
            tx.try_send(i).unwrap();
        }
        assert!(rx.is_full() && tx.len() == 3);
        assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
        assert_eq!(tx.send_timeout(9, SHORT), Err(SendTimeoutError::Timeout(9)));
        assert_eq!(rx.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(rx.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
    };
    everywhere(|_| check());
    check();
}

pub fn an_unbounded_channel_is_never_full() {
    let check = || {
        let (tx, rx) = unbounded();
        assert_eq!(tx.capacity(), None);
        for i in 0..1000 {
            tx.send(i).unwrap();
        }
        assert!(!tx.is_full());
        drop(tx);
        assert!(rx.iter().eq(0..1000));
        assert_eq!(rx.recv(), Err(RecvError::Disconnected));
    };
    everywhere(|_| check());
    check();
}

pub fn a_rendezvous_hands_over_directly() {
    everywhere(|runtime| {
        let (tx, rx) = bounded::<u32>(0);
        assert_eq!(tx.try_send(1), Err(TrySendError::Full(1)));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        nursery(|n| {
            n.spawn(|| tx.send(7).unwrap());
            assert_eq!(rx.recv(), Ok(7));
            let receiver = n.spawn(|| rx.recv());
            settle(runtime);
            while tx.try_send(8).is_err() {
                let _ = yield_now();
            }
            assert_eq!(receiver.join().unwrap(), Ok(8));
        });
    });
}

pub fn the_last_sender_gone_disconnects_after_the_buffer() {
    everywhere(|_| {
        let (tx, rx) = bounded(4);
        let other = tx.clone();
        tx.send(1).unwrap();
        drop(tx);
        other.send(2).unwrap();
        drop(other);
        assert_eq!((rx.recv(), rx.recv()), (Ok(1), Ok(2)));
        assert_eq!(rx.recv(), Err(RecvError::Disconnected));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}

pub fn the_last_receiver_gone_gives_senders_their_values_back() {
    everywhere(|runtime| {
        let (tx, rx) = bounded(1);
        let other = rx.clone();
        tx.send(1).unwrap();
        nursery(|n| {
            let parked = n.spawn(|| tx.send(2));
            settle(runtime);
            drop(rx);
            drop(other);
            assert_eq!(parked.join().unwrap(), Err(SendError::Disconnected(2)));
        });
        assert_eq!(tx.send(3), Err(SendError::Disconnected(3)));
        assert!(tx.is_empty(), "what was buffered has been dropped");
    });
}

pub fn close_keeps_what_was_admitted_in_order_and_nothing_else() {
    everywhere(|runtime| {
        let (tx, rx) = bounded(1);
        tx.send(0).unwrap();
        nursery(|n| {
            // Parked one after the other.
            let parked: Vec<_> = (1..4)
                .map(|i| {
                    let tx = &tx;
                    let handle = n.spawn(move || tx.send(i));
                    settle(runtime);
                    handle
                })
                .collect();
            assert!(rx.close(), "the first close closes");
            assert!(!tx.close(), "and no other");
            assert!(tx.is_closed() && rx.is_closed());
            assert_eq!(tx.send(9), Err(SendError::Disconnected(9)));
            assert_eq!(tx.try_send(9), Err(TrySendError::Disconnected(9)));
            let mut values: Vec<_> = rx.iter().collect();
            assert_eq!(values.remove(0), 0, "the buffer comes first");
            assert_eq!(values, [1, 2, 3], "then the senders that waited, in order");
            assert!(parked.into_iter().all(|handle| handle.join().unwrap() == Ok(())));
        });
        assert_eq!(rx.recv(), Err(RecvError::Disconnected));
    });
}

pub fn close_ends_receivers_that_wait() {
    everywhere(|runtime| {
        for capacity in [Some(0), Some(4), None] {
            let (tx, rx) = capacity.map_or_else(unbounded::<u8>, bounded);
            nursery(|n| {
                let parked: Vec<_> = (0..5).map(|_| n.spawn(|| rx.recv())).collect();
                settle(runtime);
                tx.close();
                for handle in parked {
                    assert_eq!(handle.join().unwrap(), Err(RecvError::Disconnected));
                }
            });
        }
    });
}

pub fn a_cancelled_wait_gives_the_value_back_and_loses_none() {
    everywhere(|runtime| {
        let (tx, rx) = bounded(1);
        tx.send(1).unwrap();
        nursery(|n| {
            let sender = n.spawn(|| tx.send(2));
            let (_other_tx, other_rx) = bounded::<u8>(1);
            let receiver = n.spawn(move || other_rx.recv());
            settle(runtime);
            n.cancel();
            assert_eq!(sender.join().unwrap(), Err(SendError::Cancelled(2)));
            assert_eq!(receiver.join().unwrap(), Err(RecvError::Cancelled));
        });
        // The channel does not know about nurseries.
        assert_eq!(rx.recv(), Ok(1));
        tx.send(3).unwrap();
        assert_eq!(rx.recv(), Ok(3));
    });
}

pub fn threads_and_fibers_share_channels() {
    const ROUNDS: u32 = scaled(1000, 100);
    let runtime = runtime(2);
    let (to_fiber, from_thread) = bounded(0);
    let (to_thread, from_fiber) = bounded(2);
    let thread = Thread::spawn("asks", move || {
        for i in 0..ROUNDS {
            to_fiber.send(i).unwrap();
            assert_eq!(from_fiber.recv(), Ok(i + 1));
        }
        to_fiber.close();
    });
    runtime.run(|| {
        for value in &from_thread {
            to_thread.send(value + 1).unwrap();
        }
    });
    thread.unwrap().join();
    // Two threads and no runtime.
    let (tx, rx) = bounded(1);
    let sender = Thread::spawn("sends", move || (0..ROUNDS).for_each(|i| tx.send(i).unwrap()));
    let receiver =
        Thread::spawn("receives", move || assert!((0..ROUNDS).all(|i| rx.recv() == Ok(i))));
    sender.unwrap().join();
    receiver.unwrap().join();
}

pub fn timers_as_receivers() {
    let check = || {
        let began = fiber_rt::Instant::now();
        let when = after(SHORT).recv().unwrap();
        assert!(when.since(began) >= SHORT && began.elapsed() >= SHORT);
        let ticks = tick(SHORT);
        assert!(ticks.recv().unwrap() < ticks.recv().unwrap());
        let once = after(SHORT);
        once.recv().unwrap();
        assert_eq!(once.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
        assert_eq!(never::<u8>().recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
        let (_tx, rx) = bounded::<u8>(0);
        let clock = after(SHORT);
        assert!(select! { recv(rx) -> _ => false, recv(clock) -> at => at.is_ok() });
    };
    everywhere(|_| check());
    check();
}

pub fn oneshot_carries_one_value() {
    everywhere(|runtime| {
        let (tx, rx) = oneshot::channel();
        tx.send(5).unwrap();
        assert_eq!(rx.recv(), Ok(5));
        let (tx, rx) = oneshot::channel::<u8>();
        drop(tx);
        assert_eq!(rx.recv(), Err(RecvError::Disconnected));
        let (tx, rx) = oneshot::channel();
        drop(rx);
        assert_eq!(tx.send(6), Err(6));
        nursery(|n| {
            let (tx, rx) = oneshot::channel();
            let waits = n.spawn(move || rx.recv());
            settle(runtime);
            tx.send(7).unwrap();
            assert_eq!(waits.join().unwrap(), Ok(7));
            let (_tx, rx) = oneshot::channel::<u8>();
            let cancelled = n.spawn(move || rx.recv());
            settle(runtime);
            cancelled.cancel();
            assert_eq!(cancelled.join().unwrap(), Err(RecvError::Cancelled));
        });
    });
}

pub fn values_are_dropped_once() {
    struct Counts<'a>(&'a AtomicUsize);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = AtomicUsize::new(0);
    everywhere(|runtime| {
        dropped.store(0, Ordering::Relaxed);
        let (tx, rx) = bounded(2);
        nursery(|n| {
            for _ in 0..10 {
                n.spawn(|| drop(tx.send(Counts(&dropped))));
            }
            settle(runtime);
            for _ in 0..3 {
                drop(rx.recv());
            }
            drop(rx);
        });
        drop(tx);
        assert_eq!(dropped.load(Ordering::Relaxed), 10);
    });
}

pub fn a_mutex_excludes_and_a_condvar_wakes() {
    everywhere(|runtime| {
        let count = Mutex::new(0);
        let changed = Condvar::new();
        nursery(|n| {
            for _ in 0..8 {
                n.spawn(|| {
                    for _ in 0..scaled(100, 20) {
                        let mut guard = count.lock();
                        let seen = *guard;
                        let _ = yield_now();
                        *guard = seen + 1;
                    }
                    changed.notify_all();
                });
            }
            let mut guard = count.lock();
            while *guard < 8 * scaled(100, 20) {
                changed.wait(&mut guard).unwrap();
            }
            assert!(count.try_lock().is_none());
            assert_eq!(changed.wait_timeout(&mut guard, SHORT), Ok(false));
        });
        assert_eq!(count.into_inner(), 8 * scaled(100, 20));
        let held = Mutex::new(());
        nursery(|n| {
            let guard = held.lock();
            let waits = n.spawn(|| held.lock_cancellable().is_err());
            settle(runtime);
            waits.cancel();
            assert!(waits.join().unwrap());
            drop(guard);
            drop(held.lock());
        });
    });
}
