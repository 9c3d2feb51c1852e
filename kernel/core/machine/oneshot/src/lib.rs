//! One CPU's one-shot timer: what to program, and what an interrupt of it means.
//!
//! The hardware counts down from a number of few bits, the kernel thinks in absolute
//! nanoseconds. [`OneShot`] keeps the one deadline that is armed; [`Counter`] turns a delay into
//! counts. Time comes in as an argument and the verdict says what to do with the hardware.
//!
//! Contract:
//! - a deadline is never reported before it has passed, however early the hardware is;
//! - a deadline that has passed is programmed with the shortest delay there is, so it fires at once;
//! - a deadline too far away for the counter is reached in several steps, which nobody sees.
#![no_std]

/// No deadline.
const NONE: u64 = u64::MAX;

/// What to do with the hardware.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Program {
    /// Nothing: what is programmed comes early enough.
    Keep,
    /// Let it fire after this delay.
    After {
        /// From now on, in ns.
        delay_ns: u64,
    },
}

/// What an interrupt of the timer means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Fired {
    /// The deadline has passed; nothing is armed any more.
    Expired,
    /// It is not reached yet: let it fire again after this delay.
    Again {
        /// From now on, in ns.
        delay_ns: u64,
    },
    /// Nothing is armed: an interrupt that was on its way when the timer was disarmed.
    Stray,
}

/// The deadline that is armed, if any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OneShot {
    deadline_ns: u64,
}

impl OneShot {
    /// Nothing armed.
    pub const fn new() -> Self {
        Self { deadline_ns: NONE }
    }

    /// The deadline that is armed.
    pub const fn deadline_ns(&self) -> Option<u64> {
        if self.deadline_ns == NONE { None } else { Some(self.deadline_ns) }
    }

    /// Wants an interrupt at `deadline_ns`. Skipped if an earlier one is armed: whoever serves
    /// that one arms the next. A deadline of all ones is none.
    #[inline]
    pub const fn arm(&mut self, now_ns: u64, deadline_ns: u64) -> Program {
        if self.deadline_ns <= deadline_ns {
            return Program::Keep;
        }
        self.deadline_ns = deadline_ns;
        Program::After { delay_ns: deadline_ns.saturating_sub(now_ns) }
    }

    /// Wants no interrupt; one that is on its way comes as stray.
    pub const fn disarm(&mut self) {
        self.deadline_ns = NONE;
    }

    /// The hardware fired.
    #[inline]
    pub const fn fired(&mut self, now_ns: u64) -> Fired {
        if self.deadline_ns == NONE {
            return Fired::Stray;
        }
        if now_ns < self.deadline_ns {
            return Fired::Again { delay_ns: self.deadline_ns - now_ns };
        }
        self.deadline_ns = NONE;
        Fired::Expired
    }
}

impl Default for OneShot {
    fn default() -> Self {
        Self::new()
    }
}

/// How delays become counts of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter {
    /// Counts per ns, times 2³², rounded up.
    per_ns_q32: u64,
    max: u64,
}

/// Nanoseconds in a second.
const NS_PER_S: u128 = 1_000_000_000;

impl Counter {
    /// A counter of that frequency that counts down from at most `max`; `None` for a frequency of
    /// zero or one no counter has, or for no counts at all.
    pub const fn new(hz: u64, max: u64) -> Option<Self> {
        if hz == 0 || hz > 1 << 40 || max == 0 {
            return None;
        }
        Some(Self { per_ns_q32: ((hz as u128) << 32).div_ceil(NS_PER_S) as u64, max })
    }

