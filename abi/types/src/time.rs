//! The time page: the clock without entering the kernel.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// How to turn a counter into the kernel's monotonic nanoseconds.
///
/// Written once before the first process starts; read-only for user space. The counter is the time stamp
/// counter of the CPU, on all of which it is the same, or the one in the counter page
/// ([`COUNTER_VADDR`](crate::place::COUNTER_VADDR)), which is mapped then.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TimePage {
    /// The counter at time `base_ns`.
    pub base_ticks: u64,
    /// The kernel's clock at `base_ticks`.
    pub base_ns: u64,
    /// Nanoseconds per tick, times 2³².
    pub ns_per_tick_q32: u64,
    /// Which counter: [`TimePage::TSC`] or [`TimePage::COUNTER_PAGE`].
    pub source: u64,
}

impl TimePage {
    /// The time stamp counter.
    pub const TSC: u64 = 0;
    /// The counter page.
    pub const COUNTER_PAGE: u64 = 1;

    /// The time at counter value `ticks`, in ns. A counter below the base reads as the base.
    pub const fn at(&self, ticks: u64) -> u64 {
        let elapsed = ticks.saturating_sub(self.base_ticks) as u128;
        let ns = (elapsed * self.ns_per_tick_q32 as u128) >> 32;
        self.base_ns.saturating_add(ns as u64)
    }
}

static_assertions::assert_eq_size!(TimePage, [u8; 32]);
