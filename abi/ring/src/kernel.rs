//! The kernel's half: the truth about a ring.
//!
//! [`KernelRing`] is shared by everyone in the kernel who has to do with the ring. Two rights
//! are apart from it, so that consuming and completing never wait for each other:
//!
//! - a running [`Pass`](crate::Pass) is the one consumer of the submission queue;
//! - the [`CqProducer`], of which a ring has one, is the right to post. The kernel keeps it in
//!   the ring's CQ lock: completions come from timers, returners and wakers on any CPU.
//!
//! # Credits
//!
//! Each SQE consumed is completed by exactly one CQE. So `sq_head - cq_head` is the number of
//! completions that wait in the queue or are still to come, and an SQE may be consumed while
//! that is below the size of the completion queue: the place its CQE will need is then
//! reserved by arithmetic. There is no counter to keep and none to get wrong.
//!
//! `cq_head` is the user's word. It counts only if it lies where an honest user's can, in the
//! last `cq_entries` before the kernel's own tail; anywhere else it frees nothing. So a user
//! who lies about it has at most `cq_entries` operations in flight, like everyone.
//!
//! Decided in ADR 51.

use abi_sync::atomic::{AtomicU32, Ordering};
use abi_types::{Cqe, RingBlock, RingFlags, RingWord, Status};

use crate::credit::Credit;
use crate::decode::Bounds;
use crate::inline;
use crate::memory::{INLINE_WORDS, Memory};
use crate::owner::SqOwner;

/// A ring as the kernel sees it.
#[derive(Debug)]
pub struct KernelRing<M> {
    pub(crate) memory: M,
    pub(crate) bounds: Bounds,
    pub(crate) owner: SqOwner,
    /// SQEs consumed. Written by the running pass.
    pub(crate) sq_head: AtomicU32,
    /// CQEs posted. Written by who holds the `CqProducer`.
    pub(crate) cq_tail: AtomicU32,
}

/// The right to post completions to one ring.
#[derive(Debug)]
pub struct CqProducer(());

/// A completion but for its user data, which the [`Credit`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// [`CqeFlags`](abi_types::CqeFlags).
    pub flags: u8,
    /// As in [`Cqe::method`].
    pub method: u16,
    /// As in [`Cqe::length`].
    pub length: u32,
    /// As in [`Cqe::badge`].
    pub badge: u64,
    /// As in [`Cqe::token`].
    pub token: u64,
}

impl Outcome {
    /// A completion that says nothing but how it ended.
    #[inline]
    pub const fn plain(status: Status) -> Self {
        Self { status, flags: 0, method: 0, length: 0, badge: 0, token: 0 }
    }

    #[inline]
    fn cqe(&self, credit: Credit) -> Cqe {
        Cqe {
            user_data: credit.user_data(),
            status: self.status as u8,
            flags: self.flags,
            method: self.method,
            length: self.length,
            badge: self.badge,
            token: self.token,
        }
    }
}

/// What posting came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a thread that waits for so many completions is to be woken"]
pub struct Posted {
    /// Completions that wait in the queue now.
    pub count: u32,
}

impl<M: Memory> KernelRing<M> {
    /// A new ring in `memory`, whose other words are zero. `params_bytes` and `result_bytes`
    /// bound what one call carries.
    pub fn new(memory: M, params_bytes: u32, result_bytes: u32) -> (Self, CqProducer) {
        Self::starting_at(0, memory, params_bytes, result_bytes)
    }

    /// As [`new`](Self::new), with every index beginning at `start`.
    pub fn starting_at(
        start: u32,
        memory: M,
        params_bytes: u32,
        result_bytes: u32,
    ) -> (Self, CqProducer) {
        let block = memory.block();
        memory.store_relaxed(RingWord::SqEntries, block.sq_entries());
        memory.store_relaxed(RingWord::CqEntries, block.cq_entries());
        memory.store_relaxed(RingWord::Flags, RingFlags::NEED_WAKEUP);
        for index in [RingWord::SqTail, RingWord::CqHead, RingWord::SqHead, RingWord::CqTail] {
            memory.store_relaxed(index, start);
        }
        let ring = Self {
            bounds: Bounds { slots: block.sq_entries(), params_bytes, result_bytes },
            memory,
            owner: SqOwner::new(),
            sq_head: AtomicU32::new(start),
            cq_tail: AtomicU32::new(start),
        };
        (ring, CqProducer(()))
    }

    /// The memory.
    #[inline]
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// Inline slots of the submission side.
    #[inline]
    pub fn slots(&self) -> u32 {
        self.bounds.slots
    }

