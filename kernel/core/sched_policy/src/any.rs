//! The policy a queue is made with, chosen when the machine starts.
//!
//! Decided in ADR 123.

use crate::{Eevdf, Policy, Share, Tag, VirtualTime, Weight, Wfq};

/// The policies there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PolicyKind {
    /// Weighted fair queueing.
    #[default]
    Wfq,
    /// Earliest eligible virtual deadline first.
    Eevdf,
}

impl PolicyKind {
    /// Every policy.
    pub const ALL: [Self; 2] = [Self::Wfq, Self::Eevdf];

    /// The name it is asked for by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wfq => "wfq",
            Self::Eevdf => "eevdf",
        }
    }

    /// The policy of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Either policy. What is answered is the policy's own; only where the two differ is it asked
/// which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnyPolicy {
    kind: PolicyKind,
    /// Weighted fair queueing uses its place on the virtual time line and nothing else.
    state: Eevdf,
}

impl AnyPolicy {
    /// That policy, at `now`.
    pub const fn new(kind: PolicyKind, now: VirtualTime) -> Self {
        Self { kind, state: Eevdf::new(now) }
    }

    /// The policy that was chosen when the queue was made.
    pub const fn kind(&self) -> PolicyKind {
        self.kind
    }

    #[inline]
    const fn is_wfq(&self) -> bool {
        matches!(self.kind, PolicyKind::Wfq)
    }

    #[inline]
    const fn wfq(&self) -> Wfq {
        Wfq::new(self.state.now)
    }
}

impl Default for AnyPolicy {
    fn default() -> Self {
        Self::new(PolicyKind::default(), VirtualTime::default())
    }
}

impl Policy for AnyPolicy {
    #[inline]
    fn is_idle_lag_zero(&self) -> bool {
        self.is_wfq()
    }

    #[inline]
    fn orders_by_finish_alone(&self) -> bool {
        self.is_wfq()
    }

    #[inline]
    fn change_places(&mut self, start: VirtualTime, share: &Share, turn: Tag) -> Tag {
        debug_assert!(self.is_wfq(), "the other policy does not order by finish alone");
        let mut wfq = self.wfq();
        let tag = wfq.change_places(start, share, turn);
        self.state.now = wfq.virtual_now();
        tag
    }

    #[inline]
    fn virtual_now(&self) -> VirtualTime {
        self.state.virtual_now()
    }

    #[inline]
    fn tag(&self, start: VirtualTime, share: &Share) -> Tag {
        match self.kind {
            PolicyKind::Wfq => self.wfq().tag(start, share),
            PolicyKind::Eevdf => self.state.tag(start, share),
        }
    }

    #[inline]
    fn tag_again(&self, old: Option<&Tag>, start: VirtualTime, share: &Share) -> Tag {
        match self.kind {
            PolicyKind::Wfq => self.wfq().tag_again(old, start, share),
            PolicyKind::Eevdf => self.state.tag_again(old, start, share),
        }
    }

    #[inline]
    fn is_eligible(&self, tag: Tag) -> bool {
        self.is_wfq() || self.state.is_eligible(tag)
    }

    #[inline]
    fn is_tag_of(&self, tag: Tag, start: VirtualTime) -> bool {
        match self.kind {
            PolicyKind::Wfq => self.wfq().is_tag_of(tag, start),
            PolicyKind::Eevdf => self.state.is_tag_of(tag, start),
        }
    }

    #[inline]
    fn choosing(&mut self) -> Option<VirtualTime> {
        match self.kind {
            PolicyKind::Wfq => self.wfq().choosing(),
            PolicyKind::Eevdf => self.state.choosing(),
        }
    }

    #[inline]
    fn picked(&mut self, tag: Tag) {
        if self.is_wfq() {
            let mut wfq = self.wfq();
            wfq.picked(tag);
            self.state.now = wfq.virtual_now();
        } else {
            self.state.picked(tag);
        }
    }

    #[inline]
    fn joined(&mut self, start: VirtualTime, weight: Weight) {
        if !self.is_wfq() {
            self.state.joined(start, weight);
        }
    }

    #[inline]
    fn left(&mut self, start: VirtualTime, weight: Weight) {
        if !self.is_wfq() {
            self.state.left(start, weight);
        }
    }

    fn ended(&mut self, start: VirtualTime, weight: Weight, weights: u64) {
        if self.is_wfq() {
            let mut wfq = self.wfq();
            wfq.ended(start, weight, weights);
            self.state.now = wfq.virtual_now();
        } else {
            self.state.ended(start, weight, weights);
        }
    }

    #[inline]
    fn running(&mut self, virtual_ns: u64, weight: Weight) {
        if !self.is_wfq() {
            self.state.running(virtual_ns, weight);
        }
    }

    #[inline]
    fn served(&mut self, virtual_ns: u64, weight: Weight) {
        if !self.is_wfq() {
            self.state.served(virtual_ns, weight);
        }
    }

    #[inline]
    fn pull(&self, start: VirtualTime, weight: Weight) -> i128 {
        if self.is_wfq() { 0 } else { self.state.pull(start, weight) }
    }

    #[inline]
    fn pulls(&self) -> i128 {
        if self.is_wfq() { 0 } else { self.state.pulls() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_go_by_their_names() {
        for kind in PolicyKind::ALL {
            assert_eq!(PolicyKind::named(kind.name()), Some(kind));
            assert_eq!(AnyPolicy::new(kind, VirtualTime::default()).kind(), kind);
        }
        assert_eq!(PolicyKind::named("fifo"), None);
        assert_eq!(AnyPolicy::default().kind(), PolicyKind::Wfq);
    }
}
