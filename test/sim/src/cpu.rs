//! A simulated CPU, beside what the driver keeps of it.

use kernel_dispatch::After;

/// A switch that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    /// The thread whose stack is being left, and what happens then.
    pub(crate) slot: u32,
    pub(crate) after: After,
    pub(crate) epoch: u64,
}

/// What the CPU itself knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu {
    /// Up to here the current thread's work is counted.
    pub(crate) since_ns: u64,
    /// Counts what ends or replaces a current thread's step, so that its end can be told stale.
    pub(crate) epoch: u64,
    pub(crate) timer_epoch: u64,
    pub(crate) armed_ns: Option<u64>,
    /// Kernel time of this step, to be spent before the thread that runs next computes.
    pub(crate) overhead_ns: u64,
    pub(crate) process: u32,
    /// Interrupts are off: it is on its way from one stack to another.
    pub(crate) left: Option<Left>,
    pub(crate) lefts: u64,
    /// Interrupts that have come and are not taken: from another CPU, from the timer.
    pub(crate) is_interrupted: bool,
    pub(crate) timer_fired: bool,
    /// It halted, or waits a moment.
    pub(crate) rests: bool,
    pub(crate) looks: bool,
    pub(crate) idle_since_ns: Option<u64>,
    /// The last time it was idle, from and to.
    pub(crate) was_idle_ns: (u64, u64),
    /// The thread that runs, and since when, for the timeline.
    pub(crate) span: Option<(u32, u64)>,
    /// When its queue's lock is free again.
    pub(crate) lock_free_ns: u64,
}

impl Cpu {
    /// A CPU that has been idle from the beginning.
    pub(crate) fn idle() -> Self {
        Self { idle_since_ns: Some(0), ..Self::default() }
    }
}
