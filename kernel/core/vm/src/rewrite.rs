//! The one way the list changes: the pages of a range get a new use, or none.

use crate::{PageRange, Region, Regions, Use, VmError};

/// Counts the regions that a sequence of pieces in ascending order comes to.
struct Count {
    last: Option<Region>,
    regions: usize,
}

impl Count {
    fn add(&mut self, piece: Option<Region>) {
        let Some(piece) = piece else { return };
        self.last = match self.last {
            Some(last) if last.continues_in(&piece) => Some(last.joined(&piece)),
            _ => {
                self.regions = self.regions.saturating_add(1);
                Some(piece)
            }
        };
    }
}

impl<S: AsRef<[Region]> + AsMut<[Region]>> Regions<S> {
    /// Gives the regions in `range` another use, or with `None` takes them out. Fails, before anything is
    /// changed, if the list would have more regions than it may.
    pub(crate) fn rewrite(
        &mut self,
        range: PageRange,
        change: impl Fn(Region) -> Option<Use>,
    ) -> Result<(), VmError> {
        let changed = |old: Region| change(old).map(|usage| Region { range: old.range, usage });
        let (from, to) = self.indices(range);
        if let Some(only) = self.get(from)
            && to == from.saturating_add(1)
            && only.range == range
        {
            self.rewrite_whole(from, changed(only));
            return Ok(());
        }
        if self.count_after(range, (from, to), changed) > self.limit() {
            return Err(VmError::Full);
        }
        let (from, to) = self.isolate(range, from, to);
        let mut kept = from;
        for at in from..to {
            if let Some(new) = self.get(at).and_then(changed) {
                self.put(kept, new);
                kept = kept.saturating_add(1);
            }
        }
        self.close_gap(kept, to);
        // From the region before the range to the one after it.
        self.merge(from.saturating_sub(1), kept.saturating_add(1));
        Ok(())
    }

    /// The same for one region as a whole: there are as many then, or fewer.
    fn rewrite_whole(&mut self, at: usize, new: Option<Region>) {
        match new {
            // What is left on either side does not touch.
            None => self.close_gap(at, at.saturating_add(1)),
            Some(new) => {
                self.put(at, new);
                // What is somebody's range joins nothing.
                if !new.usage.is_apart() {
                    self.merge(at.saturating_sub(1), at.saturating_add(2));
                }
            }
        }
    }

    /// Puts one region where only reserved pages are, or none.
    pub(crate) fn replace(&mut self, new: Region) -> Result<(), VmError> {
        let (from, to) = self.indices(new.range);
        if from == to && new.usage.is_apart() {
            // Nothing is in the way, and it joins nothing.
            if self.all().len() >= self.limit() {
                return Err(VmError::Full);
            }
            self.open_gap(from);
            self.put(from, new);
            return Ok(());
        }
        let mut count = self.count(new.range, (from, to), |_| None);
        count.add(Some(new));
        if self.count_rest(new.range, (from, to), count) > self.limit() {
            return Err(VmError::Full);
        }
        let (from, to) = self.isolate(new.range, from, to);
        self.close_gap(from, to);
        self.open_gap(from);
        self.put(from, new);
        self.merge(from.saturating_sub(1), from.saturating_add(2));
        Ok(())
    }

    /// Makes regions of the pieces in `range`, of which those from number `from` up to, not including, `to` overlap it; and
    /// says which they are then. Cannot fail: two places are kept for it.
    fn isolate(&mut self, range: PageRange, from: usize, to: usize) -> (usize, usize) {
        let below = self.split(from, range.first());
        let (from, to) = (from.saturating_add(below), to.saturating_add(below));
        // Cut above, the part in the range keeps the number.
        self.split(to.saturating_sub(1).max(from), range.end());
        (from, to)
    }

    /// How many regions there would be if the pieces in `range` were changed; of which those with these numbers have one.
    fn count_after(
        &self,
        range: PageRange,
        inside: (usize, usize),
        changed: impl Fn(Region) -> Option<Region>,
    ) -> usize {
        let count = self.count(range, inside, changed);
        self.count_rest(range, inside, count)
    }

    /// The regions that a range touches: one on either side as well.
    fn touched(&self, (from, to): (usize, usize)) -> &[Region] {
        let (low, high) = (from.saturating_sub(1), to.saturating_add(1).min(self.all().len()));
        self.all().get(low..high).unwrap_or_default()
    }

    /// Counts what is below the range, and what its pieces become.
    fn count(
        &self,
        range: PageRange,
        inside: (usize, usize),
        changed: impl Fn(Region) -> Option<Region>,
    ) -> Count {
        let below = PageRange::part(0, range.first());
        let mut count = Count { last: None, regions: 0 };
        let touched = self.touched(inside);
        touched.iter().for_each(|old| count.add(old.part_in(below)));
        touched.iter().for_each(|old| count.add(old.part_in(range).and_then(&changed)));
        count
    }

    /// Counts what is above the range, and everything it does not touch.
    fn count_rest(&self, range: PageRange, inside: (usize, usize), mut count: Count) -> usize {
        let above = PageRange::part(range.end(), u64::MAX);
        let touched = self.touched(inside);
        touched.iter().for_each(|old| count.add(old.part_in(above)));
        self.all().len().saturating_sub(touched.len()).saturating_add(count.regions)
    }

    /// Makes page `page` the first of a region if it lies within the one at number `at`; how many regions that adds.
    fn split(&mut self, at: usize, page: u64) -> usize {
        let Some(old) = self.get(at) else { return 0 };
        if old.range.first() >= page || page >= old.range.end() {
            return 0;
        }
        let below = old.part_in(PageRange::part(0, page));
        let above = old.part_in(PageRange::part(page, u64::MAX));
        if let (Some(below), Some(above)) = (below, above) {
            self.open_gap(at);
            self.put(at, below);
            self.put(at.saturating_add(1), above);
        }
        1
    }

    /// Joins regions from number `from` up to, not including, `to` that continue each other.
    fn merge(&mut self, from: usize, to: usize) {
        let to = to.min(self.all().len());
        let mut kept = from;
        for at in from.saturating_add(1)..to {
            let (Some(last), Some(next)) = (self.get(kept), self.get(at)) else { return };
            if last.continues_in(&next) {
                self.put(kept, last.joined(&next));
            } else {
                kept = kept.saturating_add(1);
                self.put(kept, next);
            }
        }
        self.close_gap(kept.saturating_add(1), to);
    }
}
