//! One line of an account: used, lent and closed in one word, so that one atomic operation
//! checks and changes it.

use abi_sync::atomic::{AtomicU64, Ordering};

/// The largest limit a line can have; a larger one counts as this.
pub const MAX_LIMIT: u32 = (1 << 31) - 1;

/// Bit position of what is lent; below it is what is used.
const LENT_SHIFT: u32 = 32;
/// Set when the account takes no more charges.
const CLOSED: u64 = 1 << 63;

/// One line at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Reserved and charged.
    pub used: u32,
    /// Lent to children.
    pub lent: u32,
    /// What `used` and `lent` together never exceed.
    pub limit: u32,
}

impl Reading {
    /// What can still be charged or lent.
    pub const fn free(self) -> u32 {
        self.limit.saturating_sub(self.used).saturating_sub(self.lent)
    }
}

/// Why a line was left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The account is closed.
    Closed,
    /// The line would exceed its limit.
    Exhausted(Reading),
}

/// What is taken from a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// The process uses it.
    Use,
    /// A child gets it.
    Lend,
}

impl Purpose {
    const fn units(self, count: u32) -> u64 {
        match self {
            Self::Use => count as u64,
            Self::Lend => (count as u64) << LENT_SHIFT,
        }
    }
}

/// One line. Relaxed throughout but for one pair: what is given back is given back after its
/// last use ([`give`](Self::give)), and taking it or seeing that all of it is back
/// ([`take`](Self::take), [`settled`](Self::settled)) comes after that.
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

impl Word {
    /// Nothing used, nothing lent, open.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Nothing used, nothing lent, open.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    const fn reading_of(word: u64, limit: u32) -> Reading {
        // Truncation: the low half is what is used.
        Reading { used: word as u32, lent: ((word & !CLOSED) >> LENT_SHIFT) as u32, limit }
    }

    pub fn reading(&self, limit: u32) -> Reading {
        Self::reading_of(self.0.load(Ordering::Relaxed), limit)
    }

    /// Takes `count`, if the line is open and has them.
    #[inline]
    pub fn take(&self, purpose: Purpose, count: u32, limit: u32) -> Result<(), Denied> {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if seen & CLOSED != 0 {
                return Err(Denied::Closed);
            }
            let now = Self::reading_of(seen, limit);
            if count > now.free() {
                return Err(Denied::Exhausted(now));
            }
            // No carry: used and lent together stay below 2^31.
            let next = seen.wrapping_add(purpose.units(count));
            // Acquire: pairs with the Release in `give`.
            match self.0.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => seen = other,
            }
        }
    }

    /// Gives `count` back that were taken for the same purpose.
    #[inline]
    pub fn give(&self, purpose: Purpose, count: u32) {
        // Release: pairs with the Acquires in `take` and `settled`. Every change of the word is
        // a read-modify-write, so the last one carries the releases of all before it.
        let before = self.0.fetch_sub(purpose.units(count), Ordering::Release);
        let before = Self::reading_of(before, MAX_LIMIT);
        debug_assert!(match purpose {
            Purpose::Use => before.used >= count,
            Purpose::Lend => before.lent >= count,
        });
    }

    /// Takes no more from now on.
    pub fn close(&self) {
        self.0.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// What is used and lent, as the owner of an account that ends sees it.
    pub fn settled(&self) -> Reading {
        // Acquire: pairs with the Release in `give`.
        Self::reading_of(self.0.load(Ordering::Acquire), 0)
    }

    /// Opens a closed line without charges and loans again.
    pub fn reopen(&self) -> bool {
        // Acquire: pairs with the Release in `give`.
        self.0.compare_exchange(CLOSED, 0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) & CLOSED != 0
    }
}
