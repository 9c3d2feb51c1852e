//! Static memory that is handed out once, as if it had been allocated.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// A value in static memory that one caller gets for good.
pub(crate) struct TakeOnce<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `take`, which succeeds once.
unsafe impl<T: Send> Sync for TakeOnce<T> {}

impl<T> TakeOnce<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// The value; `None` from the second call on.
    #[allow(clippy::mut_from_ref, reason = "the flag makes the reference unique")]
    pub(crate) fn take(&'static self) -> Option<&'static mut T> {
        // Relaxed: the flag guards no other data, the value was there before the program.
        if self.taken.swap(true, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: the swap above lets exactly one caller come here, so the reference is unique.
        Some(unsafe { &mut *self.value.get() })
    }
}
