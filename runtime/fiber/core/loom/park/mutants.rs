//! Protocols with one step done wrongly, and the failure the model finds in each.

use crate::*;

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
        // Whoever has it runs it, whatever the word says.
        if self.0.load().state() == State::Runnable {
            let _ = StateWord::dispatch(&self.0);
        }
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

mutant!(WakesByStore {
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        let seen = self.0.load();
        if seen.state() != State::Parked {
            return self.0.wake(ticket);
        }
        let (next, verdict) = seen.wake(ticket)?;
        self.0.bits().store(next.to_bits(), Ordering::Release);
        Ok(verdict)
    }
    fn dispatch(&self) {
        let _ = StateWord::dispatch(&self.0);
    }
} rest { begin, commit, cancel });

/// Only a second waker comes between the look and the store.
#[test]
#[should_panic(expected = "run on two stacks")]
fn mutant_wake_by_store_meets_a_second_waker() {
    explore("wake by store, one waker", || race::<WakesByStore>(&[World::wake]));
    explore("mutant: wake by store", || race::<WakesByStore>(&[World::wake, World::wake]));
}

#[test]
#[should_panic(expected = "run on two stacks")]
fn mutant_wake_by_store_meets_a_third_waker() {
    explore("mutant: wake by store, three", || {
        race::<WakesByStore>(&[World::wake, World::wake, World::wake]);
    });
}

mutant!(CancelsByStore {
    fn cancel(&self) -> CancelVerdict {
        let seen = self.0.load();
        if seen.state() != State::Parked {
            return self.0.cancel();
        }
        let (next, verdict) = seen.cancel();
        self.0.bits().store(next.to_bits(), Ordering::Release);
        verdict
    }
    fn dispatch(&self) {
        let _ = StateWord::dispatch(&self.0);
    }
} rest { begin, commit, wake });

/// Only another one who ends the wait comes between the look and the store.
#[test]
#[should_panic(expected = "run on two stacks")]
fn mutant_cancel_by_store_meets_a_waker() {
    explore("cancel by store, alone", || race::<CancelsByStore>(&[World::cancel]));
    explore("mutant: cancel by store", || race::<CancelsByStore>(&[World::wake, World::cancel]));
}

#[test]
#[should_panic(expected = "run on two stacks")]
fn mutant_cancel_by_store_meets_a_second_canceller() {
    explore("mutant: cancel by store, two", || {
        race::<CancelsByStore>(&[World::wake, World::cancel, World::cancel]);
    });
}

/// Takes the shield off before it looks.
#[test]
#[should_panic(expected = "a cancel reached a shielded fiber")]
fn mutant_cancel_of_the_shielded_is_caught() {
    shielded("mutant: shield ignored", |word| {
        let shielded = <StateWord as Protocol>::new();
        shielded.set_shield(true).unwrap();
        let shield = shielded.load().to_bits() ^ running().to_bits();
        word.bits().fetch_and(!shield, Ordering::AcqRel);
        word.cancel()
    });
}

#[test]
#[should_panic(expected = "the next fiber's wait ended")]
fn mutant_ticket_that_is_ignored_wakes_the_next_fiber() {
    recycled("mutant: any ticket", |word, _| word.wake(word.load().ticket()));
}

#[test]
#[should_panic(expected = "run on two stacks")]
fn mutant_yield_given_up_before_the_switch() {
    yielded("mutant: given up first", false);
}
