//! Direct hand-over: a caller's CPU runs the server it woke next, out of turn.
//!
//! Out of turn, but not for free: the target goes on with the slice of the thread before it and
//! pays for its own time, so two threads that only call each other give way when the slice they
//! share ends, like one thread would. It is a preference: a target that cannot run at once is
//! queued like any other.
//!
//! Decided in ADR 72.

use crate::{Activity, DirectOffer, Enqueued, Entity, Error, HandedOff, Ordered, Queue};
use core_sched_policy::{Lag, Policy};

impl<P: Policy, O: Ordered> Queue<P, O> {
    /// Puts a woken thread into the direct slot, or into the queue if the slot is taken.
    #[inline]
    pub fn offer_direct(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        lag: Lag,
        now_ns: u64,
    ) -> Result<DirectOffer, Error> {
        if self.direct.is_some() {
            return Ok(DirectOffer::Queued(self.enqueue(item, entity, lag, now_ns)?));
        }
        let was_alone = self.nobody_waits();
        let entry = self.admit(entity, lag, now_ns)?;
        entity.activity = Activity::Direct;
        self.direct = Some((item, entry));
        let arm = was_alone && self.current.is_some();
        Ok(DirectOffer::Taken { arm_slice_ns: arm.then_some(self.slice_end_ns) })
    }

    /// Moves the direct slot's target into the queue: it cannot run now, or the thread that
    /// offered it goes on running.
    #[inline]
    pub fn settle_direct(&mut self, item: O::Item, entity: &mut Entity) -> Result<Enqueued, Error> {
        let Some((_, entry)) = self.direct.filter(|(target, _)| *target == item) else {
            return Err(Error::NotHere);
        };
        self.direct = None;
        entity.activity = Activity::Queued;
        let is_eligible = self.put_newcomer(item, entry);
        let resched = match &self.current {
            None => true,
            Some(current) => is_eligible && entry.tag.finish.is_before(current.tag.finish),
        };
        Ok(Enqueued { resched, arm_slice_ns: None })
    }

    /// The current thread blocks and `to` runs at once, in one step.
    ///
    /// Refused when the slot has a target already, or when the slice is over and others wait.
    #[inline]
    pub fn hand_off(
        &mut self,
        from: (O::Item, &mut Entity),
        to: (O::Item, &mut Entity),
        to_lag: Lag,
        now_ns: u64,
    ) -> Result<HandedOff, Error> {
        self.hand_off_by(from, to, |_, _| to_lag, now_ns)
    }

    /// As [`hand_off`](Self::hand_off); what the target is owed is asked for only if it counts.
    #[inline(always)]
    pub fn hand_off_by(
        &mut self,
        from: (O::Item, &mut Entity),
        to: (O::Item, &mut Entity),
        to_lag: impl FnOnce(&Self, &Entity) -> Lag,
        now_ns: u64,
    ) -> Result<HandedOff, Error> {
        let (from, leaving) = from;
        let (to, coming) = to;
        // The usual case by itself; what else there is, and what is wrong, is told apart below.
        if leaving.activity == Activity::Running
            && coming.activity == Activity::Resting
            && self.current.as_ref().is_some_and(|current| current.item == from)
            && self.direct.is_none()
            && self.waiting == 0
            && self.policy.is_idle_lag_zero()
        {
            return Ok(self.pass_seat((from, leaving), (to, coming), now_ns));
        }
        self.current_is(from, leaving)?;
        if !matches!(coming.activity, Activity::Resting | Activity::Moving) {
            return Err(Error::Activity { is: coming.activity });
        }
        if self.direct.is_some() {
            return Err(Error::SlotTaken);
        }
        if self.waiting == 0 && self.policy.is_idle_lag_zero() {
            if coming.activity == Activity::Moving {
                // It was runnable on its way here.
                coming.close_runnable_span(now_ns);
            }
            return Ok(self.pass_seat((from, leaving), (to, coming), now_ns));
        }
        if now_ns >= self.slice_end_ns {
            if self.waiting > 0 {
                return Err(Error::SliceOver);
            }
            self.catch_up(now_ns);
        }
        // As `block`, `admit` and `run` in turn, without what they would do twice: this is the
        // switch of every synchronous call.
        let to_lag = to_lag(self, coming);
        let charge = self.account(leaving, now_ns);
        self.withdraw(leaving);
        leaving.voluntary_blocks += 1;
        self.rest(leaving);
        self.settle_home(coming, now_ns);
        coming.start = self.policy.place(to_lag, &coming.wanted);
        self.enter(coming);
        self.sequence += 1;
        let tag = self.policy.tag(coming.start, &coming.share);
        coming.close_runnable_span(now_ns);
        self.run(to, coming, tag, false, now_ns);
        Ok(HandedOff { charge, slice_end_ns: self.slice_end_if_shared(), is_like: false })
    }

    /// The current thread blocks and `to` takes its seat, while nobody else waits.
    ///
    /// Without competitors a thread is served as fast as virtual time passes: it is owed nothing
    /// and owes nothing when it stops, and its successor starts where virtual time stands.
    /// So there is nothing to work out but the accounts.
    #[inline(always)]
    fn pass_seat(
        &mut self,
        from: (O::Item, &mut Entity),
        to: (O::Item, &mut Entity),
        now_ns: u64,
    ) -> HandedOff {
        let (_, leaving) = from;
        let (to, coming) = to;
        let charge = self.account(leaving, now_ns);
        let now = self.policy.virtual_now();
        leaving.voluntary_blocks += 1;
        leaving.activity = Activity::Resting;
        leaving.start = now;
        leaving.kept_lag = Lag::ZERO;
        self.settle_home(coming, now_ns);
        coming.start = now;
        coming.activity = Activity::Running;
        let is_like = !coming.wants_another && coming.share.is_like(&leaving.share);
        if is_like && let Some(current) = &mut self.current {
            // Load, tag and share stay what they are but for where they start.
            current.item = to;
            current.since_ns = now_ns;
            current.start = now;
            current.tag = self.policy.tag(now, &current.share);
            current.moved_ns = coming.moved_ns;
        } else {
            self.withdraw(leaving);
            self.enter(coming);
            let tag = self.policy.tag(now, &coming.share);
            self.seat(to, coming, tag, now_ns);
        }
        HandedOff { charge, slice_end_ns: None, is_like }
    }
}
