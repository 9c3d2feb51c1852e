//! What a worker's ring was given and what it is still to be given, under the lock of its port.
//!
//! An operation is in one of three places: in the backlog, while the ring has no room for it; under way,
//! with a name that its completion brings back; done. Names are never used twice ([`Names`]), so what comes
//! late finds nobody.
//!
//! # A wait is begun with nothing left to submit
//!
//! Only the ring's own thread makes what was submitted happen, by entering the kernel. So a wait inside it
//! must not be begun while a CANCEL or an operation that has a place is still to be pushed: nobody else could
//! push it, and it may be what ends the wait. [`Submissions::begin_wait`] alone gives leave to wait
//! ([`Leave`]), after it has looked for that.
//!
//! The completion queue holds twice as many as the submission queue. Of these places one is kept for the
//! worker's own PARK, one for an operation of its own thread and one for a CANCEL: the kernel takes an SQE only
//! with a place for its completion, so a CANCEL is never held up by the operations it is to end. The rest is
//! enough for one operation of a fiber for each entry, from [`LEAST_ENTRIES`] on; in a smaller ring a single
//! fiber that waits for long would keep all others from theirs.

use core::ptr;

use abi_ring::{INLINE_WORDS, Memory};
use abi_sync::BlockMemory;
use abi_types::{Opcode, Sqe, SqeFlags};
use capos_rt::io::inline_bytes;
use capos_rt::ring::Kernel;
use capos_rt::{Enter, Ring};
use fiber_core::{MAX_NAMES, Names, Outcome};

use super::operation::{Entry, Stage};
use crate::list::{List, Node};
use crate::wait::Waker;

/// User data of operations nobody waits for; no name has the top bit.
pub(super) const NOBODY: u64 = 1 << 63;
/// User data of the worker's own PARK.
pub(super) const OWN_PARK: u64 = 1 << 63 | 1;

/// How a wait ends whose operation is done.
pub const DONE: Outcome = Outcome::Data(0);
/// How a wait ends whose operation was not begun, and is to be submitted again.
pub const AGAIN: Outcome = Outcome::Data(1);

/// Wakers collected under the lock before they are issued after it.
pub(super) const BATCH: usize = 16;

/// Completions that are not for fibers' operations: the worker's PARK, an operation of its own thread, a
/// CANCEL.
const KEPT: usize = 3;

/// The fewest entries of a worker's ring: with as many completions again, those that are kept have their places
/// and each entry's operation has one.
pub const LEAST_ENTRIES: u32 = (KEPT as u32).next_power_of_two();

/// Leave to wait inside the kernel: what could end the wait is submitted.
#[derive(Debug)]
#[must_use = "the port counts as waited at"]
pub(super) struct Leave(());

/// The ring of a worker, and what of it is under way or waits for room.
pub(super) struct Submissions<M = BlockMemory, K = Kernel> {
    ring: *mut Ring<M, K>,
    pub names: Names<*const Node<Entry>>,
    /// How many names fibers have at most: one is kept for the worker's thread itself.
    pub fibers: usize,
    pub backlog: List<Entry>,
    /// Under way, and to be cancelled.
    pub cancels: List<Entry>,
    /// The worker's own PARK.
    park: Sqe,
    /// Whether it is under way.
    pub is_armed: bool,
    /// Whether something was pushed since the worker last entered the kernel.
    pub is_dirty: bool,
    /// Whether the worker waits inside the kernel, for completions that it finds.
    pub is_inside: bool,
}

// SAFETY: the ring and the operations are reached under the lock.
unsafe impl<M, K> Send for Submissions<M, K> {}

impl<M: Memory, K: Enter> Submissions<M, K> {
    /// No ring yet.
    pub const fn new() -> Self {
        Self {
            ring: ptr::null_mut(),
            names: Names::new(0),
            fibers: 0,
            backlog: List::new(),
            cancels: List::new(),
            park: capos_rt::ring::NOP,
            is_armed: false,
            is_dirty: false,
            is_inside: false,
        }
    }

