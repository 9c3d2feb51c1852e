//! Timers that lie with what they bound, in the deadline queues of all CPUs.
//!
//! [`Timers`] is a block of timers in memory that is given back when the block is dropped: that of a thread's
//! ring, one for each of its operations. A CPU's [`Deadlines`] links the timers armed there, whosever they
//! are, through pointers into such blocks. There is no pool of timers that one could take from another, and
//! no lock but that of the queue a timer is in.
//!
//! # Why a link never leads to memory that is gone
//!
//! - A timer that can be armed is one of a block ([`Pinned`]), and a block keeps its timers where they are.
//! - A queue links exactly the timers that say that they are in it (`core_timer`, by its model), and a timer
//!   says so until the last look of whoever takes it out.
//! - A block that is dropped asks each of its timers. If one says that it is in a queue, the memory stays for
//!   good: a leak, which nothing in the kernel leads to, in the place of a dangling link.
//!
//! Decided in ADR 250.
#![cfg_attr(not(any(test, loom)), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core_fallible::{OutOfMemory, try_collect};
use core_timer::{DeadlineQueue, Table, Timer};
use smp_lock::{LockClass, TicketLock};

pub use core_timer::{Armed, Expired, Owner};

/// A block of timers, by number.
#[derive(Debug)]
pub struct Timers(ManuallyDrop<Vec<Timer>>);

/// A timer of a block.
#[derive(Clone, Copy, Debug)]
pub struct Pinned<'t>(&'t Timer);

impl Timers {
    /// So many timers, none of them armed.
    pub fn new(count: u32) -> Result<Self, OutOfMemory> {
        Self::new_with(count, |_| {})
    }

    /// The same; `before` is called before each is made, with its number, and may have a preemption point.
    pub fn new_with(count: u32, before: impl Fn(u32)) -> Result<Self, OutOfMemory> {
        let timers = (0..count).map(|number| {
            before(number);
            Timer::new()
        });
        Ok(Self(ManuallyDrop::new(try_collect(timers)?)))
    }

    /// Bytes of memory that so many take.
    pub const fn bytes(count: u32) -> usize {
        count as usize * size_of::<Timer>()
    }

    /// The timer of that number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<Pinned<'_>> {
        self.0.get(number as usize).map(Pinned)
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        // All of them, without a branch for each: no name of a queue is zero.
        if self.0.iter().fold(0, |names, timer| names | timer.queue_name()) == 0 {
            // SAFETY: TIMER-1. Dropped here and nowhere else. No queue has a link into it: none of the timers is in one,
            // whoever took the last out has looked at it for the last time (acquire in `Timer::queue`), and
            // nobody can arm one, since a `Pinned` borrows the block.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

impl Pinned<'_> {
    /// Disarms it wherever it is armed; `false` if it is not, or its deadline was taken out to be served.
    /// `deadlines` finds the queue of a CPU.
    #[inline]
    pub fn stop<'d>(self, deadlines: impl Fn(u16) -> Option<&'d Deadlines>) -> bool {
        while let Some(cpu) = self.0.queue() {
            let Some(deadlines) = deadlines(cpu) else { return false };
            if deadlines.queue.lock().cancel(&Linked, self.0).is_ok() {
                return true;
            }
        }
        false
    }
}

/// Deadlines armed on one CPU.
#[derive(Debug)]
pub struct Deadlines {
    queue: TicketLock<DeadlineQueue>,
}

/// The timer is armed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse;

impl Deadlines {
    /// The empty queue of CPU `number`.
    pub fn new(number: u16) -> Self {
        // Not one of a model's atomics: numbers are given out, and nothing follows from their order.
        use core::sync::atomic::{AtomicU64, Ordering};
        /// Queues there have been: no two have the same name, so that no timer is looked for in another one.
        static QUEUES: AtomicU64 = AtomicU64::new(0);
        let identity = QUEUES.fetch_add(1, Ordering::Relaxed);
        let queue = DeadlineQueue::new(identity, number);
        Self { queue: TicketLock::with_class(LockClass::Deadlines, queue) }
    }

