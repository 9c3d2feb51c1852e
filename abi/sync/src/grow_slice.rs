//! A table that grows and stays where it is.

use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Bytes that are made usable at a time.
pub const ROOM_GRAIN: usize = 4096;

/// Places in memory that one table is to have, usable from the first on as far as they were made so.
#[derive(Debug)]
pub struct Room<T: 'static> {
    first: NonNull<T>,
    /// How many items the places are for.
    most: usize,
    back: Back,
}

/// Makes [`ROOM_GRAIN`] bytes usable; `false` without memory.
pub type Back = fn(*mut u8) -> bool;

// SAFETY: the places are the room's alone, and what will lie there may be anywhere.
unsafe impl<T: Send> Send for Room<T> {}

impl<T> Room<T> {
    /// The room at `first`, at a multiple of [`ROOM_GRAIN`], for `most` items.
    ///
    /// # Safety
    /// The places are nobody else's, for good. `back` is given the address of each grain in turn; from when it
    /// answers `true` on, that memory can be read and written.
    pub const unsafe fn new(first: NonNull<T>, most: usize, back: Back) -> Self {
        Self { first, most, back }
    }

    /// The room that a slice is, which is given away for good.
    pub fn of(items: &'static mut [MaybeUninit<T>]) -> Self {
        let most = items.len();
        let first = NonNull::from(items).cast();
        Self { first, most, back: |_| true }
    }
}

/// A table that is empty at first and grows at its end. Items stay where they are, so looking one up costs what
/// it costs in a plain slice, also while the table grows. Not modelled: an item is whole before it is counted.
#[derive(Debug)]
pub struct GrowSlice<T: Sync + 'static> {
    first: AtomicPtr<T>,
    count: AtomicUsize,
    most: AtomicUsize,
    /// A [`Back`].
    back: AtomicPtr<()>,
    /// Bytes that are usable.
    backed: AtomicUsize,
    /// Somebody is at the end of it.
    is_growing: AtomicBool,
}

/// Why a table did not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotGrown {
    /// It has as many items as it has places for, or none yet.
    Full,
    /// There is no memory.
    OutOfMemory,
    /// Somebody else makes it grow.
    Busy,
}

impl<T: Sync> GrowSlice<T> {
    /// Without items or places.
    pub const fn new() -> Self {
        Self {
            first: AtomicPtr::new(ptr::null_mut()),
            count: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            back: AtomicPtr::new(ptr::null_mut()),
            backed: AtomicUsize::new(0),
            is_growing: AtomicBool::new(false),
        }
    }

    /// Gives it its places; `false` if it has some.
    pub fn set_room(&self, room: Room<T>) -> bool {
        let first = room.first.as_ptr();
        let (exclusive, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let is_ours =
            self.first.compare_exchange(ptr::null_mut(), first, exclusive, failed).is_ok();
        if is_ours {
            self.back.store(room.back as *mut (), Ordering::Relaxed);
            // Release, pairs with the acquire in `grow`: who sees the places sees the rest.
            self.most.store(room.most, Ordering::Release);
        }
        is_ours
    }

    /// Adds an item, which `make` makes for its position.
    pub fn grow(&self, make: impl FnOnce(usize) -> T) -> Result<&'static T, NotGrown> {
        // Acquire, pairs with the release below: one after the other.
        if self.is_growing.swap(true, Ordering::Acquire) {
            return Err(NotGrown::Busy);
        }
        let grown = self.add(make);
        self.is_growing.store(false, Ordering::Release);
        grown
    }

