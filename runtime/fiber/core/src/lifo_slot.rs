//! The slot for the fiber that was made runnable last: its data is warm, it runs next.
//!
//! The owner puts and takes; a thief may take, when the owner has been busy for long. Only the owner
//! fills the slot, so into an empty one it stores without a swap.

use core::ptr;

use abi_sync::atomic::{AtomicPtr, Ordering};

use crate::planted::{Defect, is_planted, order};

/// The slot.
#[derive(Debug)]
pub struct LifoSlot<T>(AtomicPtr<T>);

impl<T> Default for LifoSlot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> LifoSlot<T> {
    /// An empty slot.
    pub fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Puts `item` in and returns what it displaces. By the owner.
    #[inline]
    pub fn put(&self, item: *mut T) -> Option<*mut T> {
        if self.0.load(Ordering::Relaxed).is_null() {
            // Release: pairs with the acquire in `take`. Nobody else fills the slot, so it is
            // still empty.
            self.0.store(item, order(Defect::PutRelaxed, Ordering::Release));
            return None;
        }
        // AcqRel: as for the store above and in `take`.
        let displaced = self.0.swap(item, order(Defect::DisplaceRelaxed, Ordering::AcqRel));
        (!displaced.is_null()).then_some(displaced)
    }

    /// Takes what is in it.
    #[inline]
    pub fn take(&self) -> Option<*mut T> {
        if self.is_empty() {
            return None;
        }
        // Acquire: pairs with the release in `put`; the fiber is complete.
        let item = if is_planted(Defect::TakeStores) {
            let item = self.0.load(Ordering::Acquire);
            self.0.store(ptr::null_mut(), Ordering::Release);
            item
        } else {
            self.0.swap(ptr::null_mut(), order(Defect::TakeRelaxed, Ordering::Acquire))
        };
        (!item.is_null()).then_some(item)
    }

    /// Whether it is empty; old as soon as it is read, except that only the owner fills it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }
}
