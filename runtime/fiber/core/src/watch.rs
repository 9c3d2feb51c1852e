//! Whether the one who watches the workers sleeps as well, because all of them do.
//!
//! Whoever watches announces its sleep, fences, and looks whether all workers still sleep. A worker that
//! wakes withdraws its own announcement, fences, and looks for the watcher's. One of the two fences comes
//! first, so one of the two sees the other.

use abi_sync::atomic::{AtomicBool, Ordering, fence};

use crate::planted::{Defect, is_planted};

/// The watcher's announcement.
#[derive(Debug, Default)]
pub struct Watch(AtomicBool);

impl Watch {
    /// Somebody watches.
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Announces that the watcher is about to sleep, if all workers do; it then looks at them once more.
    pub fn announce(&self) {
        self.0.store(true, Ordering::Relaxed);
        // Pairs with the fence in `is_asleep`.
        if !is_planted(Defect::AnnouncesWithoutAFence) {
            fence(Ordering::SeqCst);
        }
    }

    /// Takes the announcement back.
    pub fn withdraw(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the watcher sleeps or is about to: then it has to be woken. By a worker that has
    /// withdrawn the announcement of its own sleep.
    pub fn is_asleep(&self) -> bool {
        // Pairs with the fence in `announce`.
        if !is_planted(Defect::WakesWithoutAFence) {
            fence(Ordering::SeqCst);
        }
        self.0.load(Ordering::Relaxed)
    }
}
