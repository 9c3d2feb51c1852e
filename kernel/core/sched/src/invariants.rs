//! What holds between any two operations on a queue.

use crate::{Activity, Entity, Ordered, Queue};
use core_sched_policy::Policy;

/// Virtual times of one queue lie closer together than this: far below the half range in which
/// they compare, and far above what shares and lag bounds allow.
const MAX_SPREAD: i64 = 1 << 40;

impl<P: Policy, O: Ordered> Queue<P, O> {
    /// Walks the whole queue; says which rule is broken. `entity` gives the state of an item.
    pub fn check_invariants(&self, entity: impl Fn(O::Item) -> Entity) -> Result<(), &'static str> {
        let mut waiting = 0u32;
        let mut load = 0u64;
        let mut pulls = 0i128;
        let mut next = self.order.first();
        let mut last = None;
        while let Some((item, entry)) = next {
            let is_early = self.order.is_early(item);
            match last {
                Some((before, was_early)) if was_early && is_early => {
                    if crate::Entry::early_order(&before, &entry).is_ge() {
                        return Err("those not eligible are not sorted by start and arrival");
                    }
                }
                Some((_, true)) => return Err("an eligible thread comes after one that is not"),
                Some((before, false)) if !is_early && before.order(&entry).is_ge() => {
                    return Err("the order is not sorted by finish and arrival");
                }
                _ => {}
            }
            if !is_early && !self.policy.is_eligible(entry.tag) {
                return Err("a thread counts as eligible before its time");
            }
            if self.order.entry(item) != Some(entry) {
                return Err("an item in the order does not say so");
            }
            if Some(item) == self.current() || Some(item) == self.direct() {
                return Err("a thread is in the order and also current or in the direct slot");
            }
            let state = entity(item);
            if state.activity != Activity::Queued || state.home != Some(self.cpu) {
                return Err("a thread in the order is not queued at home");
            }
            if !self.policy.is_tag_of(entry.tag, state.start)
                || state.share.weight() != entry.weight
            {
                return Err("a queued thread's place changed while it was queued");
            }
            if entry.tag.finish.since(self.policy.virtual_now()).abs() > MAX_SPREAD {
                return Err("a finish lies out of the range in which virtual times compare");
            }
            waiting += 1;
            load += u64::from(entry.weight.get());
            pulls += self.policy.pull(state.start, entry.weight);
            last = Some((entry, is_early));
            next = self.order.after(item);
        }
        if let Some((item, entry)) = self.direct {
            let state = entity(item);
            if state.activity != Activity::Direct || state.home != Some(self.cpu) {
                return Err("the direct slot's target is not a direct target at home");
            }
            load += u64::from(entry.weight.get());
            pulls += self.policy.pull(state.start, entry.weight);
        }
        if let Some(current) = &self.current {
            let state = entity(current.item);
            if state.activity != Activity::Running || state.home != Some(self.cpu) {
                return Err("the current thread is not running at home");
            }
            if state.share != current.share || state.start != current.start {
                return Err("the current thread's share or place changed while it ran");
            }
            load += u64::from(current.share.weight().get());
            pulls += self.policy.pull(state.start, current.share.weight());
        }
        if let Some((item, entry, _)) = self.chosen {
            load += u64::from(entry.weight.get());
            pulls += self.policy.pull(entity(item).start, entry.weight);
        }
        if waiting != self.waiting {
            return Err("the count of waiting threads is wrong");
        }
        if pulls != self.policy.pulls() {
            return Err("the policy's sum is not that of its competitors");
        }
        if load != self.load {
            return Err("the load is not the sum of the weights");
        }
        Ok(())
    }
}
