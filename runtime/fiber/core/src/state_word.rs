//! The fiber state word, shared by all threads: one compare-and-swap checks, claims and decides.
//!
//! # Orders
//!
//! Every transition succeeds with AcqRel and fails with Acquire. The pairs that carry data:
//!
//! - `commit_park`, `requeue`, `start` (release) → `wake`, `dispatch` (acquire): the fiber's stack is
//!   complete before another worker runs it.
//! - `wake` (release) → `commit_park`, `abort_park`, `dispatch` (acquire): what the waker did before
//!   it woke is visible to the fiber that goes on. `wake` therefore writes even if the mark is there
//!   already, so that the second waker's work is visible as well.
//! - `cancel` (release) → any look at CANCEL (acquire).
//! - `finish`, `recycle` (release) → `start` (acquire): a frame is clean before its next use.
//!
//! `begin_park` against `wake` needs no more: the fiber publishes its wait and the waker finds it
//! under the waitable's lock, which orders the two.
//!
//! Decided in ADR 170.

use abi_sync::atomic::{AtomicU64, Ordering};

use crate::planted::{Defect, order};
use crate::word::{
    CancelVerdict, CommitVerdict, Misuse, ParkVerdict, Stale, State, Ticket, WakeVerdict, Word,
};

/// What is added to a word that goes from one state to another.
const fn from_to(from: State, to: State) -> u64 {
    (to as u64).wrapping_sub(from as u64)
}

/// The word in a fiber's frame.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct StateWord(AtomicU64);

impl StateWord {
    /// The word of a frame that has never held a fiber.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(Word::UNUSED.to_bits()))
    }

    /// The word of a frame that has never held a fiber.
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

    /// The value now; old as soon as it is read unless the caller owns the fiber.
    #[inline]
    pub fn load(&self) -> Word {
        // Acquire: pairs with the release of whichever transition wrote the value.
        Word::from_bits(self.0.load(Ordering::Acquire))
    }

    /// Applies `step` to the value until no other thread came in between.
    #[inline]
    fn transition<V, E>(&self, step: impl Fn(Word) -> Result<(Word, V), E>) -> Result<V, E> {
        let mut now = Word::from_bits(self.0.load(Ordering::Acquire));
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

    /// Applies `step`, which its one caller may take whatever others do to the word's other bits: as
    /// one addition, without a look before and a loop after. These two are on the way of every switch.
    /// A step the rule refuses is a defect of the runtime; it is taken back, as others' bits stay.
    #[inline]
    fn step_by(
        &self,
        by: u64,
        order: Ordering,
        step: impl Fn(Word) -> Result<(Word, ()), Misuse>,
    ) -> Result<(), Misuse> {
        // AcqRel: the module's text names the partners.
        let before = Word::from_bits(self.0.fetch_add(by, order));
        match step(before) {
            Ok((after, ())) => {
                debug_assert_eq!(after.to_bits(), before.to_bits().wrapping_add(by));
                Ok(())
            }
            Err(misuse) => {
                self.0.fetch_sub(by, order);
                Err(misuse)
            }
        }
    }

    /// Makes a new fiber runnable; the spawner then publishes it in one place, once.
    #[inline]
    pub fn start(&self) -> Result<(), Misuse> {
        self.transition(Word::start)
    }

    /// Takes a picked fiber. By whoever took it out of its queue or slot.
    #[inline]
    pub fn dispatch(&self) -> Result<(), Misuse> {
        let order = order(Defect::DispatchRelaxed, Ordering::AcqRel);
        self.step_by(from_to(State::Runnable, State::Running), order, Word::dispatch)
    }

    /// Gives a yielding fiber up. By its worker, after the switch, who then publishes it once.
    #[inline]
    pub fn requeue(&self) -> Result<(), Misuse> {
        let order = order(Defect::RequeueRelaxed, Ordering::AcqRel);
        self.step_by(from_to(State::Running, State::Runnable), order, Word::requeue)
    }

    /// Announces a wait. By the fiber itself, on its own stack.
    #[inline]
    pub fn begin_park(&self) -> Result<ParkVerdict, Misuse> {
        self.transition(Word::begin_park)
    }

    /// Takes the announcement back. By the fiber itself.
    #[inline]
    pub fn abort_park(&self) -> Result<(), Misuse> {
        self.transition(Word::abort_park)
    }

    /// Makes the wait real. By the worker, after the switch: until then the stack is in use.
    #[inline]
    pub fn commit_park(&self) -> Result<CommitVerdict, Misuse> {
        self.transition(Word::commit_park)
    }

    /// Ends the wait with that ticket. By whoever decided its outcome.
    #[inline]
    pub fn wake(&self, ticket: Ticket) -> Result<WakeVerdict, Stale> {
        self.transition(|word| word.wake(ticket))
    }

    /// Cancels the fiber. By whoever keeps the frame from being recycled meanwhile.
    pub fn cancel(&self) -> CancelVerdict {
        let step = |word: Word| Ok::<_, core::convert::Infallible>(word.cancel());
        match self.transition(step) {
            Ok(verdict) => verdict,
            Err(never) => match never {},
        }
    }

    /// Sets or clears the shield and says how it was. By the fiber itself.
    pub fn set_shield(&self, is_shielded: bool) -> Result<bool, Misuse> {
        self.transition(|word| word.set_shield(is_shielded))
    }

    /// Ends a fiber. By its worker, after the last switch.
    #[inline]
    pub fn finish(&self, has_run: bool) -> Result<(), Misuse> {
        self.transition(|word| word.finish(has_run))
    }

    /// Makes an ended fiber's frame ready for another. By whoever gives it to the pool.
    #[inline]
    pub fn recycle(&self) -> Result<(), Misuse> {
        self.transition(Word::recycle)
    }
}
