//! A simulated CPU, beside its queue, pending word and deadlines.

/// What the CPU itself knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) current: Option<u32>,
    /// Up to here the current thread's work is counted.
    pub(crate) since_ns: u64,
    /// Counts what ends or replaces a current thread's step, so that its end can be told stale.
    pub(crate) epoch: u64,
    pub(crate) timer_epoch: u64,
    pub(crate) armed_ns: Option<u64>,
    pub(crate) slice_end_ns: Option<u64>,
    pub(crate) resched: bool,
    /// Kernel time of this step, to be spent before the thread that runs next computes.
    pub(crate) overhead_ns: u64,
    pub(crate) process: u32,
    pub(crate) idle_since_ns: Option<u64>,
    /// The last time it was idle, from and to.
    pub(crate) was_idle_ns: (u64, u64),
    pub(crate) looks: bool,
    /// Start of the current span, for the timeline.
    pub(crate) span_ns: u64,
    /// When its queue's lock is free again.
    pub(crate) lock_free_ns: u64,
}
