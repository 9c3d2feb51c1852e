//! What can be read of a queue and of the threads that belong to it.
//!
//! Counters are closed at stops and starts. Whoever reads them in between wants the open interval too: that of a
//! running thread, of one that waits to run, of an idle CPU. It is worked out here and written nowhere, so that it
//! is counted once, when it is closed.

use crate::entity::Said;
use crate::{Activity, Entity, Ordered, Queue, Snapshot};
use core_sched_policy::Policy;

/// What a CPU tells the others about its queue; read without a lock, so only a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Threads in the order: what another CPU could take.
    pub waiting: u32,
    /// Sum of weights, the current thread's included.
    pub load: u64,
    /// How far virtual time is past the first one's finish; the least value if none waits.
    pub lateness_ns: i64,
}

impl<P: Policy, O: Ordered> Queue<P, O> {
    /// What the others may know.
    #[inline]
    pub fn hint(&self) -> Hint {
        let lateness_ns = match self.order.first() {
            Some((_, entry)) => self.policy.virtual_now().since(entry.tag.finish),
            None => i64::MIN,
        };
        Hint { waiting: self.waiting, load: self.load, lateness_ns }
    }

    /// The counters of a thread of this CPU as of `now_ns`, in which they never go back.
    ///
    /// A CPU reads the clock before it takes the lock under which it closes an interval. Somebody else may have looked in
    /// between, by a later clock: so what was said is kept, and said again until it is true.
    pub fn snapshot(&self, item: O::Item, entity: &mut Entity, now_ns: u64) -> Snapshot {
        let mut counted = entity.snapshot();
        match entity.activity {
            Activity::Running => {
                let own = self.current.filter(|current| current.item == item);
                let ran_ns = own.map_or(0, |current| now_ns.saturating_sub(current.since_ns));
                let step = entity.share.step(ran_ns, entity.fraction_q32);
                counted.runtime_ns += ran_ns;
                counted.virtual_runtime_ns =
                    counted.virtual_runtime_ns.saturating_add(step.virtual_ns);
            }
            Activity::Queued | Activity::Direct | Activity::Moving => {
                counted.runnable_accumulated_ns += now_ns.saturating_sub(entity.runnable_since_ns);
            }
            Activity::Resting | Activity::Dead => {}
        }
        let said = Said {
            runtime_ns: counted.runtime_ns.max(entity.said.runtime_ns),
            virtual_runtime_ns: counted.virtual_runtime_ns.max(entity.said.virtual_runtime_ns),
            runnable_accumulated_ns: counted
                .runnable_accumulated_ns
                .max(entity.said.runnable_accumulated_ns),
        };
        entity.said = said;
        Snapshot {
            runtime_ns: said.runtime_ns,
            virtual_runtime_ns: said.virtual_runtime_ns,
            runnable_accumulated_ns: said.runnable_accumulated_ns,
            ..counted
        }
    }

    /// Time spent running threads and idle, up to the last switch.
    pub fn busy_and_idle_ns(&self) -> (u64, u64) {
        (self.busy_ns, self.idle_ns)
    }

    /// Time spent idle, up to `now_ns`; never less than it was said before, for the reason above.
    pub fn idle_ns_until(&mut self, now_ns: u64) -> u64 {
        let open_ns = match self.current {
            Some(_) => 0,
            None => now_ns.saturating_sub(self.accounted_ns),
        };
        self.said_idle_ns = self.said_idle_ns.max(self.idle_ns + open_ns);
        self.said_idle_ns
    }

    /// The most threads that ever waited in the order at once.
    pub fn waiting_max(&self) -> u32 {
        self.waiting_max
    }

    /// Threads that run here or want to: the current one, those that wait, the direct slot's.
    pub fn runnable(&self) -> u32 {
        self.waiting + u32::from(self.current.is_some()) + u32::from(self.direct.is_some())
    }
}
