//! The time-stamp counter: reading it, setting it, and how fast it runs.

use super::{Hpet, clock, pit};
use crate::cpu;
use core::arch::asm;
use core::fmt;
use core_clock::{Extended, Rate, Sample, measure, middle_of};
use spin::Once;
use x86_64::registers::model_specific::Msr;

const IA32_TIME_STAMP_COUNTER: u32 = 0x10;
const IA32_TSC_ADJUST: u32 = 0x3b;

static RATE: Once<Rate> = Once::new();

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
    let ticks = hardware_ticks();
    #[cfg(checked)]
    let ticks = super::skew::skewed(ticks);
    ticks
}

/// The counter as the hardware has it, whatever a checked image pretends.
#[inline]
pub(super) fn hardware_ticks() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reading the counter has no effect; CR4.TSD does not bind the kernel. The fence
    // keeps the read from moving before earlier loads (Intel SDM vol. 2, RDTSC).
    unsafe {
        asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
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
    clock::begin(rate);
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

/// Adds to this CPU's counter, by its adjustment register if it has one, else by writing it.
pub(super) fn add(ticks: i64) {
    #[cfg(checked)]
    if super::skew::is_planted() {
        return super::skew::add(ticks);
    }
    // SAFETY: the counter of this CPU orders nothing in memory; both MSRs exist (the first by its feature
    // bit, the second on every CPU of this architecture). Nothing is armed by deadline yet.
    unsafe {
        if cpu::this().features().tsc_adjust {
            let mut adjustment = Msr::new(IA32_TSC_ADJUST);
            let now = adjustment.read();
            adjustment.write(now.wrapping_add_signed(ticks));
        } else {
            Msr::new(IA32_TIME_STAMP_COUNTER).write(hardware_ticks().wrapping_add_signed(ticks));
        }
    }
}

/// The counter's rate, once it is known.
pub fn rate() -> Option<Rate> {
    RATE.get().copied()
}
