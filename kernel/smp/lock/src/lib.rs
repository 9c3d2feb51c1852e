//! A spin lock that serves in order of arrival, and that a model can see into.
//!
//! For data a CPU touches for a few hundred instructions with interrupts off. No CPU is
//! overtaken, so the wait is bounded by the number of CPUs times the longest section. Not
//! reentrant. The protected value is a [`RaceCell`], so a model finds an access outside the
//! lock as well as an order too weak to protect it.
#![no_std]

use abi_sync::atomic::{AtomicU32, Ordering};
use abi_sync::cell::RaceCell;
use core::ops::{Deref, DerefMut};

/// A value and the lock around it.
#[derive(Debug)]
pub struct TicketLock<T> {
    /// The number the next arrival draws.
    next: AtomicU32,
    /// The number whose turn it is.
    serving: AtomicU32,
    value: RaceCell<T>,
}

// SAFETY: the value is reached only through a guard, and there is one guard at a time; it moves
// between threads with the lock, which is why it has to be Send.
unsafe impl<T: Send> Sync for TicketLock<T> {}

/// Access to the value; gives the lock back when dropped.
#[derive(Debug)]
pub struct Guard<'a, T> {
    lock: &'a TicketLock<T>,
    ticket: u32,
}

impl<T> TicketLock<T> {
    /// A free lock around `value`.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self { next: AtomicU32::new(0), serving: AtomicU32::new(0), value: RaceCell::new(value) }
    }

    /// A free lock around `value`.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self { next: AtomicU32::new(0), serving: AtomicU32::new(0), value: RaceCell::new(value) }
    }

    /// Waits for its turn.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: pairs with the Release store of the guard before, in `drop`.
        while self.serving.load(Ordering::Acquire) != ticket {
            abi_sync::spin_hint();
        }
        Guard { lock: self, ticket }
    }

    /// The value, for an owner that shares it with nobody.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `&mut self` proves that nobody holds or can take the lock.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: it is this guard's turn until it is dropped, so nobody else writes.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: it is this guard's turn until it is dropped, so nobody else has access.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire load in `lock`.
        self.lock.serving.store(self.ticket.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_next_in_line_gets_the_value() {
        let mut lock = TicketLock::new(1);
        *lock.lock() += 1;
        assert_eq!(*lock.lock(), 2);
        *lock.get_mut() += 1;
        assert_eq!(*lock.lock(), 3);
    }
}
