//! A fiber parks while wakers and cancellers come: it resumes once, on one stack, with its outcome.
//!
//! The world has one fiber. The thread that plays its worker announces the park, publishes under the
//! waitable's lock, leaves the stack and commits. Whoever publishes the fiber runs it then and there,
//! as a worker that dequeued it at once would.
#[path = "park/mutants.rs"]
mod mutants;

use std::sync::atomic::{AtomicBool as Flag, Ordering::Relaxed as Plain};

use Ordering::{Relaxed, SeqCst};
use abi_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use abi_sync::{Arc, CheckedCell, Mutex, explore, thread};
use fiber_core::{
    CancelVerdict, CommitVerdict, Defect, Outcome, OutcomeCell, ParkVerdict, Stale, State,
    StateWord, Ticket, WakeVerdict, Word, plant,
};

fn running() -> Word {
    Word::compose(State::Running, Ticket::new(0), false, false)
}

/// The steps of the protocol, so that a mutant can replace one.
trait Protocol: Send + Sync + 'static {
    /// Whether the worker commits after the switch, as it must.
    const AFTER_SWITCH: bool = true;
    fn new() -> Self;
    fn begin(&self) -> ParkVerdict;
    fn commit(&self) -> CommitVerdict;
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale>;
    fn cancel(&self) -> CancelVerdict;
    fn dispatch(&self);
    fn word(&self) -> Word;
}

impl Protocol for StateWord {
    fn new() -> Self {
        StateWord::starting_at(running())
    }
    fn begin(&self) -> ParkVerdict {
        self.begin_park().unwrap()
    }
    fn commit(&self) -> CommitVerdict {
        self.commit_park().unwrap()
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        StateWord::wake(self, ticket)
    }
    fn cancel(&self) -> CancelVerdict {
        StateWord::cancel(self)
    }
    fn dispatch(&self) {
        StateWord::dispatch(self).unwrap()
    }
    fn word(&self) -> Word {
        self.load()
    }
}

struct World<P> {
    protocol: P,
    /// Under the waitable's lock: whether the condition holds, and the wait that is linked.
    waitable: Mutex<(bool, Option<Ticket>)>,
    outcome: OutcomeCell,
    /// What the fiber's stack holds: written on it, read by whoever runs it next.
    stack: CheckedCell<u32>,
    on_stack: Flag,
    resumed: AtomicU32,
}

impl<P: Protocol> World<P> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            protocol: P::new(),
            waitable: Mutex::new((false, None)),
            outcome: OutcomeCell::new(),
            stack: CheckedCell::new(0),
            on_stack: Flag::new(true),
            resumed: AtomicU32::new(0),
        })
    }

    fn resume(&self) {
        assert!(!self.on_stack.swap(true, Plain), "run on two stacks");
        self.stack.update(|value| *value += 1);
        self.resumed.fetch_add(1, Relaxed);
    }

    /// The whole wait, by the worker that runs the fiber.
    fn park(&self) {
        let ParkVerdict::Parking(ticket) = self.protocol.begin() else {
            self.resumed.fetch_add(1, Relaxed);
            return;
        };
        {
            let mut waitable = self.waitable.lock().unwrap();
            if waitable.0 {
                // Completed: the model of the abort is a wake of one's own.
                let _ = self.protocol.wake(ticket);
            } else {
                waitable.1 = Some(ticket);
            }
        }
        self.stack.update(|value| *value = 41);
        if P::AFTER_SWITCH {
            self.on_stack.store(false, Plain);
            if self.protocol.commit() == CommitVerdict::Resume {
                self.resume();
            }
        } else {
            let verdict = self.protocol.commit();
            // The fiber still uses its stack after it said it was parked.
            thread::yield_now();
            if verdict == CommitVerdict::Resume {
                self.resumed.fetch_add(1, Relaxed);
            } else {
                self.stack.update(|value| *value += 1);
                self.on_stack.store(false, Plain);
            }
        }
    }

    fn enqueue_and_run(&self) {
        assert_eq!(self.resumed.load(Relaxed), 0, "enqueued twice");
        self.protocol.dispatch();
        self.resume();
    }

    /// Makes the condition true and wakes whoever is linked, after the lock.
    fn wake(&self) {
        let ticket = {
            let mut waitable = self.waitable.lock().unwrap();
            waitable.0 = true;
            waitable.1
        };
        let Some(ticket) = ticket else { return };
        let _ = self.outcome.decide(Outcome::Data(0));
        if self.protocol.wake(ticket) == Ok(WakeVerdict::Enqueue) {
            self.enqueue_and_run();
        }
    }

    fn cancel(&self) {
        if self.protocol.cancel() == CancelVerdict::Enqueue {
            self.enqueue_and_run();
        }
    }

    fn check_end(&self) {
        assert_ne!(self.protocol.word().state(), State::Parked, "lost wake");
        assert_eq!(self.resumed.load(Relaxed), 1, "resumed once");
    }
}

fn race<P: Protocol>(others: &'static [fn(&World<P>)]) {
    let world = World::<P>::new();
    let threads: Vec<_> = others
        .iter()
        .map(|other| {
            let world = world.clone();
            thread::spawn(move || other(&world))
        })
        .collect();
    world.park();
    for thread in threads {
        thread.join().unwrap();
    }
    world.check_end();
}

