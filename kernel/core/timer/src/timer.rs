//! The cell of one thing that can have a deadline.

use abi_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// No timer.
pub(crate) const NONE: u32 = u32::MAX;

/// A word that a queue's lock guards.
#[derive(Debug)]
pub(crate) struct Link(AtomicU32);

impl Link {
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: u32) {
        self.0.store(value, Relaxed);
    }
}

/// Links of one timer.
#[derive(Debug)]
pub struct Timer {
    pub(crate) parent: Link,
    pub(crate) left: Link,
    pub(crate) right: Link,
    /// Number of the queue it is armed in, plus one; zero if in none.
    queue: Link,
    deadline_ns: AtomicU64,
    sequence: AtomicU64,
}

macro_rules! constructor {
    ($(#[$attribute:meta])* $($qualifier:ident)*) => {
        $(#[$attribute])*
        pub $($qualifier)* fn new() -> Self {
            Self {
                parent: Link(AtomicU32::new(NONE)),
                left: Link(AtomicU32::new(NONE)),
                right: Link(AtomicU32::new(NONE)),
                queue: Link(AtomicU32::new(0)),
                deadline_ns: AtomicU64::new(0),
                sequence: AtomicU64::new(0),
            }
        }
    };
}

impl Timer {
    #[cfg(not(loom))]
    constructor!(
        /// A timer that is not armed.
        const
    );
    #[cfg(loom)]
    constructor!(
        /// A timer that is not armed.
    );

    /// Number of the queue it is armed in; a guess unless that queue's lock is held.
    #[inline]
    pub fn queue(&self) -> Option<u32> {
        self.queue.get().checked_sub(1)
    }

    #[inline]
    pub(crate) fn set_queue(&self, queue: Option<u32>) {
        self.queue.set(queue.map_or(0, |number| number + 1));
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

    #[inline]
    pub(crate) fn set(&self, deadline_ns: u64, sequence: u64) {
        self.deadline_ns.store(deadline_ns, Relaxed);
        self.sequence.store(sequence, Relaxed);
    }
}

impl Default for Timer {
    fn default() -> Self {
        Self::new()
    }
}
