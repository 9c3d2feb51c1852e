//! One visit to a submission queue: what is there, consumed in order, up to a bound.
//!
//! A pass looks at the user's tail and at the user's completion head once, when it begins; from
//! them and its own limit follows how many SQEs it may take. Each is read once. The head moves
//! with each SQE, not at the end: whatever stops the pass, what it took is taken.

use abi_sync::atomic::Ordering;
use abi_types::limits::{RING_BATCH_SQPOLL, RING_BATCH_TIMER};
use abi_types::{Opcode, RingFlags, RingWord, Status};

use crate::decode::decode;
use crate::kernel::{Credit, KernelRing};
use crate::memory::Memory;
use crate::owner::{PollerToken, Refusal, Visitor};
use crate::request::Request;

/// A running pass: the one consumer of the ring's submission queue. Ends when dropped.
#[derive(Debug)]
pub struct Pass<'r, M: Memory> {
    ring: &'r KernelRing<M>,
    /// The next SQE.
    head: u32,
    /// The first SQE this pass does not take.
    end: u32,
    /// Why it does not take that one.
    stop: Stop,
    /// Whether the ring's own thread runs it.
    own_thread: bool,
}

/// Why a pass takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The queue is empty, as of the tail the pass began with.
    Drained,
    /// The pass took as many as one may.
    Limit,
    /// The next SQE has no place for its completion: `cqFull`.
    CqFull,
    /// The next SQE needs its own thread: `threadOwnedHead`.
    ThreadOwned,
}

/// The SQE at the head of the queue, read and not yet consumed.
#[derive(Debug)]
pub struct Head {
    pub(crate) words: [u64; 8],
    index: u32,
}

/// An SQE that was consumed.
#[derive(Debug)]
pub struct Accepted {
    /// To be spent on its completion.
    pub credit: Credit,
    /// What it asks for, or the status to complete it with.
    pub request: Result<Request, Status>,
}

impl<M: Memory> KernelRing<M> {
    /// Begins a pass for the ring's own thread or for the timer.
    #[inline]
    pub fn begin(&self, visitor: Visitor) -> Result<Pass<'_, M>, Refusal> {
        self.owner.begin(visitor)?;
        Ok(match visitor {
            Visitor::Syscall => Pass::new(self, self.block().sq_entries(), true),
            Visitor::Timer => Pass::new(self, RING_BATCH_TIMER, false),
        })
    }

    /// Begins a pass of the poller that owns the queue.
    #[inline]
    pub fn begin_poll(&self, token: &PollerToken) -> Result<Pass<'_, M>, Refusal> {
        if self.owner.begin_poll(token)? {
            // Within the pass, so that no end of the ownership can come between.
            self.memory.store_relaxed(RingWord::Flags, 0);
        }
        Ok(Pass::new(self, RING_BATCH_SQPOLL, false))
    }

    /// Begins a pass of the ring's own thread on behalf of the poller that owns the queue.
    #[inline]
    pub fn borrow(&self) -> Result<Pass<'_, M>, Refusal> {
        self.owner.borrow()?;
        Ok(Pass::new(self, RING_BATCH_SQPOLL, true))
    }
}

impl<'r, M: Memory> Pass<'r, M> {
    #[inline]
    fn new(ring: &'r KernelRing<M>, limit: u32, own_thread: bool) -> Self {
        let head = ring.sq_head.load(Ordering::Relaxed);
        // Acquire pairs with the user's release of SqTail: the SQEs up to it are written.
        let tail = ring.memory.load_acquire(RingWord::SqTail);
        // One SQE with a place for its completion: what most visits find, found in a few steps.
        if tail.wrapping_sub(head) == 1 && ring.has_credit(head) {
            return Self { ring, head, end: tail, stop: Stop::Drained, own_thread };
        }
        Self::bounded(ring, head, tail, limit, own_thread)
    }

