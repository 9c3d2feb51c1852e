//! Whether the counters of two CPUs agree, from hand-overs there and back, and what to do if not.
//!
//! The reference CPU reads its counter and passes the turn; the other reads its own and passes the turn
//! back; the reference reads again. Whatever the hand-overs took, the other read between the two
//! readings, so each exchange bounds the distance between the counters from both sides
//! ([`Offset::narrow`]), and the quickest exchanges bound it best. No time is trusted to be short.
//!
//! Contract: counters that [`Agreement::Agrees`] never show a time passed from one CPU to the other as
//! later than the receiver's next reading, unless a hand-over is quicker than every one that was measured.

/// One hand-over there and back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// The reference's counter before it passed the turn.
    pub sent: u64,
    /// The other's counter while it had the turn.
    pub seen: u64,
    /// The reference's counter when the turn was back.
    pub back: u64,
}

/// How far the other counter is ahead of the reference: between two bounds, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offset {
    low: i64,
    high: i64,
}

/// What an [`Offset`] comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Agreement {
    /// The counters may be equal: no exchange shows otherwise.
    Agrees,
    /// The other is ahead by about so many ticks; behind, if negative.
    Off {
        /// The middle of the bounds.
        by: i64,
    },
    /// The exchanges contradict each other: the distance changes while it is measured.
    Drifts,
}

impl Offset {
    /// Nothing known.
    pub const fn unknown() -> Offset {
        Offset { low: i64::MIN, high: i64::MAX }
    }

    /// Takes what an exchange shows into account.
    pub fn narrow(&mut self, exchange: Exchange) {
        let Exchange { sent, seen, back } = exchange;
        self.low = self.low.max(seen.wrapping_sub(back) as i64);
        self.high = self.high.min(seen.wrapping_sub(sent) as i64);
    }

    /// How far the bounds are apart; 0 if they contradict each other.
    pub const fn width(&self) -> u64 {
        if self.high > self.low { self.high.abs_diff(self.low) } else { 0 }
    }

    /// What it comes to.
    pub const fn agreement(&self) -> Agreement {
        if self.low > self.high {
            Agreement::Drifts
        } else if self.low <= 0 && self.high >= 0 {
            Agreement::Agrees
        } else {
            Agreement::Off { by: self.low.midpoint(self.high) }
        }
    }
}

/// What is added to a counter to make it agree, attempt by attempt.
///
/// A counter that is set by writing its value loses the time the write takes. The attempt after the
/// first sees that loss as what is left of the distance, and adds it from then on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Correction {
    attempts: u32,
    write_ticks: i64,
}

impl Correction {
    /// Attempts before a counter counts as one that cannot be set: one that corrects, one that knows
    /// what a write costs, and one because a write may be interrupted by the firmware.
    pub const MAX_ATTEMPTS: u32 = 3;

    /// What to add to a counter that is `by` ticks ahead; `None` if it has been tried often enough.
    pub const fn next(&mut self, by: i64) -> Option<i64> {
        if self.attempts == Self::MAX_ATTEMPTS {
            return None;
        }
        if self.attempts > 0 {
            self.write_ticks = self.write_ticks.saturating_sub(by);
        }
        self.attempts += 1;
        Some(self.write_ticks.saturating_sub(by))
    }
}

/// What all CPUs read the time from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum ClockChoice {
    /// Each its own time-stamp counter.
    Counters,
    /// One counter outside the CPUs, which is slower to read.
    Shared,
    /// The boot CPU its own; no other CPU is used.
    BootCpuAlone,
}

