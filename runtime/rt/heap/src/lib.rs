//! A heap for programs that want one: memory of the program's own image, of a size it chooses.
//!
//! [`heap!`] in the program's root makes it the program's allocator:
//!
//! ```ignore
//! extern crate alloc;
//! capos_heap::heap!(4 << 20);
//! ```
//!
//! The memory is zeros that the kernel maps with the program and charges to its profile's frames;
//! nothing grows. What does not fit is refused: `try_reserve` and its like say so, and what cannot
//! fail ends the program with a report.
//!
//! A crate of its own: whoever links `alloc` has to have an allocator, and most programs need neither.
//!
//! Decided in ADR 163.
#![no_std]
#![cfg_attr(target_os = "none", feature(allow_internal_unsafe))]
#![cfg_attr(
    target_os = "none",
    allow(internal_features, reason = "heap! lets programs without unsafe have an allocator")
)]

#[cfg(test)]
extern crate std;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use talc::DefaultBinning;
use talc::base::Talc;
use talc::source::Manual;

/// Memory for a [`Heap`].
#[repr(C, align(4096))]
pub struct Arena<const BYTES: usize>(UnsafeCell<[u8; BYTES]>);

// SAFETY: only the heap it is given to reaches the memory, under its lock.
unsafe impl<const BYTES: usize> Sync for Arena<BYTES> {}

impl<const BYTES: usize> Arena<BYTES> {
    /// Zeros: they take no place in the program's file.
    pub const fn new() -> Self {
        const { assert!(BYTES >= 1 << 16, "a heap has at least 64 KiB") }
        Self(UnsafeCell::new([0; BYTES]))
    }
}

impl<const BYTES: usize> Default for Arena<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize> fmt::Debug for Arena<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory of {BYTES} bytes for a heap")
    }
}

/// An allocator over an [`Arena`].
///
/// Threads take it in turn: who finds it taken looks for a while and then sleeps for a moment, since
/// its holder may have lost its CPU.
pub struct Heap {
    is_locked: AtomicBool,
    talc: UnsafeCell<Talc<Manual, DefaultBinning>>,
    /// Bytes that are allocated now, and the most that ever were.
    used: UnsafeCell<(usize, usize)>,
    start: *mut u8,
    bytes: usize,
    is_claimed: UnsafeCell<bool>,
}

// SAFETY: everything but the lock is reached under it, and the arena by nothing else.
unsafe impl Sync for Heap {}

/// Looks at a taken lock before the CPU is given away.
const LOOKS: u32 = 200;

/// What a [`Heap`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapUse {
    /// Bytes of the arena.
    pub total: usize,
    /// Bytes that are allocated, without what the allocator needs beside them.
    pub used: usize,
    /// The most that ever were.
    pub most: usize,
}

impl Heap {
    /// A heap in `arena`, which is its own from now on.
    ///
    /// # Safety
    /// No other heap is given the arena.
    pub const unsafe fn new<const BYTES: usize>(arena: &'static Arena<BYTES>) -> Self {
        Self {
            is_locked: AtomicBool::new(false),
            talc: UnsafeCell::new(Talc::new(Manual)),
            used: UnsafeCell::new((0, 0)),
            start: arena.0.get().cast(),
            bytes: BYTES,
            is_claimed: UnsafeCell::new(false),
        }
    }

    /// How full it is.
    pub fn usage(&self) -> HeapUse {
        // SAFETY: within `with` the figures are this thread's.
        let (used, most) = self.with(|_| unsafe { *self.used.get() });
        HeapUse { total: self.bytes, used, most }
    }

    /// Counts what was taken and given.
    ///
    /// # Safety
    /// Within `with`.
    unsafe fn count(&self, taken: usize, given: usize) {
        // SAFETY: by the caller.
        let (used, most) = unsafe { &mut *self.used.get() };
        *used = used.saturating_add(taken).saturating_sub(given);
        *most = (*most).max(*used);
    }

    /// Runs `f` with the allocator, alone.
    fn with<R>(&self, f: impl FnOnce(&mut Talc<Manual, DefaultBinning>) -> R) -> R {
        let mut looks = 0;
        // Acquire: pairs with the release below.
        while self.is_locked.swap(true, Ordering::Acquire) {
            while self.is_locked.load(Ordering::Relaxed) {
                core::hint::spin_loop();
                looks += 1;
                if looks > LOOKS {
                    rest();
                }
            }
        }
        // SAFETY: the lock is held until the store below, and `f` does not come back here.
        let (talc, is_claimed) = unsafe { (&mut *self.talc.get(), &mut *self.is_claimed.get()) };
        if !*is_claimed {
            *is_claimed = true;
            // SAFETY: the arena is this heap's, all of it writable, and claimed once. One that is too
            // small for anything stays empty, and every allocation is refused.
            let _ = unsafe { talc.claim(self.start, self.bytes) };
        }
        let result = f(talc);
        self.is_locked.store(false, Ordering::Release);
        result
    }
}

/// Lets whoever has the lock run.
fn rest() {
    #[cfg(target_os = "none")]
    capos_rt::thread::rest();
    #[cfg(not(target_os = "none"))]
    core::hint::spin_loop();
}

