//! The lock inside waitables and pools: held for a few instructions, never across a switch.
//!
//! A waiter spins; if the holder has lost its CPU it gives its own away. It never sleeps, so that
//! unlocking is a plain store. Code under the lock may not wait, yield, or run what a user wrote.

use abi_sync::atomic::{AtomicBool, Ordering};
use abi_sync::cell::RaceCell;

/// Looks at a taken lock before the CPU is given away: longer than any holder needs that runs.
#[cfg(not(loom))]
const SPINS: u32 = 100;

/// Data under a spin lock.
#[derive(Debug, Default)]
pub struct SpinLock<T> {
    is_locked: AtomicBool,
    value: RaceCell<T>,
}

// SAFETY: `with` gives access to one thread at a time.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// An unlocked lock.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self { is_locked: AtomicBool::new(false), value: RaceCell::new(value) }
    }

    /// An unlocked lock.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
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

    #[inline]
    fn lock(&self) {
        // Acquire: pairs with the release in `with`.
        if self.is_locked.swap(true, Ordering::Acquire) {
            self.contend();
        }
    }

    #[cold]
    fn contend(&self) {
        #[cfg(not(loom))]
        let mut pauses = 1;
        #[cfg(not(loom))]
        let mut looks = 0;
        loop {
            #[cfg(loom)]
            abi_sync::spin_hint();
            #[cfg(not(loom))]
            {
                // Longer from look to look: the holder does several operations in a row with the
                // line in its own cache.
                for _ in 0..pauses {
                    abi_sync::spin_hint();
                }
                pauses = (pauses * 2).min(64);
                looks += 1;
                if looks > SPINS {
                    use crate::substrate::Substrate;
                    crate::substrate::Sys::relax();
                }
            }
            // Acquire: as in `lock`.
            if !self.is_locked.load(Ordering::Relaxed)
                && !self.is_locked.swap(true, Ordering::Acquire)
            {
                return;
            }
        }
    }
}
