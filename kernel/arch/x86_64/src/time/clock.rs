//! The clock: nanoseconds since the kernel was entered, the same on every CPU.
//!
//! It is read from the CPU's time-stamp counter, by one subtraction and one multiplication, unless the
//! counters of the CPUs cannot be brought to agree: then [`share`] makes the HPET the clock of all of
//! them. Which of the two it is costs nothing on the usual way: with the HPET the subtraction borrows
//! on every CPU, as it would for a counter that is behind the kernel's start.
//!
//! Decided in ADR 215.

use super::{Hpet, ticks};
use core::sync::atomic::{AtomicU64, Ordering};
use core_address::PhysAddr;
use core_clock::{Rate, scale_q32};
use spin::Once;

/// The boot CPU's counter at the kernel's first instruction.
static BOOT: AtomicU64 = AtomicU64::new(0);
/// The same while the counters are the clock; beyond every counter while the HPET is.
static ORIGIN: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds per tick of the time-stamp counter, times 2³²; 0 before it is known.
static NS_PER_TICK_Q32: AtomicU64 = AtomicU64::new(0);
static SHARED: Once<Shared> = Once::new();

/// The counter outside the CPUs that is the clock.
#[derive(Clone, Copy, Debug)]
struct Shared {
    hpet: Hpet,
    page: PhysAddr,
    base_ticks: u64,
    base_ns: u64,
    ns_per_tick_q32: u64,
}

impl Shared {
    fn now_ns(&self) -> u64 {
        let ticks = self.hpet.counter().wrapping_sub(self.base_ticks);
        self.base_ns.saturating_add(scale_q32(ticks, self.ns_per_tick_q32))
    }
}

/// How user mode computes the clock: as the kernel does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserClock {
    /// The counter at time `base_ns`.
    pub base_ticks: u64,
    /// The clock then.
    pub base_ns: u64,
    /// Nanoseconds per tick, times 2³².
    pub ns_per_tick_q32: u64,
    /// The page of the HPET's registers, if that is the counter; else it is the time-stamp counter.
    pub hpet: Option<PhysAddr>,
}

pub(crate) fn mark_boot() {
    let now = ticks();
    BOOT.store(now, Ordering::Relaxed);
    ORIGIN.store(now, Ordering::Relaxed);
}

/// The rate of the counters is known: the clock runs.
pub(super) fn begin(rate: Rate) {
    NS_PER_TICK_Q32.store(rate.ns_per_tick_q32(), Ordering::Relaxed);
}

/// Makes the HPET the clock of all CPUs from now on; it goes on where it was. On the boot CPU, while no
/// other reads the clock. `false` if that HPET cannot be one: see [`Hpet::is_clock`].
pub(super) fn share(hpet: Hpet, registers: PhysAddr) -> bool {
    let (true, Some(rate)) = (hpet.is_clock(registers), Rate::from_hz(hpet.hz())) else {
        return false;
    };
    SHARED.call_once(|| Shared {
        hpet,
        page: registers,
        base_ticks: hpet.counter(),
        base_ns: clock_ns(),
        ns_per_tick_q32: rate.ns_per_tick_q32(),
    });
    // Relaxed: other CPUs are given work after this with stores that order it.
    ORIGIN.store(u64::MAX, Ordering::Relaxed);
    true
}

/// Nanoseconds since the kernel was entered, once the clock runs.
#[inline]
pub fn now_ns() -> Option<u64> {
    (NS_PER_TICK_Q32.load(Ordering::Relaxed) != 0).then(clock_ns)
}

/// The same on a path that runs only once the clock runs; 0 before.
#[inline]
pub fn clock_ns() -> u64 {
    let rate = NS_PER_TICK_Q32.load(Ordering::Relaxed);
    match ticks().checked_sub(ORIGIN.load(Ordering::Relaxed)) {
        Some(since) => scale_q32(since, rate),
        None => shared_ns(),
    }
}

/// The clock when this CPU's counter is not it; 0 on a CPU whose counter is behind the kernel's start.
#[cold]
#[inline(never)]
fn shared_ns() -> u64 {
    SHARED.get().map_or(0, Shared::now_ns)
}

/// How user mode computes the clock, once it runs.
pub fn user_clock() -> Option<UserClock> {
    let rate = NS_PER_TICK_Q32.load(Ordering::Relaxed);
    if rate == 0 {
        return None;
    }
    Some(match SHARED.get() {
        Some(shared) => UserClock {
            base_ticks: shared.base_ticks,
            base_ns: shared.base_ns,
            ns_per_tick_q32: shared.ns_per_tick_q32,
            hpet: Some(shared.page),
        },
        None => UserClock {
            base_ticks: BOOT.load(Ordering::Relaxed),
            base_ns: 0,
            ns_per_tick_q32: rate,
            hpet: None,
        },
    })
}

/// A value of the boot CPU's counter as nanoseconds since the kernel was entered.
pub fn ticks_to_ns(ticks: u64) -> Option<u64> {
    match NS_PER_TICK_Q32.load(Ordering::Relaxed) {
        0 => None,
        rate => Some(scale_q32(ticks.saturating_sub(BOOT.load(Ordering::Relaxed)), rate)),
    }
}
