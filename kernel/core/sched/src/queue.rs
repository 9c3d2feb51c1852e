//! One CPU's queue: the waiting threads, the current one, virtual time and the slice.
//!
//! Joining, choosing and leaving without having run are here; how the current thread stops is
//! in `stop.rs`, the direct slot in `direct.rs`, what can be read of it in `account.rs`.

use crate::{Activity, CpuId, Departed, Enqueued, Entity, Entry, Error, MayRun, Ordered};
use crate::{Pick, Started};
use core_sched_policy::{Lag, Policy, QUANTUM_NS, Share, Tag, VirtualTime};

/// Scheduling state of one CPU. Every call is made under the lock that guards it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue<P, O: Ordered> {
    pub(crate) cpu: CpuId,
    pub(crate) policy: P,
    pub(crate) order: O,
    /// Items in the order.
    pub(crate) waiting: u32,
    /// The most there ever were.
    pub(crate) waiting_max: u32,
    /// Weights in the order, in the direct slot and of the current thread.
    pub(crate) load: u64,
    pub(crate) sequence: u64,
    pub(crate) current: Option<Current<O::Item>>,
    /// Picked and not yet started.
    pub(crate) chosen: Option<(O::Item, Entry, bool)>,
    pub(crate) direct: Option<(O::Item, Entry)>,
    pub(crate) slice_end_ns: u64,
    /// Up to here all of this CPU's time is in `busy_ns` or `idle_ns`.
    pub(crate) accounted_ns: u64,
    pub(crate) busy_ns: u64,
    pub(crate) idle_ns: u64,
    /// What was last said of it, with an open span of idleness.
    pub(crate) said_idle_ns: u64,
    /// When a thread last came from or went to another CPU.
    pub(crate) moved_ns: u64,
    /// When this CPU last looked for one with less to do.
    pub(crate) looked_ns: u64,
}

/// The thread that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Current<I> {
    pub(crate) item: I,
    /// Start of the interval that is not charged yet, in time and in virtual time.
    pub(crate) since_ns: u64,
    pub(crate) start: VirtualTime,
    /// The request it is running on.
    pub(crate) tag: Tag,
    pub(crate) share: Share,
    pub(crate) moved_ns: u64,
}

impl<P: Policy, O: Ordered> Queue<P, O> {
    /// An idle CPU's queue, its time counted from `now_ns`.
    pub const fn new(cpu: CpuId, policy: P, order: O, now_ns: u64) -> Self {
        Self {
            cpu,
            policy,
            order,
            waiting: 0,
            waiting_max: 0,
            load: 0,
            sequence: 0,
            current: None,
            chosen: None,
            direct: None,
            slice_end_ns: 0,
            accounted_ns: now_ns,
            busy_ns: 0,
            idle_ns: 0,
            said_idle_ns: 0,
            moved_ns: now_ns,
            looked_ns: now_ns,
        }
    }

    /// What a resting thread of this CPU is owed, if it woke now.
    #[inline]
    pub fn rest_lag(&self, entity: &Entity) -> Lag {
        match entity.home {
            Some(home) if home == self.cpu => {
                self.policy.lag_after_rest(entity.start, entity.kept_lag, &entity.wanted)
            }
            _ => Lag::ZERO,
        }
    }

    /// A resting or moving thread joins with what it is owed: [`Lag::ZERO`] for a new one,
    /// `rest_lag` of its old home for a woken one, [`Departed::lag`] for a moved one.
    #[inline]
    pub fn enqueue(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        lag: Lag,
        now_ns: u64,
    ) -> Result<Enqueued, Error> {
        let was_alone = self.nobody_waits();
        let entry = self.admit(entity, lag, now_ns)?;
        entity.activity = Activity::Queued;
        let is_eligible = self.put_newcomer(item, entry);
        let (resched, arm_slice_ns) = match &self.current {
            None => (true, None),
            Some(current) => (
                is_eligible && entry.tag.finish.is_before(current.tag.finish),
                was_alone.then_some(self.slice_end_ns),
            ),
        };
        Ok(Enqueued { resched, arm_slice_ns })
    }

