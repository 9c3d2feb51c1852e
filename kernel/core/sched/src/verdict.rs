//! What an operation decided, for the caller to carry out.

use crate::Authority;
use core_sched_policy::Lag;

/// Whether a thread the order offers may run here now; the caller's veto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayRun {
    /// It may: start it.
    Yes,
    /// Not this moment, for a reason that passes by itself: leave it where it is.
    Later,
    /// No; take it out for that reason.
    No(Refusal),
}

/// Why a thread must leave the queue instead of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its budget is used up: it waits for replenishment elsewhere.
    Throttled,
    /// This CPU is not one of its CPUs: it is placed again.
    Elsewhere,
    /// It was killed: it is ended instead of run.
    Dead,
}

/// An interval of running, closed: each stop of a thread gives one.
#[must_use = "time that ran has to be charged to its authority"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The account it goes to.
    pub authority: Authority,
    /// Its length.
    pub elapsed_ns: u64,
}

/// A thread waits in the queue.
#[must_use = "the CPU may have to be told"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The CPU should choose again now: it has no current thread, or one whose request ends
    /// later than the newcomer's.
    pub resched: bool,
    /// When the current thread's slice ends, if nobody waited before and the one-shot may not
    /// be armed for it.
    pub arm_slice_ns: Option<u64>,
}

/// Why a current thread goes back into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Its slice ended or a more urgent thread came.
    Preempted,
    /// It asked to let another run: it goes behind the first that waits.
    Yielded,
}

/// The current thread went back into the queue.
#[must_use = "time that ran has to be charged to its authority"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requeued {
    /// The interval from its start to this stop.
    pub charge: Charge,
}

/// The current thread left the CPU.
#[must_use = "time that ran has to be charged to its authority"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The interval from its start to this stop.
    pub charge: Charge,
}

/// What the CPU does next.
#[must_use = "a picked thread has to be started, a refused one dealt with"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick<I> {
    /// Start this thread.
    Run {
        /// The thread.
        item: I,
        /// It was the direct slot's and goes on with the slice of the thread before it.
        direct: bool,
    },
    /// Nothing may run: idle.
    Idle,
    /// This thread is out of the queue for that reason; deal with it and pick again.
    Refused {
        /// The thread.
        item: I,
        /// What has to be done with it.
        why: Refusal,
    },
    /// The direct slot's target cannot be run directly; call `settle_direct` and pick again.
    QueueDirect {
        /// The target.
        item: I,
    },
}

/// A chosen thread is current and may be switched to.
#[must_use = "the slice has to be armed"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// When its slice ends; `None` while nobody else waits.
    pub slice_end_ns: Option<u64>,
}

/// The current thread is in the queue and the first that waited is current.
#[must_use = "time that ran has to be charged, the slice has to be armed"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YieldedTo {
    /// The interval of the thread that stopped.
    pub charge: Charge,
    /// When the slice of the second ends.
    pub slice_end_ns: u64,
}

/// The current thread blocked and its direct target is current.
#[must_use = "time that ran has to be charged, the slice has to be armed"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOff {
    /// The interval of the thread that stopped.
    pub charge: Charge,
    /// When the slice the two share ends; `None` while nobody else waits.
    pub slice_end_ns: Option<u64>,
    /// Nobody waits and both have the same share: to others the queue is as before.
    pub is_like: bool,
}

/// What became of a thread offered to the direct slot.
#[must_use = "the CPU may have to be told"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectOffer {
    /// It is in the slot and runs when the current thread stops.
    Taken {
        /// As for [`Enqueued::arm_slice_ns`].
        arm_slice_ns: Option<u64>,
    },
    /// The slot was taken: it is queued.
    Queued(Enqueued),
}

/// A thread left the queue with what it is owed.
#[must_use = "the lag goes with the thread"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed {
    /// To be given to the queue it joins.
    pub lag: Lag,
}
