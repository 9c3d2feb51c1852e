//! One visit to a submission queue: what is there, consumed in order, up to a bound.
//!
//! A pass looks at the user's tail and at the user's completion head once, when it begins; from
//! them and its own limit follows how many SQEs it may take. Each is read once. The head moves
//! with each SQE or run of NOPs, not at the end: whatever stops the pass, what it took is taken.
//!
//! Decided in ADRs 51 and 171.

use abi_sync::atomic::Ordering;
use abi_types::limits::{RING_BATCH_SQPOLL, RING_BATCH_TIMER};
use abi_types::{Opcode, RingFlags, RingWord, Status};

use crate::credit::Credit;
use crate::decode::decode;
use crate::kernel::{CqProducer, KernelRing, Outcome};
use crate::memory::Memory;
use crate::owner::{PollerToken, Refusal, Visitor};
use crate::request::Request;

/// NOPs that are completed together at most: bounds how long the completion lock is held.
pub const MOST_NOPS: u32 = 128;

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
    /// Whether a poller owns the queue, whoever runs it.
    is_polled: bool,
}

/// The only SQE of a ring's queue, before the ring's own thread.
#[derive(Debug)]
pub struct Sole<'r, M: Memory> {
    pub(crate) ring: &'r KernelRing<M>,
    pub(crate) head: u32,
}

impl<M: Memory> Sole<'_, M> {
    /// What it is, read once.
    #[inline(always)]
    pub fn head(&self) -> Head {
        Head { words: self.ring.memory.load_sqe(self.head), index: self.head }
    }

    /// Consumes it, whose user data is this.
    #[inline(always)]
    pub fn take(self, user_data: u64) -> Credit {
        self.ring.move_head(self.head.wrapping_add(1));
        Credit::new(user_data)
    }
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
            Visitor::Syscall => Pass::new(self, self.block().sq_entries(), true, false),
            Visitor::Timer => Pass::new(self, RING_BATCH_TIMER, false, false),
        })
    }

    /// The SQE that waits, if it is the only one, its completion has a place, and nobody else
    /// consumes: what most visits find, found in a few steps. For the ring's own thread alone.
    #[inline(always)]
    pub fn sole(&self) -> Option<Sole<'_, M>> {
        if !self.owner.is_free() {
            return None;
        }
        let head = self.sq_head.load(Ordering::Relaxed);
        // Acquire: as in `Pass::new`.
        let is_sole = self.memory.load_acquire(RingWord::SqTail) == head.wrapping_add(1);
        (is_sole && self.has_credit(head)).then_some(Sole { ring: self, head })
    }

    /// A planted mutant: [`sole`](Self::sole) for whoever comes.
    #[cfg(loom)]
    pub fn sole_of_any_owner(&self) -> Option<Sole<'_, M>> {
        let head = self.sq_head.load(Ordering::Relaxed);
        let is_sole = self.memory.load_acquire(RingWord::SqTail) == head.wrapping_add(1);
        is_sole.then_some(Sole { ring: self, head })
    }

    /// Lets [`sole`](Self::sole) find nothing, so that every SQE is consumed in a pass. For whoever
    /// makes the ring, to compare both ways.
    pub fn only_passes(&self) {
        self.owner.only_passes();
    }

    /// Everything before `head` is consumed.
    #[inline(always)]
    fn move_head(&self, head: u32) {
        self.sq_head.store(head, Ordering::Relaxed);
        // Release pairs with the user's acquire of SqHead: the SQE was read before its place
        // is used again.
        self.memory.store_release(RingWord::SqHead, head);
    }

    /// Begins a pass of the poller that owns the queue.
    #[inline]
    pub fn begin_poll(&self, token: &PollerToken) -> Result<Pass<'_, M>, Refusal> {
        if self.owner.begin_poll(token)? {
            // Within the pass, so that no end of the ownership can come between.
            self.memory.store_relaxed(RingWord::Flags, 0);
        }
        Ok(Pass::new(self, RING_BATCH_SQPOLL, false, true))
    }

    /// Begins a pass of the ring's own thread on behalf of the poller that owns the queue.
    #[inline]
    pub fn borrow(&self) -> Result<Pass<'_, M>, Refusal> {
        self.owner.borrow()?;
        Ok(Pass::new(self, RING_BATCH_SQPOLL, true, true))
    }
}

#[cfg(loom)]
impl<M: Memory> KernelRing<M> {
    /// A planted mutant: what a visitor consumes that asks no owner and ends no pass.
    pub fn take_unasked(&self) -> Option<Accepted> {
        let mut pass =
            core::mem::ManuallyDrop::new(Pass::new(self, RING_BATCH_TIMER, false, false));
        pass.next()
    }
}

impl<'r, M: Memory> Pass<'r, M> {
    #[inline]
    fn new(ring: &'r KernelRing<M>, limit: u32, own_thread: bool, is_polled: bool) -> Self {
        let head = ring.sq_head.load(Ordering::Relaxed);
        // Acquire pairs with the user's release of SqTail: the SQEs up to it are written.
        let tail = ring.memory.load_acquire(RingWord::SqTail);
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
        Self { ring, head, end: head.wrapping_add(take), stop, own_thread, is_polled }
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

    /// Consumes the SQE that [`head`](Self::head) gave last, for who has decoded it.
    #[inline(always)]
    pub fn take(&mut self, head: &Head) -> Credit {
        debug_assert!(head.index == self.head, "an SQE is consumed once, in its turn");
        self.move_to(head.index.wrapping_add(1));
        let [_, user_data, ..] = head.words;
        Credit::new(user_data)
    }

    /// Everything before `head` is consumed.
    #[inline(always)]
    fn move_to(&mut self, head: u32) {
        self.head = head;
        self.ring.move_head(head);
    }

    /// Consumes the NOPs that are next, up to [`MOST_NOPS`], and completes them: as if each had been
    /// taken and posted, with one move of each index for all. Whether there were any. `cq` is this
    /// ring's, under its lock; its thread does not wait, so that nobody is to be woken.
    #[inline(always)]
    pub fn finish_nops(&mut self, cq: &mut CqProducer) -> bool {
        let mut batch = self.ring.batch(cq);
        let first = self.head;
        let end = first.wrapping_add(self.end.wrapping_sub(first).min(MOST_NOPS));
        let mut head = first;
        while head != end {
            let nop = Head { words: self.ring.memory.load_sqe(head), index: head };
            if !nop.is_nop() {
                break;
            }
            let [_, user_data, ..] = nop.words;
            batch.write(Credit::new(user_data), &Outcome::plain(Status::Ok));
            head = head.wrapping_add(1);
        }
        self.move_to(head);
        head != first
    }

    /// Whether nothing is left that this pass may take.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.head == self.end
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
    #[inline(always)]
    fn drop(&mut self) {
        let ring = self.ring;
        if !self.is_polled {
            return ring.owner.end_visit();
        }
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

    /// What goes into its completion.
    #[inline(always)]
    pub fn user_data(&self) -> u64 {
        let [_, user_data, ..] = self.words;
        user_data
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
