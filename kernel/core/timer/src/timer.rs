//! One thing that can have a deadline.

use abi_sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use core::ptr;

/// The place of a neighbour in a queue, or null; a queue's lock guards it.
#[derive(Debug)]
pub(crate) struct Link(AtomicPtr<Timer>);

impl Link {
    pub(crate) fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline]
    pub(crate) fn get(&self) -> *const Timer {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, at: *const Timer) {
        self.0.store(at.cast_mut(), Relaxed);
    }
}

/// The timers that queues link, by their places in memory.
///
/// A queue asks only for places of timers that are armed in it, and for null.
pub trait Table {
    /// The timer at that place; `None` for null.
    fn at(&self, place: *const Timer) -> Option<&Timer>;
}

impl Table for [Timer] {
    fn at(&self, place: *const Timer) -> Option<&Timer> {
        let offset = place.addr().checked_sub(self.as_ptr().addr())?;
        self.get(offset / size_of::<Timer>())
    }
}

/// Whose a timer is while it is armed, in words of whoever arms it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The thread.
    pub thread: u64,
    /// Which timer of the thread.
    pub number: u32,
    /// Which of the times it was armed.
    pub arming: u32,
}

/// Links of one timer, in a cache line.
#[derive(Debug)]
#[cfg_attr(not(loom), repr(align(64)))]
pub struct Timer {
    pub(crate) parent: Link,
    pub(crate) left: Link,
    pub(crate) right: Link,
    /// The queue it is armed in; zero if in none. Written last when it leaves one.
    queue: AtomicU64,
    deadline_ns: AtomicU64,
    sequence: AtomicU64,
    thread: AtomicU64,
    number: AtomicU32,
    arming: AtomicU32,
}

impl Timer {
    /// A timer that is not armed.
    pub fn new() -> Self {
        Self {
            parent: Link::none(),
            left: Link::none(),
            right: Link::none(),
            queue: AtomicU64::new(0),
            deadline_ns: AtomicU64::new(0),
            sequence: AtomicU64::new(0),
            thread: AtomicU64::new(0),
            number: AtomicU32::new(0),
            arming: AtomicU32::new(0),
        }
    }

    /// Number of the queue it is armed in; a guess unless that queue's lock is held. A timer that is in none has
    /// no neighbours, and none has it.
    #[inline]
    pub fn queue(&self) -> Option<u16> {
        // Acquire, pairs with the release in `leave`: what its last queue did with it came before.
        match self.queue.load(Acquire) {
            0 => None,
            name => Some(name as u16),
        }
    }

    /// What names the queue it is armed in; zero for none.
    #[inline]
    pub fn queue_name(&self) -> u64 {
        // Acquire, as in `queue`.
        self.queue.load(Acquire)
    }

    #[inline]
    pub(crate) fn is_in(&self, queue: u64) -> bool {
        self.queue.load(Relaxed) == queue
    }

    /// Becomes one of a queue, the last of its deadline.
    #[inline]
    pub(crate) fn enter(&self, queue: u64, owner: Owner, deadline_ns: u64, sequence: u64) {
        self.thread.store(owner.thread, Relaxed);
        self.number.store(owner.number, Relaxed);
        self.arming.store(owner.arming, Relaxed);
        self.deadline_ns.store(deadline_ns, Relaxed);
        self.sequence.store(sequence, Relaxed);
        self.queue.store(queue, Relaxed);
    }

    /// Is in no queue any more: the last access of whoever took it out.
    #[inline]
    pub(crate) fn leave(&self) {
        // Release, pairs with the acquire in `queue`.
        self.queue.store(0, Release);
    }

    #[inline]
    pub(crate) fn owner(&self) -> Owner {
        Owner {
            thread: self.thread.load(Relaxed),
            number: self.number.load(Relaxed),
            arming: self.arming.load(Relaxed),
        }
    }

    #[inline]
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.deadline_ns.load(Relaxed)
    }

    /// Place in the order: nearest deadline first, then first armed.
    #[inline]
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.deadline_ns(), self.sequence.load(Relaxed))
    }
}

impl Default for Timer {
    fn default() -> Self {
        Self::new()
    }
}
