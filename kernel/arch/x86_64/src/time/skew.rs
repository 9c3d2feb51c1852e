//! Time-stamp counters that disagree on purpose, in checked images.
//!
//! An emulator's counters agree. With `tsc_skew=` what the kernel reads from them does not: each CPU but
//! the boot CPU has a distance of its own, which can be set as the hardware's could, or not, or grows.

use super::tsc;
use crate::cpu;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// As many CPUs as have a distance.
const CPUS: usize = 128;

static IS_PLANTED: AtomicBool = AtomicBool::new(false);
static IS_FIXED: AtomicBool = AtomicBool::new(false);
/// The hardware's counter from which on the others run faster; 0 if they do not.
static DRIFTS_FROM: AtomicU64 = AtomicU64::new(0);
static AHEAD: [AtomicI64; CPUS] = [const { AtomicI64::new(0) }; CPUS];

/// What a planted counter does beside being off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// Nothing: it can be set.
    Settable,
    /// Setting it has no effect.
    Fixed,
    /// It runs half as fast again.
    Drifting,
}

/// Makes the counters of CPUs with an odd number `ticks` ahead of the boot CPU's, and those with an even
/// one as much behind.
pub fn plant(ticks: u64, kind: Planted) {
    for (index, ahead) in AHEAD.iter().enumerate().skip(1) {
        let ticks = ticks.cast_signed();
        ahead.store(if index % 2 == 1 { ticks } else { -ticks }, Ordering::Relaxed);
    }
    IS_FIXED.store(kind == Planted::Fixed, Ordering::Relaxed);
    if kind == Planted::Drifting {
        DRIFTS_FROM.store(tsc::hardware_ticks(), Ordering::Relaxed);
    }
    IS_PLANTED.store(true, Ordering::Relaxed);
}

pub(super) fn is_planted() -> bool {
    IS_PLANTED.load(Ordering::Relaxed)
}

/// The counter as it is pretended to be.
#[inline]
pub(super) fn skewed(ticks: u64) -> u64 {
    if is_planted() { ticks.wrapping_add_signed(ahead(ticks)) } else { ticks }
}

#[cold]
fn ahead(ticks: u64) -> i64 {
    let index = cpu::this().index() as usize;
    let ahead = AHEAD.get(index).map_or(0, |ahead| ahead.load(Ordering::Relaxed));
    match DRIFTS_FROM.load(Ordering::Relaxed) {
        from if from != 0 && index > 0 => ahead + (ticks.saturating_sub(from) / 2).cast_signed(),
        _ => ahead,
    }
}

/// Sets this CPU's counter, unless that is to have no effect.
pub(super) fn add(ticks: i64) {
    if !IS_FIXED.load(Ordering::Relaxed)
        && let Some(ahead) = AHEAD.get(cpu::this().index() as usize)
    {
        ahead.fetch_add(ticks, Ordering::Relaxed);
    }
}
