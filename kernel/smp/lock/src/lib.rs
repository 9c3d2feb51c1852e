//! A spin lock that serves in order of arrival, and that a model can see into.
//!
//! For data a CPU touches for a few hundred instructions with interrupts off. No CPU is
//! overtaken, so the wait is bounded by the number of CPUs times the longest section. Not
//! reentrant.
//!
//! The protected value is a [`RaceCell`], so a model finds an access outside the lock. [`Turn`]
//! is the lock's protocol and has a model of its own; in models of what uses the lock it is
//! replaced by loom's mutex, which blocks where this one spins and so keeps them small.
#![no_std]

mod turn;

use abi_sync::cell::RaceCell;
use core::ops::{Deref, DerefMut};
pub use turn::{Ticket, Turn};

#[cfg(loom)]
type Protocol = abi_sync::Mutex<()>;
#[cfg(loom)]
type Held<'a> = abi_sync::MutexGuard<'a, ()>;

#[cfg(not(loom))]
type Protocol = Turn;
#[cfg(not(loom))]
type Held<'a> = Ticket<'a>;

/// A value and the lock around it.
#[derive(Debug)]
pub struct TicketLock<T> {
    protocol: Protocol,
    value: RaceCell<T>,
}

// SAFETY: the value is reached only through a guard, and there is one guard at a time; it moves
// between threads with the lock, which is why it has to be Send.
unsafe impl<T: Send> Sync for TicketLock<T> {}

/// Access to the value; gives the lock back when dropped.
#[derive(Debug)]
pub struct Guard<'a, T> {
    value: &'a RaceCell<T>,
    _held: Held<'a>,
}

impl<T> TicketLock<T> {
    /// A free lock around `value`.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self { protocol: Turn::new(), value: RaceCell::new(value) }
    }

    /// A free lock around `value`.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self { protocol: Protocol::new(()), value: RaceCell::new(value) }
    }

    /// Waits for its turn.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        #[cfg(not(loom))]
        let held = self.protocol.wait();
        #[cfg(loom)]
        let held = self.protocol.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Guard { value: &self.value, _held: held }
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
        self.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: it is this guard's turn until it is dropped, so nobody else has access.
        self.value.with_mut(|value| unsafe { &mut *value })
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