    /// Chooses what runs next; the CPU has no current thread. Start the thread under the same
    /// lock.
    ///
    /// A thread that may not run stays where it is: take it out as the verdict says and pick
    /// again. Those that may run later are passed over; they are on their way off another CPU,
    /// so there are never more of them than CPUs.
    #[inline]
    pub fn pick(
        &mut self,
        now_ns: u64,
        mut may_run: impl FnMut(O::Item) -> MayRun,
    ) -> Result<Pick<O::Item>, Error> {
        if self.current.is_some() || self.chosen.is_some() {
            return Err(Error::Occupied);
        }
        if let Some((item, entry)) = self.direct {
            if self.waiting > 0 && now_ns >= self.slice_end_ns {
                return Ok(Pick::QueueDirect { item });
            }
            return Ok(match may_run(item) {
                MayRun::Yes => {
                    self.direct = None;
                    self.chosen = Some((item, entry, true));
                    Pick::Run { item, direct: true }
                }
                MayRun::Later => Pick::QueueDirect { item },
                MayRun::No(why) => Pick::Refused { item, why },
            });
        }
        if let Some(now) = self.policy.choosing() {
            self.order.settle(now);
        }
        let mut next = self.order.first();
        while let Some((item, entry)) = next {
            match may_run(item) {
                MayRun::Yes => {
                    self.order.remove(item);
                    self.waiting -= 1;
                    self.chosen = Some((item, entry, false));
                    return Ok(Pick::Run { item, direct: false });
                }
                MayRun::Later => next = self.order.after(item),
                MayRun::No(why) => return Ok(Pick::Refused { item, why }),
            }
        }
        Ok(Pick::Idle)
    }

    /// The picked thread becomes current; `now_ns` is the reading that ended whatever ran
    /// before.
    #[inline]
    pub fn start(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        now_ns: u64,
    ) -> Result<Started, Error> {
        let (entry, direct) = match self.chosen {
            Some((chosen, entry, direct)) if chosen == item => (entry, direct),
            _ => return Err(Error::NotHere),
        };
        if !matches!(entity.activity, Activity::Queued | Activity::Direct) {
            return Err(Error::Activity { is: entity.activity });
        }
        self.chosen = None;
        // Who was put back may wait now.
        self.waiting_max = self.waiting_max.max(self.waiting);
        entity.close_runnable_span(now_ns);
        if !direct || now_ns >= self.slice_end_ns {
            self.slice_end_ns = now_ns + QUANTUM_NS;
        }
        self.run(item, entity, entry.tag, !direct, now_ns);
        Ok(Started { slice_end_ns: self.slice_end_if_shared() })
    }

    /// A waiting thread leaves for another queue.
    pub fn depart(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        now_ns: u64,
    ) -> Result<Departed, Error> {
        self.take_out(item, entity)?;
        self.moved_ns = now_ns;
        entity.activity = Activity::Moving;
        Ok(Departed { lag: self.policy.lag(entity.start, &entity.share) })
    }

    /// A waiting thread comes to rest without having run: it is throttled.
    pub fn set_aside(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        now_ns: u64,
    ) -> Result<(), Error> {
        self.take_out(item, entity)?;
        self.rest(entity);
        entity.close_runnable_span(now_ns);
        Ok(())
    }

    /// A waiting thread is gone for good.
    pub fn drop_dead(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        now_ns: u64,
    ) -> Result<(), Error> {
        self.unlink(item, entity)?;
        self.end(entity);
        entity.close_runnable_span(now_ns);
        Ok(())
    }

    /// A resting thread of this CPU is gone for good: it was killed while it waited.
    pub fn drop_resting(&mut self, entity: &mut Entity) -> Result<(), Error> {
        match entity.activity {
            Activity::Resting => {
                entity.activity = Activity::Dead;
                Ok(())
            }
            is => Err(Error::Activity { is }),
        }
    }

    /// The CPU this queue belongs to.
    #[inline]
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// The thread that runs.
    #[inline]
    pub fn current(&self) -> Option<O::Item> {
        self.current.map(|c| c.item)
    }

    /// The target in the direct slot.
    #[inline]
    pub fn direct(&self) -> Option<O::Item> {
        self.direct.map(|(item, _)| item)
    }