// SAFETY: blocks come from talc, which gives each out once until it is given back; all under the lock.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.with(|talc| {
            // SAFETY: by the caller the size is not zero.
            let block = unsafe { talc.allocate(layout) };
            if block.is_some() {
                // SAFETY: within `with`.
                unsafe { self.count(layout.size(), 0) };
            }
            block.map_or(ptr::null_mut(), ptr::NonNull::as_ptr)
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.with(|talc| {
            // SAFETY: by the caller the block is one of this heap's, of this layout.
            unsafe {
                talc.deallocate(block, layout);
                self.count(0, layout.size());
            }
        });
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let is_in_place = self.with(|talc| {
            // SAFETY: by the caller the block is one of this heap's, of this layout, and the size is
            // not zero.
            let is_in_place = unsafe { talc.try_realloc_in_place(block, layout, new_size) };
            if is_in_place {
                // SAFETY: within `with`.
                unsafe { self.count(new_size, layout.size()) };
            }
            is_in_place
        });
        if is_in_place {
            return block;
        }
        // SAFETY: the alignment is that of a layout, and by the caller the size fits one.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: as for the caller. The copy is without the lock: both blocks are the caller's.
        unsafe {
            let moved = self.alloc(new);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "heap of {} bytes", self.bytes)
    }
}

/// Gives the program a heap of so many bytes, and with it `alloc`. Once, in the program's root.
#[macro_export]
#[cfg_attr(target_os = "none", allow_internal_unsafe)]
macro_rules! heap {
    ($bytes:expr) => {
        static CAPOS_ARENA: $crate::Arena<{ $bytes }> = $crate::Arena::new();
        #[global_allocator]
        // SAFETY: the arena is named here and nowhere else.
        static CAPOS_HEAP: $crate::Heap = unsafe { $crate::Heap::new(&CAPOS_ARENA) };
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::vec::Vec;
    use test_property::prelude::*;

    const BYTES: usize = 1 << 20;

    fn heap() -> Heap {
        let arena = std::boxed::Box::leak(std::boxed::Box::new(Arena::<BYTES>::new()));
        // SAFETY: a new arena each time.
        unsafe { Heap::new(arena) }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let heap = heap();
        let large = Layout::from_size_align(BYTES + 1, 16).unwrap();
        // SAFETY: not zero.
        assert!(unsafe { heap.alloc(large) }.is_null());
        assert_eq!(heap.usage(), HeapUse { total: BYTES, used: 0, most: 0 });
        let most = Layout::from_size_align(BYTES * 9 / 10, 16).unwrap();
        for _ in 0..3 {
            // SAFETY: not zero, given back with its layout.
            unsafe {
                let block = heap.alloc(most);
                assert!(!block.is_null(), "all of it is there again");
                heap.dealloc(block, most);
            }
        }
        assert_eq!(heap.usage().most, BYTES * 9 / 10);
    }

    #[test]
    fn threads_take_turns() {
        let heap = heap();
        let sum = AtomicUsize::new(0);
        std::thread::scope(|s| {
            for thread in 1..5usize {
                let (heap, sum) = (&heap, &sum);
                s.spawn(move || {
                    for round in 0..2000 {
                        let layout = Layout::from_size_align(16 + round % 300, 8).unwrap();
                        // SAFETY: not zero, given back with its layout, written within its size.
                        unsafe {
                            let block = heap.alloc(layout);
                            block.write_bytes(thread as u8, layout.size());
                            let last = block.add(layout.size() - 1).read();
                            sum.fetch_add(last.into(), Ordering::Relaxed);
                            heap.dealloc(block, layout);
                        }
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), (1 + 2 + 3 + 4) * 2000);
        assert_eq!(heap.usage().used, 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        /// Blocks do not overlap, keep what is in them and are aligned; the figures are the model's.
        #[test]
        fn blocks_are_their_owners(
            steps in prop::collection::vec((0u8..3, 1usize..9000, 0u32..8, any::<prop::sample::Index>()), 1..120),
        ) {
            let heap = heap();
            let mut held: Vec<(*mut u8, Layout, u8)> = Vec::new();
            let mut tag = 0u8;
            let is_intact = |block: *mut u8, size: usize, tag: u8| {
                // SAFETY: the block is held and was filled.
                (0..size).all(|at| unsafe { block.add(at).read() } == tag)
            };
            for (step, size, shift, which) in steps {
                tag = tag.wrapping_add(1);
                match step {
                    0 => {
                        let layout = Layout::from_size_align(size, 1 << shift).unwrap();
                        // SAFETY: not zero; written within its size.
                        unsafe {
                            let block = heap.alloc(layout);
                            if !block.is_null() {
                                prop_assert_eq!(block.addr() % layout.align(), 0);
                                block.write_bytes(tag, size);
                                held.push((block, layout, tag));
                            }
                        }
                    }
                    _ if held.is_empty() => {}
                    1 => {
                        let (block, layout, tag) = held.swap_remove(which.index(held.len()));
                        prop_assert!(is_intact(block, layout.size(), tag));
                        // SAFETY: held, with its layout.
                        unsafe { heap.dealloc(block, layout) };
                    }
                    _ => {
                        let at = which.index(held.len());
                        let (block, layout, old) = held[at];
                        // SAFETY: held, with its layout; not zero.
                        let moved = unsafe { heap.realloc(block, layout, size) };
                        if !moved.is_null() {
                            prop_assert!(is_intact(moved, size.min(layout.size()), old));
                            let layout = Layout::from_size_align(size, layout.align()).unwrap();
                            // SAFETY: the block has that size now.
                            unsafe { moved.write_bytes(tag, size) };
                            held[at] = (moved, layout, tag);
                        }
                    }
                }
                prop_assert_eq!(heap.usage().used, held.iter().map(|h| h.1.size()).sum::<usize>());
            }
            for (block, layout, tag) in held {
                prop_assert!(is_intact(block, layout.size(), tag));
                // SAFETY: held, with its layout.
                unsafe { heap.dealloc(block, layout) };
            }
            prop_assert_eq!(heap.usage().used, 0);
        }
    }
}
