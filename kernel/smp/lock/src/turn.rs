//! The protocol of the lock: draw a number, wait until it is served.

use abi_sync::atomic::{AtomicU32, Ordering};

/// The numbers drawn and served: the lock without what it protects.
#[derive(Debug)]
pub struct Turn {
    /// The number the next arrival draws.
    next: AtomicU32,
    /// The number whose turn it is.
    serving: AtomicU32,
}

/// One's turn; ends when dropped.
#[derive(Debug)]
pub struct Ticket<'a> {
    turn: &'a Turn,
    number: u32,
}

impl Turn {
    /// Nobody waits.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { next: AtomicU32::new(0), serving: AtomicU32::new(0) }
    }

    /// Nobody waits.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { next: AtomicU32::new(0), serving: AtomicU32::new(0) }
    }

    /// Draws a number and spins until it is served.
    #[inline]
    pub fn wait(&self) -> Ticket<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: pairs with the Release store of the turn before, in `drop`.
        while self.serving.load(Ordering::Acquire) != number {
            abi_sync::spin_hint();
        }
        Ticket { turn: self, number }
    }

    /// Whether somebody had a turn just now: who draws a number next waits, or was unlucky to be told so.
    #[cfg(all(any(checked, measure), not(loom)))]
    pub(crate) fn is_taken(&self) -> bool {
        self.next.load(Ordering::Relaxed) != self.serving.load(Ordering::Relaxed)
    }

    /// Draws a number if it is served at once; `None` if somebody has a turn or waits for one.
    pub fn try_wait(&self) -> Option<Ticket<'_>> {
        // Acquire: pairs with the Release store of the turn before, in `drop`.
        let number = self.serving.load(Ordering::Acquire);
        // While nobody has drawn the number that is served, that stays the same.
        let next = number.wrapping_add(1);
        self.next.compare_exchange(number, next, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        Some(Ticket { turn: self, number })
    }
}

impl Default for Turn {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Ticket<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire load in `wait`.
        self.turn.serving.store(self.number.wrapping_add(1), Ordering::Release);
    }
}
