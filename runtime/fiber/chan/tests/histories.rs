//! Random programs of channel operations, run for real; each recorded history must be explained by
//! sequential channels.
//!
//! Fibers send, receive, select, time out, close, go, and are cancelled, on one and on more workers, with
//! two channels. Every operation notes when it began and when it ended, at each channel it says something
//! about. For each channel the checker looks for an order of its operations that respects these times and
//! in which a plain queue gives the same answers; what holds of each channel holds of both, because a
//! select does something at one of them alone. A sender that waits is admitted when it is linked: its
//! value is then in the queue, also if the buffer is full. A select that sends is two steps, and what
//! happens between them is allowed for.
#[path = "histories/checker.rs"]
mod checker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use checker::{Did, Event, is_explained};
use fiber_chan::{
    Receiver, RecvError, RecvTimeoutError, Select, SelectTimeoutError, SendError, SendTimeoutError,
    Sender, TryRecvError, TrySendError, bounded, unbounded,
};
use fiber_nursery::nursery;
use fiber_rt::{Mutex, Runtime, shield, yield_now};
use test_property::prelude::*;

/// An arm of a select: whether it sends, and at which channel.
type Arm = (bool, usize);

/// What a fiber does, at which of the channels.
#[derive(Clone, Debug)]
enum Op {
    Send(usize),
    TrySend(usize),
    SendTimeout(usize),
    Recv(usize),
    TryRecv(usize),
    RecvTimeout(usize),
    /// Waits a while, or not at all.
    Select(Vec<Arm>, bool),
    Close(usize),
    /// Its receiving end goes.
    Go(usize),
    Yield,
}

const CHANNELS: usize = 2;

fn op(channels: usize) -> impl Strategy<Value = Op> {
    let at = move || 0..channels;
    let arms = || prop::collection::vec((any::<bool>(), at()), 1..4);
    prop_oneof![
        4 => at().prop_map(Op::Send),
        2 => at().prop_map(Op::TrySend),
        2 => at().prop_map(Op::SendTimeout),
        4 => at().prop_map(Op::Recv),
        2 => at().prop_map(Op::TryRecv),
        2 => at().prop_map(Op::RecvTimeout),
        5 => (arms(), any::<bool>()).prop_map(|(arms, waits)| Op::Select(arms, waits)),
        1 => at().prop_map(Op::Close),
        2 => at().prop_map(Op::Go),
        3 => Just(Op::Yield),
    ]
}

const SHORT: Duration = Duration::from_micros(200);

/// What is sent.
trait Value: Send {
    fn new(number: u32, alive: &Arc<()>) -> Self;
    fn number(self) -> u32;
}

/// As small as a select keeps it by itself.
impl Value for u32 {
    fn new(number: u32, _: &Arc<()>) -> Self {
        number
    }

    fn number(self) -> u32 {
        self
    }
}

/// Larger than that, and dropped once.
struct Large {
    number: u32,
    _alive: Arc<()>,
    ballast: [u32; 32],
}

impl Value for Large {
    fn new(number: u32, alive: &Arc<()>) -> Self {
        Self { number, _alive: alive.clone(), ballast: [number; 32] }
    }

    fn number(self) -> u32 {
        assert_eq!(self.ballast, [self.number; 32]);
        self.number
    }
}

/// What a fiber holds: its ends, of which those that receive may go.
struct Ends<V> {
    senders: Vec<Sender<V>>,
    receivers: Vec<Option<Receiver<V>>>,
    /// Held by each value that counts.
    alive: Arc<()>,
}

