//! The time-stamp counter: reading it, and how fast it runs.

use super::{Hpet, pit};
use crate::cpu;
use core::arch::asm;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core_clock::{Extended, Rate, Sample, measure, middle_of};
use spin::Once;

/// Counter at the kernel's first instruction: the origin of its clock.
static BOOT: AtomicU64 = AtomicU64::new(0);
static RATE: Once<Rate> = Once::new();
/// The rate again, as the switch path reads it: nanoseconds per tick times 2³², 0 before it is known.
static NS_PER_TICK_Q32: AtomicU64 = AtomicU64::new(0);

/// How long one round of measuring takes, in counter ticks of the reference per second: 1/500 s.
/// Three rounds; sharp samples make two milliseconds enough for one part in ten thousand.
const ROUNDS_PER_SECOND: u64 = 500;
/// Looks at a reference before it counts as standing still; a round takes some hundreds.
const MAX_LOOKS: u64 = 1_000_000;
/// Steps of an empty loop between two looks: some microseconds. A look is a device access, which
/// costs a microsecond on hardware and far more in an emulator that counts instructions.
const STEPS_PER_LOOK: u32 = 2000;
/// Samples taken at each end of a round, of which the sharpest counts.
const SAMPLES: usize = 5;

/// Where the frequency comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The CPU states it.
    Cpuid,
    /// The loader measured it.
    Loader,
    /// Measured against the HPET.
    Hpet,
    /// Measured against the PIT.
    Pit,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Cpuid => "stated by the CPU",
            Source::Loader => "told by the loader",
            Source::Hpet => "measured against the HPET",
            Source::Pit => "measured against the PIT",
        })
    }
}

/// The counter now. Later instructions do not run before it is read.
#[inline]
pub fn ticks() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reading the counter has no effect; CR4.TSD does not bind the kernel. The fence
    // keeps the read from moving before earlier loads (Intel SDM vol. 2, RDTSC).
    unsafe {
        asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

pub(crate) fn mark_boot() {
    BOOT.store(ticks(), Ordering::Relaxed);
}

/// Finds out how fast the counter runs. Once; later calls change nothing.
pub fn calibrate(hpet: Option<&Hpet>, from_loader: Option<u64>) -> Option<(Rate, Source)> {
    let (hz, source) = if let Some(hz) = cpu::stated_tsc_hz() {
        (hz, Source::Cpuid)
    } else if let Some(hz) = hpet.and_then(|h| {
        let mut counter = Extended::new(h.bits(), h.counter());
        rounds(|| counter.read(h.counter()), h.hz())
    }) {
        (hz, Source::Hpet)
    } else if let Some(hz) = pit::with_counter(|read| rounds(read, pit::HZ)) {
        (hz, Source::Pit)
    } else {
        (from_loader?, Source::Loader)
    };
    let rate = Rate::from_hz(hz)?;
    let rate = *RATE.call_once(|| rate);
    NS_PER_TICK_Q32.store(rate.ns_per_tick_q32(), Ordering::Relaxed);
    Some((rate, source))
}

/// Three measurements against a reference counter; the middle one.
fn rounds(mut reference: impl FnMut() -> u64, hz: u64) -> Option<u64> {
    let mut round = || {
        let start = sample(&mut reference);
        let target = start.reference + hz / ROUNDS_PER_SECOND;
        let mut looks = 0;
        while reference() < target {
            looks += 1;
            if looks == MAX_LOOKS {
                return None;
            }
            for step in 0..STEPS_PER_LOOK {
                core::hint::black_box(step);
            }
        }
        measure(start, sample(&mut reference), hz)
    };
    Some(middle_of(round()?, round()?, round()?))
}

fn sample(reference: &mut impl FnMut() -> u64) -> Sample {
    let mut take = || {
        let before = ticks();
        let reference = reference();
        Sample { before, reference, after: ticks() }
    };
    let first = take();
    (1..SAMPLES).fold(first, |best, _| best.sharper(take()))
}

/// The counter's rate, once it is known.
pub fn rate() -> Option<Rate> {
    RATE.get().copied()
}

/// Nanoseconds since the kernel was entered, once the rate is known.
#[inline]
pub fn now_ns() -> Option<u64> {
    ticks_to_ns(ticks())
}

/// The same on a path that runs only once the rate is known; 0 before.
#[inline]
pub fn clock_ns() -> u64 {
    let rate = NS_PER_TICK_Q32.load(Ordering::Relaxed);
    core_clock::scale_q32(ticks().wrapping_sub(BOOT.load(Ordering::Relaxed)), rate)
}

/// The clock as numbers: the counter at time 0, and nanoseconds per tick times 2³².
pub fn origin() -> Option<(u64, u64)> {
    let rate = NS_PER_TICK_Q32.load(Ordering::Relaxed);
    (rate != 0).then(|| (BOOT.load(Ordering::Relaxed), rate))
}

/// A counter value as nanoseconds since the kernel was entered.
#[inline]
pub fn ticks_to_ns(ticks: u64) -> Option<u64> {
    match NS_PER_TICK_Q32.load(Ordering::Relaxed) {
        0 => None,
        rate => {
            let since_boot = ticks.saturating_sub(BOOT.load(Ordering::Relaxed));
            Some(core_clock::scale_q32(since_boot, rate))
        }
    }
}
