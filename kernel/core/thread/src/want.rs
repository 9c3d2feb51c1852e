//! How many completions a thread waits for, beside its state word.
//!
//! The thread announces a number, begins to wait, and counts again; the poster of a completion looks at
//! the state word, then at the number. No lock orders the two. The state word does: `begin_wait` and
//! [`observe`](StateWord::observe) both write it, so one of them comes first. If it is the look, the thread
//! sees the completion when it counts; if it is the announcement, the poster sees the wait, and the
//! number that was written before it.
//!
//! A number read may belong to a later wait than the state word did. Then the earlier wait is over,
//! and the later one began after the look and counted the completion itself; a wake with the earlier
//! ticket is refused.
//!
//! Decided in ADR 150.

use abi_sync::atomic::{AtomicU32, Ordering};

use crate::StateWord;
use crate::word::{Stale, Ticket};

/// The number in a thread's record.
#[derive(Debug, Default)]
pub struct Want(AtomicU32);

/// A wait that has what it wanted: its finder wakes the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the thread waits for this"]
pub struct Due {
    /// The thread's generation.
    pub generation: u32,
    /// The number of the wait; a wake with it is refused once that wait is over.
    pub ticket: Ticket,
}

impl Want {
    /// A thread that never waited.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A thread that never waited.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Says how many completions end the wait that follows. By the thread itself, before
    /// `begin_wait`; it counts after it.
    #[inline(always)]
    pub fn announce(&self, count: u32) {
        // Relaxed: `begin_wait` releases it.
        self.0.store(count, Ordering::Relaxed);
    }

    /// The wait that `count` completions end, if the thread is in one. By the poster of the last of
    /// them.
    #[inline]
    pub fn due(&self, state: &StateWord, count: u32) -> Option<Due> {
        let word = state.observe();
        // Relaxed: the look acquired the announcement of the wait that it saw.
        let is_due = word.is_waiting() && count >= self.0.load(Ordering::Relaxed);
        is_due.then(|| Due { generation: word.generation(), ticket: word.ticket() })
    }

    /// Takes a thread that waits for one completion, to run it here and now: its caller posts
    /// one. Refused if it is anything else; it is then woken in the ordinary way.
    #[inline(always)]
    pub fn claim_one(&self, state: &StateWord, generation: u32) -> Result<(), Stale> {
        // Relaxed: as in `due`.
        state.claim_if(generation, || self.0.load(Ordering::Relaxed) == 1)
    }
}
