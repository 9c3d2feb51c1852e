//! Samples of the counter, and their summary as metrics.

use crate::Bench;
use capos_rt::time::ticks;
use test_kit::T;

/// Samples of one measurement; odd, so that there is a middle one.
pub const SAMPLES: usize = 101;
/// Operations in a sample: enough that reading the counter does not matter, few enough that most
/// samples see no timer interrupt.
pub const BATCH: u64 = 16;

/// The counter, and what reading it costs.
pub struct Counter {
    overhead: u64,
}

/// Samples in ticks, sorted.
pub struct Samples {
    ticks: [u64; SAMPLES],
}

impl Counter {
    /// Measures two readings with nothing between them.
    pub fn new() -> Self {
        let nothing = Self { overhead: 0 }.sample(|| ());
        Self { overhead: nothing.ticks[0] }
    }

    /// Runs `batch` for each sample.
    #[inline(always)]
    pub fn sample(&self, mut batch: impl FnMut()) -> Samples {
        let mut all = [0; SAMPLES];
        for sample in &mut all {
            let before = ticks();
            batch();
            let after = ticks();
            *sample = (after - before).saturating_sub(self.overhead);
        }
        all.sort_unstable();
        Samples { ticks: all }
    }
}

impl Samples {
    /// Reports the figures of the running test, for samples of `operations` each.
    pub fn report(&self, t: &mut T<'_, Bench>, operations: u64) {
        let each = |ticks: u64| (ticks + operations / 2) / operations;
        t.metric("min", each(self.ticks[0]), "insns");
        t.metric("median", each(self.ticks[SAMPLES / 2]), "insns");
        t.metric("n", operations * SAMPLES as u64, "operations");
    }
}
