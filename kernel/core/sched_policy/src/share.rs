//! A thread's share: weight and class, with everything derived from them worked out once.

use crate::{LatencyClass, QUANTUM_NS, Weight};

/// The longest request any share can have: the lightest weight in the most patient class.
pub const MAX_REQUEST_VIRTUAL_NS: u64 = 4 * QUANTUM_NS * Weight::REFERENCE.get() as u64;

/// The most virtual time one charge adds to an order key.
///
/// Keeps an entity that ran alone for years without a stop inside the half range in which
/// virtual times compare. No smaller interval is changed by it.
const MAX_STEP_VIRTUAL_NS: u64 = 1 << 62;

/// Weight and class, with the inverse and the bounds the hot path needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    weight: Weight,
    class: LatencyClass,
    /// Both in one number, to compare them at once.
    kind: u32,
    /// Virtual ns per ns of running, times 2³².
    virtual_per_ns_q32: u64,
    /// Length of one request.
    request_virtual_ns: u64,
    /// The most lag it carries in either direction.
    lag_limit_virtual_ns: i64,
}

/// What a running interval amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualStep {
    /// Whole virtual ns, saturating.
    pub virtual_ns: u64,
    /// What is left over, in 2⁻³² virtual ns, to be passed in next time.
    pub fraction_q32: u32,
}

impl Share {
    /// The share of a weight in a class. Divides, so it belongs where a weight is set.
    pub const fn new(weight: Weight, class: LatencyClass) -> Self {
        let number = weight.get() as u64;
        let reference = Weight::REFERENCE.get() as u64;
        let inverse = ((reference << 32) + number / 2) / number;
        let request = QUANTUM_NS / 2 * class.half_slices() * reference / number;
        // A whole slice even in the class with the short request: that much can be run ahead
        // before a slice ends.
        let slice = QUANTUM_NS * reference / number;
        let limit = if request > slice { request } else { slice };
        Self {
            weight,
            class,
            kind: weight.get() as u32 | (class as u32) << 16,
            virtual_per_ns_q32: inverse,
            request_virtual_ns: request,
            lag_limit_virtual_ns: limit as i64,
        }
    }

    /// How large the share is, relative to others.
    #[inline]
    pub const fn weight(&self) -> Weight {
        self.weight
    }

    /// Whether it is the same weight in the same class.
    #[inline]
    pub fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
    }

    /// How soon the thread wants to run once it can.
    #[inline]
    pub const fn class(&self) -> LatencyClass {
        self.class
    }

    /// Length of one request, in virtual ns.
    #[inline]
    pub const fn request_virtual_ns(&self) -> u64 {
        self.request_virtual_ns
    }

    /// How much of a request is owed before it is asked for, in virtual ns: all but one slice in
    /// the class with the long request, nothing in the others.
    #[inline]
    pub const fn patience_virtual_ns(&self) -> u64 {
        match self.class {
            LatencyClass::Batch => self.request_virtual_ns - self.request_virtual_ns / 4,
            _ => 0,
        }
    }

    /// The most lag this share carries, either way, in virtual ns.
    #[inline]
    pub const fn lag_limit_virtual_ns(&self) -> i64 {
        self.lag_limit_virtual_ns
    }

    /// Virtual time for `elapsed_ns` of running, with the fraction left by the last interval.
    #[inline]
    pub const fn step(&self, elapsed_ns: u64, fraction_q32: u32) -> VirtualStep {
        let exact = elapsed_ns as u128 * self.virtual_per_ns_q32 as u128 + fraction_q32 as u128;
        let whole = exact >> 32;
        let virtual_ns = if whole > u64::MAX as u128 { u64::MAX } else { whole as u64 };
        VirtualStep { virtual_ns, fraction_q32: exact as u32 }
    }
}

impl VirtualStep {
    /// The step as it moves an order key.
    #[inline]
    pub const fn order_ns(&self) -> u64 {
        if self.virtual_ns > MAX_STEP_VIRTUAL_NS { MAX_STEP_VIRTUAL_NS } else { self.virtual_ns }
    }
}

impl Default for Share {
    fn default() -> Self {
        const DEFAULT: Share = Share::new(Weight::DEFAULT, LatencyClass::Normal);
        DEFAULT
    }
}
