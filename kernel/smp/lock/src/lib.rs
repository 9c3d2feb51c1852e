//! A spin lock that serves in order of arrival, and that a model can see into.
//!
//! For data a CPU touches for a few hundred instructions with interrupts off. No CPU is
//! overtaken, so the wait is bounded by the number of CPUs times the longest section. Not
//! reentrant.
//!
//! The protected value is a [`RaceCell`], so a model finds an access outside the lock. [`Turn`]
//! is the lock's protocol and has a model of its own; in models of what uses the lock it is
//! replaced by loom's mutex, which blocks where this one spins and so keeps them small.
//!
//! A lock can have a [`LockClass`]; checked builds then hold every CPU to the order of classes, and checked
//! and measure builds count.
//!
//! Decided in ADR 62.
#![no_std]

mod class;
mod turn;

use abi_sync::cell::RaceCell;
pub use class::{LockClass, Tally, Watch, tally, watch};
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
    #[cfg(all(any(checked, measure), not(loom)))]
    class: LockClass,
    value: RaceCell<T>,
}

// Classes cost nothing where they are not checked.
#[cfg(not(any(checked, measure, loom)))]
const _: () = assert!(size_of::<TicketLock<u64>>() == size_of::<Turn>() + size_of::<u64>());

// SAFETY: the value is reached only through a guard, and there is one guard at a time; it moves
// between threads with the lock, which is why it has to be Send.
unsafe impl<T: Send> Sync for TicketLock<T> {}

/// Access to the value; gives the lock back when dropped.
#[derive(Debug)]
pub struct Guard<'a, T> {
    value: &'a RaceCell<T>,
    // Before the lock itself, so that the next holder finds the mark gone.
    #[cfg(all(any(checked, measure), not(loom)))]
    _mark: class::Mark,
    _held: Held<'a>,
}

impl<T> TicketLock<T> {
    /// A free lock around `value`, without a class.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self::with_class(LockClass::Unclassed, value)
    }

    /// A free lock around `value`, without a class.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self::with_class(LockClass::Unclassed, value)
    }

    /// A free lock of a class around `value`.
    #[cfg(not(loom))]
    pub const fn with_class(class: LockClass, value: T) -> Self {
        #[cfg(not(any(checked, measure)))]
        let _ = class;
        Self {
            protocol: Turn::new(),
            #[cfg(any(checked, measure))]
            class,
            value: RaceCell::new(value),
        }
    }

    /// A free lock of a class around `value`.
    #[cfg(loom)]
    pub fn with_class(_class: LockClass, value: T) -> Self {
        Self { protocol: Protocol::new(()), value: RaceCell::new(value) }
    }

    /// Takes the lock, in order of arrival; spins until then.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        #[cfg(all(any(checked, measure), not(loom)))]
        let permit = class::Permit::new(self.class);
        #[cfg(all(any(checked, measure), not(loom)))]
        let waits = self.protocol.is_taken();
        #[cfg(not(loom))]
        let held = self.protocol.wait();
        #[cfg(loom)]
        let held = self.protocol.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Guard {
            value: &self.value,
            #[cfg(all(any(checked, measure), not(loom)))]
            _mark: permit.taken(waits),
            _held: held,
        }
    }

    /// Takes the lock if it is free and nobody waits for it. It never waits, so it may be tried for in any
    /// order.
    #[cfg(not(loom))]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let held = self.protocol.try_wait()?;
        Some(Guard {
            value: &self.value,
            #[cfg(any(checked, measure))]
            _mark: class::Permit::in_any_order(self.class).taken(false),
            _held: held,
        })
    }

    /// Where the value is, whoever holds the lock: for one that knows that the holder never runs again.
    #[cfg(not(loom))]
    pub fn as_mut_ptr(&self) -> *mut T {
        self.value.with_mut(|value| value)
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
        let held = lock.lock();
        assert!(lock.try_lock().is_none(), "it is held");
        // SAFETY: the guard is not used again, as if its holder had stopped for good.
        unsafe { *lock.as_mut_ptr() += 1 };
        drop(held);
        assert_eq!(lock.try_lock().map(|value| *value), Some(4));
        assert_eq!(*lock.lock(), 4);
    }
}