    /// The memory, once the ring is no more.
    pub fn into_memory(self) -> M {
        self.memory
    }

    #[inline]
    pub(crate) fn block(&self) -> RingBlock {
        self.memory.block()
    }

    /// Completions that wait in the queue. A head that cannot be an honest user's counts as a
    /// full queue, so that its thread does not block.
    #[inline]
    pub fn count(&self) -> u32 {
        // Acquire pairs with the user's release of CqHead: the tail read next is not older
        // than the one the user saw when it moved its head.
        let head = self.memory.load_acquire(RingWord::CqHead);
        let tail = self.cq_tail.load(Ordering::Relaxed);
        tail.wrapping_sub(head).min(self.block().cq_entries())
    }

    /// Whether completions wait in the queue: that [`count`](Self::count) is not 0.
    #[inline(always)]
    pub fn has_completions(&self) -> bool {
        // Acquire: as in `count`.
        self.memory.load_acquire(RingWord::CqHead) != self.cq_tail.load(Ordering::Relaxed)
    }

    /// Completions that may still be promised, given the SQEs consumed so far.
    #[inline]
    pub(crate) fn credits(&self, sq_head: u32) -> u32 {
        let size = self.block().cq_entries();
        // Acquire: as in `count`.
        let head = self.memory.load_acquire(RingWord::CqHead);
        let tail = self.cq_tail.load(Ordering::Relaxed);
        if tail.wrapping_sub(head) > size {
            return 0;
        }
        size.saturating_sub(sq_head.wrapping_sub(head))
    }

    /// Whether one more completion may be promised: that [`credits`](Self::credits) is not 0.
    #[inline(always)]
    pub(crate) fn has_credit(&self, sq_head: u32) -> bool {
        let size = self.block().cq_entries();
        // Acquire: as in `count`.
        let head = self.memory.load_acquire(RingWord::CqHead);
        let tail = self.cq_tail.load(Ordering::Relaxed);
        tail.wrapping_sub(head) <= size && sq_head.wrapping_sub(head) < size
    }

    /// Whether nothing was submitted since the last pass, for the ring's own thread.
    #[inline]
    pub fn is_drained(&self) -> bool {
        self.memory.load_relaxed(RingWord::SqTail) == self.sq_head.load(Ordering::Relaxed)
    }

    /// The operation that a simple SQE at the head asks for, as a guess: nothing is decided by it
    /// but which way to look at the SQE.
    #[inline(always)]
    pub fn glance(&self) -> u8 {
        self.memory.first_byte(self.sq_head.load(Ordering::Relaxed))
    }

