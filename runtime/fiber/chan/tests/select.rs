//! What a select means: for fibers on one and more workers, and for threads.
use std::time::Duration;

use fiber_chan::{RecvError, Select, SelectTimeoutError, SendError, bounded, never, select};
use fiber_nursery::nursery;
use fiber_rt::{Runtime, sleep, yield_now};

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_secs(1000);

/// Runs `f` on one worker and on several.
fn everywhere(f: impl Fn() + Sync) {
    for workers in [1, 3] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        runtime.run(&f);
    }
}

fn settle() {
    for _ in 0..200 {
        let _ = yield_now();
    }
}

#[test]
fn select_takes_what_is_ready_and_is_fair() {
    everywhere(|| {
        let (tx1, rx1) = bounded(1000);
        let (tx2, rx2) = bounded(1000);
        for i in 0..1000 {
            tx1.send(i).unwrap();
            tx2.send(i).unwrap();
        }
        let mut counts = [0, 0];
        for _ in 0..1000 {
            select! {
                recv(rx1) -> value => { value.unwrap(); counts[0] += 1; }
                recv(rx2) -> value => { value.unwrap(); counts[1] += 1; }
            }
        }
        assert!(counts[0] > 200 && counts[1] > 200, "{counts:?}");
    });
}

#[test]
fn select_waits_for_the_first_arm() {
    everywhere(|| {
        for capacity in [0, 1] {
            let (tx1, rx1) = bounded(capacity);
            let (_tx2, rx2) = bounded::<u8>(capacity);
            nursery(|n| {
                n.spawn(|| {
                    settle();
                    tx1.send(5).unwrap();
                });
                let got = select! {
                    recv(rx1) -> value => value,
                    recv(rx2) -> _ => unreachable!(),
                };
                assert_eq!(got, Ok(5));
            });
        }
    });
}

#[test]
fn select_sends_and_receives() {
    everywhere(|| {
        for capacity in [0, 1, 4] {
            let (tx, rx) = bounded(capacity);
            let (out_tx, out_rx) = bounded(capacity);
            nursery(|n| {
                n.spawn(move || {
                    for i in 0..100u32 {
                        tx.send(i).unwrap();
                    }
                });
                n.spawn(move || {
                    // Everything that comes in goes out, in order, with sends as arms.
                    let mut held = std::collections::VecDeque::new();
                    let mut is_open = true;
                    while is_open || !held.is_empty() {
                        let idle = never();
                        let input = if is_open { &rx } else { &idle };
                        match held.front().copied() {
                            Some(next) => select! {
                                recv(input) -> value => match value {
                                    Ok(value) => held.push_back(value),
                                    Err(_) => is_open = false,
                                },
                                send(out_tx, next) -> sent => { sent.unwrap(); held.pop_front(); }
                            },
                            None => match input.recv() {
                                Ok(value) => held.push_back(value),
                                Err(_) => is_open = false,
                            },
                        }
                    }
                });
                assert!(out_rx.iter().eq(0..100));
            });
        }
    });
}

#[test]
fn two_selects_meet_at_a_rendezvous() {
    everywhere(|| {
        let (tx, rx) = bounded(0);
        let (_a_tx, a_rx) = bounded::<u32>(0);
        let (b_tx, _b_rx) = bounded::<u32>(0);
        nursery(|n| {
            let sender = n.spawn(|| {
                for i in 0..500u32 {
                    select! {
                        send(tx, i) -> sent => sent.unwrap(),
                        send(b_tx, 1) -> _ => unreachable!(),
                    }
                }
            });
            for i in 0..500 {
                let got = select! {
                    recv(rx) -> value => value,
                    recv(a_rx) -> _ => unreachable!(),
                };
                assert_eq!(got, Ok(i));
            }
            sender.join().unwrap();
        });
    });
}

