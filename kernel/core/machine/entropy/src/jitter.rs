//! Durations of one piece of code, and how much chance is in them.
//!
//! Two health tests after NIST SP 800-90B, 4.4, for a source that is said to give a quarter of a bit per
//! sample: a value that repeats too often in a row, and one that is too frequent in a window. A source
//! that fails one counts for nothing, in this boot and for good: what it brought is mixed all the same.

/// Samples that make a bit.
const SAMPLES_PER_BIT: u64 = 4;
/// Repetitions in a row that a healthy source shows less than once in 2²⁰ times: 1 + 20 × 4.
const MAX_REPEATS: u32 = 81;
/// Samples of a window, and how often its first value may be in it: a value that has a chance of
/// 2^(-1/4) is more frequent less than once in 2²⁰ times.
const WINDOW: u32 = 512;
const MAX_IN_WINDOW: u32 = 471;

/// The tests' state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Jitter {
    samples: u64,
    last: u64,
    repeats: u32,
    first: u64,
    in_window: u32,
    same: u32,
    has_failed: bool,
}

impl Jitter {
    /// Takes a duration into account.
    pub fn sample(&mut self, ticks: u64) {
        self.repeats = if self.samples > 0 && ticks == self.last { self.repeats + 1 } else { 1 };
        self.last = ticks;
        if self.in_window == 0 {
            self.first = ticks;
            self.same = 0;
        }
        self.same += u32::from(ticks == self.first);
        self.in_window = (self.in_window + 1) % WINDOW;
        self.samples += 1;
        self.has_failed |= self.repeats >= MAX_REPEATS || self.same > MAX_IN_WINDOW;
    }

    /// How many bits the durations so far are worth.
    pub const fn bits(&self) -> u64 {
        if self.has_failed { 0 } else { self.samples / SAMPLES_PER_BIT }
    }
}
