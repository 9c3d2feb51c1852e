//! A ring block in real memory, shared with a party that may change any byte at any time.
//!
//! Every access is atomic: the kernel reaches the block through the direct map while user
//! space writes it, so a plain access would be a data race. Positions are masked to the
//! block's own geometry before they become addresses: no index, from whatever source, leads
//! outside the block, also not under speculation, and no access needs a bounds check.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use abi_types::{Cqe, INLINE_BYTES, RingBlock, RingWord, Sqe};

/// Words of an inline slot.
const INLINE_WORDS: usize = INLINE_BYTES / 8;

/// A mapped ring block.
#[derive(Clone, Copy, Debug)]
pub struct BlockMemory {
    base: NonNull<u8>,
    block: RingBlock,
    /// From `block`, kept because every entry access needs them.
    sq_mask: u32,
    cq_mask: u32,
    cqes: NonNull<u8>,
    sq_inline: NonNull<u8>,
    cq_inline: NonNull<u8>,
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
        Self {
            base,
            block,
            sq_mask: block.sq_entries() - 1,
            cq_mask: block.cq_entries() - 1,
            // SAFETY: the CQEs begin in the block.
            cqes: unsafe { base.add(block.cqe(0)) },
            // SAFETY: and so do the inline slots.
            sq_inline: unsafe { base.add(block.sqe_inline(0)) },
            // SAFETY: as above.
            cq_inline: unsafe { base.add(block.cqe_inline(0)) },
        }
    }

    /// The block laid out as `block` in memory that is shared anyway; `None` if it is too short
    /// or not aligned to 64 bytes.
    pub fn over(words: &'static [AtomicU64], block: RingBlock) -> Option<Self> {
        let base = NonNull::from(words).cast::<u8>();
        let fits = size_of_val(words) >= block.size() && base.addr().get().is_multiple_of(64);
        // SAFETY: long enough and aligned, static, and atomics all through.
        fits.then(|| unsafe { Self::new(base, block) })
    }

    /// The block at `base`, whose geometry the kernel has written into it. For user space,
    /// which trusts the kernel; `None` if it is no ring block.
    ///
    /// # Safety
    /// As for [`new`](Self::new), with the geometry found in the block.
    pub unsafe fn attach(base: NonNull<u8>) -> Option<Self> {
        // SAFETY: the geometry word is in the first 256 bytes, which every block has.
        let entries = unsafe { Self::word_at(base, RingWord::SqEntries.offset()) };
        let block = RingBlock::new(entries.load(Ordering::Relaxed))?;
        // SAFETY: by the caller.
        Some(unsafe { Self::new(base, block) })
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
        let position = (index & self.sq_mask) as usize;
        // SAFETY: below sq_entries: RingBlock::sqe of the index, 64 bytes in the block, aligned.
        unsafe { Self::words_at(self.base, RingBlock::ENTRIES + position * size_of::<Sqe>()) }
    }

    /// The four words of the CQE with this index.
    #[inline]
    pub fn cqe(&self, index: u32) -> &[AtomicU64; 4] {
        let position = (index & self.cq_mask) as usize;
        // SAFETY: below cq_entries: RingBlock::cqe of the index, 32 bytes in the block, aligned.
        unsafe { Self::words_at(self.cqes, position * size_of::<Cqe>()) }
    }

    /// The inline slot SQEs call by this number.
    #[inline]
    pub fn sqe_inline(&self, slot: u32) -> &[AtomicU64; INLINE_WORDS] {
        let position = (slot & self.sq_mask) as usize;
        // SAFETY: below sq_entries: RingBlock::sqe_inline of the number, a whole slot in the
        // block, 8-aligned.
        unsafe { Self::words_at(self.sq_inline, position * INLINE_BYTES) }
    }

    /// The inline slot of the CQE with this index.
    #[inline]
    pub fn cqe_inline(&self, index: u32) -> &[AtomicU64; INLINE_WORDS] {
        let position = (index & self.cq_mask) as usize;
        // SAFETY: below cq_entries: RingBlock::cqe_inline of the index, a whole slot in the
        // block, 8-aligned.
        unsafe { Self::words_at(self.cq_inline, position * INLINE_BYTES) }
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
    /// `offset` is a multiple of 8 and the `N` words at `offset` from `start` are in a block as
    /// `new` describes it, for as long as the reference lives.
    #[inline]
    unsafe fn words_at<'a, const N: usize>(
        start: NonNull<u8>,
        offset: usize,
    ) -> &'a [AtomicU64; N] {
        // SAFETY: by the caller in bounds, aligned, mapped and only accessed atomically.
        unsafe { start.add(offset).cast().as_ref() }
    }
}
