//! Blocks that the kernel and a user share for good: rings.
//!
//! A pinned block is contiguous in physical memory, so the kernel reaches all of it through the
//! direct map without a walk. Its frames belong to the space and go with it; as long as a
//! [`PinnedBlock`] is there, the space stays.

use super::{AddressSpace, SpaceError};
use crate::frames::{self, OwnedFrames};
use abi_ring::Memory;
use abi_sync::BlockMemory;
use abi_types::{RingBlock, RingWord};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use core_address::{Frame, PAGE_SIZE, VirtAddr};
use core_frames::Order;
use core_ledger::{Charge, Frames};
use core_paging::{Access, Rights};
use kernel_arch::paging;

/// The kernel's hold on a block.
#[derive(Debug)]
pub struct PinnedBlock {
    space: &'static AddressSpace,
    frame: Frame,
    pages: u64,
}

/// A block on its way to being pinned: its frames are there and paid for, some of them zeroed. Done in steps,
/// because a large ring is more than fits a section of kernel code (`section`).
#[derive(Debug)]
pub struct Pinning {
    space: &'static AddressSpace,
    block: OwnedFrames,
    paid: Charge<'static, Frames>,
    virt: VirtAddr,
    pages: u64,
    zeroed: u64,
}

/// What a step came to.
#[derive(Debug)]
pub enum Pinned {
    /// There is more to do.
    More(Pinning),
    /// All of it is mapped.
    Done(PinnedBlock),
}

/// Pages of a block that are zeroed in one step: as many as fit a section of kernel code (`section`).
const PAGES_PER_STEP: u64 = 16;

impl AddressSpace {
    /// Maps a new block of zeros of at least `bytes`, writable for the user, at `start`.
    pub fn pin(&'static self, start: u64, bytes: usize) -> Result<PinnedBlock, SpaceError> {
        let mut pinning = self.begin_pin(start, bytes)?;
        loop {
            match pinning.step()? {
                Pinned::More(more) => pinning = more,
                Pinned::Done(block) => return Ok(block),
            }
        }
    }

    /// The same, to be done step by step.
    pub fn begin_pin(&'static self, start: u64, bytes: usize) -> Result<Pinning, SpaceError> {
        let pages = (bytes as u64).div_ceil(PAGE_SIZE);
        let virt = Self::check_range(start, pages)?;
        let order = Order::for_frames(pages).ok_or(SpaceError::BadRange)?;
        let paid = self.pay_for(pages)?;
        Ok(Pinning { space: self, block: frames::allocate(order)?, paid, virt, pages, zeroed: 0 })
    }
}

impl Pinning {
    /// Zeroes some more pages, and maps all of them with the last. If that fails nothing is left of the block.
    pub fn step(mut self) -> Result<Pinned, SpaceError> {
        let part = (self.pages - self.zeroed).min(PAGES_PER_STEP);
        self.block.zero_some(self.zeroed, part);
        self.zeroed += part;
        if self.zeroed < self.pages {
            return Ok(Pinned::More(self));
        }
        let Self { space, block, paid, virt, pages, .. } = self;
        let (first, rights) = (block.frame(), Rights::user(Access::Write));
        // The order of a block bounds its frames far below where adding would overflow.
        let frame_of = |n| first.checked_add(n).unwrap_or_default();
        space.enter(virt, pages, rights, paid, frame_of)?;
        let total = block.count();
        let frame = block.leak();
        if let Some(rest) = frame.checked_add(pages) {
            // SAFETY: of the block that was just leaked, and mapped nowhere.
            unsafe { frames::release_run(rest, total - pages) };
        }
        space.pins.fetch_add(1, Ordering::Relaxed);
        Ok(Pinned::Done(PinnedBlock { space, frame, pages }))
    }
}