impl<V: Value> Ends<V> {
    /// What the operation did at which channel, if it did anything. A send or receive that would wait
    /// for ever is ended by the cancellation, and then did nothing.
    fn run(&mut self, op: &Op, value: u32) -> Vec<(usize, Did)> {
        let receiver = |at: usize| self.receivers[at].as_ref();
        let new = || V::new(value, &self.alive);
        let did = match *op {
            Op::Send(at) => match self.senders[at].send(new()) {
                Ok(()) => Some((at, Did::Sent(value))),
                Err(SendError::Disconnected(_)) => Some((at, Did::SendClosed)),
                Err(SendError::Cancelled(back)) => {
                    assert_eq!(back.number(), value);
                    None
                }
            },
            Op::TrySend(at) => Some(match self.senders[at].try_send(new()) {
                Ok(()) => (at, Did::Sent(value)),
                Err(TrySendError::Full(_)) => (at, Did::Full { kept: 0 }),
                Err(TrySendError::Disconnected(_)) => (at, Did::SendClosed),
            }),
            Op::SendTimeout(at) => match self.senders[at].send_timeout(new(), SHORT) {
                Ok(()) => Some((at, Did::Sent(value))),
                Err(SendTimeoutError::Disconnected(_)) => Some((at, Did::SendClosed)),
                Err(SendTimeoutError::Timeout(_) | SendTimeoutError::Cancelled(_)) => None,
            },
            Op::Recv(at) => match receiver(at).map(Receiver::recv) {
                Some(Ok(value)) => Some((at, Did::Got(value.number()))),
                Some(Err(RecvError::Disconnected)) => Some((at, Did::RecvClosed)),
                Some(Err(RecvError::Cancelled)) | None => None,
            },
            Op::TryRecv(at) => receiver(at).map(|end| match end.try_recv() {
                Ok(value) => (at, Did::Got(value.number())),
                Err(TryRecvError::Empty) => (at, Did::Empty { kept: 0 }),
                Err(TryRecvError::Disconnected) => (at, Did::RecvClosed),
            }),
            Op::RecvTimeout(at) => match receiver(at).map(|end| end.recv_timeout(SHORT)) {
                Some(Ok(value)) => Some((at, Did::Got(value.number()))),
                Some(Err(RecvTimeoutError::Disconnected)) => Some((at, Did::RecvClosed)),
                Some(Err(RecvTimeoutError::Timeout | RecvTimeoutError::Cancelled)) | None => None,
            },
            Op::Select(ref arms, waits) => return self.select(arms, waits, value),
            Op::Close(at) => {
                self.senders[at].close();
                Some((at, Did::Closed))
            }
            Op::Go(at) => self.receivers[at].take().map(|_| (at, Did::Gone)),
            Op::Yield => {
                let _ = yield_now();
                None
            }
        };
        did.into_iter().collect()
    }

    fn select(&self, arms: &[Arm], waits: bool, value: u32) -> Vec<(usize, Did)> {
        let is_there = |(sends, at): &&Arm| *sends || self.receivers[*at].is_some();
        let arms: Vec<Arm> = arms.iter().filter(is_there).copied().collect();
        let mut set = Select::new();
        for (sends, at) in &arms {
            match &self.receivers[*at] {
                Some(end) if !sends => _ = set.recv(end),
                _ => _ = set.send(&self.senders[*at]),
            }
        }
        let chosen = if waits {
            set.select_timeout(SHORT)
        } else {
            set.try_select().map_err(|_| SelectTimeoutError::Timeout)
        };
        let Ok(chosen) = chosen else {
            // Looked at without a wait, none was ready.
            let unready = |(sends, at): Arm| match sends {
                true => (at, Did::Full { kept: 0 }),
                false => (at, Did::Empty { kept: 0 }),
            };
            return arms.into_iter().filter(|_| !waits).map(unready).collect();
        };
        let (sends, at) = arms[chosen.index()];
        if value % 3 == 0 {
            // Others go on between the two steps.
            let _ = yield_now();
        }
        let did = match &self.receivers[at] {
            Some(end) if !sends => {
                chosen.recv(end).map_or(Did::RecvClosed, |value| Did::Got(value.number()))
            }
            _ => match chosen.send(&self.senders[at], V::new(value, &self.alive)) {
                Ok(()) => Did::Sent(value),
                Err(_) => Did::SendClosed,
            },
        };
        vec![(at, did)]
    }
}

/// A fiber's part in a history. What it still holds goes with it, and is noted: also of one that was cancelled before
/// it ran, whose program is dropped.
struct Actor<'r, V: Value> {
    ends: Ends<V>,
    clock: &'r AtomicU64,
    histories: &'r Mutex<[Vec<Event>; CHANNELS]>,
}

