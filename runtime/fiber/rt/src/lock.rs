//! The lock inside waitables and pools: held for a few instructions, never across a switch.
//!
//! A waiter spins, and then naps for a while and looks again. Nobody wakes it, so that unlocking is a
//! plain store. Code under the lock may not wait, yield, or run what a user wrote.
//!
//! A model has loom's own lock in its place: what is modelled is what happens under it.
//!
//! Decided in ADRs 105 and 170.

#[cfg(not(loom))]
use abi_sync::atomic::{AtomicBool, Ordering};
#[cfg(not(loom))]
use abi_sync::cell::RaceCell;

/// Pauses before the last look at a taken lock that is followed by a nap: all together longer than
/// any holder needs that runs.
#[cfg(not(loom))]
const MOST_PAUSES: u32 = 16;

/// How long a nap is. The holder has lost its CPU, or two workers want one lock all the time: then one
/// of them alone gets more done in less CPU time than both in turn.
#[cfg(not(loom))]
const NAP_NS: u64 = 50_000;

/// Data under a spin lock.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub struct SpinLock<T> {
    is_locked: AtomicBool,
    value: RaceCell<T>,
}

/// Data under a lock of the model.
#[cfg(loom)]
#[derive(Debug, Default)]
pub struct SpinLock<T>(abi_sync::Mutex<T>);

#[cfg(loom)]
impl<T> SpinLock<T> {
    /// An unlocked lock.
    pub fn new(value: T) -> Self {
        Self(abi_sync::Mutex::new(value))
    }

    /// Runs `f` with the data, alone.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        match self.0.lock() {
            Ok(mut guard) => f(&mut guard),
            // A model that has failed unwinds through here.
            Err(poisoned) => f(&mut poisoned.into_inner()),
        }
    }
}

// SAFETY: `with` gives access to one thread at a time.
#[cfg(not(loom))]
unsafe impl<T: Send> Sync for SpinLock<T> {}

#[cfg(not(loom))]
impl<T> SpinLock<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Self {
        Self { is_locked: AtomicBool::new(false), value: RaceCell::new(value) }
    }

    /// Runs `f` with the data, alone.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.lock();
        // SAFETY: the lock is held until the store below.
        let result = self.value.with_mut(|value| f(unsafe { &mut *value }));
        // Release: pairs with the acquire in `lock`.
        self.is_locked.store(false, Ordering::Release);
        result
    }

    /// Runs `f` with the data unless the lock is taken.
    #[cfg(any(target_os = "none", test))]
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        // Acquire: as in `lock`.
        if self.is_locked.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: the lock is held until the store below.
        let result = self.value.with_mut(|value| f(unsafe { &mut *value }));
        // Release: as in `with`.
        self.is_locked.store(false, Ordering::Release);
        Some(result)
    }

    #[inline]
    fn lock(&self) {
        // Acquire: pairs with the release in `with`.
        if self.is_locked.swap(true, Ordering::Acquire) {
            self.contend();
        }
    }

    #[cold]
    fn contend(&self) {
        let mut pauses = 1;
        loop {
            // Longer from look to look: the holder does several operations in a row with the line
            // in its own cache.
            for _ in 0..pauses {
                abi_sync::spin_hint();
            }
            // Acquire: as in `lock`.
            if !self.is_locked.load(Ordering::Relaxed)
                && !self.is_locked.swap(true, Ordering::Acquire)
            {
                return;
            }
            pauses *= 2;
            if pauses > MOST_PAUSES {
                nap();
                pauses = 1;
            }
        }
    }
}

/// Sleeps for a moment. Nobody wakes it: unlocking stays a plain store.
#[cfg(not(loom))]
#[cold]
fn nap() {
    use crate::substrate::{Substrate, Sys};
    let word = core::sync::atomic::AtomicU32::new(0);
    Sys::park(&word, 0, Some(Sys::now_ns().saturating_add(NAP_NS)));
}
