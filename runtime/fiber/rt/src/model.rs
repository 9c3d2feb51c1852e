//! Waiting in a model: loom's threads are the waiters, each of which commits its own park.
//!
//! The state word and the outcome are the real ones; only the substrate is the model's. A wait with a
//! deadline may end with Timeout at any moment, which is what a deadline can do.

use std::cell::OnceCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use abi_sync::thread;
use fiber_core::{
    CommitVerdict, Outcome, OutcomeCell, ParkVerdict, State, StateWord, Ticket, WakeVerdict, Word,
};

use crate::what::What;

/// One wait.
pub struct Wait {
    outcome: OutcomeCell,
    waker: Waker,
}

impl Wait {
    /// Decides the outcome; false if it was decided before.
    #[must_use]
    pub fn decide(&self, outcome: Outcome) -> bool {
        self.outcome.decide(outcome)
    }

    /// Whether the outcome is open.
    pub fn is_open(&self) -> bool {
        self.outcome.get().is_none()
    }

    /// Whom to wake.
    pub fn waker(&self) -> Waker {
        self.waker
    }
}

/// The right to end one wait.
#[derive(Clone, Copy, Debug)]
pub struct Waker {
    word: &'static StateWord,
    thread: &'static thread::Thread,
    ticket: Ticket,
}

impl Waker {
    /// Ends the wait.
    pub fn wake(self) {
        if self.word.wake(self.ticket) == Ok(WakeVerdict::Enqueue) {
            self.thread.unpark();
        }
    }
}

/// As the real one.
pub fn wait(
    what: What,
    at: *const (),
    deadline_ns: Option<u64>,
    publish: impl FnOnce(&Wait) -> bool,
    unlink: impl FnOnce(Outcome),
) -> Option<Outcome> {
    let attempt = |start: &Start| match start.begin() {
        Some(wait) if !publish(wait) => {
            let _ = wait.waker.word.abort_park();
            Some(())
        }
        _ => None,
    };
    wait_unless(what, at, deadline_ns, attempt, unlink).err()
}

/// As the real one.
pub fn wait_unless<R>(
    _what: What,
    _at: *const (),
    deadline_ns: Option<u64>,
    attempt: impl FnOnce(&Start) -> Option<R>,
    unlink: impl FnOnce(Outcome),
) -> Result<R, Outcome> {
    let start = Start(OnceCell::new());
    if let Some(result) = attempt(&start) {
        return Ok(result);
    }
    let Some(wait) = start.0.get() else { return Err(Outcome::Cancelled) };
    let word = wait.waker.word;
    if deadline_ns.is_some() && wait.decide(Outcome::Timeout) {
        let _ = word.abort_park();
        unlink(Outcome::Timeout);
        return Err(Outcome::Timeout);
    }
    if word.commit_park() == Ok(CommitVerdict::Parked) {
        while word.load().state() == State::Parked {
            // A mutant waits for ever by looking again and again, which loom ends in good order; a
            // deadlock it would end in the middle of everything.
            if crate::planted::is_any() { thread::yield_now() } else { thread::park() }
        }
        let _ = word.dispatch();
    }
    let outcome = wait.outcome.get();
    assert!(outcome.is_some(), "woken without an outcome");
    let outcome = outcome.unwrap_or(Outcome::Cancelled);
    unlink(outcome);
    Err(outcome)
}

/// Where a wait is, once it has begun.
pub struct Start(OnceCell<Wait>);

impl Start {
    /// As the real one.
    pub fn begin(&self) -> Option<&Wait> {
        let running = Word::compose(State::Running, Ticket::new(0), false, false);
        let word: &'static StateWord = Box::leak(Box::new(StateWord::starting_at(running)));
        let thread: &'static thread::Thread = Box::leak(Box::new(thread::current()));
        let Ok(ParkVerdict::Parking(ticket)) = word.begin_park() else { return None };
        let wait = Wait { outcome: OutcomeCell::new(), waker: Waker { word, thread, ticket } };
        Some(self.0.get_or_init(|| wait))
    }
}

/// A number that no other thread of the model has.
pub fn current_id() -> usize {
    let mut hasher = DefaultHasher::new();
    thread::current().id().hash(&mut hasher);
    hasher.finish() as usize | 1
}

/// Any arm may come first.
pub fn random() -> u64 {
    abi_sync::random()
}

/// Nobody is cancelled here.
pub fn shield<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// No budget.
pub fn consume_budget() {}
