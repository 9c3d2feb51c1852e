//! The user's half: one thread's own ring.
//!
//! The ring belongs to one thread, so nothing here is shared within the process; the other
//! side is the kernel, which is trusted. Own indices are kept here and only written to the
//! block. The kernel's `SqHead` is read when the copy kept here says the queue is full; its `CqTail`
//! each time, for most completions come alone and a copy would be stale.

use abi_types::{Cqe, INLINE_BYTES, RingBlock, RingFlags, RingWord, Sqe};

use crate::inline;
use crate::memory::{INLINE_WORDS, Memory};

/// A thread's ring as its thread sees it.
#[derive(Debug)]
pub struct UserRing<M> {
    memory: M,
    /// SQEs pushed.
    sq_tail: u32,
    /// SQEs the kernel has consumed, as last seen.
    sq_head: u32,
    /// CQEs taken.
    cq_head: u32,
}

/// The submission queue is full: enter the kernel, then push again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqFull;

impl<M: Memory> UserRing<M> {
    /// The ring in `memory`, as its thread finds it at start.
    pub fn new(memory: M) -> Self {
        let sq_tail = memory.load_relaxed(RingWord::SqTail);
        let cq_head = memory.load_relaxed(RingWord::CqHead);
        // The kernel's index as of a time when nothing was submitted.
        Self { memory, sq_tail, sq_head: sq_tail, cq_head }
    }

    /// The memory.
    #[inline]
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    #[inline]
    fn block(&self) -> RingBlock {
        self.memory.block()
    }

    /// Puts an SQE into the queue. The kernel does not see it before it is published.
    #[inline]
    pub fn push(&mut self, sqe: Sqe) -> Result<(), SqFull> {
        if self.sq_tail.wrapping_sub(self.sq_head) == self.block().sq_entries() {
            // Acquire pairs with the kernel's release of SqHead: it has read what was there.
            self.sq_head = self.memory.load_acquire(RingWord::SqHead);
            if self.sq_tail.wrapping_sub(self.sq_head) == self.block().sq_entries() {
                return Err(SqFull);
            }
        }
        self.memory.store_sqe(self.sq_tail, zerocopy::transmute!(sqe));
        self.sq_tail = self.sq_tail.wrapping_add(1);
        Ok(())
    }

    /// Shows the kernel everything pushed so far; it looks when the thread enters.
    #[inline]
    pub fn publish(&mut self) {
        // Release pairs with the kernel's acquire of SqTail: the SQEs and payloads are written.
        self.memory.store_release(RingWord::SqTail, self.sq_tail);
    }

    /// Shows a kernel poller everything pushed so far. `true`: nobody polls, so enter.
    #[inline]
    #[must_use = "without a poller the SQEs lie until the thread enters the kernel"]
    pub fn publish_polled(&mut self) -> bool {
        self.publish();
        // Pairs with the fence in `KernelRing::work_after_fence`.
        self.memory.full_fence();
        self.memory.load_relaxed(RingWord::Flags) & RingFlags::NEED_WAKEUP != 0
    }

    /// SQEs the kernel has not consumed yet.
    #[inline]
    pub fn unconsumed(&self) -> u32 {
        self.sq_tail.wrapping_sub(self.memory.load_relaxed(RingWord::SqHead))
    }

    /// Completions that wait to be taken.
    #[inline]
    pub fn completions(&self) -> u32 {
        self.memory.load_relaxed(RingWord::CqTail).wrapping_sub(self.cq_head)
    }

    /// The oldest completion, if one waits; taken when the value is dropped.
    #[inline]
    pub fn pop(&mut self) -> Option<Completion<'_, M>> {
        // Acquire pairs with the kernel's release of CqTail: the entry is written.
        if self.cq_head == self.memory.load_acquire(RingWord::CqTail) {
            return None;
        }
        let cqe = zerocopy::transmute!(self.memory.load_cqe(self.cq_head));
        Some(Completion { ring: self, cqe })
    }

    /// Writes a payload into inline slot `slot` of the submission side, for an SQE with that
    /// `buffer` number. The slot is the kernel's from the SQE's publication to its completion.
    #[inline]
    pub fn write_inline(&mut self, slot: u16, words: &[u64]) {
        debug_assert!(words.len() <= INLINE_WORDS, "more than an inline slot holds");
        inline::copy(
            (words.len() * 8).min(INLINE_BYTES) as u32,
            |word| words.get(word).copied().unwrap_or(0),
            self.memory.sqe_slot_mut(u32::from(slot)),
        );
    }
}

/// A completion that is being looked at.
#[derive(Debug)]
pub struct Completion<'r, M: Memory> {
    ring: &'r mut UserRing<M>,
    cqe: Cqe,
}

impl<M: Memory> Completion<'_, M> {
    /// The entry.
    #[inline]
    pub const fn cqe(&self) -> &Cqe {
        &self.cqe
    }

    /// One word of its inline slot.
    #[inline]
    pub fn inline_word(&self, word: usize) -> u64 {
        self.ring.memory.load_cqe_inline(self.ring.cq_head, word)
    }

    /// Copies the first `length` bytes of its inline slot out.
    #[inline]
    pub fn read_inline(&self, length: u32, words: &mut [u64; INLINE_WORDS]) {
        inline::copy(length, self.ring.memory.cqe_slot_read(self.ring.cq_head), |word, value| {
            if let Some(place) = words.get_mut(word) {
                *place = value;
            }
        });
    }

    /// Takes it.
    #[inline]
    pub fn take(self) -> Cqe {
        self.cqe
    }
}

impl<M: Memory> Drop for Completion<'_, M> {
    #[inline]
    fn drop(&mut self) {
        self.ring.cq_head = self.ring.cq_head.wrapping_add(1);
        // Release pairs with the kernel's acquire of CqHead: the entry and its payload were
        // read before their place is used again.
        self.ring.memory.store_release(RingWord::CqHead, self.ring.cq_head);
    }
}
