//! What an ordering policy answers; a queue is generic over it.

use crate::{Lag, Share, VirtualTime, Weight};

/// Where a request lies on its queue's virtual time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Where the service starts.
    pub start: VirtualTime,
    /// Where it ends if the whole request is served.
    pub finish: VirtualTime,
}

/// One queue's virtual time and the rule by which it passes.
///
/// A queue calls `joined` and `left` for every entity that becomes or ceases to be a
/// competitor there (running or waiting), `served` for every charge and `picked` for every
/// choice, so a policy that needs sums over its competitors can keep them.
pub trait Policy {
    /// Where the queue stands.
    fn virtual_now(&self) -> VirtualTime;

    /// The request of a share whose service starts at `start`.
    fn tag(&self, start: VirtualTime, share: &Share) -> Tag;

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

    /// A competitor got `virtual_ns` of service.
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
}
