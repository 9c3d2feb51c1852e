//! The thread state word, shared by all CPUs: one compare-and-swap checks, claims and decides.
//!
//! # Orders
//!
//! Every transition succeeds with AcqRel and fails with Acquire. The pairs that carry data:
//!
//! - `commit_wait`, `requeue`, `start` (release) → `dispatch`, `claim_if` (acquire): the saved
//!   registers and everything else the last owner wrote are there before the next owner runs
//!   the thread.
//! - `wake` (release) → `commit_wait`, `cancel_wait`, `dispatch` (acquire): what the waker did
//!   before it woke is visible to the thread that goes on. `wake` therefore writes even if the
//!   mark is there already, so that the second waker's work is visible as well.
//! - `kill` (release) → any look at KILL (acquire): the cause of death is visible to the dying.
//! - `begin_wait` ↔ `look` (both acquire and release): the thread publishes AboutToWait and then
//!   counts its completions; the poster publishes a completion and then writes the word without
//!   changing it. Writes of one word have one order, so either the thread counts the completion
//!   or the poster sees AboutToWait. No lock takes part (`want.rs`, ADR 150).
//! - `finish`, `recycle` (release) → `create` (acquire): a record is clean before its next use.

use abi_sync::atomic::{AtomicU64, Ordering};

use crate::word::{
    CommitVerdict, DispatchVerdict, KillVerdict, Misuse, RecycleVerdict, RequeueVerdict,
    ResumeVerdict, Stale, Ticket, WaitVerdict, WakeVerdict, Word,
};

/// The word in a thread's record.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct StateWord(AtomicU64);

