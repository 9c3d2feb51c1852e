//! The word a worker parks at: why it is to wake up.
//!
//! A worker that sleeps for want of work is *claimed* by whoever has some: the claim is its own to take,
//! once, and it counts as searching until then. A worker whose thread waits in the kernel for something of
//! its own is nobody's to claim; it is *nudged* to come out and submit what others have put into its port,
//! and waits again. The word is 0 while there is no reason, and a PARK expects that: so a reason that comes
//! before the PARK does is not lost. A claim outweighs a nudge, and its taker sees to both.

use abi_sync::atomic::{AtomicU32, Ordering};

use crate::planted::{Defect, is_planted};

const CLAIMED: u32 = 1;
const NUDGED: u32 = 2;

/// A worker's reasons to wake up.
#[derive(Debug, Default)]
pub struct WakeWord(AtomicU32);

impl WakeWord {
    /// No reason.
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// What the worker's PARK is at, with 0 as the value that lets it wait.
    #[cfg(not(loom))]
    #[inline]
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// Whether a PARK at the word would wait.
    #[cfg(loom)]
    pub fn is_quiet(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Tells a worker that it was claimed. By who claimed it, and unparks it then.
    pub fn claim(&self) {
        // Release: pairs with the acquires in `is_claimed` and `take_claim`.
        self.0.store(CLAIMED, Ordering::Release);
    }

    /// Whether the worker was told that it is claimed.
    #[inline]
    pub fn is_claimed(&self) -> bool {
        // Acquire: pairs with the release in `claim`.
        self.0.load(Ordering::Acquire) == CLAIMED
    }

    /// Takes the claim, if it has come; a nudge goes with it. By the worker that was claimed.
    #[inline]
    pub fn take_claim(&self) -> bool {
        let is_claimed = self.is_claimed();
        if is_claimed {
            self.0.store(0, Ordering::Relaxed);
        }
        is_claimed
    }

    /// Asks a worker that waits in the kernel to come out; true if the caller has to unpark it: another
    /// reason is told by somebody else.
    pub fn nudge(&self) -> bool {
        if is_planted(Defect::NudgesByUnparkAlone) {
            return true;
        }
        // Release: pairs with the acquire in `take_nudge`.
        self.0.compare_exchange(0, NUDGED, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Takes a nudge, if there is one. By the worker, before it looks what others want of its port.
    #[inline]
    pub fn take_nudge(&self) {
        if self.0.load(Ordering::Relaxed) == NUDGED {
            // Acquire: pairs with the release in `nudge`. A claim that comes meanwhile stays.
            let _ = self.0.compare_exchange(NUDGED, 0, Ordering::Acquire, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(word: &WakeWord) -> u32 {
        word.word().load(Ordering::Relaxed)
    }

    #[test]
    fn a_claim_is_taken_once() {
        let word = WakeWord::new();
        assert!(!word.is_claimed() && !word.take_claim());
        word.claim();
        assert!(word.is_claimed() && word.take_claim());
        assert!(!word.is_claimed() && !word.take_claim());
        assert_eq!(value(&word), 0);
    }

    #[test]
    fn a_nudge_is_no_claim() {
        let word = WakeWord::new();
        assert!(word.nudge(), "the first one unparks");
        assert!(!word.nudge(), "the second one need not");
        assert_ne!(value(&word), 0, "a PARK would not wait");
        assert!(!word.is_claimed() && !word.take_claim());
        word.take_nudge();
        assert_eq!(value(&word), 0);
    }

    #[test]
    fn a_claim_outweighs_a_nudge() {
        let word = WakeWord::new();
        assert!(word.nudge());
        word.claim();
        assert!(!word.nudge(), "the claimer unparks");
        word.take_nudge();
        assert!(word.take_claim(), "taking a nudge leaves the claim");
        assert_eq!(value(&word), 0);
    }
}
