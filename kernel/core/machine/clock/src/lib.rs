//! Counter ticks to nanoseconds, and how fast a counter runs measured against another.
//!
//! The rate is kept as a multiplier and a shift, so that reading the clock is one multiplication:
//! ns = ticks × multiplier >> shift, exact to one part in 2^31 and monotonic because it is linear.
//!
//! [`agree`]: whether the counters of several CPUs show one time.
#![no_std]

pub mod agree;

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// How a counter's ticks become nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    hz: u64,
    multiplier: u32,
    shift: u32,
}

impl Rate {
    /// A counter of that frequency; `None` for zero or beyond 100 GHz, which no counter has.
    pub fn from_hz(hz: u64) -> Option<Rate> {
        if hz == 0 || hz > 100 * NS_PER_S {
            return None;
        }
        // The largest shift for which the multiplier still fits 32 bits.
        let mut shift = 63;
        loop {
            let multiplier =
                ((u128::from(NS_PER_S) << shift) + u128::from(hz / 2)) / u128::from(hz);
            if let Ok(multiplier) = u32::try_from(multiplier) {
                return Some(Rate { hz, multiplier, shift });
            }
            shift = u32::checked_sub(shift, 1)?;
        }
    }

    /// Ticks per second.
    pub const fn hz(self) -> u64 {
        self.hz
    }

    /// How long `ticks` last; saturates after 584 years.
    pub fn ns(self, ticks: u64) -> u64 {
        let wide = (u128::from(ticks) * u128::from(self.multiplier)) >> self.shift;
        u64::try_from(wide).unwrap_or(u64::MAX)
    }

    /// Nanoseconds per tick, times 2³²: what [`scale_q32`] takes. The kernel's clock and the page
    /// that user space reads the clock from use this one, so that they agree.
    pub const fn ns_per_tick_q32(self) -> u64 {
        // Below 2⁶²: a counter has at least one tick per second.
        ((((NS_PER_S as u128) << 32) + (self.hz / 2) as u128) / self.hz as u128) as u64
    }
}

/// How long `ticks` last at that many ns per tick, times 2³². Linear, so it never goes back; wraps
/// after 584 years.
#[inline]
pub const fn scale_q32(ticks: u64, ns_per_tick_q32: u64) -> u64 {
    ((ticks as u128 * ns_per_tick_q32 as u128) >> 32) as u64
}

/// Makes a counter of few bits one of 64: each wrap adds to the total.
///
/// It must be read at least once per wrap; a wrap that is missed is time that is lost, never time
/// that goes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extended {
    mask: u64,
    last: u64,
    total: u64,
}

impl Extended {
    /// A counter of `bits` bits that reads `now`; the total starts at 0.
    pub const fn new(bits: u32, now: u64) -> Extended {
        let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        Extended { mask, last: now & mask, total: 0 }
    }

    /// The total when the counter reads `now`.
    pub fn read(&mut self, now: u64) -> u64 {
        let now = now & self.mask;
        self.total = self.total.wrapping_add(now.wrapping_sub(self.last) & self.mask);
        self.last = now;
        self.total
    }
}

/// Two counters read at one moment, as well as that can be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The counter to be measured, before the reference was read.
    pub before: u64,
    /// The reference.
    pub reference: u64,
    /// The counter to be measured, after the reference was read.
    pub after: u64,
}

impl Sample {
    /// How uncertain the moment is, in ticks of the measured counter.
    pub const fn width(self) -> u64 {
        self.after.wrapping_sub(self.before)
    }

    /// The sharper of two samples. A host that interrupts the machine widens one, rarely all.
    pub fn sharper(self, other: Sample) -> Sample {
        if other.width() < self.width() { other } else { self }
    }

    const fn middle(self) -> u64 {
        self.before.wrapping_add(self.width() / 2)
    }
}