impl StateWord {
    /// The word of a record that has never held a thread.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(Word::UNUSED.to_bits()))
    }

    /// The word of a record that has never held a thread.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(Word::UNUSED.to_bits()))
    }

    /// A word that starts as `word`, for tests and models that begin in the middle.
    pub fn starting_at(word: Word) -> Self {
        Self(AtomicU64::new(word.to_bits()))
    }

    /// The bits themselves, for the mutants that a model plants.
    #[cfg(loom)]
    pub fn bits(&self) -> &AtomicU64 {
        &self.0
    }

    /// The value now; old as soon as it is read unless the caller owns the thread.
    #[inline]
    pub fn load(&self) -> Word {
        // Acquire: pairs with the release of whichever transition wrote the value.
        Word::from_bits(self.0.load(Ordering::Acquire))
    }

    /// The value now, after what the caller wrote before it: the next to change the word, the
    /// thread that announces a wait above all, sees that.
    #[inline]
    pub fn observe(&self) -> Word {
        // AcqRel, and a write though nothing changes: the writes of the word have one order, so
        // either this one is before the announcement and the thread sees what the caller wrote,
        // or the announcement is seen here.
        Word::from_bits(self.0.fetch_or(0, Ordering::AcqRel))
    }

    /// Whether the thread has been killed. The CPU that runs it asks on each way out.
    #[inline]
    pub fn is_killed(&self) -> bool {
        self.load().is_killed()
    }

    /// Applies `step` to the value until no other CPU came in between.
    #[inline]
    fn transition<V, E>(&self, step: impl Fn(Word) -> Result<(Word, V), E>) -> Result<V, E> {
        let mut now = self.load();
        loop {
            let (next, verdict) = step(now)?;
            // AcqRel and Acquire: the module's text names the partners.
            match self.0.compare_exchange_weak(
                now.to_bits(),
                next.to_bits(),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(verdict),
                Err(bits) => now = Word::from_bits(bits),
            }
        }
    }

    /// Replaces the value if no other CPU came in between. The usual case of a transition by itself,
    /// for those that every call takes.
    #[inline(always)]
    fn swap(&self, now: Word, next: Word) -> bool {
        // AcqRel: the module's text names the partners. Relaxed: a caller that fails looks again.
        self.0
            .compare_exchange(now.to_bits(), next.to_bits(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes a free record for a new thread and returns its generation. By the record's
    /// allocator.
    pub fn create(&self) -> Result<u32, Misuse> {
        self.transition(Word::create)
    }

    /// Makes a new thread runnable; the creator then puts it into one queue, once.
    pub fn start(&self) -> Result<(), Misuse> {
        self.transition(|word| word.start().map(|next| (next, ())))
    }

    /// Undoes a creation. By the creator, who then finalises the record.
    pub fn abandon(&self) -> Result<(), Misuse> {
        self.transition(|word| word.abandon().map(|next| (next, ())))
    }

    /// Says that the thread is in the middle of something while it gives way: a kill waits. By the
    /// thread itself.
    #[inline]
    pub fn pause(&self) -> Result<(), Misuse> {
        self.transition(|word| word.pause().map(|next| (next, ())))
    }

    /// The thread goes on with what it was in the middle of; whether it has been killed shows on its
    /// way out. By the thread itself.
    #[inline]
    pub fn resume(&self) -> Result<(), Misuse> {
        self.transition(|word| word.resume().map(|next| (next, ())))
    }

    /// Claims a picked thread. By the CPU that took it out of its queue or slot; a name that is out
    /// of date is refused here, whatever the queue said.
    #[inline]
    pub fn dispatch(&self, generation: u32) -> Result<DispatchVerdict, Stale> {
        self.transition(|word| word.dispatch(generation))
    }

    /// Gives a preempted thread up. By the next context on its CPU, after the switch.
    #[inline]
    pub fn requeue(&self) -> Result<RequeueVerdict, Misuse> {
        self.transition(Word::requeue)
    }

    /// Announces a wait. By the thread itself, on its own stack.
    #[inline]
    pub fn begin_wait(&self) -> Result<WaitVerdict, Misuse> {
        let now = self.load();
        if let Some(next) = now.begins_at_once()
            && self.swap(now, next)
        {
            return Ok(WaitVerdict::AboutToWait(next.ticket()));
        }
        self.transition(Word::begin_wait)
    }

    /// Takes the announcement back, because there is nothing to wait for. By the thread itself.
    #[inline]
    pub fn cancel_wait(&self) -> Result<ResumeVerdict, Misuse> {
        self.transition(Word::cancel_wait)
    }

    /// Makes the wait real. By the next context on its CPU, after the switch: until then the
    /// stack is in use and no other CPU may run the thread.
    #[inline]
    pub fn commit_wait(&self) -> Result<CommitVerdict, Misuse> {
        let now = self.load();
        if let Some(next) = now.waits_at_once()
            && self.swap(now, next)
        {
            return Ok(CommitVerdict::Waits);
        }
        self.transition(Word::commit_wait)
    }

    /// Ends the wait with that ticket. By the waker, once it has made the condition true.
    #[inline]
    pub fn wake(&self, generation: u32, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        self.transition(|word| word.wake(generation, ticket))
    }

    /// Ends a wait and takes the thread to run it on this CPU, now. Refused unless it waits and
    /// `suits` says so of its wait, and not tried twice: the caller then wakes it in the ordinary way.
    #[inline(always)]
    pub fn claim_if(&self, generation: u32, suits: impl FnOnce() -> bool) -> Result<(), Stale> {
        let now = self.load();
        let next = now.claim(generation)?;
        if !suits() {
            return Err(Stale);
        }
        // What `suits` looked at was of this wait if the word is still the same.
        if self.swap(now, next) { Ok(()) } else { Err(Stale) }
    }

    /// Kills the thread. By the holder of the authority over it.
    pub fn kill(&self, generation: u32) -> Result<KillVerdict, Stale> {
        self.transition(|word| word.kill(generation))
    }

    /// Ends a thread that has switched away for the last time. By the next context on its CPU,
    /// who then finalises it.
    pub fn finish(&self) -> Result<(), Misuse> {
        self.transition(|word| word.finish().map(|next| (next, ())))
    }

    /// Gives a finalised record back to the allocator.
    pub fn recycle(&self) -> Result<RecycleVerdict, Misuse> {
        self.transition(Word::recycle)
    }
}
