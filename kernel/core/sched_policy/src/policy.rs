//! What an ordering policy answers; a queue is generic over it.

use crate::{Lag, Share, VirtualTime, Weight};

/// Where a request lies on its queue's virtual time line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Where the service starts.
    pub start: VirtualTime,
    /// Where it ends if the whole request is served.
    pub finish: VirtualTime,
}

/// One queue's virtual time and the rule by which it passes.
///
/// A queue calls `joined` and `left` for every entity that becomes or ceases to be a
/// competitor there (running or waiting), `running` and `served` for what the running one gets,
/// `choosing` and `picked` for every choice, so a policy that needs sums over its competitors
/// can keep them. What a policy does not say is answered as weighted fair queueing does: every
/// request is eligible, and the earliest finish runs.
pub trait Policy {
    /// Whether a queue with one competitor is the same to this policy whichever thread it is, so
    /// that the seat can pass from one to another without virtual time having to know.
    #[inline]
    fn is_idle_lag_zero(&self) -> bool {
        false
    }

    /// Whether the earliest finish always runs: every request is eligible, and
    /// neither [`choosing`](Self::choosing) nor [`served`](Self::served) changes anything.
    #[inline]
    fn orders_by_finish_alone(&self) -> bool {
        false
    }

    /// Of a policy that orders by finish alone: the entity of that share, served up to `start`, goes
    /// behind the one whose request is `turn`, which is chosen. The request it waits with.
    #[inline]
    fn change_places(&mut self, start: VirtualTime, share: &Share, turn: Tag) -> Tag {
        let tag = self.tag_again(None, start, share);
        self.picked(turn);
        Tag { finish: tag.finish.later(turn.finish), ..tag }
    }

    /// Where the queue stands.
    fn virtual_now(&self) -> VirtualTime;

    /// The request of a share whose service starts at `start`.
    fn tag(&self, start: VirtualTime, share: &Share) -> Tag;

    /// The request of a share whose service was interrupted at `start`, while it was on `old` if
    /// that goes on.
    #[inline]
    fn tag_again(&self, old: Option<&Tag>, start: VirtualTime, share: &Share) -> Tag {
        let _ = old;
        self.tag(start, share)
    }

    /// Whether a request may be served yet. Once true, true for as long as the request lasts.
    #[inline]
    fn is_eligible(&self, tag: Tag) -> bool {
        let _ = tag;
        true
    }

    /// Whether a waiting entity that stands at `start` can be on that request.
    #[inline]
    fn is_tag_of(&self, tag: Tag, start: VirtualTime) -> bool {
        tag.start == start
    }

    /// One is about to be chosen among all competitors. The answer is where the queue stands, if
    /// requests may have become eligible by it.
    #[inline]
    fn choosing(&mut self) -> Option<VirtualTime> {
        None
    }

    /// An entity whose next service starts at `tag` is chosen.
    fn picked(&mut self, tag: Tag);

    /// An entity becomes a competitor.
    #[inline]
    fn joined(&mut self, start: VirtualTime, weight: Weight) {
        let _ = (start, weight);
    }

    /// An entity is one no longer.
    #[inline]
    fn left(&mut self, start: VirtualTime, weight: Weight) {
        let _ = (start, weight);
    }

    /// A competitor, of `weights` in all with its own, ends for good.
    #[inline]
    fn ended(&mut self, start: VirtualTime, weight: Weight, weights: u64) {
        let _ = weights;
        self.left(start, weight);
    }

    /// The running competitor, alone on its CPU, has got `virtual_ns` of service since its last
    /// charge, all whole slices, and runs on.
    #[inline]
    fn running(&mut self, virtual_ns: u64, weight: Weight) {
        let _ = (virtual_ns, weight);
    }

    /// The running competitor is charged for `virtual_ns` of service.
    #[inline]
    fn served(&mut self, virtual_ns: u64, weight: Weight) {
        let _ = (virtual_ns, weight);
    }

    /// What an entity that stands at `start` is owed, within what its share may carry.
    #[inline]
    fn lag(&self, start: VirtualTime, share: &Share) -> Lag {
        let limit = share.lag_limit_virtual_ns();
        Lag::new(self.virtual_now().since(start).clamp(-limit, limit))
    }

    /// What an entity is owed that left with `kept` and stands at `start` of this same queue.
    ///
    /// The virtual time that passed meanwhile pays off debt and uses up credit: a short wait
    /// changes little, a long sleeper comes back owed nothing and owing nothing.
    #[inline]
    fn lag_after_rest(&self, start: VirtualTime, kept: Lag, share: &Share) -> Lag {
        let limit = share.lag_limit_virtual_ns();
        let kept_ns = kept.virtual_ns().clamp(-limit, limit);
        let passed_ns = self.virtual_now().since(start).saturating_sub(kept.virtual_ns()).max(0);
        Lag::new(match kept_ns < 0 {
            true => kept_ns.saturating_add(passed_ns).min(0),
            false => kept_ns.saturating_sub(passed_ns).max(0),
        })
    }

    /// Where the service of a newcomer with that lag starts.
    #[inline]
    fn place(&self, lag: Lag, share: &Share) -> VirtualTime {
        let limit = share.lag_limit_virtual_ns();
        Lag::new(lag.virtual_ns().clamp(-limit, limit)).start_at(self.virtual_now())
    }

    /// A competitor's part in the sum that a policy keeps, if it keeps one; for invariants.
    #[inline]
    fn pull(&self, start: VirtualTime, weight: Weight) -> i128 {
        let _ = (start, weight);
        0
    }

    /// The sum it keeps, of where all competitors stood at their last charge.
    #[inline]
    fn pulls(&self) -> i128 {
        0
    }
}
