//! The memory of a thread's ring: where each part lies.
//!
//! One contiguous, pinned block, mapped for its process and reached by the kernel through the
//! direct map:
//!
//! ```text
//!   0    line the user writes:    sq_tail, cq_head
//!  64    line the kernel writes:  sq_head, cq_tail, flags
//! 128    geometry: entries of both queues (written once by the kernel, never read back)
//! 256    SQEs, CQEs, one inline slot per SQE, one inline slot per CQE
//! ```
//!
//! Indices are free-running `u32`; an entry's position is the index modulo the queue's size.
//! The completion queue has twice the entries of the submission queue. A CQE's inline slot has
//! the CQE's position; an SQE names the inline slot it uses, because the slot stays in use until
//! the operation completes while the SQE's own place is free as soon as it is consumed.
//!
//! Decided in ADR 50.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limits::MAX_SQ_ENTRIES;
use crate::place::{RING_ROOM, RING_VADDR};
use crate::{Cqe, Sqe};

/// Bytes of an inline slot: a message up to this size needs no buffer.
pub const INLINE_BYTES: usize = 128;

/// The cache line user space writes.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct RingProducerLine {
    /// SQEs published so far.
    pub sq_tail: u32,
    /// CQEs taken so far.
    pub cq_head: u32,
    /// Not used.
    pub pad: [u32; 14],
}

/// The cache line the kernel writes. It reads none of it back: its own counters are the truth.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct RingConsumerLine {
    /// SQEs consumed so far.
    pub sq_head: u32,
    /// CQEs published so far.
    pub cq_tail: u32,
    /// [`RingFlags`].
    pub flags: u32,
    /// Not used.
    pub pad: [u32; 13],
}

/// Bits of [`RingConsumerLine::flags`].
pub struct RingFlags;

impl RingFlags {
    /// No kernel poller looks at the submission queue (there is none, or it sleeps): enter the
    /// kernel after publishing.
    pub const NEED_WAKEUP: u32 = 1 << 0;
}

/// The shared 32-bit words, by their offset in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum RingWord {
    /// [`RingProducerLine::sq_tail`], written by the user.
    SqTail = RingBlock::PRODUCER_LINE + core::mem::offset_of!(RingProducerLine, sq_tail),
    /// [`RingProducerLine::cq_head`], written by the user.
    CqHead = RingBlock::PRODUCER_LINE + core::mem::offset_of!(RingProducerLine, cq_head),
    /// [`RingConsumerLine::sq_head`], written by the kernel.
    SqHead = RingBlock::CONSUMER_LINE + core::mem::offset_of!(RingConsumerLine, sq_head),
    /// [`RingConsumerLine::cq_tail`], written by the kernel.
    CqTail = RingBlock::CONSUMER_LINE + core::mem::offset_of!(RingConsumerLine, cq_tail),
    /// [`RingConsumerLine::flags`], written by the kernel.
    Flags = RingBlock::CONSUMER_LINE + core::mem::offset_of!(RingConsumerLine, flags),
    /// Entries of the submission queue, written once by the kernel.
    SqEntries = RingBlock::GEOMETRY,
    /// Entries of the completion queue, written once by the kernel.
    CqEntries = RingBlock::GEOMETRY + 4,
}

impl RingWord {
    /// Bytes from the start of the block.
    #[inline]
    pub const fn offset(self) -> usize {
        self as usize
    }
}

/// Offsets of a ring with a given number of submission entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingBlock {
    sq_entries: u32,
}

impl RingBlock {
    /// Where the line the user writes begins.
    pub const PRODUCER_LINE: usize = 0;
    /// Where the line the kernel writes begins.
    pub const CONSUMER_LINE: usize = 64;
    /// Where the geometry words begin: sq_entries, cq_entries.
    pub const GEOMETRY: usize = 128;
    /// Where the entries begin.
    pub const ENTRIES: usize = 256;

    /// The layout for `sq_entries`, a power of two of at most [`MAX_SQ_ENTRIES`].
    #[inline]
    pub const fn new(sq_entries: u32) -> Option<Self> {
        if sq_entries.is_power_of_two() && sq_entries <= MAX_SQ_ENTRIES {
            Some(Self { sq_entries })
        } else {
            None
        }
    }

    /// Entries of the submission queue.
    #[inline]
    pub const fn sq_entries(self) -> u32 {
        self.sq_entries
    }

    /// Entries of the completion queue.
    #[inline]
    pub const fn cq_entries(self) -> u32 {
        self.sq_entries * 2
    }

    /// Offset of the SQE with this index.
    #[inline]
    pub const fn sqe(self, index: u32) -> usize {
        Self::ENTRIES + (index & (self.sq_entries() - 1)) as usize * size_of::<Sqe>()
    }

    #[inline]
    const fn cqes(self) -> usize {
        Self::ENTRIES + self.sq_entries() as usize * size_of::<Sqe>()
    }

    /// Offset of the CQE with this index.
    #[inline]
    pub const fn cqe(self, index: u32) -> usize {
        self.cqes() + (index & (self.cq_entries() - 1)) as usize * size_of::<Cqe>()
    }

    #[inline]
    const fn sq_inline(self) -> usize {
        self.cqes() + self.cq_entries() as usize * size_of::<Cqe>()
    }

    /// Offset of the inline slot an SQE names by this number.
    #[inline]
    pub const fn sqe_inline(self, slot: u32) -> usize {
        self.sq_inline() + (slot & (self.sq_entries() - 1)) as usize * INLINE_BYTES
    }

    #[inline]
    const fn cq_inline(self) -> usize {
        self.sq_inline() + self.sq_entries() as usize * INLINE_BYTES
    }

    /// Offset of the inline slot that belongs to the CQE with this index.
    #[inline]
    pub const fn cqe_inline(self, index: u32) -> usize {
        self.cq_inline() + (index & (self.cq_entries() - 1)) as usize * INLINE_BYTES
    }

    /// Bytes of the whole block.
    #[inline]
    pub const fn size(self) -> usize {
        self.cq_inline() + self.cq_entries() as usize * INLINE_BYTES
    }

    /// Address of a ring block in the arena of a process whose threads have blocks of this size, by its number.
    /// Blocks are as close as whole pages let them be, with a page between two that is never mapped.
    #[inline]
    pub const fn address(self, number: u32) -> u64 {
        let pages = (self.size() as u64).div_ceil(PAGE_BYTES) + 1;
        RING_VADDR + number as u64 * pages * PAGE_BYTES
    }
}

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

static_assertions::const_assert!(
    RingBlock { sq_entries: MAX_SQ_ENTRIES }.address(1) <= RING_VADDR + RING_ROOM
);
static_assertions::assert_eq_size!(RingProducerLine, [u8; 64]);
static_assertions::assert_eq_size!(RingConsumerLine, [u8; 64]);
static_assertions::const_assert!(RingBlock::PRODUCER_LINE + 64 == RingBlock::CONSUMER_LINE);
static_assertions::const_assert!(INLINE_BYTES.is_multiple_of(8) && INLINE_BYTES >= 64);