#[test]
fn one_waker() {
    explore("one waker", || race::<StateWord>(&[World::wake]));
}

#[test]
fn two_wakers() {
    explore("two wakers", || race::<StateWord>(&[World::wake, World::wake]));
}

#[test]
fn three_wakers() {
    explore("three wakers", || race::<StateWord>(&[World::wake, World::wake, World::wake]));
}

#[test]
fn cancel_alone() {
    explore("cancel alone", || race::<StateWord>(&[World::cancel]));
}

#[test]
fn cancel_against_wake() {
    explore("cancel against wake", || race::<StateWord>(&[World::wake, World::cancel]));
}

#[test]
fn two_cancellers_and_a_waker() {
    explore("two cancellers and a waker", || {
        race::<StateWord>(&[World::wake, World::cancel, World::cancel]);
    });
}

/// A shielded fiber stays parked when cancelled, and a wake still reaches it.
fn shielded(name: &str, cancel: fn(&StateWord) -> CancelVerdict) {
    explore(name, move || {
        let world = World::<StateWord>::new();
        world.protocol.set_shield(true).unwrap();
        let canceller = {
            let world = world.clone();
            thread::spawn(move || {
                let verdict = cancel(&world.protocol);
                assert_ne!(verdict, CancelVerdict::Enqueue, "a cancel reached a shielded fiber");
            })
        };
        let waker = {
            let world = world.clone();
            thread::spawn(move || world.wake())
        };
        world.park();
        canceller.join().unwrap();
        waker.join().unwrap();
        world.check_end();
        assert!(world.protocol.load().is_cancelled(), "and the cancellation is not lost");
    });
}

#[test]
fn shield_masks_a_cancel_but_not_a_wake() {
    shielded("shield", StateWord::cancel);
}

/// A waker of the first wait is late: the second wait, of the same frame, is not ended by it.
fn stale<P: Protocol>() {
    let word = Arc::new(P::new());
    let ParkVerdict::Parking(first) = word.begin() else { panic!() };
    let late = {
        let word = word.clone();
        thread::spawn(move || word.wake(first) == Ok(WakeVerdict::Enqueue))
    };
    let woken = match word.commit() {
        CommitVerdict::Resume => true,
        CommitVerdict::Parked => match word.wake(first) {
            Ok(WakeVerdict::Enqueue) => {
                word.dispatch();
                true
            }
            _ => false,
        },
    };
    if woken {
        // The second wait; nobody ever wakes it.
        let ParkVerdict::Parking(_) = word.begin() else { panic!() };
        assert_eq!(word.commit(), CommitVerdict::Parked, "a stale wake ended the next wait");
    }
    let late_enqueues = late.join().unwrap();
    if woken {
        assert!(!late_enqueues, "a stale wake ended the next wait");
        assert_eq!(word.word().state(), State::Parked, "a stale wake ended the next wait");
    }
}

#[test]
fn a_late_waker_does_not_end_the_next_wait() {
    explore("stale ticket", stale::<StateWord>);
}

/// The frame is recycled and holds another fiber, which waits; the waker of the old one is late.
fn recycled(name: &str, wake: fn(&StateWord, Ticket) -> Result<WakeVerdict, Stale>) {
    explore(name, move || {
        let word = Arc::new(StateWord::starting_at(running()));
        let ParkVerdict::Parking(first) = word.begin_park().unwrap() else { panic!() };
        let late = {
            let word = word.clone();
            thread::spawn(move || wake(&word, first))
        };
        // Cancelled, it goes on, ends, and the frame is used again.
        word.abort_park().unwrap();
        word.finish(true).unwrap();
        word.recycle().unwrap();
        word.start().unwrap();
        StateWord::dispatch(&word).unwrap();
        let ParkVerdict::Parking(_) = word.begin_park().unwrap() else { panic!() };
        assert_eq!(word.commit_park(), Ok(CommitVerdict::Parked), "the next fiber's wait ended");
        assert_ne!(late.join().unwrap(), Ok(WakeVerdict::Enqueue), "the next fiber's wait ended");
    });
}

#[test]
fn a_late_waker_does_not_end_the_wait_of_a_recycled_frame() {
    recycled("recycled frame", StateWord::wake);
}

/// A fiber that yields is given up after the switch; whoever dequeues it finds its stack complete.
fn yielded(name: &str, is_after_switch: bool) {
    explore(name, move || {
        let world = World::<StateWord>::new();
        let published = Arc::new(AtomicBool::new(false));
        let thief = {
            let (world, published) = (world.clone(), published.clone());
            thread::spawn(move || {
                // Without an order of its own: the word alone carries what the stack holds.
                if published.load(Relaxed) {
                    world.enqueue_and_run();
                }
            })
        };
        world.stack.update(|value| *value = 41);
        if is_after_switch {
            world.on_stack.store(false, Plain);
        }
        world.protocol.requeue().unwrap();
        published.store(true, Relaxed);
        thief.join().unwrap();
    });
}

#[test]
fn yield_against_dequeue() {
    yielded("yield against dequeue", true);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_requeue_without_release_is_caught() {
    plant(Defect::RequeueRelaxed);
    yielded("mutant: requeue without release", true);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_dispatch_without_acquire_is_caught() {
    plant(Defect::DispatchRelaxed);
    yielded("mutant: dispatch without acquire", true);
}