    /// A pass whose bounds have to be worked out.
    fn bounded(
        ring: &'r KernelRing<M>,
        head: u32,
        tail: u32,
        limit: u32,
        own_thread: bool,
    ) -> Self {
        // A tail too far ahead is not an honest user's; what it gets is its own garbage.
        let waiting = tail.wrapping_sub(head).min(ring.block().sq_entries());
        let credits = ring.credits(head);
        let (take, stop) = if waiting <= limit && waiting <= credits {
            (waiting, Stop::Drained)
        } else if credits < limit {
            (credits, Stop::CqFull)
        } else {
            (limit, Stop::Limit)
        };
        Self { ring, head, end: head.wrapping_add(take), stop, own_thread }
    }

    /// The SQE at the head, if this pass may take it.
    #[inline(always)]
    pub fn head(&mut self) -> Option<Head> {
        if self.head == self.end {
            return None;
        }
        let words = self.ring.memory.load_sqe(self.head);
        if !self.own_thread && is_thread_owned(words) {
            self.end = self.head;
            self.stop = Stop::ThreadOwned;
            return None;
        }
        Some(Head { words, index: self.head })
    }

    /// Whether the SQE at the head is the only one this pass may take, and nothing else stops it.
    #[inline(always)]
    pub fn is_last(&self) -> bool {
        self.head.wrapping_add(1) == self.end && self.stop == Stop::Drained
    }

    /// Consumes the SQE that [`head`](Self::head) gave last, for who has decoded it.
    #[inline(always)]
    pub fn take(&mut self, head: &Head) -> Credit {
        debug_assert!(head.index == self.head, "an SQE is consumed once, in its turn");
        self.head = head.index.wrapping_add(1);
        self.ring.sq_head.store(self.head, Ordering::Relaxed);
        // Release pairs with the user's acquire of SqHead: the SQE was read before its place
        // is used again.
        self.ring.memory.store_release(RingWord::SqHead, self.head);
        let [_, user_data, ..] = head.words;
        Credit::new(user_data)
    }

    /// Consumes the next SQE, if there is one for this pass.
    #[inline(always)]
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would borrow nothing and hide the end"
    )]
    pub fn next(&mut self) -> Option<Accepted> {
        let head = self.head()?;
        let credit = self.take(&head);
        Some(Accepted { credit, request: head.decode(self.ring) })
    }

    /// Why the pass takes no more, once [`next`](Self::next) gave `None`.
    #[inline]
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// Ends a pass of the ring's own thread and leaves the queue to a poller, which is asleep
    /// until it first begins. Undone whole by [`KernelRing::release`].
    pub fn hand_over(self) -> Result<PollerToken, Refusal> {
        let token = self.ring.owner.hand_over()?;
        core::mem::forget(self);
        Ok(token)
    }
}

impl<M: Memory> Drop for Pass<'_, M> {
    #[inline]
    fn drop(&mut self) {
        let ring = self.ring;
        ring.owner.end(|| ring.memory.store_relaxed(RingWord::Flags, RingFlags::NEED_WAKEUP));
    }
}

impl Head {
    /// Whether it is a NOP, well formed.
    #[inline(always)]
    pub fn is_nop(&self) -> bool {
        let [first, _, cap, arg, address, result_address, places, last] = self.words;
        first | cap | arg | address | result_address | places | last == Opcode::Nop as u64
    }

    /// A head that is in no ring.
    #[cfg(test)]
    pub(crate) fn of(words: [u64; 8]) -> Self {
        Self { words, index: 0 }
    }

    /// What it asks for, or the status it will complete with; consumes nothing.
    #[inline(always)]
    pub fn decode<M: Memory>(&self, ring: &KernelRing<M>) -> Result<Request, Status> {
        decode(self.words, &ring.bounds)
    }
}

/// Whether the operation needs its own thread, whatever else the SQE says.
#[inline]
fn is_thread_owned(words: [u64; 8]) -> bool {
    let [first, ..] = words;
    Opcode::from_number(first as u8).is_some_and(Opcode::is_thread_owned)
}