impl<V: Value> Actor<'_, V> {
    fn act(&mut self, op: &Op, value: u32) {
        let began = self.clock.fetch_add(1, Ordering::SeqCst);
        let all_did = self.ends.run(op, value);
        let ended = self.clock.fetch_add(1, Ordering::SeqCst);
        for (at, did) in all_did {
            let is_select_send =
                matches!(op, Op::Select(..)) && matches!(did, Did::Sent(_) | Did::SendClosed);
            let event = Event { began, ended, did, is_select_send };
            shield(|| self.histories.lock()[at].push(event));
        }
    }
}

impl<V: Value> Drop for Actor<'_, V> {
    fn drop(&mut self) {
        for at in 0..CHANNELS {
            self.act(&Op::Go(at), 0);
        }
    }
}

/// Runs the programs, one fiber each; those that still wait after a while are cancelled. The history of
/// each channel. If one `stays`, somebody receives to the end, or could.
fn record<V: Value>(
    runtime: &Runtime,
    capacity: Option<usize>,
    programs: &[Vec<Op>],
    stays: bool,
) -> [Vec<Event>; CHANNELS] {
    let clock = AtomicU64::new(0);
    let alive = Arc::new(());
    let histories = Mutex::new([const { Vec::new() }; CHANNELS]);
    runtime.run(|| {
        let channels: [_; CHANNELS] =
            core::array::from_fn(|_| capacity.map_or_else(unbounded, bounded));
        // The first fiber only sends, so that it finds the others gone.
        let ends = |number: usize| Ends {
            senders: channels.iter().map(|(sender, _)| sender.clone()).collect(),
            receivers: channels.iter().map(|(_, end)| (number > 0).then(|| end.clone())).collect(),
            alive: alive.clone(),
        };
        let all: Vec<Ends<V>> = (0..programs.len()).map(ends).collect();
        let stayed = stays.then(|| ends(1));
        drop(channels);
        nursery(|n| {
            for (number, (program, ends)) in programs.iter().zip(all).enumerate() {
                let mut actor = Actor { ends, clock: &clock, histories: &histories };
                n.spawn(move || {
                    for (step, op) in program.iter().enumerate() {
                        actor.act(op, (number * 100 + step) as u32);
                    }
                });
            }
            n.cancel_after(Duration::from_millis(3));
        });
        drop(stayed);
    });
    assert_eq!(Arc::strong_count(&alive), 1, "every value has been dropped, and once");
    let mut histories = histories.into_inner();
    histories.iter_mut().for_each(|events| allow_for_steps(events));
    histories
}

/// A select that sends has two steps: from the first on its place is kept, and it is admitted whatever a
/// close says; in the second its value is there.
fn allow_for_steps(events: &mut [Event]) {
    let all = events.to_vec();
    for event in events {
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
}

fn check<V: Value>(capacity: Option<usize>, workers: usize, cases: u32) {
    let runtime = Runtime::builder().workers(workers).build().unwrap();
    // Now all at one channel, now at both.
    let program = (1..=CHANNELS).prop_flat_map(|channels| {
        prop::collection::vec(prop::collection::vec(op(channels), 1..6), 2..6)
    });
    let config = ProptestConfig::with_cases(cases);
    proptest!(config, |(programs in program, stays in any::<bool>())| {
        let histories = record::<V>(&runtime, capacity, &programs, stays);
        let receivers = programs.len() - 1 + usize::from(stays);
        for events in histories {
            prop_assume!(events.len() <= 40);
            prop_assert!(
                is_explained(&events, capacity, receivers),
                "{capacity:?} {receivers} {events:#?}"
            );
        }
    });
}

/// PB21, here and below: with selects over both channels, beside close, time-outs, cancellation and the
/// going of receivers, no message is lost and none arrives twice.
#[test]
fn histories_of_a_small_buffer() {
    check::<u32>(Some(1), 1, 300);
    check::<u32>(Some(1), 3, 600);
    check::<Large>(Some(1), 3, 300);
}

#[test]
fn histories_of_a_larger_buffer() {
    check::<u32>(Some(3), 1, 150);
    check::<u32>(Some(3), 3, 300);
}

#[test]
fn histories_without_a_bound() {
    check::<u32>(None, 1, 100);
    check::<u32>(None, 3, 200);
}

#[test]
fn histories_of_a_rendezvous() {
    check::<u32>(Some(0), 1, 300);
    check::<u32>(Some(0), 3, 600);
    check::<Large>(Some(0), 3, 300);
}
