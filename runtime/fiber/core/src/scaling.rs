//! When a worker is added or let go, and the figures that explain each decision.
//!
//! The monitor samples the runtime now and then and asks [`decide`]. Pressure is how many runnable
//! fibers wait: those enqueued less those dequeued, summed over counters that are not read at one
//! moment, so it may be negative for a while; it is signed for that reason, and only its sign and
//! trend count.

/// What the monitor saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Runnable fibers that wait, about.
    pub pressure: i64,
    /// Whether some queue held work when looked at.
    pub has_work: bool,
    /// Worker threads that exist.
    pub workers: u32,
    /// Of them, those asleep.
    pub sleeping: u32,
    /// Of them, those that search for work.
    pub searching: u32,
    /// Of them, those in a blocking region.
    pub blocked: u32,
    /// Of them, those that made no progress since the last sample while running one fiber.
    pub stalled: u32,
}

/// How many workers there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// M: the workers there are when nothing blocks.
    pub base: u32,
    /// The most there ever are: M, or 2·M if the pool is elastic.
    pub most: u32,
}

/// What to do about the number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// Start one more.
    Promote,
    /// Leave it as it is.
    Hold(Gate),
}

/// Why no worker was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// No queue holds work.
    NoWork,
    /// There is work, but no more is enqueued than dequeued.
    Nonpositive,
    /// A worker sleeps or searches: it will take the work.
    IdleCapacity,
    /// Every worker makes progress.
    NotStuck,
    /// As many workers exist as may.
    AtLimit,
}

/// Whether to add a worker.
pub fn decide(sample: Sample, limits: Limits) -> Decision {
    let stuck = sample.blocked + sample.stalled;
    let free = sample.workers.saturating_sub(stuck);
    if !sample.has_work {
        Decision::Hold(Gate::NoWork)
    } else if sample.pressure <= 0 {
        Decision::Hold(Gate::Nonpositive)
    } else if sample.sleeping + sample.searching > 0 {
        Decision::Hold(Gate::IdleCapacity)
    } else if stuck == 0 || free >= limits.base {
        Decision::Hold(Gate::NotStuck)
    } else if sample.workers >= limits.most {
        Decision::Hold(Gate::AtLimit)
    } else {
        Decision::Promote
    }
}

/// Whether a worker that is about to enter a blocking region needs a substitute now, so that M
/// others are left to run fibers.
pub fn needs_substitute(workers: u32, blocked: u32, limits: Limits) -> bool {
    workers.saturating_sub(blocked) < limits.base && workers < limits.most
}

/// Whether an idle worker is one too many and may drain itself.
pub fn is_surplus(workers: u32, blocked: u32, limits: Limits) -> bool {
    workers.saturating_sub(blocked) > limits.base
}

/// The figures behind the decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// Samples with positive pressure.
    pub positive_samples: u64,
    /// Samples with negative pressure.
    pub negative_samples: u64,
    /// Samples with none.
    pub zero_samples: u64,
    /// The pressure last seen.
    pub current_pressure: i64,
    /// Workers started by the monitor.
    pub promotions: u64,
    /// Workers started because another entered a blocking region.
    pub substitutes: u64,
    /// Workers that drained themselves.
    pub retirements: u64,
    /// Samples held back for want of work.
    pub gate_no_work: u64,
    /// Samples held back by their pressure.
    pub gate_nonpositive: u64,
    /// Samples held back because a worker was idle.
    pub gate_idle_capacity: u64,
    /// Samples held back because nobody was stuck.
    pub gate_not_stuck: u64,
    /// Samples held back by the limit.
    pub gate_at_limit: u64,
    /// The longest run of samples with negative pressure.
    pub negative_streak_most: u64,
    /// The run of samples with negative pressure that goes on.
    pub negative_streak: u64,
}

