//! Requests to one CPU that it has not looked at.

use abi_sync::atomic::{AtomicU32, Ordering, fence};

/// What a CPU is asked for; a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests(u32);

impl Requests {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Choose again what to run.
    pub const RESCHEDULE: Self = Self(1 << 0);
    /// Flush address translations up to the generation asked for.
    pub const TLB: Self = Self(1 << 1);
    /// Arm the one-shot again: a nearer deadline or a slice was added.
    pub const TIMER: Self = Self(1 << 2);
    /// Look at the lease request slot.
    pub const LEASE: Self = Self(1 << 3);

    /// Take a step of the reaper: something ended.
    pub const REAP: Self = Self(1 << 4);

    /// The requests of both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// As bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of `other` is in it.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing is.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The word of one CPU; on a cache line of its own where it is kept.
#[derive(Debug, Default)]
pub struct Pending(AtomicU32);

impl Pending {
    /// Nothing pending.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Nothing pending.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Adds requests, after the work they stand for was made visible. `true` if nothing was
    /// pending: then the caller has to send the interrupt.
    #[inline]
    #[must_use = "a fresh request needs its interrupt"]
    pub fn post(&self, requests: Requests) -> bool {
        // The sender's half of the pair with the fence in `take`: work, fence, swap.
        fence(Ordering::SeqCst);
        self.0.fetch_or(requests.0, Ordering::Relaxed) == 0
    }

    /// Takes all requests. What they stand for is visible to what the caller reads afterwards.
    #[inline]
    pub fn take(&self) -> Requests {
        let taken = self.0.swap(0, Ordering::Relaxed);
        // The target's half of the pair with the fence in `post`: clear, fence, look.
        fence(Ordering::SeqCst);
        Requests(taken)
    }

    /// Whether an interrupt is on its way; a guess.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}