impl PinnedBlock {
    /// Its memory, which the user may change at any time.
    pub fn words(&self) -> &[AtomicU64] {
        let words = (self.pages * PAGE_SIZE / 8) as usize;
        // SAFETY: contiguous memory in the direct map, aligned to a page, reached by atomics only; it
        // stays as long as the space does, and the space as long as this value.
        unsafe {
            core::slice::from_raw_parts(
                paging::direct(self.frame.start()).cast::<AtomicU64>(),
                words,
            )
        }
    }

    /// Its memory as a ring laid out as `block`, if it is large enough.
    pub fn into_ring(self, block: RingBlock) -> Option<PinnedRing> {
        if self.pages * PAGE_SIZE < block.size() as u64 {
            return None;
        }
        let base = NonNull::new(paging::direct(self.frame.start()))?;
        // SAFETY: page-aligned and long enough; as in `words`. `PinnedRing` does not hand the memory
        // out and keeps the block.
        let memory = unsafe { BlockMemory::new(base, block) };
        Some(PinnedRing { memory, _block: self })
    }

    /// How many pages it has.
    pub fn pages(&self) -> u64 {
        self.pages
    }
}

impl Drop for PinnedBlock {
    fn drop(&mut self) {
        // Release, pairs with the acquire in `destroy`: the block is not touched any more.
        self.space.pins.fetch_sub(1, Ordering::Release);
    }
}

/// A ring block that is pinned: the memory of a thread's ring, as the protocol wants it.
#[derive(Debug)]
pub struct PinnedRing {
    memory: BlockMemory,
    _block: PinnedBlock,
}

impl Memory for PinnedRing {
    #[inline]
    fn block(&self) -> RingBlock {
        self.memory.block()
    }
    #[inline]
    fn load_acquire(&self, word: RingWord) -> u32 {
        self.memory.load_acquire(word)
    }
    #[inline]
    fn load_relaxed(&self, word: RingWord) -> u32 {
        self.memory.load_relaxed(word)
    }
    #[inline]
    fn store_release(&self, word: RingWord, value: u32) {
        self.memory.store_release(word, value);
    }
    #[inline]
    fn store_relaxed(&self, word: RingWord, value: u32) {
        self.memory.store_relaxed(word, value);
    }
    #[inline]
    fn load_sqe(&self, index: u32) -> [u64; 8] {
        Memory::load_sqe(&self.memory, index)
    }
    #[inline]
    fn store_sqe(&self, index: u32, words: [u64; 8]) {
        Memory::store_sqe(&self.memory, index, words);
    }
    #[inline]
    fn load_cqe(&self, index: u32) -> [u64; 4] {
        Memory::load_cqe(&self.memory, index)
    }
    #[inline]
    fn store_cqe(&self, index: u32, words: [u64; 4]) {
        Memory::store_cqe(&self.memory, index, words);
    }
    #[inline]
    fn load_sqe_inline(&self, slot: u32, word: usize) -> u64 {
        Memory::load_sqe_inline(&self.memory, slot, word)
    }
    #[inline]
    fn store_sqe_inline(&self, slot: u32, word: usize, value: u64) {
        Memory::store_sqe_inline(&self.memory, slot, word, value);
    }
    #[inline]
    fn load_cqe_inline(&self, index: u32, word: usize) -> u64 {
        Memory::load_cqe_inline(&self.memory, index, word)
    }
    #[inline]
    fn store_cqe_inline(&self, index: u32, word: usize, value: u64) {
        Memory::store_cqe_inline(&self.memory, index, word, value);
    }
    #[inline]
    fn first_byte(&self, index: u32) -> u8 {
        self.memory.first_byte(index)
    }
    #[inline]
    fn sqe_words(&self, index: u32) -> impl Fn(usize) -> u64 {
        self.memory.sqe_words(index)
    }
    #[inline]
    fn sqe_slot(&self, slot: u32) -> impl Fn(usize) -> u64 {
        self.memory.sqe_slot(slot)
    }
    #[inline]
    fn cqe_slot(&self, index: u32) -> impl Fn(usize, u64) {
        self.memory.cqe_slot(index)
    }
}
