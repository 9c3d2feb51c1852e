//! A fiber parks while wakers and cancellers come: it resumes once, on one stack, with its outcome.
//!
//! The world has one fiber. The thread that plays its worker announces the park, publishes under the
//! waitable's lock, leaves the stack and commits. Whoever publishes the fiber runs it then and there,
//! as a worker that dequeued it at once would.
use std::sync::atomic::{AtomicBool as Flag, Ordering::Relaxed as Plain};

use Ordering::{Relaxed, SeqCst};
use abi_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use abi_sync::{Arc, CheckedCell, Mutex, explore, thread};
use fiber_core::{
    CancelVerdict, CommitVerdict, Outcome, OutcomeCell, ParkVerdict, Stale, State, StateWord,
    Ticket, WakeVerdict, Word,
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
#[test]
fn shield_masks_a_cancel_but_not_a_wake() {
    explore("shield", || {
        let world = World::<StateWord>::new();
        world.protocol.set_shield(true).unwrap();
        let canceller = {
            let world = world.clone();
            thread::spawn(move || {
                assert_ne!(StateWord::cancel(&world.protocol), CancelVerdict::Enqueue);
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
#[test]
fn a_late_waker_does_not_end_the_wait_of_a_recycled_frame() {
    explore("recycled frame", || {
        let word = Arc::new(StateWord::starting_at(running()));
        let ParkVerdict::Parking(first) = word.begin_park().unwrap() else { panic!() };
        let late = {
            let word = word.clone();
            thread::spawn(move || StateWord::wake(&word, first))
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

/// A fiber that yields is given up after the switch; whoever dequeues it finds its stack complete.
#[test]
fn yield_against_dequeue() {
    explore("yield against dequeue", || {
        let world = World::<StateWord>::new();
        let published = Arc::new(AtomicBool::new(false));
        let thief = {
            let (world, published) = (world.clone(), published.clone());
            thread::spawn(move || {
                if published.load(Ordering::Acquire) {
                    world.enqueue_and_run();
                }
            })
        };
        world.stack.update(|value| *value = 41);
        world.on_stack.store(false, Plain);
        world.protocol.requeue().unwrap();
        published.store(true, Ordering::Release);
        thief.join().unwrap();
    });
}

// ---- mutants -----------------------------------------------------------------------------

/// A mutant that shares all but what it names with the real word.
macro_rules! mutant {
    ($name:ident { $($body:tt)* } rest { $($rest:ident),* }) => {
        struct $name(StateWord);
        impl Protocol for $name {
            $($body)*
            fn new() -> Self { Self(<StateWord as Protocol>::new()) }
            fn word(&self) -> Word { self.0.load() }
            $(mutant!(@ $rest);)*
        }
    };
    (@ begin) => { fn begin(&self) -> ParkVerdict { self.0.begin() } };
    (@ commit) => { fn commit(&self) -> CommitVerdict { self.0.commit() } };
    (@ wake) => {
        fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> { self.0.wake(ticket) }
    };
    (@ cancel) => { fn cancel(&self) -> CancelVerdict { self.0.cancel() } };
    (@ dispatch) => { fn dispatch(&self) { Protocol::dispatch(&self.0) } };
}

/// The protocol as first written down: a wake mark in a variable of its own.
struct TwoVariables {
    word: AtomicU64,
    wake_pending: AtomicBool,
}

impl TwoVariables {
    fn load(&self) -> Word {
        Word::from_bits(self.word.load(SeqCst))
    }
}

impl Protocol for TwoVariables {
    fn new() -> Self {
        Self { word: AtomicU64::new(running().to_bits()), wake_pending: AtomicBool::new(false) }
    }
    fn begin(&self) -> ParkVerdict {
        self.wake_pending.store(false, SeqCst);
        let (next, verdict) = self.load().begin_park().unwrap();
        self.word.store(next.to_bits(), SeqCst);
        verdict
    }
    fn commit(&self) -> CommitVerdict {
        let now = self.load();
        let parked = Word::compose(State::Parked, now.ticket(), false, false);
        self.word.compare_exchange(now.to_bits(), parked.to_bits(), SeqCst, SeqCst).unwrap();
        if self.wake_pending.swap(false, SeqCst) {
            let runs = Word::compose(State::Running, now.ticket(), false, false);
            self.word.compare_exchange(parked.to_bits(), runs.to_bits(), SeqCst, SeqCst).unwrap();
            return CommitVerdict::Resume;
        }
        CommitVerdict::Parked
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        let word = self.load();
        match word.state() {
            State::Parking => {
                self.wake_pending.store(true, SeqCst);
                Ok(WakeVerdict::Noted)
            }
            State::Parked => {
                let (next, verdict) = word.wake(ticket)?;
                self.word
                    .compare_exchange(word.to_bits(), next.to_bits(), SeqCst, SeqCst)
                    .map_err(|_| Stale)?;
                Ok(verdict)
            }
            _ => Err(Stale),
        }
    }
    fn cancel(&self) -> CancelVerdict {
        CancelVerdict::Already
    }
    fn dispatch(&self) {
        let (next, ()) = self.load().dispatch().unwrap();
        self.word.store(next.to_bits(), SeqCst);
    }
    fn word(&self) -> Word {
        self.load()
    }
}

#[test]
#[should_panic(expected = "lost wake")]
fn mutant_two_variables_loses_a_wake() {
    explore("mutant: two variables", || race::<TwoVariables>(&[World::wake]));
}

/// The same protocol's self-claim, which "must succeed", meets a second waker.
#[test]
#[should_panic(expected = "called `Result::unwrap()`")]
fn mutant_two_variables_loses_its_self_claim() {
    explore("mutant: self-claim", || {
        let protocol = Arc::new(TwoVariables::new());
        let ParkVerdict::Parking(ticket) = protocol.begin() else { panic!() };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let protocol = protocol.clone();
                thread::spawn(move || {
                    let _ = protocol.wake(ticket);
                })
            })
            .collect();
        let _ = protocol.commit();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

mutant!(CommitsOnItsOwnStack { const AFTER_SWITCH: bool = false; }
    rest { begin, commit, wake, cancel, dispatch });

#[test]
#[should_panic(expected = "run on two stacks")]
fn mutant_commit_before_the_switch_runs_on_two_stacks() {
    explore("mutant: commit before the switch", || {
        race::<CommitsOnItsOwnStack>(&[World::wake]);
    });
}

mutant!(IgnoresTheTicket {
    fn wake(&self, _: Ticket) -> Result<WakeVerdict, Stale> {
        self.0.wake(self.0.load().ticket())
    }
} rest { begin, commit, cancel, dispatch });

#[test]
#[should_panic(expected = "a stale wake ended the next wait")]
fn mutant_ticket_read_apart_from_the_state_wakes_the_next_wait() {
    explore("mutant: ticket apart", stale::<IgnoresTheTicket>);
}

mutant!(CancelsOnlyTheParked {
    fn cancel(&self) -> CancelVerdict {
        // "Else: return": whoever is not yet Parked is left alone.
        match self.0.load().state() {
            State::Parked => self.0.cancel(),
            _ => CancelVerdict::Already,
        }
    }
} rest { begin, commit, wake, dispatch });

#[test]
#[should_panic(expected = "lost wake")]
fn mutant_cancel_before_parking_is_lost() {
    explore("mutant: cancel the parked only", || {
        race::<CancelsOnlyTheParked>(&[World::cancel]);
    });
}

mutant!(WakerEnqueuesTheParking {
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        match self.0.load().state() {
            State::Parking => Ok(WakeVerdict::Enqueue),
            _ => self.0.wake(ticket),
        }
    }
    fn dispatch(&self) {
        let _ = StateWord::dispatch(&self.0);
    }
} rest { begin, commit, cancel });

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_waker_that_enqueues_a_parking_fiber_runs_it_twice() {
    explore("mutant: enqueue the parking", || race::<WakerEnqueuesTheParking>(&[World::wake]));
}

/// The real transitions without any order between the threads.
struct Unordered(AtomicU64);

impl Unordered {
    fn step<V, E>(&self, f: impl Fn(Word) -> Result<(Word, V), E>) -> Result<V, E> {
        let mut now = self.0.load(Relaxed);
        loop {
            let (next, verdict) = f(Word::from_bits(now))?;
            match self.0.compare_exchange(now, next.to_bits(), Relaxed, Relaxed) {
                Ok(_) => return Ok(verdict),
                Err(other) => now = other,
            }
        }
    }
}

impl Protocol for Unordered {
    fn new() -> Self {
        Self(AtomicU64::new(running().to_bits()))
    }
    fn begin(&self) -> ParkVerdict {
        self.step(Word::begin_park).unwrap()
    }
    fn commit(&self) -> CommitVerdict {
        self.step(Word::commit_park).unwrap()
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        self.step(|word| word.wake(ticket))
    }
    fn cancel(&self) -> CancelVerdict {
        self.step(|word| Ok::<_, ()>(word.cancel())).unwrap()
    }
    fn dispatch(&self) {
        self.step(Word::dispatch).unwrap()
    }
    fn word(&self) -> Word {
        Word::from_bits(self.0.load(Relaxed))
    }
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_relaxed_orders_run_an_incomplete_stack() {
    explore("mutant: relaxed orders", || race::<Unordered>(&[World::wake]));
}