impl ClockChoice {
    /// The choice for a machine where so many CPUs' counters disagree with the boot CPU's for good.
    pub const fn of(disagreeing: usize, has_shared_counter: bool) -> ClockChoice {
        match (disagreeing, has_shared_counter) {
            (0, _) => ClockChoice::Counters,
            (_, true) => ClockChoice::Shared,
            (_, false) => ClockChoice::BootCpuAlone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two CPUs over one true time, which passes by itself.
    struct Pair {
        now: u64,
        seed: u64,
        /// The other's counter minus true time.
        ahead: i64,
        /// Ticks the other gains in 1024.
        gains: i64,
        /// How long setting the counter takes.
        write: u64,
    }

    impl Pair {
        fn new(ahead: i64) -> Pair {
            Pair { now: 1 << 40, seed: 7, ahead, gains: 0, write: 0 }
        }

        /// Lets up to `most` ticks pass, and one at least.
        fn pass(&mut self, most: u64) {
            self.seed =
                self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            self.now += 1 + (self.seed >> 33) % most;
        }

        fn other(&self) -> u64 {
            let gained = (self.now - (1 << 40)) as i64 * self.gains / 1024;
            self.now.wrapping_add_signed(self.ahead + gained)
        }

        fn exchange(&mut self, most: u64) -> Exchange {
            let sent = self.now;
            self.pass(most);
            let seen = self.other();
            self.pass(most);
            Exchange { sent, seen, back: self.now }
        }

        fn measure(&mut self, rounds: u32, most: u64) -> Offset {
            let mut offset = Offset::unknown();
            for _ in 0..rounds {
                offset.narrow(self.exchange(most));
            }
            offset
        }

        fn add(&mut self, ticks: i64) {
            self.now += self.write;
            self.ahead += ticks - self.write as i64;
        }
    }

    #[test]
    fn the_bounds_hold_the_distance_however_long_hand_overs_take() {
        for ahead in [0, 1, -1, 40, 1_000_000, -1_000_000, i64::MAX >> 8, i64::MIN >> 8] {
            for most in [1, 10, 1_000, 10_000_000] {
                let mut pair = Pair::new(ahead);
                let offset = pair.measure(50, most);
                assert!(offset.low <= ahead && ahead <= offset.high, "{ahead}: {offset:?}");
                match offset.agreement() {
                    Agreement::Agrees => assert!(ahead.unsigned_abs() <= offset.width()),
                    Agreement::Off { by } => {
                        assert!(by.abs_diff(ahead) <= offset.width().div_ceil(2))
                    }
                    Agreement::Drifts => panic!("{ahead} does not change"),
                }
            }
        }
    }

    #[test]
    fn a_distance_longer_than_the_quickest_exchange_is_seen_with_its_sign() {
        for ahead in [5_000i64, -5_000] {
            let Agreement::Off { by } = Pair::new(ahead).measure(20, 1_000).agreement() else {
                panic!("{ahead} ticks are not seen");
            };
            assert_eq!(by.signum(), ahead.signum());
        }
    }

    #[test]
    fn a_corrected_counter_agrees_also_if_a_write_takes_its_time() {
        for write in [0, 1, 300, 50_000] {
            for ahead in [700_000i64, -700_000, 1 << 50, -(1 << 50)] {
                let mut pair = Pair { write, ..Pair::new(ahead) };
                let mut correction = Correction::default();
                while let Agreement::Off { by } = pair.measure(40, 200).agreement() {
                    let add = correction.next(by).expect("it can be set");
                    pair.add(add);
                }
                assert!(pair.ahead.unsigned_abs() <= 400, "{write} {ahead}: {} left", pair.ahead);
            }
        }
    }

    #[test]
    fn a_counter_that_cannot_be_set_is_given_up() {
        let mut pair = Pair::new(9_999);
        let mut correction = Correction::default();
        let mut attempts = 0;
        while let Agreement::Off { by } = pair.measure(40, 200).agreement() {
            match correction.next(by) {
                Some(_) => attempts += 1,
                None => break,
            }
        }
        assert_eq!(attempts, Correction::MAX_ATTEMPTS);
    }

    #[test]
    fn a_counter_that_runs_at_another_rate_contradicts_itself() {
        for gains in [512, -512, 100] {
            let mut pair = Pair { gains, ..Pair::new(0) };
            assert_eq!(pair.measure(400, 200).agreement(), Agreement::Drifts, "{gains}");
        }
    }

    #[test]
    fn every_choice() {
        assert_eq!(ClockChoice::of(0, false), ClockChoice::Counters);
        assert_eq!(ClockChoice::of(0, true), ClockChoice::Counters);
        assert_eq!(ClockChoice::of(1, true), ClockChoice::Shared);
        assert_eq!(ClockChoice::of(3, false), ClockChoice::BootCpuAlone);
    }
}
