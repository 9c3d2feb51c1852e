//! A thread's ring as it is: what to push and when to enter is the program's.
//!
//! For code that counts instructions. It keeps no book of what is under way: whoever pushes an
//! SQE pops its CQE and knows its inline slot is free then. Most programs use [`Io`](crate::Io).

use abi_ring::{Completion, InlineSlots, Memory, SqFull, UserRing};
use abi_sync::BlockMemory;
use abi_types::{EnterResult, Opcode, Sqe};

/// The way into the kernel.
pub trait Enter {
    /// `cap_enter`: dispatches the thread's ring, then waits until `min_complete` completions are
    /// in the queue or `timeout_ns` have passed.
    fn cap_enter(&mut self, min_complete: u32, timeout_ns: u64) -> EnterResult;
}

/// The kernel this program runs on.
#[derive(Clone, Copy, Debug)]
pub struct Kernel;

/// A NOP, every field zero: what other SQEs are made from in constants.
pub const NOP: Sqe = Sqe {
    opcode: Opcode::Nop as u8,
    flags: 0,
    method: 0,
    length: 0,
    user_data: 0,
    cap: 0,
    arg: 0,
    address: 0,
    result_address: 0,
    result_capacity: 0,
    transfers: 0,
    buffer: 0,
    result_buffer: 0,
    result_transfers: 0,
    interface: 0,
};

/// A thread's ring, and which of its inline slots are free.
#[derive(Debug)]
pub struct Ring<M = BlockMemory, K = Kernel> {
    user: UserRing<M>,
    slots: InlineSlots,
    kernel: K,
}

impl<M: Memory, K: Enter> Ring<M, K> {
    /// The ring in `memory`, with nothing under way.
    pub fn new(memory: M, kernel: K) -> Self {
        let slots = InlineSlots::new(memory.block().sq_entries());
        Self { user: UserRing::new(memory), slots, kernel }
    }

    /// Entries of the submission queue.
    #[inline]
    pub fn sq_entries(&self) -> u32 {
        self.user.memory().block().sq_entries()
    }

    /// Puts an SQE into the queue; the kernel sees it once it is published.
    #[inline]
    pub fn push(&mut self, sqe: Sqe) -> Result<(), SqFull> {
        self.user.push(sqe)
    }

    /// Shows the kernel what was pushed, for the next time the thread enters.
    #[inline]
    pub fn publish(&mut self) {
        self.user.publish();
    }

    /// Publishes, enters the kernel and waits there for `min_complete` completions.
    #[inline]
    pub fn enter(&mut self, min_complete: u32, timeout_ns: u64) -> EnterResult {
        self.user.publish();
        self.kernel.cap_enter(min_complete, timeout_ns)
    }

    /// Completions that wait to be taken.
    #[inline]
    pub fn completions(&self) -> u32 {
        self.user.completions()
    }

    /// The oldest completion, if one waits.
    #[inline]
    pub fn pop(&mut self) -> Option<Completion<'_, M>> {
        self.user.pop()
    }

    /// A free inline slot; it is the kernel's from the SQE's publication to its completion.
    #[inline]
    pub fn take_slot(&mut self) -> Option<u16> {
        self.slots.take()
    }

    /// Gives an inline slot back.
    #[inline]
    pub fn give_slot(&mut self, slot: u16) {
        self.slots.give(slot);
    }

    /// Writes a payload into an inline slot.
    #[inline]
    pub fn write_inline(&mut self, slot: u16, words: &[u64]) {
        self.user.write_inline(slot, words);
    }
}