    /// Operations that were consumed and not completed.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        let tail = self.cq_tail.load(Ordering::Relaxed);
        self.sq_head.load(Ordering::Relaxed).wrapping_sub(tail)
    }

    /// Posts a completion without an inline payload. `cq` is this ring's, under its lock.
    #[inline]
    pub fn post(&self, cq: &mut CqProducer, credit: Credit, outcome: &Outcome) -> Posted {
        self.post_with(cq, credit, outcome, |_| ())
    }

    /// As [`post`](Self::post), for who knows that nobody waits for it.
    #[inline(always)]
    pub fn post_unawaited(&self, cq: &mut CqProducer, credit: Credit, outcome: &Outcome) {
        self.batch(cq).post(credit, outcome);
    }

    /// Posts a completion whose payload, `outcome.length` bytes, is in inline slot `slot` of
    /// the submission side of `from`: a message from thread to thread, copied once.
    #[inline(always)]
    pub fn post_from_slot<N: Memory>(
        &self,
        cq: &mut CqProducer,
        credit: Credit,
        outcome: &Outcome,
        from: &KernelRing<N>,
        slot: u16,
    ) -> Posted {
        self.batch_from_slot(cq, credit, outcome, from, slot).publish()
    }

    /// As [`post_from_slot`](Self::post_from_slot), for who knows that nobody waits for it.
    #[inline(always)]
    pub fn post_from_slot_unawaited<N: Memory>(
        &self,
        cq: &mut CqProducer,
        credit: Credit,
        outcome: &Outcome,
        from: &KernelRing<N>,
        slot: u16,
    ) {
        drop(self.batch_from_slot(cq, credit, outcome, from, slot));
    }

    #[inline(always)]
    fn batch_from_slot<'r, N: Memory>(
        &'r self,
        cq: &'r mut CqProducer,
        credit: Credit,
        outcome: &Outcome,
        from: &KernelRing<N>,
        slot: u16,
    ) -> Batch<'r, M> {
        let mut batch = self.batch(cq);
        inline::copy(
            outcome.length,
            from.memory.sqe_slot(u32::from(slot)),
            self.memory.cqe_slot(batch.tail),
        );
        batch.post(credit, outcome);
        batch
    }

    /// Posts a completion whose payload, `outcome.length` bytes, begins `words`; what `words`
    /// lacks is zero.
    #[inline]
    pub fn post_words(
        &self,
        cq: &mut CqProducer,
        credit: Credit,
        outcome: &Outcome,
        words: &[u64],
    ) -> Posted {
        self.post_with(cq, credit, outcome, |index| {
            inline::copy(
                outcome.length,
                |word| words.get(word).copied().unwrap_or(0),
                |word, value| self.memory.store_cqe_inline(index, word, value),
            );
        })
    }

    /// Writes one word of the inline slot of the completion posted next: a deadline, a
    /// transferred capability. `cq` is this ring's, under its lock.
    #[inline]
    pub fn write_next_inline(&self, _cq: &mut CqProducer, word: usize, value: u64) {
        self.memory.store_cqe_inline(self.cq_tail.load(Ordering::Relaxed), word, value);
    }

    /// Copies the first `length` bytes of inline slot `slot` of the submission side out, once,
    /// into kernel memory.
    #[inline]
    pub fn read_inline(&self, slot: u16, length: u32, words: &mut [u64; INLINE_WORDS]) {
        inline::copy(
            length,
            |word| self.memory.load_sqe_inline(u32::from(slot), word),
            |word, value| {
                if let Some(place) = words.get_mut(word) {
                    *place = value;
                }
            },
        );
    }

    #[inline]
    fn post_with(
        &self,
        cq: &mut CqProducer,
        credit: Credit,
        outcome: &Outcome,
        payload: impl FnOnce(u32),
    ) -> Posted {
        let mut batch = self.batch(cq);
        payload(batch.tail);
        batch.post(credit, outcome);
        batch.publish()
    }

    /// Several completions without payload, published together. `cq` is this ring's, under
    /// its lock, which is held until then.
    #[inline]
    pub fn batch<'r>(&'r self, cq: &'r mut CqProducer) -> Batch<'r, M> {
        Batch { ring: self, _cq: cq, tail: self.cq_tail.load(Ordering::Relaxed) }
    }

    /// Checks what holds whenever no pass runs and nothing is being posted.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        if self.in_flight() > self.block().cq_entries() {
            return Err("more operations in flight than completions can be kept");
        }
        Ok(())
    }
}

/// Completions that are written and not yet published; published at the latest when dropped.
#[derive(Debug)]
pub struct Batch<'r, M: Memory> {
    ring: &'r KernelRing<M>,
    _cq: &'r mut CqProducer,
    tail: u32,
}

impl<M: Memory> Batch<'_, M> {
    /// Writes a completion.
    #[inline(always)]
    pub fn post(&mut self, credit: Credit, outcome: &Outcome) {
        let ring = self.ring;
        debug_assert!(
            ring.sq_head.load(Ordering::Relaxed).wrapping_sub(self.tail).wrapping_sub(1)
                < ring.block().cq_entries(),
            "a completion without an SQE that was consumed for it"
        );
        self.write(credit, outcome);
    }

    /// Writes the completion of an SQE that is consumed before this is published.
    #[inline(always)]
    pub(crate) fn write(&mut self, credit: Credit, outcome: &Outcome) {
        self.ring.memory.store_cqe(self.tail, zerocopy::transmute!(outcome.cqe(credit)));
        self.tail = self.tail.wrapping_add(1);
    }

    /// Shows the user what was written.
    #[inline(always)]
    pub fn publish(self) -> Posted {
        let (ring, tail) = (self.ring, self.tail);
        drop(self);
        // Relaxed: only the count depends on it, and a thread that blocks looks again.
        let head = ring.memory.load_relaxed(RingWord::CqHead);
        Posted { count: tail.wrapping_sub(head).min(ring.block().cq_entries()) }
    }
}

impl<M: Memory> Drop for Batch<'_, M> {
    #[inline(always)]
    fn drop(&mut self) {
        self.ring.cq_tail.store(self.tail, Ordering::Relaxed);
        // Release pairs with the user's acquire of CqTail: it sees the entries and payloads.
        self.ring.memory.store_release(RingWord::CqTail, self.tail);
    }
}

#[cfg(loom)]
impl CqProducer {
    /// A planted mutant: a second right to post, which no lock keeps apart from the first.
    pub fn second() -> Self {
        Self(())
    }
}
