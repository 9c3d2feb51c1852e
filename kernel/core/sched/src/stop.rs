//! How the current thread stops: each way charges what it ran, once and in full.

use crate::Requeued;
use crate::{Activity, Authority, Blocked, Charge, Entity, Error, Ordered, Queue, Requeue};
use core_sched_policy::Policy;

impl<P: Policy, O: Ordered> Queue<P, O> {
    /// The current thread goes back into the queue.
    #[inline]
    pub fn requeue(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        why: Requeue,
        now_ns: u64,
    ) -> Result<Requeued, Error> {
        self.current_is(item, entity)?;
        self.catch_up(now_ns);
        let charge = self.account(entity, now_ns);
        let is_changed = entity.wants_change();
        if is_changed {
            self.change_share(entity);
        }
        let goes_on = why == Requeue::Preempted && !is_changed;
        let on = self.current.as_ref().map(|current| &current.tag).filter(|_| goes_on);
        let mut tag = self.policy.tag_again(on, entity.start, &entity.share);
        self.current = None;
        match why {
            Requeue::Preempted => entity.preemptions += 1,
            Requeue::Yielded => {
                if let Some((_, first)) = self.order.first() {
                    tag.finish = tag.finish.later(first.tag.finish);
                }
            }
        }
        entity.activity = Activity::Queued;
        entity.runnable_since_ns = now_ns;
        let entry = self.entry_for(entity, tag);
        self.put(item, entry);
        Ok(Requeued { charge })
    }

    /// The current thread waits for something.
    #[inline]
    pub fn block(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        now_ns: u64,
    ) -> Result<Blocked, Error> {
        let charge = self.stop(item, entity, now_ns)?;
        entity.voluntary_blocks += 1;
        self.rest(entity);
        Ok(Blocked { charge })
    }

    /// The current thread is taken off the CPU against its will: its budget ended.
    #[inline]
    pub fn suspend(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        now_ns: u64,
    ) -> Result<Blocked, Error> {
        let charge = self.stop(item, entity, now_ns)?;
        self.rest(entity);
        Ok(Blocked { charge })
    }

    /// The current thread ends.
    #[inline]
    pub fn exit(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        now_ns: u64,
    ) -> Result<Blocked, Error> {
        self.current_is(item, entity)?;
        self.catch_up(now_ns);
        let charge = self.account(entity, now_ns);
        self.current = None;
        self.end(entity);
        Ok(Blocked { charge })
    }

    /// Closes the interval the current thread is running and opens the next, paid for by
    /// `authority`; the slice goes on.
    pub fn charge(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        authority: Authority,
        now_ns: u64,
    ) -> Result<Charge, Error> {
        self.current_is(item, entity)?;
        self.catch_up(now_ns);
        let charge = self.account(entity, now_ns);
        entity.authority = authority;
        if let Some(current) = &mut self.current {
            current.since_ns = now_ns;
            current.start = entity.start;
        }
        Ok(charge)
    }

    #[inline]
    pub(crate) fn current_is(&self, item: O::Item, entity: &Entity) -> Result<(), Error> {
        if self.current() != Some(item) {
            return Err(Error::NotCurrent);
        }
        if entity.activity != Activity::Running {
            return Err(Error::Activity { is: entity.activity });
        }
        Ok(())
    }

    /// Ends the current thread's run; it is nowhere afterwards.
    #[inline]
    pub(crate) fn stop(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        now_ns: u64,
    ) -> Result<Charge, Error> {
        self.current_is(item, entity)?;
        self.catch_up(now_ns);
        let charge = self.account(entity, now_ns);
        self.current = None;
        self.withdraw(entity);
        Ok(charge)
    }

    /// Adds the open interval to the entity's and the CPU's accounts.
    #[inline(always)]
    pub(crate) fn account(&mut self, entity: &mut Entity, now_ns: u64) -> Charge {
        let (charge, order_ns) = self.close_interval(entity, now_ns);
        self.policy.served(order_ns, entity.share.weight());
        charge
    }

    /// The same, the policy apart, which is to be told how far the entity has got.
    #[inline(always)]
    pub(crate) fn close_interval(&mut self, entity: &mut Entity, now_ns: u64) -> (Charge, u64) {
        let since_ns = self.current.map_or(now_ns, |c| c.since_ns);
        let elapsed_ns = now_ns.saturating_sub(since_ns);
        let step = entity.share.step(elapsed_ns, entity.fraction_q32);
        entity.fraction_q32 = step.fraction_q32;
        entity.start = entity.start.after(step.order_ns());
        entity.runtime_ns += elapsed_ns;
        entity.virtual_runtime_ns = entity.virtual_runtime_ns.saturating_add(step.virtual_ns);
        self.busy_ns += elapsed_ns;
        self.accounted_ns += elapsed_ns;
        (Charge { authority: entity.authority, elapsed_ns }, step.order_ns())
    }
}
