//! Everything at once, for a while: random yields, steals, cancellations, selects, threads, locks.
//! Nothing is lost, nothing is stuck, and the figures add up.
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;

use fiber::channel::{Select, bounded, unbounded};
use fiber::sync::{Condvar, Mutex};
use fiber::{Runtime, Thread, nursery, oneshot, select, sleep, yield_now};

use crate::{runtime, scaled};

/// What each of several does, in most cases.
const EACH: u64 = scaled(500, 50) as u64;

/// What each of several selects that meet does: two have to be at it at the same moment.
const MEETINGS: u64 = scaled(20_000, 100) as u64;

/// A fixed sequence per seed, so that a run can be told by it.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn maybe_yield(&mut self) {
        if self.below(4) == 0 {
            let _ = yield_now();
        }
    }
}

fn on_each(f: impl Fn(u64) + Sync) {
    for workers in [1, 2, 4] {
        let runtime = Runtime::builder().workers(workers).on_stall(|_| {}).build().unwrap();
        for seed in 1..=u64::from(scaled(3, 1)) {
            runtime.run(|| f(seed * 7919 + workers as u64));
        }
        let stats = runtime.stats();
        let sum = |f: fn(&fiber::WorkerStats) -> u64| stats.workers.iter().map(f).sum::<u64>();
        let ends = sum(|w| w.finishes + w.yields + w.parks);
        assert_eq!(sum(|w| w.dispatches), ends, "each run ended in one way");
        assert!(runtime.dump().fibers.is_empty(), "{}", runtime.dump());
    }
}

pub fn channels_of_every_capacity_carry_everything_once() {
    on_each(|seed| {
        for capacity in [0, 1, 7, 64] {
            let (tx, rx) = bounded(capacity);
            let (sum, count) = (AtomicU64::new(0), AtomicUsize::new(0));
            nursery(|n| {
                for sender in 0..4u64 {
                    let tx = tx.clone();
                    n.spawn(move || {
                        let mut random = Random(seed + sender);
                        for i in 0..EACH {
                            tx.send(sender * 1000 + i).unwrap();
                            random.maybe_yield();
                        }
                    });
                }
                drop(tx);
                for receiver in 0..3u64 {
                    let (rx, sum, count) = (rx.clone(), &sum, &count);
                    n.spawn(move || {
                        let mut random = Random(seed + 100 + receiver);
                        for value in &rx {
                            sum.fetch_add(value, Ordering::Relaxed);
                            count.fetch_add(1, Ordering::Relaxed);
                            random.maybe_yield();
                        }
                    });
                }
            });
            let expected: u64 = (0..4).map(|s| (0..EACH).map(|i| s * 1000 + i).sum::<u64>()).sum();
            assert_eq!((sum.into_inner(), count.into_inner()), (expected, 4 * EACH as usize));
        }
    });
}

pub fn cancelled_fibers_lose_nothing_that_was_acknowledged() {
    on_each(|seed| {
        for round in 0..scaled(20, 3) as usize {
            let (tx, rx) = bounded(round % 3);
            let (sent, got) = (AtomicU64::new(0), AtomicU64::new(0));
            nursery(|outer| {
                let receiver = outer.spawn(|| {
                    rx.iter().for_each(|_: u8| {
                        got.fetch_add(1, Ordering::Relaxed);
                    });
                });
                nursery(|n| {
                    for sender in 0..4u64 {
                        let (tx, sent) = (&tx, &sent);
                        n.spawn(move || {
                            let mut random = Random(seed + sender + round as u64);
                            while tx.send(1).is_ok() {
                                sent.fetch_add(1, Ordering::Relaxed);
                                random.maybe_yield();
                                if random.below(50) == 0
                                    && sleep(Duration::from_micros(50)).is_err()
                                {
                                    break;
                                }
                                if yield_now().is_err() {
                                    break;
                                }
                            }
                        });
                    }
                    sleep(Duration::from_micros(300)).unwrap();
                    n.cancel();
                });
                tx.close();
                receiver.join().unwrap();
            });
            assert_eq!(sent.into_inner(), got.into_inner());
        }
    });
}