#[test]
fn a_plain_operation_meets_a_select_at_a_rendezvous() {
    everywhere(|| {
        let (tx, rx) = bounded(0);
        let (other, _keep) = bounded::<u32>(0);
        nursery(|n| {
            n.spawn(|| {
                for i in 0..300u32 {
                    select! {
                        send(tx, i) -> sent => sent.unwrap(),
                        send(other, 0) -> _ => unreachable!(),
                    }
                }
            });
            for i in 0..300 {
                if i % 3 == 0 {
                    assert_eq!(rx.recv_timeout(LONG), Ok(i));
                } else {
                    assert_eq!(rx.recv(), Ok(i));
                }
            }
        });
    });
}

#[test]
fn the_same_channel_may_appear_twice_and_a_select_does_not_meet_itself() {
    everywhere(|| {
        let (tx, rx) = bounded(0);
        nursery(|n| {
            let own = n.spawn(|| {
                select! {
                    recv(rx) -> value => value.map(|v: u32| v + 100),
                    recv(rx) -> value => value.map(|v: u32| v + 200),
                    send(tx, 1) -> _ => Err(RecvError::Disconnected),
                }
            });
            settle();
            assert!(!own.is_finished(), "it sent to itself");
            tx.send(5).unwrap();
            assert!(matches!(own.join().unwrap(), Ok(105 | 205)));
        });
    });
}

#[test]
fn select_sees_close_timeout_default_and_cancellation() {
    everywhere(|| {
        let (tx, rx) = bounded::<u8>(1);
        assert!(select! { recv(rx) -> _ => false, default => true });
        assert!(select! { recv(rx) -> _ => false, default(SHORT) => true });
        let mut set = Select::new();
        set.recv(&rx);
        assert_eq!(set.select_timeout(SHORT).unwrap_err(), SelectTimeoutError::Timeout);
        assert!(set.try_select().is_err());
        nursery(|n| {
            let cancelled = n.spawn(|| select! { recv(rx) -> value => value });
            sleep(SHORT).unwrap();
            cancelled.cancel();
            assert_eq!(cancelled.join().unwrap(), Err(RecvError::Cancelled));
            let closed = n.spawn(|| select! { recv(rx) -> value => value });
            settle();
            tx.close();
            assert_eq!(closed.join().unwrap(), Err(RecvError::Disconnected));
        });
        assert_eq!(
            select! { recv(rx) -> value => value, default => Ok(1) },
            Err(RecvError::Disconnected)
        );
        let sent = select! { send(tx, 1) -> sent => sent };
        assert_eq!(sent, Err(SendError::Disconnected(1)));
    });
}

#[test]
fn a_selected_operation_that_is_dropped_loses_nothing() {
    everywhere(|| {
        let (tx, rx) = bounded(2);
        tx.send(1).unwrap();
        tx.send(2).unwrap();
        {
            let mut set = Select::new();
            set.recv(&rx);
            drop(set.select().unwrap());
        }
        assert_eq!((rx.recv(), rx.recv()), (Ok(1), Ok(2)));
        {
            let mut set = Select::new();
            set.send(&tx);
            drop(set.select().unwrap());
        }
        assert!(tx.try_send(1).is_ok() && tx.try_send(2).is_ok());
        // At a rendezvous the receiver that was chosen goes on waiting.
        let (tx, rx) = bounded(0);
        nursery(|n| {
            let receiver = n.spawn(|| rx.recv());
            settle();
            sleep(SHORT).unwrap();
            let mut set = Select::new();
            set.send(&tx);
            drop(set.select().unwrap());
            settle();
            tx.send(4).unwrap();
            assert_eq!(receiver.join().unwrap(), Ok(4));
        });
    });
}

#[test]
fn many_arms_are_as_good_as_few() {
    everywhere(|| {
        let channels: Vec<_> = (0..20).map(|_| bounded(1)).collect();
        nursery(|n| {
            for (i, (tx, _)) in channels.iter().enumerate() {
                n.spawn(move || tx.send(i).unwrap());
            }
            let mut seen = [false; 20];
            for _ in 0..20 {
                let mut set = Select::new();
                for (_, rx) in &channels {
                    set.recv(rx);
                }
                let chosen = set.select().unwrap();
                let index = chosen.index();
                assert_eq!(chosen.recv(&channels[index].1), Ok(index));
                assert!(!std::mem::replace(&mut seen[index], true));
            }
        });
    });
}
