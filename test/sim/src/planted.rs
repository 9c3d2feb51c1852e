//! Policies with a bug in them, which a run has to find.

use core_sched_policy::{Lag, Policy, Share, Tag, VirtualTime, Weight, Wfq};

/// Forwards what a faulty policy does not change.
macro_rules! otherwise_wfq {
    () => {
        fn virtual_now(&self) -> VirtualTime {
            self.0.virtual_now()
        }

        fn tag(&self, start: VirtualTime, share: &Share) -> Tag {
            self.0.tag(start, share)
        }

        fn picked(&mut self, tag: Tag) {
            self.0.picked(tag);
        }

        fn ended(&mut self, start: VirtualTime, weight: Weight, weights: u64) {
            self.0.ended(start, weight, weights);
        }
    };
}

/// A sleeper is owed all the time that passed while it slept.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCreditFloor(pub Wfq);

impl Policy for NoCreditFloor {
    otherwise_wfq!();

    fn lag_after_rest(&self, start: VirtualTime, _kept: Lag, _share: &Share) -> Lag {
        Lag::new(self.virtual_now().since(start))
    }

    fn place(&self, lag: Lag, _share: &Share) -> VirtualTime {
        lag.start_at(self.virtual_now())
    }
}

/// A thread takes its place on one queue's time line along to another queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaleTag(pub Wfq);

impl Policy for StaleTag {
    otherwise_wfq!();

    fn lag(&self, start: VirtualTime, _share: &Share) -> Lag {
        Lag::new(start.to_bits() as i64)
    }

    fn lag_after_rest(&self, start: VirtualTime, _kept: Lag, _share: &Share) -> Lag {
        Lag::new(start.to_bits() as i64)
    }

    fn place(&self, lag: Lag, _share: &Share) -> VirtualTime {
        // A new thread comes with nothing and starts at the present.
        match lag {
            Lag::ZERO => self.virtual_now(),
            stale => VirtualTime::from_bits(stale.virtual_ns() as u64),
        }
    }
}