    /// Takes a ring with nothing under way and at least [`LEAST_ENTRIES`], whose thread waits by `park`.
    pub fn open(&mut self, ring: &mut Ring<M, K>, park: Sqe) {
        let fibers = (ring.sq_entries() as usize).min(MAX_NAMES - 1);
        self.names = Names::new(fibers + 1);
        self.fibers = fibers;
        self.ring = ring;
        self.park = park;
        self.is_armed = false;
        self.is_dirty = false;
    }

    /// Gives the ring back.
    pub fn close(&mut self) {
        self.ring = ptr::null_mut();
    }

    /// Whether something that the ring's thread alone can submit is not submitted.
    fn owes(&self) -> bool {
        let has_place = self.names.len() < self.fibers;
        !self.cancels.is_empty() || (has_place && !self.backlog.is_empty())
    }

    /// Submits what can be, the worker's PARK at last, and gives leave to wait; none if something is left
    /// for which the queue has no room: then the kernel is to be entered, and asked again.
    pub fn begin_wait(&mut self) -> Option<Leave> {
        self.feed();
        // A PARK that is still under way from an earlier wait does: it is at the same word, and whoever has
        // unparked it since has completed it.
        if !self.is_armed {
            self.is_armed = self.push(self.park, OWN_PARK);
        }
        let may_wait = self.is_armed && !self.owes();
        self.is_dirty = !may_wait;
        self.is_inside = may_wait;
        may_wait.then_some(Leave(()))
    }

