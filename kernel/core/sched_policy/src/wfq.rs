//! Weighted fair queueing: the earliest virtual finish runs, virtual time is the start tag of
//! whoever is in service.

use crate::{Policy, Share, Tag, VirtualTime, Weight};

/// One queue's virtual time under weighted fair queueing; it never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wfq {
    now: VirtualTime,
}

impl Wfq {
    /// A queue that stands at `now`.
    pub const fn new(now: VirtualTime) -> Self {
        Self { now }
    }
}

impl Policy for Wfq {
    #[inline]
    fn is_idle_lag_zero(&self) -> bool {
        true
    }

    #[inline]
    fn virtual_now(&self) -> VirtualTime {
        self.now
    }

    #[inline]
    fn tag(&self, start: VirtualTime, share: &Share) -> Tag {
        Tag { start, finish: start.after(share.request_virtual_ns()) }
    }

    fn ended(&mut self, start: VirtualTime, weight: Weight, weights: u64) {
        self.now = self.after_end(start, weight, weights);
    }

    #[inline]
    fn picked(&mut self, tag: Tag) {
        self.now = self.now.later(tag.start);
    }
}
