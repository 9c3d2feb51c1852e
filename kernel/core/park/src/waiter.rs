//! The cell of one thread that may wait.

use crate::Key;
use abi_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The end of a chain.
pub(crate) const NONE: u32 = u32::MAX;

/// One wait of one waiter; a later wait of the same waiter has another ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaiterRef {
    /// The position of the thread's cell in the table.
    pub index: u32,
    /// The number of the wait there; a name with an earlier one finds nothing.
    pub ticket: u32,
}

/// Links of one waiter. Words without an order of their own: the bucket's lock gives it.
#[derive(Debug)]
pub struct Waiter {
    /// Ticket of the last wait, times two, plus one while it waits.
    ///
    /// Tickets wrap after 2³¹ waits of one thread; a timeout that old is not possible.
    state: AtomicU32,
    /// Bucket it last waited in.
    bucket: AtomicU32,
    identity: AtomicU64,
    place: AtomicU64,
    /// Ring of the waiters of one key; the first one's `before` is the last.
    pub(crate) next: Index,
    pub(crate) before: Index,
    /// Chain of the first waiters of a bucket's keys.
    pub(crate) next_key: Index,
    pub(crate) before_key: Index,
    /// 1 for the first of its key.
    first: AtomicU32,
}

/// The position of a neighbour, or [`NONE`].
#[derive(Debug)]
pub(crate) struct Index(AtomicU32);

impl Index {
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, index: u32) {
        self.0.store(index, Relaxed);
    }
}

macro_rules! constructor {
    ($(#[$attribute:meta])* $($qualifier:ident)*) => {
        $(#[$attribute])*
        pub $($qualifier)* fn new() -> Self {
            Self {
                state: AtomicU32::new(0),
                bucket: AtomicU32::new(0),
                identity: AtomicU64::new(0),
                place: AtomicU64::new(0),
                next: Index(AtomicU32::new(NONE)),
                before: Index(AtomicU32::new(NONE)),
                next_key: Index(AtomicU32::new(NONE)),
                before_key: Index(AtomicU32::new(NONE)),
                first: AtomicU32::new(0),
            }
        }
    };
}

impl Waiter {
    #[cfg(not(loom))]
    constructor!(
        /// A cell of a thread that does not wait.
        const
    );
    #[cfg(loom)]
    constructor!(
        /// A cell of a thread that does not wait.
    );

    /// The bucket of a wait that [`crate::Bucket::park`] gave out; lock it, then ask it.
    #[inline]
    pub fn bucket(&self) -> usize {
        self.bucket.load(Relaxed) as usize
    }

    #[inline]
    pub(crate) fn key(&self) -> Key {
        Key { identity: self.identity.load(Relaxed), place: self.place.load(Relaxed) }
    }

    #[inline]
    pub(crate) fn ticket(&self) -> u32 {
        self.state.load(Relaxed) >> 1
    }

    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.state.load(Relaxed) & 1 != 0
    }

    #[inline]
    pub(crate) fn is_first(&self) -> bool {
        self.first.load(Relaxed) != 0
    }

    #[inline]
    pub(crate) fn set_first(&self, first: bool) {
        self.first.store(u32::from(first), Relaxed);
    }

    /// The ticket of the wait that begins next.
    #[inline]
    pub(crate) fn next_ticket(&self) -> u32 {
        self.ticket().wrapping_add(1) & (u32::MAX >> 1)
    }

    /// Begins a wait and gives its ticket.
    #[inline]
    pub(crate) fn begin(&self, key: Key, bucket: u32) -> u32 {
        self.bucket.store(bucket, Relaxed);
        self.identity.store(key.identity, Relaxed);
        self.place.store(key.place, Relaxed);
        let ticket = self.next_ticket();
        self.state.store(ticket << 1 | 1, Relaxed);
        ticket
    }

    #[inline]
    pub(crate) fn end(&self) {
        self.state.store(self.state.load(Relaxed) & !1, Relaxed);
    }
}

impl Default for Waiter {
    fn default() -> Self {
        Self::new()
    }
}