    /// Gives leave to wait for the end of the worker's own PARK; none if it is not under way.
    pub fn begin_last_wait(&mut self) -> Option<Leave> {
        let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: OWN_PARK, ..Sqe::default() };
        // Just flushed, with nobody waiting for anything: there is room.
        self.is_inside = self.is_armed && self.push(cancel, NOBODY);
        self.is_inside.then_some(Leave(()))
    }

    /// Gives leave back; `is_left`: the kernel has left something in the queue.
    pub fn end_wait(&mut self, _leave: Leave, is_left: bool) {
        self.is_inside = false;
        self.is_dirty |= is_left;
    }

    /// The ring, while a thread lends it.
    pub fn ring(&mut self) -> Option<&mut Ring<M, K>> {
        // SAFETY: lent from `open` to `close`, to this state alone.
        unsafe { self.ring.as_mut() }
    }

    /// Whether an operation of a fiber is begun at once.
    pub fn has_room(&self) -> bool {
        self.backlog.is_empty() && self.names.len() < self.fibers
    }

    /// Gives a fiber's operation to the ring; false if it has no room.
    pub fn begin_for_fiber(&mut self, node: &Node<Entry>) -> bool {
        self.names.len() < self.fibers && self.begin(node)
    }

    /// Gives an operation to the ring; false if it has no room.
    pub fn begin(&mut self, node: &Node<Entry>) -> bool {
        let Some(name) = self.names.insert(node) else { return false };
        if self.push_named(node, name) {
            node.value.name.set(name);
            node.value.stage.set(Stage::UnderWay);
            self.is_dirty = true;
            return true;
        }
        let _ = self.names.remove(name);
        false
    }

    fn push_named(&mut self, node: &Node<Entry>, name: u64) -> bool {
        let Some(ring) = self.ring() else { return false };
        let mut sqe = Sqe { user_data: name, ..node.value.sqe };
        // SAFETY: by `new` the waiter's memory, which is there until the operation is done.
        let payload = unsafe { &*node.value.payload };
        let mut taken = None;
        if !payload.is_empty() {
            taken = ring.take_slot();
            if let Some(slot) = taken {
                ring.write_inline(slot, payload);
                sqe.buffer = slot;
            } else {
                // The kernel reads it where it is.
                sqe.flags |= SqeFlags::BY_ADDRESS;
                sqe.address = payload.as_ptr().expose_provenance() as u64;
            }
        }
        let is_pushed = ring.push(sqe).is_ok();
        if is_pushed {
            ring.publish();
        } else if let Some(slot) = taken.take() {
            ring.give_slot(slot);
        }
        node.value.slot.set(taken);
        is_pushed
    }

    /// Pushes an operation that nobody waits for; false if the queue is full.
    pub fn push(&mut self, sqe: Sqe, user_data: u64) -> bool {
        let Some(ring) = self.ring() else { return true };
        let is_pushed = ring.push(Sqe { user_data, ..sqe }).is_ok();
        if is_pushed {
            ring.publish();
            self.is_dirty = true;
        }
        is_pushed
    }

    /// Gives the ring what it has room for: cancels, then the backlog in order.
    pub fn feed(&mut self) {
        while let Some(node) = self.cancels.first().map(ptr::from_ref) {
            // SAFETY: a linked node is alive, and under this lock stays so.
            let node = unsafe { &*node };
            let cancel =
                Sqe { opcode: Opcode::Cancel as u8, arg: node.value.name.get(), ..Sqe::default() };
            if !self.push(cancel, NOBODY) {
                return;
            }
            // SAFETY: it is in this list.
            unsafe { self.cancels.remove(node) };
        }
        while let Some(node) = self.backlog.first().map(ptr::from_ref) {
            // SAFETY: as above.
            let node = unsafe { &*node };
            if !self.begin_for_fiber(node) {
                return;
            }
            // SAFETY: it is in this list.
            unsafe { self.backlog.remove(node) };
        }
    }

    /// Takes operations out of the backlog until it is empty or `batch` full of those to wake; how many.
    pub fn give_up(&mut self, batch: &mut [Option<Waker>]) -> u32 {
        let mut given = 0;
        for place in batch {
            let Some(node) = self.backlog.first().map(ptr::from_ref) else { break };
            // SAFETY: a linked node is alive, and under this lock stays so.
            let node = unsafe { &*node };
            // SAFETY: it is in this list.
            unsafe { self.backlog.remove(node) };
            given += 1;
            node.value.stage.set(Stage::New);
            // SAFETY: null, or a wait that is not over: it takes itself out under this lock.
            if let Some(wait) = unsafe { node.value.wait.get().as_ref() } {
                let waker = wait.waker();
                // Last: as in `take`.
                *place = wait.decide(AGAIN).then_some(waker);
            }
        }
        given
    }

    /// Takes completions until `batch` is full of those to wake; how many were taken, and how many of
    /// them were awaited.
    pub fn take(&mut self, batch: &mut [Option<Waker>; BATCH]) -> (usize, u32) {
        let (mut taken, mut ended) = (0, 0);
        let mut places = batch.iter_mut();
        // Looked at before a completion is taken: each may need a place.
        while places.len() > 0 {
            let Some(ring) = self.ring() else { break };
            let Some(completion) = ring.pop() else { break };
            taken += 1;
            let cqe = *completion.cqe();
            if cqe.user_data & NOBODY != 0 {
                drop(completion);
                if cqe.user_data == OWN_PARK {
                    self.is_armed = false;
                }
                continue;
            }
            let mut words = [0; INLINE_WORDS];
            completion.read_inline(inline_bytes(&cqe) as u32, &mut words);
            drop(completion);
            let Some(node) = self.names.remove(cqe.user_data) else { continue };
            // SAFETY: who waits keeps the operation until it is done, which it is not yet.
            let node = unsafe { &*node };
            ended += 1;
            if let (Some(slot), Some(ring)) = (node.value.slot.take(), self.ring()) {
                ring.give_slot(slot);
            }
            // SAFETY: if it is in a list, it is in this one.
            unsafe { self.cancels.remove(node) };
            node.value.cqe.set(cqe);
            node.value.words.set(words);
            node.value.stage.set(Stage::Done);
            // SAFETY: null, or a wait that is not over: it takes itself out under this lock.
            if let Some(wait) = unsafe { node.value.wait.get().as_ref() } {
                let waker = wait.waker();
                // Last: the waiter may be gone with the operation from here on.
                if wait.decide(DONE)
                    && let Some(place) = places.next()
                {
                    *place = Some(waker);
                }
            }
        }
        self.feed();
        (taken, ended)
    }
}

#[cfg(test)]
mod tests;
