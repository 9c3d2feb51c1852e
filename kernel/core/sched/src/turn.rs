//! A yield in one step: the current thread and the first that waits change places.
//!
//! A yielding thread goes behind the first that waits, so the next one is known before anything
//! moves. [`Queue::turn`] names it; the caller gets hold of that thread, and
//! [`Turn::take`] does what `requeue`, `pick` and `start` would do in turn, without what they
//! would write down for each other. A turn that is dropped leaves everything as it was.
//!
//! Decided in ADR 152.

use crate::{Activity, Entity, Entry, Error, Ordered, Queue, YieldedTo};
use core_sched_policy::{Policy, QUANTUM_NS, Tag};

/// The first that waits is next if the current thread yields. The queue is held until it is so, or
/// not.
#[must_use = "nothing has happened yet"]
#[derive(Debug)]
pub struct Turn<'q, P, O: Ordered> {
    queue: &'q mut Queue<P, O>,
    from: O::Item,
    to: O::Item,
    tag: Tag,
}

impl<P: Policy, O: Ordered> Queue<P, O> {
    /// The thread that is next if the current one yields. `activity` says where that one is; `None`
    /// if it is not the caller's to run.
    ///
    /// [`Error::NotHere`] if nothing waits. [`Error::OutOfTurn`] if the first is not certain to be
    /// next: the direct slot has a target, the current thread's share is to change, or the policy
    /// does not go by the earliest finish alone. Then the ordinary way decides.
    #[inline(always)]
    pub fn turn(
        &mut self,
        from: O::Item,
        leaving: &Entity,
        activity: impl FnOnce(O::Item) -> Option<Activity>,
    ) -> Result<Turn<'_, P, O>, Error> {
        if self.current() != Some(from) {
            return Err(Error::NotCurrent);
        }
        if leaving.activity != Activity::Running {
            return Err(Error::Activity { is: leaving.activity });
        }
        if self.direct.is_some() || leaving.wants_change() || !self.policy.orders_by_finish_alone()
        {
            return Err(Error::OutOfTurn);
        }
        let Some((to, Entry { tag, .. })) = self.order.first() else { return Err(Error::NotHere) };
        match activity(to) {
            Some(Activity::Queued) => Ok(Turn { from, to, tag, queue: self }),
            Some(is) => Err(Error::Activity { is }),
            None => Err(Error::NotHere),
        }
    }
}

impl<P: Policy, O: Ordered> Turn<'_, P, O> {
    /// The thread that is next; the caller claims it before it takes the turn.
    #[inline(always)]
    pub fn item(&self) -> O::Item {
        self.to
    }

    /// The current thread goes into the order, behind the one that is next, and that one runs.
    /// The states are those of the two threads.
    #[inline(always)]
    pub fn take(self, leaving: &mut Entity, coming: &mut Entity, now_ns: u64) -> YieldedTo {
        let Self { queue, from, to, tag: turn } = self;
        debug_assert!(leaving.activity == Activity::Running, "who yields runs");
        debug_assert!(coming.activity == Activity::Queued, "who is first waits");
        // Somebody waits, so the current thread was not left to run on past its slice: there is
        // nothing to catch up with.
        let (charge, _) = queue.close_interval(leaving, now_ns);
        let tag = queue.policy.change_places(leaving.start, &leaving.share, turn);
        leaving.activity = Activity::Queued;
        leaving.runnable_since_ns = now_ns;
        let entry = queue.entry_for(leaving, tag);
        queue.order.replace_first(from, entry);
        coming.close_runnable_span(now_ns);
        coming.activity = Activity::Running;
        // The CPU was not idle, so there is no idle span to close.
        queue.reseat(to, coming, turn, now_ns);
        queue.slice_end_ns = now_ns + QUANTUM_NS;
        YieldedTo { charge, slice_end_ns: queue.slice_end_ns }
    }
}
