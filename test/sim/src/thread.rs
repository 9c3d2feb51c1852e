//! A simulated thread, beside what the kernel keeps of it.

use crate::Program;
use core_sched::CpuSet;
use core_sched_policy::Share;

/// What a thread does and did.
pub(crate) struct Thread {
    pub(crate) program: Option<Program>,
    /// The number of its process.
    pub(crate) process: u32,
    pub(crate) mask: CpuSet,
    /// Its weight and class, until it is queued for the first time.
    pub(crate) newborn: Option<Share>,
    /// Its wait is over, and it is not in a queue yet.
    pub(crate) wakes: bool,
    /// What the call being served asks for.
    pub(crate) work_ns: u64,
    /// Computing left in the present step, and kernel time to be spent before it.
    pub(crate) left_ns: u64,
    pub(crate) overhead_ns: u64,
    /// When it became runnable, and when its CPUs last changed.
    pub(crate) ready_ns: u64,
    pub(crate) confined_ns: u64,
    /// When it came to the queue it waits in.
    pub(crate) arrived_ns: u64,
    pub(crate) last_cpu: usize,
    /// Its weight, and what counts in the machine's sum: the greater of the old and the new one
    /// until the new one applies.
    pub(crate) weight: u64,
    /// The least it was queued with since it could run; a move applies a new one.
    pub(crate) least_weight: u64,
    pub(crate) counted_weight: u64,
    pub(crate) done_ns: u64,
    /// What it was charged for since it began.
    pub(crate) charged_ns: u64,
    pub(crate) worst_wait_ns: u64,
    pub(crate) starts: u64,
}

impl Thread {
    pub(crate) fn empty() -> Self {
        Self {
            program: None,
            process: 0,
            mask: CpuSet::ALL,
            newborn: None,
            wakes: false,
            work_ns: 0,
            left_ns: 0,
            overhead_ns: 0,
            ready_ns: 0,
            confined_ns: 0,
            arrived_ns: 0,
            charged_ns: 0,
            last_cpu: 0,
            weight: 0,
            least_weight: 0,
            counted_weight: 0,
            done_ns: 0,
            worst_wait_ns: 0,
            starts: 0,
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.program.is_some()
    }
}
