//! How a wait ended: one word per wait, decided by one compare-and-swap.
//!
//! Completing is not enqueueing: the outcome may be decided while the waiter is still on its stack;
//! whoever decided it then calls `wake`. A wait over several waitables has one word too, and the arm
//! that won is part of it.
//!
//! Decided in ADR 100.

use abi_sync::atomic::{AtomicU32, Ordering};

/// The end of a wait. Arms count from 0; a wait on one waitable has arm 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The waitable of that arm did what was waited for.
    Data(u32),
    /// The waitable of that arm is closed.
    Closed(u32),
    /// The waiter has been cancelled.
    Cancelled,
    /// The deadline passed.
    Timeout,
}

const WAITING: u32 = 0;
const CANCELLED: u32 = 1;
const TIMEOUT: u32 = 2;
/// Codes from here on are arms: even for data, odd for closed.
const FIRST_ARM: u32 = 4;

impl Outcome {
    const fn code(self) -> u32 {
        match self {
            Self::Data(arm) => FIRST_ARM + 2 * arm,
            Self::Closed(arm) => FIRST_ARM + 2 * arm + 1,
            Self::Cancelled => CANCELLED,
            Self::Timeout => TIMEOUT,
        }
    }

    const fn of(code: u32) -> Option<Self> {
        Some(match code {
            WAITING => return None,
            CANCELLED => Self::Cancelled,
            TIMEOUT => Self::Timeout,
            code => {
                let arm = (code - FIRST_ARM) / 2;
                if code.is_multiple_of(2) { Self::Data(arm) } else { Self::Closed(arm) }
            }
        })
    }
}

/// The word of one wait.
#[derive(Debug)]
pub struct OutcomeCell(AtomicU32);

impl Default for OutcomeCell {
    fn default() -> Self {
        Self::new()
    }
}

impl OutcomeCell {
    /// A wait that goes on.
    #[inline]
    pub fn new() -> Self {
        Self(AtomicU32::new(WAITING))
    }

    /// How the wait ended, if it has.
    #[inline]
    pub fn get(&self) -> Option<Outcome> {
        // Acquire: pairs with the release in `decide`; what the winner moved is there.
        Outcome::of(self.0.load(Ordering::Acquire))
    }

    /// Ends the wait; false if it has ended before. What is to be moved to the waiter is moved
    /// before: the waiter may go on at once.
    #[inline]
    #[must_use]
    pub fn decide(&self, outcome: Outcome) -> bool {
        // Release: pairs with the acquire in `get`. Acquire: a waker that loses or wins sees what
        // the waiter wrote before it published the wait.
        self.0
            .compare_exchange(WAITING, outcome.code(), Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// How the wait ended, for its waiter that goes on: unless it was ended before, by its
    /// cancellation.
    #[inline]
    pub fn settle(&self) -> Outcome {
        match self.get() {
            Some(outcome) => outcome,
            None if self.decide(Outcome::Cancelled) => Outcome::Cancelled,
            None => self.get().unwrap_or(Outcome::Cancelled),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_survives_its_code() {
        let arms = [0, 1, 2, 1000];
        let data = arms.map(Outcome::Data);
        let closed = arms.map(Outcome::Closed);
        for outcome in data.into_iter().chain(closed).chain([Outcome::Cancelled, Outcome::Timeout])
        {
            let cell = OutcomeCell::new();
            assert_eq!(cell.get(), None);
            assert!(cell.decide(outcome));
            assert_eq!(cell.get(), Some(outcome));
            assert!(!cell.decide(Outcome::Timeout), "decided once");
            assert_eq!((cell.get(), cell.settle()), (Some(outcome), outcome));
        }
        let cell = OutcomeCell::new();
        assert_eq!((cell.settle(), cell.get()), (Outcome::Cancelled, Some(Outcome::Cancelled)));
    }
}
