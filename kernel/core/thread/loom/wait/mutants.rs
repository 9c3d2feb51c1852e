//! Protocols with one step done wrongly, and the failure the model finds in each.

use crate::*;

/// The wake mark in a variable of its own, read before the state is committed.
struct TwoVariables {
    word: AtomicU64,
    pending: AtomicBool,
}

impl Protocol for TwoVariables {
    fn new() -> Self {
        Self { word: AtomicU64::new(running().to_bits()), pending: AtomicBool::new(false) }
    }
    fn begin(&self) -> Ticket {
        let word = Word::from_bits(self.word.load(SeqCst));
        let (next, verdict) = word.begin_wait().unwrap();
        self.word.store(next.to_bits(), SeqCst);
        let WaitVerdict::AboutToWait(ticket) = verdict else { panic!() };
        ticket
    }
    fn cancel(&self) {
        self.word.store(running().to_bits(), SeqCst);
    }
    fn commit(&self) -> CommitVerdict {
        let word = Word::from_bits(self.word.load(SeqCst));
        if self.pending.load(SeqCst) {
            let runnable = Word::compose(State::Runnable, 1, word.ticket(), false, false);
            self.word.store(runnable.to_bits(), SeqCst);
            return CommitVerdict::Enqueue;
        }
        let (next, verdict) = word.commit_wait().unwrap();
        self.word.store(next.to_bits(), SeqCst);
        verdict
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        let word = Word::from_bits(self.word.load(SeqCst));
        match word.state() {
            State::AboutToWait => {
                self.pending.store(true, SeqCst);
                Ok(WakeVerdict::Noted)
            }
            State::Waiting => {
                let (next, verdict) = word.wake(GENERATION, ticket)?;
                self.word
                    .compare_exchange(word.to_bits(), next.to_bits(), SeqCst, SeqCst)
                    .map_err(|_| Stale)?;
                Ok(verdict)
            }
            _ => Err(Stale),
        }
    }
    fn dispatch(&self) -> bool {
        let word = Word::from_bits(self.word.load(SeqCst));
        word.dispatch(GENERATION).is_ok()
    }
    fn is_parked(&self) -> bool {
        Word::from_bits(self.word.load(SeqCst)).state() == State::Waiting
    }
}

#[test]
#[should_panic(expected = "lost wake")]
fn mutant_two_variables_loses_a_wake() {
    explore("mutant: two variables", || one_thread_and_wakers::<TwoVariables>(1));
}

/// A mutant that shares all but one step with the real word.
macro_rules! mutant {
    ($name:ident { $($body:tt)* } rest { $($rest:ident),* }) => {
        struct $name(StateWord);
        impl Protocol for $name {
            $($body)*
            $(mutant!(@ $rest);)*
        }
    };
    (@ new) => { fn new() -> Self { Self(<StateWord as Protocol>::new()) } };
    (@ begin) => { fn begin(&self) -> Ticket { self.0.begin() } };
    (@ cancel) => { fn cancel(&self) { self.0.cancel() } };
    (@ commit) => { fn commit(&self) -> CommitVerdict { self.0.commit() } };
    (@ wake) => {
        fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
            Protocol::wake(&self.0, ticket)
        }
    };
    (@ dispatch) => { fn dispatch(&self) -> bool { Protocol::dispatch(&self.0) } };
    (@ is_parked) => { fn is_parked(&self) -> bool { self.0.is_parked() } };
}

mutant!(CommitsOnItsOwnStack { const AFTER_SWITCH: bool = false; }
    rest { new, begin, cancel, commit, wake, dispatch, is_parked });

#[test]
#[should_panic(expected = "run on two stacks")]
fn mutant_commit_before_the_switch_runs_on_two_stacks() {
    explore("mutant: commit before the switch", || {
        one_thread_and_wakers::<CommitsOnItsOwnStack>(1);
    });
}

/// All transitions as load, then store.
struct LoadThenStore(AtomicU64);

