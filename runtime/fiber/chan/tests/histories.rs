//! Random programs of channel operations, run for real; each recorded history must be explained by a
//! sequential channel.
//!
//! Fibers send, receive, select, time out, close and are cancelled, on one and on more workers. Every
//! operation notes when it began and when it ended. The checker looks for an order of the operations
//! that respects these times and in which a plain queue gives the same answers. A sender that waits is
//! admitted when it is linked: its value is then in the queue, also if the buffer is full. A select
//! that sends is two steps, and what happens between them is allowed for.
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fiber_chan::{
    Receiver, RecvTimeoutError, Select, SendTimeoutError, Sender, TryRecvError, TrySendError,
    bounded, unbounded,
};
use fiber_nursery::nursery;
use fiber_rt::{Mutex, Runtime, shield, yield_now};
use test_property::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    Send,
    TrySend,
    SendTimeout,
    SelectSend,
    Recv,
    TryRecv,
    RecvTimeout,
    SelectRecv,
    Close,
    Yield,
}

/// What an operation did, as far as a channel is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Did {
    Sent(u32),
    /// Found the buffer full, with so many selects under way that may have kept a place.
    Full {
        kept: usize,
    },
    SendClosed,
    /// Sent by a select that had committed to it before a close at about the same time.
    SentLate(u32),
    Got(u32),
    /// Found nothing, with so many selects under way that may have committed to a send.
    Empty {
        kept: usize,
    },
    RecvClosed,
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    began: u64,
    ended: u64,
    did: Did,
    is_select_send: bool,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Send),
        2 => Just(Op::TrySend),
        2 => Just(Op::SendTimeout),
        2 => Just(Op::SelectSend),
        4 => Just(Op::Recv),
        2 => Just(Op::TryRecv),
        2 => Just(Op::RecvTimeout),
        2 => Just(Op::SelectRecv),
        1 => Just(Op::Close),
        3 => Just(Op::Yield),
    ]
}

const SHORT: Duration = Duration::from_micros(200);

fn run_one(op: Op, value: u32, tx: &Sender<u32>, rx: &Receiver<u32>) -> Option<Did> {
    match op {
        // A send or receive that would wait for ever is ended by the cancellation, and then did
        // nothing.
        Op::Send => match tx.send(value) {
            Ok(()) => Some(Did::Sent(value)),
            Err(fiber_chan::SendError::Disconnected(_)) => Some(Did::SendClosed),
            Err(fiber_chan::SendError::Cancelled(back)) => {
                assert_eq!(back, value);
                None
            }
        },
        Op::TrySend => Some(match tx.try_send(value) {
            Ok(()) => Did::Sent(value),
            Err(TrySendError::Full(_)) => Did::Full { kept: 0 },
            Err(TrySendError::Disconnected(_)) => Did::SendClosed,
        }),
        Op::SendTimeout => match tx.send_timeout(value, SHORT) {
            Ok(()) => Some(Did::Sent(value)),
            Err(SendTimeoutError::Disconnected(_)) => Some(Did::SendClosed),
            Err(SendTimeoutError::Timeout(_) | SendTimeoutError::Cancelled(_)) => None,
        },
        Op::SelectSend => {
            let mut set = Select::new();
            set.send(tx);
            set.send(tx);
            match set.select_timeout(SHORT) {
                Ok(chosen) => Some(match chosen.send(tx, value) {
                    Ok(()) => Did::Sent(value),
                    Err(_) => Did::SendClosed,
                }),
                Err(_) => None,
            }
        }
        Op::Recv => match rx.recv() {
            Ok(value) => Some(Did::Got(value)),
            Err(fiber_chan::RecvError::Disconnected) => Some(Did::RecvClosed),
            Err(fiber_chan::RecvError::Cancelled) => None,
        },
        Op::TryRecv => Some(match rx.try_recv() {
            Ok(value) => Did::Got(value),
            Err(TryRecvError::Empty) => Did::Empty { kept: 0 },
            Err(TryRecvError::Disconnected) => Did::RecvClosed,
        }),
        Op::RecvTimeout => match rx.recv_timeout(SHORT) {
            Ok(value) => Some(Did::Got(value)),
            Err(RecvTimeoutError::Disconnected) => Some(Did::RecvClosed),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Cancelled) => None,
        },
        Op::SelectRecv => {
            let mut set = Select::new();
            set.recv(rx);
            set.recv(rx);
            match set.select_timeout(SHORT) {
                Ok(chosen) => match chosen.recv(rx) {
                    Ok(value) => Some(Did::Got(value)),
                    Err(fiber_chan::RecvError::Disconnected) => Some(Did::RecvClosed),
                    Err(fiber_chan::RecvError::Cancelled) => None,
                },
                Err(_) => None,
            }
        }
        Op::Close => {
            tx.close();
            Some(Did::Closed)
        }
        Op::Yield => {
            let _ = yield_now();
            None
        }
    }
}

