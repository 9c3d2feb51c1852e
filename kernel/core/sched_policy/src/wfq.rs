//! Weighted fair queueing: the earliest virtual finish runs, virtual time is the start tag of
//! the thread in service.
//!
//! Decided in ADR 60.

use crate::reciprocal::Reciprocal;
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
    fn orders_by_finish_alone(&self) -> bool {
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

    /// What it had in advance is owed to the others by nobody any more: it is as if virtual time
    /// had passed while it ran. Otherwise it would stand for a stream of threads each of which
    /// starts in the present and ends soon, and who was there before would never be due.
    fn ended(&mut self, start: VirtualTime, weight: Weight, weights: u64) {
        let ahead = i128::from(start.since(self.now)) * i128::from(weight.get());
        self.now = self.now.after(Reciprocal::new(weights.max(1)).quotient(ahead));
    }

    #[inline]
    fn picked(&mut self, tag: Tag) {
        self.now = self.now.later(tag.start);
    }
}