impl LoadThenStore {
    fn step<V, E>(&self, f: impl Fn(Word) -> Result<(Word, V), E>) -> Result<V, E> {
        let (next, verdict) = f(Word::from_bits(self.0.load(SeqCst)))?;
        self.0.store(next.to_bits(), SeqCst);
        Ok(verdict)
    }
}

impl Protocol for LoadThenStore {
    fn new() -> Self {
        Self(AtomicU64::new(running().to_bits()))
    }
    fn begin(&self) -> Ticket {
        let Ok(WaitVerdict::AboutToWait(ticket)) = self.step(Word::begin_wait) else { panic!() };
        ticket
    }
    fn cancel(&self) {
        let _ = self.step(Word::cancel_wait);
    }
    fn commit(&self) -> CommitVerdict {
        self.step(Word::commit_wait).unwrap_or(CommitVerdict::Waits)
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        self.step(|word| word.wake(GENERATION, ticket))
    }
    fn dispatch(&self) -> bool {
        let _ = self.step(|word| word.dispatch(GENERATION));
        true
    }
    fn is_parked(&self) -> bool {
        Word::from_bits(self.0.load(SeqCst)).state() == State::Waiting
    }
}

#[test]
#[should_panic(expected = "enqueued twice")]
fn mutant_load_then_store_enqueues_twice() {
    // One waker is enough to lose the wake, so that failure is kept out: the thread is parked
    // before the two wakers start, and what is left is their race for it.
    explore("mutant: load then store", || {
        let world = World::<LoadThenStore>::new();
        world.park();
        let other = {
            let world = world.clone();
            thread::spawn(move || world.wake())
        };
        world.wake();
        other.join().unwrap();
    });
}

mutant!(WakesByStore {
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        let seen = self.0.load();
        if seen.state() != State::Waiting {
            return Protocol::wake(&self.0, ticket);
        }
        let (next, verdict) = seen.wake(GENERATION, ticket)?;
        self.0.bits().store(next.to_bits(), Release);
        Ok(verdict)
    }
} rest { new, begin, cancel, commit, dispatch, is_parked });

/// Only a second waker can come between the look and the store.
#[test]
#[should_panic(expected = "enqueued twice")]
fn mutant_wake_by_store_meets_a_second_waker() {
    explore("wake by store, 1 waker", || one_thread_and_wakers::<WakesByStore>(1));
    explore("mutant: wake by store", || one_thread_and_wakers::<WakesByStore>(2));
}

#[test]
#[should_panic(expected = "run on two CPUs")]
fn mutant_dispatch_by_store_runs_on_two_cpus() {
    pickers("mutant: dispatch by store", |word| {
        let Ok((next, _)) = word.load().dispatch(GENERATION) else { return false };
        word.bits().store(next.to_bits(), Release);
        true
    });
}

#[test]
#[should_panic(expected = "run on two stacks")]
fn mutant_preempted_thread_given_up_before_the_switch() {
    preempt("mutant: given up first", false);
}

/// The real transitions without any order between the CPUs.
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
    fn begin(&self) -> Ticket {
        let Ok(WaitVerdict::AboutToWait(ticket)) = self.step(Word::begin_wait) else { panic!() };
        ticket
    }
    fn cancel(&self) {
        let _ = self.step(Word::cancel_wait);
    }
    fn commit(&self) -> CommitVerdict {
        self.step(Word::commit_wait).unwrap()
    }
    fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        self.step(|word| word.wake(GENERATION, ticket))
    }
    fn dispatch(&self) -> bool {
        self.step(|word| word.dispatch(GENERATION)).is_ok()
    }
    fn is_parked(&self) -> bool {
        Word::from_bits(self.0.load(Relaxed)).state() == State::Waiting
    }
}

#[test]
#[should_panic(expected = "run ")]
fn mutant_relaxed_orders_run_the_thread_before_its_registers_are_saved() {
    explore("mutant: relaxed orders", || one_thread_and_wakers::<Unordered>(1));
}
