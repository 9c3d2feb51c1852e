//! A table that is empty until it is made, and stays.

use core::ptr;
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A slice that is set once. Until then it has no items, so looking one up costs what it costs in a
/// plain slice. Not modelled: a table is made before anybody shares it.
#[derive(Debug)]
pub struct OnceSlice<T: Sync + 'static> {
    first: AtomicPtr<T>,
    count: AtomicUsize,
}

impl<T: Sync> OnceSlice<T> {
    /// Without items.
    pub const fn new() -> Self {
        Self { first: AtomicPtr::new(ptr::null_mut()), count: AtomicUsize::new(0) }
    }

    /// Sets the items; `false` if they were set before.
    pub fn set(&self, items: &'static [T]) -> bool {
        let first = items.as_ptr().cast_mut();
        let (exclusive, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let is_ours =
            self.first.compare_exchange(ptr::null_mut(), first, exclusive, failed).is_ok();
        if is_ours {
            // Release pairs with the acquire in `get` and `as_slice`: who sees the count sees the rest.
            self.count.store(items.len(), Ordering::Release);
        }
        is_ours
    }

    /// The item of that number.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&'static T> {
        if index >= self.count.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the count was set after the first item of a static slice that is so long.
        Some(unsafe { &*self.first.load(Ordering::Relaxed).add(index) })
    }

    /// All of them.
    #[inline]
    pub fn as_slice(&self) -> &'static [T] {
        match self.count.load(Ordering::Acquire) {
            0 => &[],
            // SAFETY: as in `get`.
            count => unsafe { slice::from_raw_parts(self.first.load(Ordering::Relaxed), count) },
        }
    }
}

impl<T: Sync> AsRef<[T]> for OnceSlice<T> {
    #[inline]
    fn as_ref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Sync> Default for OnceSlice<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn is_empty_until_it_is_set_and_then_stays() {
        static ITEMS: [u32; 3] = [5, 6, 7];
        let table = OnceSlice::new();
        assert_eq!((table.get(0), table.as_slice()), (None, &[][..]));
        assert!(table.set(&ITEMS));
        assert!(!table.set(&ITEMS[..1]));
        assert_eq!(table.as_slice(), ITEMS);
        assert_eq!((table.get(2), table.get(3)), (Some(&7), None));
    }
}
