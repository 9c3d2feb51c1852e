//! A place for a reference to something that stays, read and replaced at once.

use core::ptr;

use crate::atomic::{AtomicPtr, Ordering};

/// A reference that can be replaced by any thread, or none.
#[derive(Debug)]
pub struct AtomicRef<T: Sync + 'static>(AtomicPtr<T>);

impl<T: Sync> AtomicRef<T> {
    const_fn! {
        /// Empty.
        pub fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// What is there.
    #[inline(always)]
    pub fn get(&self) -> Option<&'static T> {
        // Acquire pairs with the release in `set`: what is referred to is seen as the one who put
        // it there saw it.
        // SAFETY: the pointer is null or was made from a static reference to something shared.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Replaces what is there.
    #[inline(always)]
    pub fn set(&self, to: Option<&'static T>) {
        let to = to.map_or(ptr::null_mut(), |to| ptr::from_ref(to).cast_mut());
        self.0.store(to, Ordering::Release);
    }
}

impl<T: Sync> Default for AtomicRef<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_set_last() {
        static VALUES: [u32; 2] = [1, 2];
        let place = AtomicRef::new();
        assert_eq!(place.get(), None);
        for value in &VALUES {
            place.set(Some(value));
            assert!(place.get().is_some_and(|found| ptr::eq(found, value)));
        }
        place.set(None);
        assert_eq!(place.get(), None);
    }
}