/// Runs the programs, one fiber each; those that still wait after a while are cancelled.
fn record(runtime: &Runtime, capacity: Option<usize>, programs: &[Vec<Op>]) -> Vec<Event> {
    let clock = AtomicU64::new(0);
    let events = Mutex::new(Vec::new());
    runtime.run(|| {
        let (tx, rx) = capacity.map_or_else(unbounded, bounded);
        nursery(|n| {
            for (number, program) in programs.iter().enumerate() {
                let (tx, rx, clock, events) = (&tx, &rx, &clock, &events);
                n.spawn(move || {
                    for (step, op) in program.iter().enumerate() {
                        let value = (number * 100 + step) as u32;
                        let began = clock.fetch_add(1, Ordering::SeqCst);
                        let did = run_one(*op, value, tx, rx);
                        let ended = clock.fetch_add(1, Ordering::SeqCst);
                        if let Some(did) = did {
                            let is_select_send = matches!(op, Op::SelectSend);
                            let event = Event { began, ended, did, is_select_send };
                            shield(|| events.lock().push(event));
                        }
                    }
                });
            }
            n.cancel_after(Duration::from_millis(3));
        });
    });
    // A select has two steps: from the first on its place is kept, and it is admitted whatever a close
    // says; in the second its value is there.
    let mut events = events.into_inner();
    let all = events.clone();
    for event in &mut events {
        let overlaps = |other: &&Event| other.began < event.ended && event.began < other.ended;
        let beside = || all.iter().filter(overlaps);
        let selects = beside().filter(|other| other.is_select_send).count();
        event.did = match event.did {
            Did::Full { .. } => Did::Full { kept: selects },
            Did::Empty { .. } => Did::Empty { kept: selects },
            Did::Sent(value)
                if event.is_select_send && beside().any(|other| other.did == Did::Closed) =>
            {
                Did::SentLate(value)
            }
            did => did,
        };
    }
    events
}

/// The sequential channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Model {
    queue: Vec<u32>,
    is_closed: bool,
}

impl Model {
    /// The channel after `did`, or nothing if it could not have done that.
    fn step(&self, did: Did, capacity: Option<usize>) -> Option<Self> {
        let mut next = self.clone();
        let is_possible = match did {
            Did::Sent(value) => {
                next.queue.push(value);
                !self.is_closed
            }
            Did::Full { kept } => {
                capacity.is_some_and(|capacity| self.queue.len() + kept >= capacity)
            }
            Did::SendClosed => self.is_closed,
            Did::Got(value) => {
                let is_first = self.queue.first() == Some(&value);
                if is_first {
                    next.queue.remove(0);
                }
                is_first
            }
            Did::SentLate(value) => {
                next.queue.push(value);
                true
            }
            Did::Empty { kept } => self.queue.is_empty() && (!self.is_closed || kept > 0),
            Did::RecvClosed => self.queue.is_empty() && self.is_closed,
            Did::Closed => {
                next.is_closed = true;
                true
            }
        };
        is_possible.then_some(next)
    }
}

/// Whether some order explains the history.
fn is_explained(events: &[Event], capacity: Option<usize>) -> bool {
    fn search(
        events: &[Event],
        done: u64,
        model: &Model,
        capacity: Option<usize>,
        seen: &mut HashSet<(u64, Model)>,
    ) -> bool {
        if done.count_ones() as usize == events.len() {
            return true;
        }
        if !seen.insert((done, model.clone())) {
            return false;
        }
        let open = |i: &usize| done >> i & 1 == 0;
        // The next one began before any other that is left had ended.
        let first_end = (0..events.len()).filter(open).map(|i| events[i].ended).min().unwrap_or(0);
        (0..events.len()).filter(open).any(|i| {
            events[i].began <= first_end
                && model
                    .step(events[i].did, capacity)
                    .is_some_and(|next| search(events, done | 1 << i, &next, capacity, seen))
        })
    }
    search(events, 0, &Model::default(), capacity, &mut HashSet::new())
}

fn check(capacity: Option<usize>, workers: usize, cases: u32) {
    let runtime = Runtime::builder().workers(workers).build().unwrap();
    let programs = prop::collection::vec(prop::collection::vec(op(), 1..6), 2..6);
    let config = ProptestConfig::with_cases(cases);
    proptest!(config, |(programs in programs)| {
        let events = record(&runtime, capacity, &programs);
        prop_assume!(events.len() <= 40);
        prop_assert!(is_explained(&events, capacity), "{capacity:?} {events:#?}");
    });
}

#[test]
fn histories_of_a_small_buffer() {
    check(Some(1), 1, 150);
    check(Some(1), 3, 300);
}

#[test]
fn histories_of_a_larger_buffer() {
    check(Some(3), 1, 150);
    check(Some(3), 3, 300);
}

#[test]
fn histories_without_a_bound() {
    check(None, 1, 100);
    check(None, 3, 200);
}

#[test]
fn histories_of_a_rendezvous() {
    check(Some(0), 1, 150);
    check(Some(0), 3, 300);
}

/// The checker itself: wrong answers are not explained.
#[test]
fn the_checker_finds_wrong_histories() {
    let event = |began, ended, did| Event { began, ended, did, is_select_send: false };
    let good = [event(0, 3, Did::Sent(1)), event(1, 2, Did::Got(1))];
    assert!(is_explained(&good, Some(0)), "a receive within a send");
    let wrong: [&[Event]; 7] = [
        // Received before it was sent.
        &[event(2, 3, Did::Sent(1)), event(0, 1, Did::Got(1))],
        // Received twice.
        &[event(0, 1, Did::Sent(1)), event(2, 3, Did::Got(1)), event(4, 5, Did::Got(1))],
        // Out of order.
        &[
            event(0, 1, Did::Sent(1)),
            event(2, 3, Did::Sent(2)),
            event(4, 5, Did::Got(2)),
            event(6, 7, Did::Got(1)),
        ],
        // Lost: closed and said to be empty while a value is in it.
        &[event(0, 1, Did::Sent(1)), event(2, 3, Did::Closed), event(4, 5, Did::RecvClosed)],
        // Sent after the close.
        &[event(0, 1, Did::Closed), event(2, 3, Did::Sent(1))],
        // Full while there was room.
        &[event(0, 1, Did::Full { kept: 0 })],
        // Empty where it should have said closed.
        &[event(0, 1, Did::Closed), event(2, 3, Did::Empty { kept: 0 })],
    ];
    for history in wrong {
        assert!(!is_explained(history, Some(1)), "{history:?}");
    }
}