    /// The queue's virtual time now; means nothing to another queue.
    #[inline]
    pub fn virtual_now(&self) -> VirtualTime {
        self.policy.virtual_now()
    }

    /// The policy, to look at.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The sorted set, to look at.
    pub fn order(&self) -> &O {
        &self.order
    }

    /// Whether no thread waits for this CPU but the current one.
    #[inline]
    pub fn nobody_waits(&self) -> bool {
        self.waiting == 0 && self.direct.is_none()
    }

    /// When the current slice ends; `None` while nobody else waits.
    #[inline]
    pub fn slice_end_if_shared(&self) -> Option<u64> {
        if self.nobody_waits() { None } else { Some(self.slice_end_ns) }
    }

    /// Makes a resting or moving entity a competitor of this queue and gives its entry; the
    /// caller says where it goes.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        entity: &mut Entity,
        lag: Lag,
        now_ns: u64,
    ) -> Result<Entry, Error> {
        match entity.activity {
            Activity::Resting | Activity::Moving => self.settle_home(entity, now_ns),
            is => return Err(Error::Activity { is }),
        }
        self.catch_up(now_ns);
        entity.start = self.policy.place(lag, &entity.wanted);
        Ok(self.compete(entity))
    }

    /// A resting or moving entity is this queue's from now on.
    #[inline(always)]
    pub(crate) fn settle_home(&mut self, entity: &mut Entity, now_ns: u64) {
        if entity.activity == Activity::Resting {
            entity.runnable_since_ns = now_ns;
        } else {
            self.moved_ns = now_ns;
        }
        if entity.home != Some(self.cpu) {
            entity.home = Some(self.cpu);
            entity.moved_ns = now_ns;
        }
    }

    /// Counts an entity that stands at its `start` as a competitor, under the share it wants,
    /// with a request of its own.
    #[inline]
    pub(crate) fn compete(&mut self, entity: &mut Entity) -> Entry {
        self.enter(entity);
        let tag = self.policy.tag(entity.start, &entity.share);
        self.entry_for(entity, tag)
    }

    /// Counts an entity as a competitor, under the share it wants.
    #[inline(always)]
    pub(crate) fn enter(&mut self, entity: &mut Entity) {
        if entity.wants_another {
            entity.share = entity.wanted;
            entity.wants_another = false;
        }
        let weight = entity.share.weight();
        self.load += u64::from(weight.get());
        self.policy.joined(entity.start, weight);
    }

    /// A competitor's entry in the order, last of those that finish with it.
    #[inline]
    pub(crate) fn entry_for(&mut self, entity: &Entity, tag: Tag) -> Entry {
        self.sequence += 1;
        let weight = entity.share.weight();
        Entry { tag, sequence: self.sequence, weight, moved_ns: entity.moved_ns }
    }

    /// Puts a competitor into the order; whether its request is eligible.
    #[inline]
    pub(crate) fn put(&mut self, item: O::Item, entry: Entry) -> bool {
        let is_eligible = self.policy.is_eligible(entry.tag);
        match is_eligible {
            true => self.order.insert(item, entry),
            false => self.order.insert_early(item, entry),
        }
        self.waiting += 1;
        is_eligible
    }

    /// As [`put`](Self::put), for one that has not just run here: it makes the crowd larger.
    #[inline]
    pub(crate) fn put_newcomer(&mut self, item: O::Item, entry: Entry) -> bool {
        let is_eligible = self.put(item, entry);
        self.waiting_max = self.waiting_max.max(self.waiting);
        is_eligible
    }

    /// A competitor goes on under the share it wants.
    ///
    /// Debt and credit are counted in virtual time, which passes at another speed with another
    /// weight: what one slice at the least weight owes would take the greatest a thousand slices
    /// to pay. So they are bounded by what the new share may carry.
    #[cold]
    pub(crate) fn change_share(&mut self, entity: &mut Entity) {
        self.withdraw(entity);
        if entity.share.weight() != entity.wanted.weight() {
            let lag = self.policy.lag(entity.start, &entity.wanted);
            entity.start = self.policy.place(lag, &entity.wanted);
        }
        self.enter(entity);
    }

    /// Takes a thread's weight out of the competition: it stops, or leaves the queue.
    #[inline(always)]
    pub(crate) fn withdraw(&mut self, entity: &Entity) {
        let weight = entity.share.weight();
        self.load -= u64::from(weight.get());
        self.policy.left(entity.start, weight);
    }

    /// Takes a thread's weight out for good; virtual time takes over what it had in advance.
    pub(crate) fn end(&mut self, entity: &mut Entity) {
        let weight = entity.share.weight();
        self.policy.ended(entity.start, weight, self.load);
        self.load -= u64::from(weight.get());
        entity.activity = Activity::Dead;
    }

    #[inline(always)]
    pub(crate) fn rest(&mut self, entity: &mut Entity) {
        entity.activity = Activity::Resting;
        entity.kept_lag = self.policy.lag(entity.start, &entity.share);
    }

    /// Makes an admitted entity current. Closes the CPU's idle span.
    #[inline(always)]
    pub(crate) fn run(
        &mut self,
        item: O::Item,
        entity: &mut Entity,
        tag: Tag,
        in_turn: bool,
        now_ns: u64,
    ) {
        // A direct target may stand far ahead of those that wait: it is served out of turn, and
        // virtual time must not jump because of it.
        if in_turn || self.waiting == 0 {
            self.policy.picked(tag);
        }
        entity.activity = Activity::Running;
        self.idle_ns += now_ns.saturating_sub(self.accounted_ns);
        self.accounted_ns = self.accounted_ns.max(now_ns);
        self.seat(item, entity, tag, now_ns);
    }

    /// Makes `item` the current thread, in the books alone.
    #[inline(always)]
    pub(crate) fn seat(&mut self, item: O::Item, entity: &Entity, tag: Tag, now_ns: u64) {
        self.current = Some(Current {
            item,
            since_ns: now_ns,
            start: entity.start,
            tag,
            share: entity.share,
            moved_ns: entity.moved_ns,
        });
    }

    /// Makes `item` current in the place of another, writing only what differs.
    #[inline(always)]
    pub(crate) fn reseat(&mut self, item: O::Item, entity: &Entity, tag: Tag, now_ns: u64) {
        if let Some(current) = &mut self.current {
            current.item = item;
            current.since_ns = now_ns;
            current.start = entity.start;
            current.tag = tag;
            // What a share holds follows from its weight and class.
            if !current.share.is_like(&entity.share) {
                current.share = entity.share;
            }
            current.moved_ns = entity.moved_ns;
        }
    }

    /// Brings virtual time up to date with a thread that ran on because nobody waited: as if
    /// its slices had ended in turn and it had been chosen again each time.
    #[inline]
    pub(crate) fn catch_up(&mut self, now_ns: u64) {
        if !self.nobody_waits() {
            return;
        }
        let Some(current) = &mut self.current else { return };
        if now_ns < self.slice_end_ns {
            return;
        }
        let whole_slices = (now_ns - self.slice_end_ns) / QUANTUM_NS;
        let slice_start_ns = self.slice_end_ns + whole_slices * QUANTUM_NS;
        self.slice_end_ns = slice_start_ns + QUANTUM_NS;
        let ran = current.share.step(slice_start_ns.saturating_sub(current.since_ns), 0);
        self.policy.running(ran.order_ns(), current.share.weight());
        current.tag = self.policy.tag(current.start.after(ran.order_ns()), &current.share);
        self.policy.picked(current.tag);
    }

    fn take_out(&mut self, item: O::Item, entity: &mut Entity) -> Result<(), Error> {
        self.unlink(item, entity)?;
        self.withdraw(entity);
        Ok(())
    }

    /// Takes a waiting thread out of where it waits; it is a competitor still.
    fn unlink(&mut self, item: O::Item, entity: &Entity) -> Result<(), Error> {
        match entity.activity {
            Activity::Queued => {
                self.order.remove(item).ok_or(Error::NotHere)?;
                self.waiting -= 1;
            }
            Activity::Direct if self.direct() == Some(item) => self.direct = None,
            Activity::Direct => return Err(Error::NotHere),
            is => return Err(Error::Activity { is }),
        }
        Ok(())
    }
}