    fn add(&self, make: impl FnOnce(usize) -> T) -> Result<&'static T, NotGrown> {
        let count = self.count.load(Ordering::Relaxed);
        // Acquire, pairs with the release in `set_room`.
        if count >= self.most.load(Ordering::Acquire) {
            return Err(NotGrown::Full);
        }
        let first = self.first.load(Ordering::Relaxed);
        let back = self.back.load(Ordering::Relaxed);
        // SAFETY: `most` is not zero, so this is what `set_room` stored, of exactly this type.
        let back: Back = unsafe { core::mem::transmute(back) };
        while self.backed.load(Ordering::Relaxed) < (count + 1) * size_of::<T>() {
            let backed = self.backed.load(Ordering::Relaxed);
            if !back(first.cast::<u8>().wrapping_add(backed)) {
                return Err(NotGrown::OutOfMemory);
            }
            self.backed.store(backed + ROOM_GRAIN, Ordering::Relaxed);
        }
        // SAFETY: a place of the room, which was made usable, and which nobody sees before it is counted; only
        // who has set `is_growing` is here.
        let item = unsafe {
            let place = first.add(count);
            place.write(make(count));
            &*place
        };
        // Release, pairs with the acquire in `get` and `as_slice`: who sees the count sees the item.
        self.count.store(count + 1, Ordering::Release);
        Ok(item)
    }

    /// Whether every place has an item.
    pub fn is_full(&self) -> bool {
        // Acquire, pairs with the release in `set_room`.
        self.count.load(Ordering::Relaxed) >= self.most.load(Ordering::Acquire)
    }

    /// The item of that number.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&'static T> {
        if index >= self.count.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the item was made before it was counted, at a place that is the table's for good.
        Some(unsafe { &*self.first.load(Ordering::Relaxed).add(index) })
    }

    /// Those there are now.
    #[inline(always)]
    pub fn as_slice(&self) -> &'static [T] {
        match self.count.load(Ordering::Acquire) {
            0 => &[],
            // SAFETY: as in `get`.
            count => unsafe { slice::from_raw_parts(self.first.load(Ordering::Relaxed), count) },
        }
    }
}

impl<T: Sync> Default for GrowSlice<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;
    use super::*;
    use std::boxed::Box;
    use std::sync::atomic::AtomicU32;

    fn room<T>(most: usize) -> Room<T> {
        Room::of(Box::leak(Box::new_uninit_slice(most)))
    }

    #[test]
    fn items_come_at_the_end_and_stay_where_they_are() {
        let table = GrowSlice::new();
        assert_eq!(table.grow(|n| n), Err(NotGrown::Full), "it has no places");
        assert!(table.set_room(room(3)));
        assert!(!table.set_room(room(9)));
        let first: *const usize = table.grow(|n| n + 10).unwrap();
        assert_eq!((table.get(0), table.get(1)), (Some(&10), None));
        assert_eq!(table.grow(|n| n + 10), Ok(&11));
        assert_eq!(table.grow(|n| n + 10), Ok(&12));
        assert_eq!(table.grow(|n| n), Err(NotGrown::Full));
        assert_eq!(table.as_slice(), [10, 11, 12]);
        assert!(ptr::eq(table.get(0).unwrap(), first));
    }

    #[test]
    fn memory_is_asked_for_as_far_as_it_is_needed() {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        static HAS: AtomicU32 = AtomicU32::new(2);
        let most = 100;
        let memory = Box::leak(Box::<[[u64; 300]]>::new_uninit_slice(most));
        let first: NonNull<[u64; 300]> = NonNull::from(memory).cast();
        let back: Back = |_| {
            let is_there = ASKED.load(Ordering::Relaxed) < HAS.load(Ordering::Relaxed);
            ASKED.fetch_add(u32::from(is_there), Ordering::Relaxed);
            is_there
        };
        let table = GrowSlice::new();
        // SAFETY: the memory is leaked, and usable whatever `back` says.
        assert!(table.set_room(unsafe { Room::new(first, most, back) }));
        // 2,400 bytes each: three in two grains.
        for _ in 0..3 {
            assert!(table.grow(|_| [0; 300]).is_ok());
        }
        assert_eq!(table.grow(|_| [0; 300]), Err(NotGrown::OutOfMemory));
        assert_eq!((table.as_slice().len(), ASKED.load(Ordering::Relaxed)), (3, 2));
        HAS.store(3, Ordering::Relaxed);
        assert!(table.grow(|_| [0; 300]).is_ok(), "there is memory again");
    }

    #[test]
    fn others_look_while_it_grows() {
        static TABLE: GrowSlice<usize> = GrowSlice::new();
        assert!(TABLE.set_room(room(20_000)));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while TABLE.as_slice().len() < 20_000 {
                    let items = TABLE.as_slice();
                    assert!(items.last().is_none_or(|last| last + 1 == items.len()));
                }
            });
            while TABLE.grow(|n| n).is_ok() {}
        });
        assert_eq!(TABLE.as_slice().len(), 20_000);
    }
}