impl Telemetry {
    /// Counts a sample and what was decided about it.
    pub fn record(&mut self, sample: Sample, decision: Decision) {
        self.current_pressure = sample.pressure;
        match sample.pressure.signum() {
            1 => self.positive_samples += 1,
            0 => self.zero_samples += 1,
            _ => self.negative_samples += 1,
        }
        self.negative_streak = if sample.pressure < 0 { self.negative_streak + 1 } else { 0 };
        self.negative_streak_most = self.negative_streak_most.max(self.negative_streak);
        let gate = match decision {
            Decision::Promote => &mut self.promotions,
            Decision::Hold(Gate::NoWork) => &mut self.gate_no_work,
            Decision::Hold(Gate::Nonpositive) => &mut self.gate_nonpositive,
            Decision::Hold(Gate::IdleCapacity) => &mut self.gate_idle_capacity,
            Decision::Hold(Gate::NotStuck) => &mut self.gate_not_stuck,
            Decision::Hold(Gate::AtLimit) => &mut self.gate_at_limit,
        };
        *gate += 1;
    }

    /// All samples.
    pub fn samples(&self) -> u64 {
        self.positive_samples + self.negative_samples + self.zero_samples
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { base: 2, most: 4 };
    const STUCK: Sample = Sample {
        pressure: 3,
        has_work: true,
        workers: 2,
        sleeping: 0,
        searching: 0,
        blocked: 0,
        stalled: 2,
    };

    #[test]
    fn each_gate_holds_for_its_own_reason() {
        let hold = Decision::Hold;
        assert_eq!(decide(STUCK, LIMITS), Decision::Promote);
        assert_eq!(decide(Sample { has_work: false, ..STUCK }, LIMITS), hold(Gate::NoWork));
        assert_eq!(decide(Sample { pressure: 0, ..STUCK }, LIMITS), hold(Gate::Nonpositive));
        assert_eq!(decide(Sample { pressure: -9, ..STUCK }, LIMITS), hold(Gate::Nonpositive));
        assert_eq!(decide(Sample { sleeping: 1, ..STUCK }, LIMITS), hold(Gate::IdleCapacity));
        assert_eq!(decide(Sample { searching: 1, ..STUCK }, LIMITS), hold(Gate::IdleCapacity));
        assert_eq!(decide(Sample { stalled: 0, ..STUCK }, LIMITS), hold(Gate::NotStuck));
        assert_eq!(
            decide(Sample { workers: 4, stalled: 2, ..STUCK }, LIMITS),
            hold(Gate::NotStuck)
        );
        assert_eq!(decide(Sample { workers: 4, stalled: 4, ..STUCK }, LIMITS), hold(Gate::AtLimit));
    }

    #[test]
    fn a_pool_that_may_not_grow_does_not() {
        let fixed = Limits { base: 2, most: 2 };
        assert_eq!(decide(STUCK, fixed), Decision::Hold(Gate::AtLimit));
        assert!(!needs_substitute(2, 1, fixed));
    }

    #[test]
    fn substitutes_keep_the_base_and_surplus_ends_with_it() {
        assert!(!needs_substitute(2, 0, LIMITS));
        assert!(needs_substitute(2, 1, LIMITS));
        assert!(!needs_substitute(3, 1, LIMITS));
        assert!(!needs_substitute(4, 4, LIMITS), "never beyond the most");
        assert!(is_surplus(3, 0, LIMITS));
        assert!(!is_surplus(3, 1, LIMITS));
        assert!(!is_surplus(2, 0, LIMITS));
    }

    #[test]
    fn telemetry_counts_every_sample_once_and_the_longest_negative_run() {
        let mut figures = Telemetry::default();
        for pressure in [1, -1, -2, 0, -1, -1, -1, 5] {
            let sample = Sample { pressure, ..STUCK };
            figures.record(sample, decide(sample, LIMITS));
        }
        assert_eq!(figures.samples(), 8);
        assert_eq!(figures.positive_samples, 2);
        assert_eq!(figures.negative_samples, 5);
        assert_eq!(figures.promotions, 2);
        assert_eq!(figures.gate_nonpositive, 6);
        assert_eq!((figures.negative_streak_most, figures.negative_streak), (3, 0));
        assert_eq!(figures.current_pressure, 5);
    }
}