    /// Arms a timer that is armed nowhere, for `owner`.
    #[inline]
    pub fn arm(&self, timer: Pinned<'_>, owner: Owner, deadline_ns: u64) -> Result<Armed, InUse> {
        self.queue.lock().arm(&Linked, timer.0, owner, deadline_ns).map_err(|_| InUse)
    }

    /// Takes out the nearest timer if its deadline has come.
    #[inline]
    pub fn pop_expired(&self, now_ns: u64) -> Option<Expired> {
        self.queue.lock().pop_expired(&Linked, now_ns)
    }

    /// The nearest deadline.
    #[inline]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.queue.lock().next_deadline_ns(&Linked)
    }

    /// Whether no timer is armed here.
    pub fn is_empty(&self) -> bool {
        self.queue.lock().is_empty()
    }

    /// Walks the queue; says which rule is broken.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        self.queue.lock().check_invariants(&Linked)
    }
}

/// The timers that a queue links, wherever they are.
struct Linked;

impl Table for Linked {
    #[inline(always)]
    fn at(&self, place: *const Timer) -> Option<&Timer> {
        // SAFETY: TIMER-1. Null, or the place of a timer that is in the queue whose lock is held around this: queues
        // are reached through `Deadlines` alone, which arms `Pinned` timers only, and a queue asks for the places
        // that it links. Such a timer is in a block that is not given back, because the timer says that it is
        // in a queue (see above). Its words are atomics.
        unsafe { place.as_ref() }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const OWNER: Owner = Owner { thread: 1, number: 2, arming: 3 };

    #[test]
    fn a_block_moves_while_its_timers_are_armed() {
        let deadlines = [Deadlines::new(0), Deadlines::new(1)];
        let find = |cpu: u16| deadlines.get(usize::from(cpu));
        let block = Timers::new(3).unwrap();
        for (number, at) in [(0, 30), (1, 10), (2, 20)] {
            let owner = Owner { number, ..OWNER };
            assert!(deadlines[1].arm(block.get(number).unwrap(), owner, at).is_ok());
        }
        let moved = Box::new(block);
        assert_eq!(deadlines[1].pop_expired(15).map(|e| e.owner.number), Some(1));
        assert!(!moved.get(1).unwrap().stop(find), "its deadline was taken out");
        assert!(moved.get(2).unwrap().stop(find));
        assert!(!moved.get(2).unwrap().stop(find), "once");
        assert_eq!(deadlines[1].next_deadline_ns(), Some(30));
        assert!(moved.get(0).unwrap().stop(find) && deadlines[1].is_empty());
        assert!(moved.get(3).is_none());
    }

    #[test]
    fn a_timer_is_in_one_queue_at_a_time() {
        let deadlines = [Deadlines::new(0), Deadlines::new(0)];
        let block = Timers::new(1).unwrap();
        let timer = block.get(0).unwrap();
        assert!(deadlines[0].arm(timer, OWNER, 5).is_ok());
        assert_eq!(deadlines[0].arm(timer, OWNER, 6), Err(InUse));
        assert_eq!(deadlines[1].arm(timer, OWNER, 6), Err(InUse));
        assert_eq!(deadlines[0].pop_expired(4), None);
        assert_eq!(deadlines[0].pop_expired(5), Some(Expired { owner: OWNER, deadline_ns: 5 }));
        assert!(deadlines[1].arm(timer, OWNER, 6).is_ok());
        assert!(timer.stop(|_| deadlines.last()));
    }

    #[test]
    fn a_block_that_is_dropped_too_early_stays_in_memory() {
        let deadlines = Deadlines::new(0);
        let block = Timers::new(2).unwrap();
        assert!(deadlines.arm(block.get(1).unwrap(), OWNER, 5).is_ok());
        drop(block);
        assert_eq!(deadlines.check_invariants(), Ok(()));
        assert_eq!(deadlines.pop_expired(5), Some(Expired { owner: OWNER, deadline_ns: 5 }));
    }
}
