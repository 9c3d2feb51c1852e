//! A simulated thread, beside what the driver keeps of it.

use crate::Program;
use abi_types::ReplyToken;
use core_endpoint::{CallKey, RecvKey};
use core_sched::CpuSet;
use core_thread::Ticket;

/// What a blocked thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Nothing,
    Timer,
    Call { service: usize, key: CallKey },
    Recv { service: usize, key: RecvKey },
    Gate { gate: usize },
}

/// What the kernel would keep beside the scheduler's own state, and what it did.
pub(crate) struct Thread {
    pub(crate) generation: u32,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) program: Option<Program>,
    pub(crate) process: u32,
    pub(crate) mask: CpuSet,
    pub(crate) wait: Wait,
    pub(crate) serving: Option<(usize, ReplyToken)>,
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
            generation: 0,
            ticket: None,
            program: None,
            process: 0,
            mask: CpuSet::ALL,
            wait: Wait::Nothing,
            serving: None,
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
