//! How a thread that is no worker waits: on a word of its own, which is set for it once a wait.

use abi_sync::atomic::{AtomicU32, Ordering};
use fiber_core::{CommitVerdict, Outcome, StateWord};

use crate::planted::{Defect, is_planted};
use crate::wait::{Wait, check};

/// The word a thread sleeps on: 1 from its wake until it has gone on.
#[derive(Debug)]
pub(crate) struct ThreadWord(AtomicU32);

impl ThreadWord {
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// What the system sleeps on, and wakes by.
    #[cfg(not(loom))]
    pub fn bits(&self) -> &AtomicU32 {
        &self.0
    }

    /// Lets the thread go on, which has been made runnable by the caller. The system is then told.
    pub fn set(&self) {
        // Release: pairs with the acquire in `wait`.
        self.0.store(1, Ordering::Release);
    }

    /// Waits until `wait` is ended, for the thread with the state `word`. `sleep` returns when this is
    /// set, or sooner, and says once that the deadline has passed.
    pub fn wait(&self, word: &StateWord, wait: &Wait, mut sleep: impl FnMut() -> bool) -> Outcome {
        if check(word.commit_park()) == Some(CommitVerdict::Resume) {
            return wait.settle();
        }
        // Acquire: pairs with the release in `set`.
        while self.0.load(Ordering::Acquire) == 0 {
            if sleep() && wait.decide(Outcome::Timeout) {
                // Nobody else ends this wait now: the thread wakes itself.
                wait.waker().wake();
            }
        }
        if !is_planted(Defect::KeepsItsWake) {
            self.0.store(0, Ordering::Relaxed);
        }
        let _ = check(word.dispatch());
        wait.settle()
    }
}
