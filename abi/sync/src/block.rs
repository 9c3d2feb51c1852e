//! A ring block in real memory, shared with a party that may change any byte at any time.
//!
//! Every access is atomic: the kernel reaches the block through the direct map while user
//! space writes it, so a plain access would be a data race. Positions are masked to the
//! block's own geometry before they become addresses: no index, from whatever source, leads
//! outside the block, also not under speculation, and no access needs a bounds check.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use abi_types::{INLINE_BYTES, RingBlock, RingWord};

/// Words of an inline slot.
const INLINE_WORDS: usize = INLINE_BYTES / 8;

/// A mapped ring block.
#[derive(Clone, Copy, Debug)]
pub struct BlockMemory {
    base: NonNull<u8>,
    block: RingBlock,
}

// SAFETY: the type only ever accesses memory atomically, and `new` requires that the memory
// is valid for as long as any copy of the value is used, on whatever thread.
unsafe impl Send for BlockMemory {}
// SAFETY: as for Send.
unsafe impl Sync for BlockMemory {}

impl BlockMemory {
    /// The block laid out as `block` at `base`.
    ///
    /// # Safety
    /// `base` is aligned to 64 bytes; `block.size()` bytes from it are mapped for reading and
    /// writing while the value or a copy of it is used, and in this program are accessed only
    /// atomically.
    #[inline]
    pub const unsafe fn new(base: NonNull<u8>, block: RingBlock) -> Self {
        Self { base, block }
    }

    /// The block at `base`, whose geometry the kernel has written into it. For user space,
    /// which trusts the kernel; `None` if it is no ring block.
    ///
    /// # Safety
    /// As for [`new`](Self::new), with the geometry found in the block.
    pub unsafe fn attach(base: NonNull<u8>) -> Option<Self> {
        // SAFETY: the geometry word is in the first 256 bytes, which every block has.
        let entries = unsafe { Self::word_at(base, RingWord::SqEntries.offset()) };
        RingBlock::new(entries.load(Ordering::Relaxed)).map(|block| Self { base, block })
    }

    /// The geometry.
    #[inline]
    pub const fn block(&self) -> RingBlock {
        self.block
    }

    /// One of the shared index and flag words.
    #[inline]
    pub fn word(&self, word: RingWord) -> &AtomicU32 {
        // SAFETY: a RingWord's offset is in the block's header, by `new` mapped and aligned.
        unsafe { Self::word_at(self.base, word.offset()) }
    }

    /// The eight words of the SQE with this index.
    #[inline]
    pub fn sqe(&self, index: u32) -> &[AtomicU64; 8] {
        // SAFETY: RingBlock::sqe masks the index: 64 bytes in the block, 64-aligned.
        unsafe { self.words_at(self.block.sqe(index)) }
    }

    /// The four words of the CQE with this index.
    #[inline]
    pub fn cqe(&self, index: u32) -> &[AtomicU64; 4] {
        // SAFETY: RingBlock::cqe masks the index: 32 bytes in the block, 32-aligned.
        unsafe { self.words_at(self.block.cqe(index)) }
    }

    /// The inline slot SQEs call by this number.
    #[inline]
    pub fn sqe_inline(&self, slot: u32) -> &[AtomicU64; INLINE_WORDS] {
        // SAFETY: RingBlock::sqe_inline masks the number: a whole slot in the block, 8-aligned.
        unsafe { self.words_at(self.block.sqe_inline(slot)) }
    }

    /// The inline slot of the CQE with this index.
    #[inline]
    pub fn cqe_inline(&self, index: u32) -> &[AtomicU64; INLINE_WORDS] {
        // SAFETY: RingBlock::cqe_inline masks the index: a whole slot in the block, 8-aligned.
        unsafe { self.words_at(self.block.cqe_inline(index)) }
    }

    /// # Safety
    /// `offset` is a multiple of 4 and the 4 bytes there are in a block at `base` as `new`
    /// describes it, for as long as the reference lives.
    #[inline]
    unsafe fn word_at<'a>(base: NonNull<u8>, offset: usize) -> &'a AtomicU32 {
        // SAFETY: by the caller in bounds, aligned, mapped and only accessed atomically.
        unsafe { base.add(offset).cast().as_ref() }
    }

    /// # Safety
    /// `offset` is a multiple of 8 and the `N` words there are in the block.
    #[inline]
    unsafe fn words_at<const N: usize>(&self, offset: usize) -> &[AtomicU64; N] {
        // SAFETY: by the caller in bounds and aligned; by `new` mapped and only accessed
        // atomically while self is used, which the result's lifetime is bound to.
        unsafe { self.base.add(offset).cast().as_ref() }
    }
}
