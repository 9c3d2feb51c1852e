//! The scheduling state of one thread.

use crate::{CpuId, Error};
use core_sched_policy::{Lag, Share, VirtualTime};

/// What running time is charged to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Authority {
    /// The thread's own account: it runs by its weight.
    #[default]
    Weight,
    /// A scheduling context, bound or donated.
    Context {
        /// The context, never reused.
        id: u64,
        /// Which of its generations.
        generation: u32,
    },
}

/// Where a thread is, as far as queues are concerned; each value has exactly one owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activity {
    /// In no queue: blocked, throttled or not started. Owned by the first to claim its wake.
    #[default]
    Resting,
    /// In its home CPU's order.
    Queued,
    /// In its home CPU's direct slot.
    Direct,
    /// Current on its home CPU.
    Running,
    /// Between two queues, runnable: owned by the CPU that moves it.
    Moving,
    /// Gone; never runs again.
    Dead,
}

impl Activity {
    /// Every value.
    pub const ALL: [Self; 6] =
        [Self::Resting, Self::Queued, Self::Direct, Self::Running, Self::Moving, Self::Dead];
}

/// Scheduling state of one thread. Changed only through a queue, under its lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// Weight and class in use.
    pub(crate) share: Share,
    /// Weight and class from the next enqueue on.
    pub(crate) wanted: Share,
    /// They differ from those in use.
    pub(crate) wants_another: bool,
    /// The CPU whose queue `start` belongs to; none before the first enqueue.
    pub(crate) home: Option<CpuId>,
    pub(crate) authority: Authority,
    pub(crate) activity: Activity,
    /// Start of the next service on the home queue's virtual time line.
    pub(crate) start: VirtualTime,
    /// Fraction of a virtual ns not yet counted.
    pub(crate) fraction_q32: u32,
    /// The lag it had when it last came to rest.
    pub(crate) kept_lag: Lag,
    /// When it became runnable; counts while Queued, Direct or Moving.
    pub(crate) runnable_since_ns: u64,
    /// When it came to its home CPU.
    pub(crate) moved_ns: u64,
    pub(crate) runtime_ns: u64,
    pub(crate) virtual_runtime_ns: u64,
    pub(crate) runnable_accumulated_ns: u64,
    pub(crate) voluntary_blocks: u64,
    pub(crate) preemptions: u64,
    /// What snapshots have said, that they never say less.
    pub(crate) said: Said,
}

/// Sums that a snapshot has worked out with the interval that was open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) runtime_ns: u64,
    pub(crate) virtual_runtime_ns: u64,
    pub(crate) runnable_accumulated_ns: u64,
}

/// A thread's raw cumulative counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Weight and class as last applied.
    pub share: Share,
    /// Time it ran.
    pub runtime_ns: u64,
    /// The same, scaled by its weight at the time; never moved by wakes or migration.
    pub virtual_runtime_ns: u64,
    /// Times it gave the CPU up to wait.
    pub voluntary_blocks: u64,
    /// Times it was put back because its slice ended or a more urgent thread came.
    pub preemptions: u64,
    /// Time it was runnable and did not run.
    pub runnable_accumulated_ns: u64,
}

impl Entity {
    /// A thread that has not run.
    pub fn new(share: Share) -> Self {
        Self { share, wanted: share, ..Self::default() }
    }

    /// The state of a record that holds no thread.
    pub fn vacant() -> Self {
        Self { activity: Activity::Dead, ..Self::default() }
    }

    /// Weight and class as applied at the last enqueue.
    #[inline]
    pub fn share(&self) -> Share {
        self.share
    }

    /// Weight and class from its next enqueue on: what was last asked for.
    #[inline]
    pub fn wanted(&self) -> Share {
        self.wanted
    }

    /// Which queue, slot or CPU owns it, as far as scheduling goes.
    #[inline]
    pub fn activity(&self) -> Activity {
        self.activity
    }

    /// What its running time is charged to.
    #[inline]
    pub fn authority(&self) -> Authority {
        self.authority
    }

    /// The counters as they stand; an interval that is open, of running or of waiting to run, is not in
    /// them. [`Queue::snapshot`](crate::Queue::snapshot) counts it too.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            share: self.share,
            runtime_ns: self.runtime_ns,
            virtual_runtime_ns: self.virtual_runtime_ns,
            voluntary_blocks: self.voluntary_blocks,
            preemptions: self.preemptions,
            runnable_accumulated_ns: self.runnable_accumulated_ns,
        }
    }

    /// The CPU whose queue it belongs to.
    #[inline]
    pub fn home(&self) -> Option<CpuId> {
        self.home
    }

    /// Gives it another weight or class, which count from its next enqueue.
    pub fn set_share(&mut self, share: Share) {
        self.wanted = share;
        self.wants_another = share != self.share;
    }

    /// Whether it was given another weight or class since its last enqueue.
    #[inline]
    pub(crate) fn wants_change(&self) -> bool {
        self.wants_another
    }

    /// Charges its time to another authority from now on. Refused while it runs: the open interval
    /// belongs to the old authority; `Queue::charge` closes it and names the new one in one step.
    pub fn set_authority(&mut self, authority: Authority) -> Result<(), Error> {
        match self.activity {
            is @ Activity::Running => Err(Error::Activity { is }),
            _ => {
                self.authority = authority;
                Ok(())
            }
        }
    }

    /// Ends the span of being runnable that began with its enqueue.
    #[inline]
    pub(crate) fn close_runnable_span(&mut self, now_ns: u64) {
        self.runnable_accumulated_ns += now_ns.saturating_sub(self.runnable_since_ns);
    }
}
