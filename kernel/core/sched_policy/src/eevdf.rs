//! Earliest eligible virtual deadline first.
//!
//! Virtual time is the mean of where the competitors stand, weighted: a competitor behind it
//! is owed service, one ahead of it has had too much. A request is eligible once virtual
//! time has reached the place where it starts; of the eligible requests the one that ends
//! first runs. A request that has become eligible stays so until it is served, however far its
//! owner has got with it.
//!
//! Virtual time is brought up to date when the running one is charged and when one is chosen, not
//! within a slice: a thread that wakes during one is placed where the slice began.
//!
//! A patient class asks for several slices at once and lets the others go first: its request is
//! eligible when it is owed all but the last slice of it. While none is eligible, the first
//! to become so runs.
//!
//! Decided in ADR 120.

use crate::reciprocal::Reciprocal;
use crate::{Policy, Share, Tag, VirtualTime, Weight};

/// While the mean lies behind it, virtual time is slower by one part in so many than it would be
/// if nobody came or went.
const SLOWEST: i128 = 8;

/// One queue's virtual time under EEVDF.
///
/// It never goes back: when the mean does (someone who was owed service comes, someone who owed
/// some goes), virtual time is slower until the mean has caught up. It does not stand: those who
/// come without debt and go with some that nobody collects, one after the other, would hold it
/// where it is, and who waits to become eligible would wait for ever.
///
/// Fractions of one virtual ns stay in the sums, so nothing is rounded away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eevdf {
    pub(crate) now: VirtualTime,
    /// Over all competitors: weight times distance from `now`. Below zero while the mean lies
    /// behind `now`, and otherwise less than the sum of weights once virtual time is advanced.
    pulls: i128,
    /// The least by which virtual time has to pass for what was served, times the weights.
    passing: i128,
    /// Sum of weights.
    weights: u64,
    /// One over some recent sum of weights.
    reciprocal: Reciprocal,
    /// What the running one has been served and is not charged for yet is in `pulls` already,
    /// up to here.
    running_virtual_ns: u64,
    running_weight: u64,
}

impl Eevdf {
    /// A queue that stands at `now`.
    pub const fn new(now: VirtualTime) -> Self {
        Self {
            now,
            pulls: 0,
            passing: 0,
            weights: 0,
            reciprocal: Reciprocal::new(1),
            running_virtual_ns: 0,
            running_weight: 0,
        }
    }

    /// Moves virtual time up to the mean.
    #[inline(never)]
    fn advance(&mut self) {
        if self.pulls < i128::from(self.weights) || self.weights == 0 {
            return;
        }
        let step = self.per_weight(self.pulls);
        self.now = self.now.after(step);
        self.pulls -= i128::from(self.weights) * i128::from(step);
    }

    /// Adds to what the running one has been served beyond what is known.
    #[inline]
    fn serve(&mut self, virtual_ns: u64, weight: u64) {
        let more = virtual_ns.saturating_sub(self.running_virtual_ns);
        let served = i128::from(weight) * i128::from(more);
        self.pulls += served;
        self.passing += served - served / SLOWEST;
        if self.pulls >= self.passing {
            self.passing = 0;
            self.advance();
        } else if self.weights > 0 {
            let step = self.per_weight(self.passing);
            let passed = i128::from(self.weights) * i128::from(step);
            self.now = self.now.after(step);
            self.pulls -= passed;
            self.passing -= passed;
        }
    }

    /// A sum over all competitors, divided among them by weight.
    #[inline]
    fn per_weight(&mut self, sum: i128) -> u64 {
        if self.reciprocal.divisor() != self.weights {
            self.reciprocal = Reciprocal::new(self.weights);
        }
        self.reciprocal.quotient(sum)
    }
}

impl Default for Eevdf {
    fn default() -> Self {
        Self::new(VirtualTime::default())
    }
}

// What keeps the sums is out of line, so that it takes no registers from a queue that has the
// other policy.
impl Policy for Eevdf {
    #[inline]
    fn virtual_now(&self) -> VirtualTime {
        self.now
    }

    #[inline]
    fn tag(&self, start: VirtualTime, share: &Share) -> Tag {
        Tag {
            start: start.after(share.patience_virtual_ns()),
            finish: start.after(share.request_virtual_ns()),
        }
    }

    /// A request goes on until it is served: it keeps its deadline and stays eligible.
    #[inline]
    fn tag_again(&self, old: Option<&Tag>, start: VirtualTime, share: &Share) -> Tag {
        match old {
            Some(old) if start.is_before(old.finish) => *old,
            _ => self.tag(start, share),
        }
    }

    #[inline]
    fn is_eligible(&self, tag: Tag) -> bool {
        !self.now.is_before(tag.start)
    }

    #[inline]
    fn is_tag_of(&self, tag: Tag, start: VirtualTime) -> bool {
        start.is_before(tag.finish)
    }

    #[inline(never)]
    fn joined(&mut self, start: VirtualTime, weight: Weight) {
        self.weights += u64::from(weight.get());
        self.pulls += self.pull(start, weight);
    }

    #[inline(never)]
    fn left(&mut self, start: VirtualTime, weight: Weight) {
        self.weights -= u64::from(weight.get());
        self.pulls -= self.pull(start, weight);
    }

    #[inline(never)]
    fn running(&mut self, virtual_ns: u64, weight: Weight) {
        let weight = u64::from(weight.get());
        self.serve(virtual_ns, weight);
        self.running_virtual_ns = virtual_ns;
        self.running_weight = weight;
    }

    #[inline(never)]
    fn served(&mut self, virtual_ns: u64, weight: Weight) {
        self.serve(virtual_ns, u64::from(weight.get()));
        self.running_virtual_ns = 0;
    }

    #[inline]
    fn choosing(&mut self) -> Option<VirtualTime> {
        self.advance();
        Some(self.now)
    }

    /// Virtual time does not follow the choice: the mean moves it.
    #[inline]
    fn picked(&mut self, _tag: Tag) {}

    #[inline]
    fn pull(&self, start: VirtualTime, weight: Weight) -> i128 {
        i128::from(start.since(self.now)) * i128::from(weight.get())
    }

    #[inline]
    fn pulls(&self) -> i128 {
        self.pulls - i128::from(self.running_weight) * i128::from(self.running_virtual_ns)
    }
}
