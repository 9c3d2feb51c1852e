//! What a select means: for fibers on one and more workers.
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::Cell;

use fiber_chan::{
    ReadyTimeoutError, RecvError, Select, SelectTimeoutError, SendError, after, at, bounded, never,
    select, select_biased, unbounded,
};
use fiber_nursery::nursery;
use fiber_rt::Instant;

use crate::channels::{LONG, SHORT, everywhere};
use crate::{scaled, settle};

pub fn select_takes_what_is_ready_and_is_fair() {
    everywhere(|_| {
        const VALUES: usize = scaled(1000, 300) as usize;
        let (tx1, rx1) = bounded(VALUES);
        let (tx2, rx2) = bounded(VALUES);
        for i in 0..VALUES {
            tx1.send(i).unwrap();
            tx2.send(i).unwrap();
        }
        let mut counts = [0, 0];
        for _ in 0..VALUES {
            select! {
                recv(rx1) -> value => { value.unwrap(); counts[0] += 1; }
                recv(rx2) -> value => { value.unwrap(); counts[1] += 1; }
            }
        }
        assert!(counts[0] > VALUES / 5 && counts[1] > VALUES / 5, "{counts:?}");
    });
}

pub fn select_waits_for_the_first_arm() {
    everywhere(|runtime| {
        for capacity in [0, 1] {
            let (tx1, rx1) = bounded(capacity);
            let (_tx2, rx2) = bounded::<u8>(capacity);
            nursery(|n| {
                n.spawn(|| {
                    settle(runtime);
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

pub fn select_sends_and_receives() {
    everywhere(|_| {
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
                    let mut held = VecDeque::new();
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

pub fn two_selects_meet_at_a_rendezvous() {
    everywhere(|_| {
        let (tx, rx) = bounded(0);
        let (_a_tx, a_rx) = bounded::<u32>(0);
        let (b_tx, _b_rx) = bounded::<u32>(0);
        nursery(|n| {
            let sender = n.spawn(|| {
                for i in 0..scaled(500, 100) {
                    select! {
                        send(tx, i) -> sent => sent.unwrap(),
                        send(b_tx, 1) -> _ => unreachable!(),
                        cancelled => unreachable!(),
                    }
                }
            });
            for i in 0..scaled(500, 100) {
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

pub fn a_plain_operation_meets_a_select_at_a_rendezvous() {
    everywhere(|_| {
        let (tx, rx) = bounded(0);
        let (other, _keep) = bounded::<u32>(0);
        nursery(|n| {
            n.spawn(|| {
                for i in 0..scaled(300, 60) {
                    select! {
                        send(tx, i) -> sent => sent.unwrap(),
                        send(other, 0) -> _ => unreachable!(),
                        cancelled => unreachable!(),
                    }
                }
            });
            for i in 0..scaled(300, 60) {
                if i % 3 == 0 {
                    assert_eq!(rx.recv_timeout(LONG), Ok(i));
                } else {
                    assert_eq!(rx.recv(), Ok(i));
                }
            }
        });
    });
}

pub fn the_same_channel_may_appear_twice_and_a_select_does_not_meet_itself() {
    everywhere(|runtime| {
        let (tx, rx) = bounded(0);
        nursery(|n| {
            let own = n.spawn(|| {
                select! {
                    recv(rx) -> value => value.map(|v: u32| v + 100),
                    recv(rx) -> value => value.map(|v: u32| v + 200),
                    send(tx, 1) -> _ => Err(RecvError::Disconnected),
                }
            });
            settle(runtime);
            assert!(!own.is_finished(), "it sent to itself");
            tx.send(5).unwrap();
            assert!(matches!(own.join().unwrap(), Ok(105 | 205)));
        });
    });
}

pub fn select_sees_close_timeout_default_and_cancellation() {
    everywhere(|runtime| {
        let (tx, rx) = bounded::<u8>(1);
        assert!(select! { recv(rx) -> _ => false, default => true });
        assert!(select! { recv(rx) -> _ => false, default(SHORT) => true });
        let mut set = Select::new();
        set.recv(&rx);
        assert_eq!(set.select_timeout(SHORT).unwrap_err(), SelectTimeoutError::Timeout);
        assert!(set.try_select().is_err());
        nursery(|n| {
            let cancelled = n.spawn(|| select! { recv(rx) -> value => value });
            settle(runtime);
            cancelled.cancel();
            assert_eq!(cancelled.join().unwrap(), Err(RecvError::Cancelled));
            let closed = n.spawn(|| select! { recv(rx) -> value => value });
            settle(runtime);
            tx.close();
            assert_eq!(closed.join().unwrap(), Err(RecvError::Disconnected));
        });
        assert_eq!(
            select! { recv(rx) -> value => value, default => Ok(1) },
            Err(RecvError::Disconnected)
        );
        let sent = select! { send(tx, 1) -> sent => sent, cancelled => Ok(()) };
        assert_eq!(sent, Err(SendError::Disconnected(1)));
    });
}

pub fn a_selected_operation_that_is_dropped_loses_nothing() {
    everywhere(|runtime| {
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
            settle(runtime);
            let mut set = Select::new();
            set.send(&tx);
            drop(set.select().unwrap());
            settle(runtime);
            tx.send(4).unwrap();
            assert_eq!(receiver.join().unwrap(), Ok(4));
        });
    });
}

pub fn many_arms_are_as_good_as_few() {
    everywhere(|_| {
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
                assert!(!core::mem::replace(&mut seen[index], true));
            }
        });
    });
}

/// Two of eight that are ready, side by side: each is chosen as often as the other.
pub fn neighbours_are_chosen_equally_often() {
    const PICKS: usize = 2000;
    let check = || {
        for first in 0..7 {
            let channels: [_; 8] = core::array::from_fn(|_| unbounded());
            let mut counts = [0; 8];
            for _ in 0..PICKS {
                channels[first..first + 2].iter().for_each(|(tx, _)| tx.send(()).unwrap());
                let mut set = Select::new();
                channels.iter().for_each(|(_, rx)| _ = set.recv(rx));
                let chosen = set.select().unwrap();
                let index = chosen.index();
                chosen.recv(&channels[index].1).unwrap();
                counts[index] += 1;
                channels.iter().for_each(|(_, rx)| rx.try_iter().for_each(drop));
            }
            let [one, other] = [counts[first], counts[first + 1]];
            assert_eq!(one + other, PICKS);
            assert!(one * 3 > PICKS && other * 3 > PICKS, "{one} to {other}");
        }
    };
    everywhere(|_| check());
    check();
}

/// Whatever is removed is not chosen, the others keep their indices, and a new one gets a new index.
pub fn a_removed_operation_is_not_chosen() {
    everywhere(|_| {
        let channels: Vec<_> = (0..70).map(|_| bounded(1)).collect();
        channels.iter().for_each(|(tx, _)| tx.send(7).unwrap());
        let mut set = Select::new();
        channels.iter().for_each(|(_, rx)| _ = set.recv(rx));
        (0..70).filter(|index| *index != 5 && *index != 69).for_each(|index| set.remove(index));
        for _ in 0..2 {
            let chosen = set.try_select().unwrap();
            let index = chosen.index();
            assert!(index == 5 || index == 69);
            assert_eq!(chosen.recv(&channels[index].1), Ok(7));
        }
        assert!(set.try_select().is_err());
        [5, 69].into_iter().for_each(|index| set.remove(index));
        assert_eq!(set.recv(&channels[1].1), 70);
        let chosen = set.select().unwrap();
        assert_eq!((chosen.index(), chosen.recv(&channels[1].1)), (70, Ok(7)));
    });
}

pub fn a_biased_select_prefers_the_first() {
    everywhere(|_| {
        let ((tx1, rx1), (tx2, rx2)) = (bounded(9), bounded(9));
        for value in 0..9 {
            tx1.send(value).unwrap();
            tx2.send(value).unwrap();
        }
        for value in 0..9 {
            let got = select_biased! { recv(rx1) -> value => value, recv(rx2) -> _ => Ok(99) };
            assert_eq!(got, Ok(value));
        }
        let mut set = Select::new_biased();
        let (one, two) = (set.recv(&rx1), set.recv(&rx2));
        assert_eq!((one, set.try_ready()), (0, Ok(two)));
    });
}

/// The list may have any form that crossbeam's may have.
pub fn the_list_of_arms_has_many_forms() {
    everywhere(|runtime| {
        let ((tx, rx), (full, _keep)) = (bounded(1), bounded::<u8>(0));
        assert_eq!(select! { default => 1, recv(rx) -> _ => 2 }, 1);
        assert_eq!(
            select! { default() => { 1 } recv(rx,) -> _ => 2, send(full, 1,) -> _ => 3, },
            1
        );
        assert_eq!(select! { cancelled => 0, default(SHORT,) => 1, recv(rx) -> _ => 2 }, 1);
        assert_eq!(select! { default(SHORT) => 1 }, 1);
        tx.send(5).unwrap();
        let got = select! {
            recv(if rx.is_empty() { never() } else { rx.clone() }) -> (Ok(_) | Err(_)) => true,
            default => false,
        };
        assert!(got);
        tx.send(6).unwrap();
        let idle = never::<u8>();
        let got = select! {
            recv(idle) -> _ => 0, recv(idle) -> _ => 1, recv(idle) -> _ => 2, recv(idle) -> _ => 3,
            recv(idle) -> _ => 4, recv(idle) -> _ => 5, recv(idle) -> _ => 6, recv(idle) -> _ => 7,
            recv(idle) -> _ => 8, recv(idle) -> _ => 9, recv(idle) -> _ => 10, recv(idle) -> _ => 11,
            recv(idle) -> _ => 12, recv(idle) -> _ => 13, recv(idle) -> _ => 14, recv(idle) -> _ => 15,
            recv(idle) -> _ => 16, recv(idle) -> _ => 17, recv(idle) -> _ => 18, recv(rx) -> v => v.unwrap(),
        };
        assert_eq!(got, 6);
        nursery(|n| {
            // An empty one waits for the cancellation.
            let waits = n.spawn(|| select! {});
            settle(runtime);
            assert!(!waits.is_finished());
            waits.cancel();
            waits.join().unwrap();
        });
    });
}

/// A select that is cancelled runs its `cancelled`, else its first receive; no value is made for a send.
pub fn a_cancelled_select_makes_no_value() {
    everywhere(|runtime| {
        let ((full, _keep), (_open, rx)) = (bounded(0), bounded::<u8>(0));
        nursery(|n| {
            let made = n.spawn(|| {
                let made = Cell::new(0);
                let make = || made.replace(made.get() + 1);
                let ways = [
                    select! { send(full, make()) -> _ => 0, cancelled => 1 },
                    select! { send(full, make()) -> _ => 0, recv(rx) -> value => {
                        assert_eq!(value, Err(RecvError::Cancelled));
                        1
                    } },
                    select! { send(full, make()) -> _ => 0, default(LONG) => 0, recv(rx) -> _ => 1 },
                    select! { cancelled => 1, send(full, make()) -> _ => 0, default(LONG) => 0 },
                    // One that does not wait does not see it.
                    select! { send(full, make()) -> _ => 0, default => 1, cancelled => 0 },
                ];
                assert_eq!(ways, [1; 5]);
                made.get()
            });
            settle(runtime);
            made.cancel();
            assert_eq!(made.join().unwrap(), 0, "a value was made and not sent");
        });
    });
}

/// A look takes nothing, and everybody who waits for one is told.
pub fn ready_tells_and_takes_nothing() {
    let check = || {
        let ((tx, rx), (full, _keep)) = (bounded(1), bounded::<u8>(0));
        let mut set = Select::new();
        let (send, receive) = (set.send(&full), set.recv(&rx));
        assert!(set.try_ready().is_err());
        assert_eq!(set.ready_timeout(SHORT), Err(ReadyTimeoutError::Timeout));
        tx.send(4).unwrap();
        assert_eq!((set.try_ready(), set.ready()), (Ok(receive), Ok(receive)));
        assert_eq!(set.ready_deadline(Instant::now() + LONG), Ok(receive));
        assert_eq!((rx.len(), rx.recv()), (1, Ok(4)));
        full.close();
        assert_eq!(set.ready(), Ok(send), "a closed channel does not wait");
        let (clock, idle) = (after(SHORT), never::<u8>());
        let mut set = Select::new();
        set.recv(&idle);
        assert_eq!((set.recv(&clock), set.ready()), (1, Ok(1)));
        assert!(clock.try_recv().is_ok());
    };
    everywhere(|_| check());
    check();
    everywhere(|runtime| {
        let (tx, rx) = bounded::<u8>(0);
        nursery(|n| {
            let watch = || {
                let mut set = Select::new();
                set.recv(&rx);
                set.ready()
            };
            let watches: Vec<_> = (0..5).map(|_| n.spawn(watch)).collect();
            settle(runtime);
            assert!(watches.iter().all(|watch| !watch.is_finished()));
            let sender = n.spawn(|| tx.send(1));
            watches.into_iter().for_each(|watch| assert_eq!(watch.join().unwrap(), Ok(0)));
            assert!(!sender.is_finished(), "a look took the value");
            assert_eq!(rx.recv(), Ok(1));
            let cancelled = n.spawn(watch);
            settle(runtime);
            cancelled.cancel();
            assert_eq!(cancelled.join().unwrap(), Err(ReadyTimeoutError::Cancelled));
        });
    });
}

/// A sender gives up what it chose: the receiver it had found times out, or takes its other arm.
pub fn a_partner_that_gives_up_leaves_all_arms() {
    everywhere(|_| {
        let ((tx, rx), (other_tx, other)) = (bounded::<u8>(0), bounded(1));
        nursery(|n| {
            for is_other_ready in [false, true] {
                let receiver = n.spawn(|| {
                    select! {
                        recv(rx) -> value => value.map(|_| 0),
                        recv(other) -> value => value,
                        default(SHORT) => Ok(1),
                    }
                });
                let mut set = Select::new();
                set.send(&tx);
                let chosen = set.select_timeout(SHORT);
                if is_other_ready {
                    other_tx.send(2).unwrap();
                }
                drop(chosen);
                let expected = if is_other_ready { 2 } else { 1 };
                let got = receiver.join().unwrap().unwrap();
                assert!(got == expected || got == 1, "{got}");
                other.try_iter().for_each(drop);
            }
        });
    });
}

/// The last receiver goes between the choice of a send and its completion: the value comes back.
pub fn a_kept_place_without_a_receiver_gives_the_value_back() {
    everywhere(|_| {
        let (tx, rx) = bounded(1);
        let mut set = Select::new();
        set.send(&tx);
        let chosen = set.select().unwrap();
        drop(rx);
        assert_eq!(chosen.send(&tx, 5), Err(SendError::Disconnected(5)));
        assert_eq!(set.select().unwrap().send(&tx, 6), Err(SendError::Disconnected(6)));
    });
}

/// Who gives a timer's value up, or chooses something else, gets it later.
pub fn a_timer_that_is_not_taken_keeps_its_value() {
    everywhere(|_| {
        let clock = at(Instant::now());
        let mut set = Select::new();
        set.recv(&clock);
        drop(set.select().unwrap());
        assert!(clock.try_recv().is_ok());
        assert!(clock.try_recv().is_err());
        let (tx, rx) = bounded(1);
        for round in 0..scaled(200, 20) {
            let clock = at(Instant::now());
            tx.send(round).unwrap();
            select! {
                recv(rx) -> value => {
                    assert_eq!(value, Ok(round));
                    assert!(clock.recv_timeout(LONG).is_ok());
                }
                recv(clock) -> time => {
                    assert!(time.is_ok());
                    assert_eq!(rx.recv(), Ok(round));
                }
            }
        }
    });
}

/// A value of any size and kind goes through a select, and comes back whole from one that is dropped.
pub fn values_of_any_size_go_through_a_select() {
    fn check<T: Clone + PartialEq + core::fmt::Debug>(value: T) {
        for capacity in [1, 2] {
            let (tx, rx) = bounded(capacity);
            let mut set = Select::new();
            set.recv(&rx);
            tx.send(value.clone()).unwrap();
            drop(set.select().unwrap());
            assert_eq!(set.select().unwrap().recv(&rx).unwrap(), value);
            drop(set);
            let mut set = Select::new();
            set.send(&tx);
            set.select().unwrap().send(&tx, value.clone()).unwrap();
            assert_eq!(rx.recv().unwrap(), value);
        }
    }
    #[derive(Clone, PartialEq, Debug)]
    #[repr(align(64))]
    struct Wide(u8);
    everywhere(|_| {
        check(());
        check(3u8);
        check(Wide(4));
        check([5u64; 4]);
        check([6u64; 5]);
        check(alloc::vec![7u8; 100]);
    });
}