pub fn selects_over_shared_channels_take_each_value_once() {
    on_each(|seed| {
        for capacity in [0, 2] {
            let channels: Vec<_> = (0..3).map(|_| bounded(capacity)).collect();
            let got = AtomicU64::new(0);
            nursery(|n| {
                for sender in 0..3usize {
                    let channels = &channels;
                    n.spawn(move || {
                        let mut random = Random(seed + sender as u64);
                        let (a, b) = (&channels[sender].0, &channels[(sender + 1) % 3].0);
                        for _ in 0..EACH {
                            select! {
                                send(a, 1u64) -> sent => sent.unwrap(),
                                send(b, 1u64) -> sent => sent.unwrap(),
                                cancelled => unreachable!(),
                            }
                            random.maybe_yield();
                        }
                    });
                }
                let receivers: Vec<_> = (0..2u64)
                    .map(|receiver| {
                        let (channels, got) = (&channels, &got);
                        n.spawn(move || {
                            let mut random = Random(seed + 50 + receiver);
                            let [a, b, c] = [0, 1, 2].map(|i: usize| &channels[i].1);
                            loop {
                                let value = select! {
                                    recv(a) -> value => value,
                                    recv(b) -> value => value,
                                    recv(c) -> value => value,
                                };
                                match value {
                                    Ok(value) => got.fetch_add(value, Ordering::Relaxed),
                                    Err(_) => break,
                                };
                                random.maybe_yield();
                            }
                        })
                    })
                    .collect();
                while got.load(Ordering::Relaxed) < 3 * EACH {
                    yield_now().unwrap();
                }
                channels.iter().for_each(|(tx, _)| assert!(tx.close()));
                receivers.into_iter().for_each(|receiver| receiver.join().unwrap());
            });
            assert_eq!(got.into_inner(), 3 * EACH);
        }
    });
}

/// Everybody selects, on both sides of channels without a buffer: each may find another at one channel
/// while it is found itself at the next.
pub fn selects_on_both_sides_of_every_channel_meet() {
    on_each(|seed| {
        let channels: Vec<_> = (0..3).map(|_| bounded(0)).collect();
        let sum = AtomicU64::new(0);
        nursery(|n| {
            for fiber in 0..6u64 {
                let (channels, sum) = (&channels, &sum);
                n.spawn(move || {
                    let mut random = Random(seed * 31 + fiber);
                    for i in 0..MEETINGS {
                        let mut set = Select::new();
                        // Three send, three receive, as often.
                        if fiber % 2 == 0 {
                            channels.iter().for_each(|(tx, _)| _ = set.send(tx));
                            let chosen = set.select().unwrap();
                            let tx = &channels[chosen.index()].0;
                            if random.below(8) == 0 {
                                // Whoever was found for it looks for another.
                                drop(chosen);
                                tx.send(fiber * 1_000_000 + i).unwrap();
                            } else {
                                chosen.send(tx, fiber * 1_000_000 + i).unwrap();
                            }
                        } else {
                            channels.iter().for_each(|(_, rx)| _ = set.recv(rx));
                            let chosen = set.select().unwrap();
                            let rx = &channels[chosen.index()].1;
                            sum.fetch_add(chosen.recv(rx).unwrap(), Ordering::Relaxed);
                        }
                        random.maybe_yield();
                    }
                });
            }
        });
        let expected: u64 =
            [0, 2, 4].iter().map(|s| (0..MEETINGS).map(|i| s * 1_000_000 + i).sum::<u64>()).sum();
        assert_eq!(sum.into_inner(), expected);
    });
}

pub fn requests_and_answers_between_fibers_and_threads() {
    for workers in [1, 3] {
        let runtime = runtime(workers);
        let (requests, served) = unbounded::<(u64, oneshot::Sender<u64>)>();
        let threads: Vec<_> = (0..2u64)
            .map(|thread| {
                let requests = requests.clone();
                let asks = move || {
                    for i in 0..EACH {
                        let (answer, wait) = oneshot::channel();
                        requests.send((thread * 1000 + i, answer)).unwrap();
                        assert_eq!(wait.recv(), Ok((thread * 1000 + i) * 2));
                    }
                };
                Thread::spawn("asks", asks).unwrap()
            })
            .collect();
        drop(requests);
        runtime.run(|| {
            nursery(|n| {
                for _ in 0..3 {
                    let served = served.clone();
                    n.spawn(move || {
                        for (value, answer) in &served {
                            answer.send(value * 2).unwrap();
                        }
                    });
                }
            });
        });
        threads.into_iter().for_each(Thread::join);
    }
}

pub fn locks_and_conditions_under_load() {
    on_each(|seed| {
        let queue = Mutex::new(Vec::new());
        let changed = Condvar::new();
        let taken = AtomicUsize::new(0);
        nursery(|n| {
            for producer in 0..3u64 {
                let (queue, changed) = (&queue, &changed);
                n.spawn(move || {
                    let mut random = Random(seed + producer);
                    for i in 0..EACH {
                        queue.lock().push(i);
                        changed.notify_one();
                        random.maybe_yield();
                    }
                });
            }
            for _ in 0..3 {
                n.spawn(|| {
                    for _ in 0..EACH {
                        let mut guard = queue.lock();
                        while guard.pop().is_none() {
                            changed.wait(&mut guard).unwrap();
                        }
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(taken.into_inner() as u64, 3 * EACH);
    });
}