    /// Counts that last at least `delay_ns`, or as many as there are. Never 0, which would stop it.
    #[inline]
    pub const fn counts(&self, delay_ns: u64) -> u64 {
        let counts = ((delay_ns as u128 * self.per_ns_q32 as u128) >> 32) + 1;
        if counts > self.max as u128 { self.max } else { counts as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_deadline_is_kept_and_a_nearer_one_replaces() {
        let mut timer = OneShot::new();
        assert_eq!(timer.arm(100, 1_000), Program::After { delay_ns: 900 });
        assert_eq!(timer.arm(100, 1_000), Program::Keep);
        assert_eq!(timer.arm(100, 5_000), Program::Keep);
        assert_eq!(timer.deadline_ns(), Some(1_000));
        assert_eq!(timer.arm(200, 500), Program::After { delay_ns: 300 });
        assert_eq!(timer.deadline_ns(), Some(500));
    }

    #[test]
    fn a_past_deadline_fires_at_once() {
        let mut timer = OneShot::new();
        assert_eq!(timer.arm(1_000, 10), Program::After { delay_ns: 0 });
        assert_eq!(timer.fired(1_000), Fired::Expired);
        assert_eq!(timer.deadline_ns(), None);
    }

    #[test]
    fn never_early_and_told_once() {
        let mut timer = OneShot::new();
        let _ = timer.arm(0, 1_000);
        assert_eq!(timer.fired(999), Fired::Again { delay_ns: 1 });
        assert_eq!(timer.deadline_ns(), Some(1_000));
        assert_eq!(timer.fired(1_000), Fired::Expired);
        assert_eq!(timer.fired(1_001), Fired::Stray);
    }

    #[test]
    fn disarmed_means_stray_and_no_deadline_is_never_armed() {
        let mut timer = OneShot::new();
        assert_eq!(timer.arm(0, u64::MAX), Program::Keep);
        assert_eq!(timer.fired(7), Fired::Stray);
        let _ = timer.arm(0, 10);
        timer.disarm();
        assert_eq!(timer.fired(20), Fired::Stray);
        assert_eq!(timer.arm(20, 30), Program::After { delay_ns: 10 });
    }

    /// Long delays chain: whatever the counter, firing after its counts reaches the deadline in the
    /// end, never before, and not much after.
    #[test]
    fn long_deadlines_are_reached_in_steps() {
        for (hz, max) in [(1_000_000_000, 0xffff_ffff), (24_000_000, 0xffff), (3, 2)] {
            let counter = Counter::new(hz, max).unwrap();
            let period_ns = 1_000_000_000u64.div_ceil(hz);
            for deadline_ns in [0, 1, 999, 1_000_000, 9_999_999_999, 60_000_000_000] {
                let (mut timer, mut now) = (OneShot::new(), 5);
                let mut program = timer.arm(now, deadline_ns);
                let mut steps = 0;
                while let Program::After { delay_ns } = program {
                    let counts = counter.counts(delay_ns);
                    assert!((1..=max).contains(&counts));
                    now += (counts as u128 * 1_000_000_000 / hz as u128) as u64;
                    steps += 1;
                    program = match timer.fired(now) {
                        Fired::Again { delay_ns } => Program::After { delay_ns },
                        Fired::Expired => Program::Keep,
                        Fired::Stray => panic!("armed and yet stray"),
                    };
                }
                assert!(now >= deadline_ns, "{hz} Hz: {now} is before {deadline_ns}");
                assert!(now <= deadline_ns.max(5) + 2 * period_ns + 60, "{hz} Hz: {now}");
                assert!(steps <= 2 + deadline_ns / (max * period_ns / 2).max(1));
            }
        }
    }

    #[test]
    fn counts_never_last_too_short_while_they_fit() {
        for hz in [1, 999, 1_193_182, 24_000_000, 1_000_000_000, 5_300_000_001] {
            let counter = Counter::new(hz, u64::MAX).unwrap();
            for delay_ns in [0, 1, 2, 1_000, 123_456_789, 3_600_000_000_000] {
                let lasts = counter.counts(delay_ns) as u128 * NS_PER_S / hz as u128;
                assert!(lasts >= delay_ns as u128, "{hz} Hz, {delay_ns} ns: {lasts}");
            }
        }
        assert_eq!(Counter::new(0, 1), None);
        assert_eq!(Counter::new(1 << 41, 1), None);
        assert_eq!(Counter::new(1, 0), None);
        assert_eq!(Counter::new(1_000_000_000, 50).unwrap().counts(u64::MAX), 50);
    }
}
