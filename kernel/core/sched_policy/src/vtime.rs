//! Virtual time of one queue, and lag, the only thing that travels between queues.
//!
//! Decided in ADR 60.

/// A point on one queue's virtual time line, in ns; wraps, and is compared by distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualTime(u64);

impl VirtualTime {
    /// The point with that raw value.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The raw value, for a word that is published or printed.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The point `virtual_ns` later.
    #[inline]
    pub const fn after(self, virtual_ns: u64) -> Self {
        Self(self.0.wrapping_add(virtual_ns))
    }

    /// How far `earlier` lies behind; negative if it lies ahead.
    #[inline]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }

    /// Whether this point lies before `other`.
    #[inline]
    pub const fn is_before(self, other: Self) -> bool {
        self.since(other) < 0
    }

    /// The later of two points.
    #[inline]
    pub const fn later(self, other: Self) -> Self {
        if self.is_before(other) { other } else { self }
    }
}

/// Service an entity is owed by its queue (positive) or has had too much of (negative), in
/// virtual ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lag(i64);

impl Lag {
    /// Owed nothing, owing nothing.
    pub const ZERO: Self = Self(0);

    /// A lag of `virtual_ns`.
    #[inline]
    pub const fn new(virtual_ns: i64) -> Self {
        Self(virtual_ns)
    }

    /// Virtual ns owed.
    #[inline]
    pub const fn virtual_ns(self) -> i64 {
        self.0
    }

    /// The start of service, in a queue that stands at `now`, of an entity with this lag.
    #[inline]
    pub const fn start_at(self, now: VirtualTime) -> VirtualTime {
        VirtualTime(now.0.wrapping_sub(self.0 as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let before = VirtualTime::from_bits(u64::MAX - 5);
        let after = before.after(10);
        assert_eq!(after.to_bits(), 4);
        assert!(before.is_before(after) && !after.is_before(before));
        assert_eq!(after.since(before), 10);
        assert_eq!(before.later(after), after);
        assert_eq!(Lag::new(10).start_at(after), before);
        assert_eq!(Lag::new(-10).start_at(before), after);
    }
}