/// The measured counter's frequency between two samples; the reference runs at `reference_hz`.
pub fn measure(start: Sample, end: Sample, reference_hz: u64) -> Option<u64> {
    let ticks = end.middle().wrapping_sub(start.middle());
    let reference = end.reference.wrapping_sub(start.reference);
    let hz = (u128::from(ticks) * u128::from(reference_hz)).checked_div(u128::from(reference))?;
    u64::try_from(hz).ok().filter(|hz| *hz > 0)
}

/// The middle one of three measurements: one disturbed round does not count.
pub fn middle_of(a: u64, b: u64, c: u64) -> u64 {
    a.max(b).min(a.min(b).max(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_rate_agree() {
        for hz in [1, 32_768, 14_318_180, 999_999_999, 1_000_000_000, 3_187_201_234] {
            let rate = Rate::from_hz(hz).unwrap();
            for seconds in [0, 1, 60, 3600] {
                let ticks = seconds * hz + hz / 3;
                let off = scale_q32(ticks, rate.ns_per_tick_q32()).abs_diff(rate.ns(ticks));
                // Both are exact to one part in 2³¹.
                assert!(off <= 2 + rate.ns(ticks) / (1 << 30), "{hz} Hz, {seconds} s: {off} ns");
            }
        }
    }

    #[test]
    fn a_second_of_ticks_is_a_second() {
        for hz in [
            1,
            32_768,
            1_193_182,
            14_318_180,
            999_999_937,
            1_000_000_000,
            3_399_999_999,
            100 * NS_PER_S,
        ] {
            let rate = Rate::from_hz(hz).unwrap();
            for seconds in [1u64, 60, 86_400, 86_400 * 365 * 10] {
                let Some(ticks) = hz.checked_mul(seconds) else { continue };
                let expected = u128::from(seconds) * u128::from(NS_PER_S);
                let error = u128::from(rate.ns(ticks)).abs_diff(expected);
                assert!(error <= (expected >> 30) + 1, "{hz} Hz, {seconds} s: off by {error} ns");
            }
        }
    }

    #[test]
    fn never_runs_backwards_and_saturates() {
        let rate = Rate::from_hz(2_900_000_000).unwrap();
        let mut last = 0;
        for ticks in (0..1_000_000u64).chain((1u64 << 62)..(1 << 62) + 1000) {
            let now = rate.ns(ticks);
            assert!(now >= last);
            last = now;
        }
        assert_eq!(Rate::from_hz(1).unwrap().ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn impossible_frequencies_are_refused() {
        assert!(Rate::from_hz(0).is_none());
        assert!(Rate::from_hz(u64::MAX).is_none());
    }

    #[test]
    fn measuring_takes_the_middle_of_each_sample() {
        let start = Sample { before: 1000, reference: 10, after: 1100 };
        let end = Sample { before: 2_001_000, reference: 10_010, after: 2_001_100 };
        assert_eq!(measure(start, end, 1_000_000), Some(200_000_000));
        assert_eq!(measure(start, Sample { reference: 10, ..end }, 1_000_000), None);
        let wide = Sample { before: 900, reference: 10, after: 5000 };
        assert_eq!(start.sharper(wide), start);
        assert_eq!(wide.sharper(start), start);
    }

    #[test]
    fn a_narrow_counter_goes_on_over_its_end() {
        for bits in [16, 32, 64] {
            let start = u64::MAX - 5;
            let mut counter = Extended::new(bits, start);
            for step in 1..100u64 {
                assert_eq!(counter.read(start.wrapping_add(step * 3)), step * 3);
            }
        }
        let mut counter = Extended::new(16, 0);
        assert_eq!(
            (counter.read(0xffff), counter.read(0), counter.read(0)),
            (0xffff, 0x1_0000, 0x1_0000)
        );
    }

    #[test]
    fn the_odd_one_out_does_not_count() {
        for (a, b, c) in [(1, 2, 3), (3, 1, 2), (2, 3, 1), (2, 2, 9), (0, 2, 2)] {
            assert_eq!(middle_of(a, b, c), 2);
        }
    }
}
