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
        if self.count_after(range, changed, None) > self.limit() {
            return Err(VmError::Full);
        }
        let (from, to) = self.isolate(range);
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

    /// Puts one region in the place of whatever is in its range.
    pub(crate) fn replace(&mut self, new: Region) -> Result<(), VmError> {
        if self.count_after(new.range, |_| None, Some(new)) > self.limit() {
            return Err(VmError::Full);
        }
        let (from, to) = self.isolate(new.range);
        self.close_gap(from, to);
        self.open_gap(from);
        self.put(from, new);
        self.merge(from.saturating_sub(1), from.saturating_add(2));
        Ok(())
    }

    /// Makes regions of the pieces in `range`, and says which. Cannot fail: two places are kept
    /// for it.
    fn isolate(&mut self, range: PageRange) -> (usize, usize) {
        self.split_at(range.first());
        self.split_at(range.end());
        self.indices(range)
    }

    /// How many regions there would be if the pieces in `range` were changed, and `new` put
    /// there.
    fn count_after(
        &self,
        range: PageRange,
        changed: impl Fn(Region) -> Option<Region>,
        new: Option<Region>,
    ) -> usize {
        let (from, to) = self.indices(range);
        let (low, high) = (from.saturating_sub(1), to.saturating_add(1).min(self.all().len()));
        let touched = self.all().get(low..high).unwrap_or_default();
        let below = PageRange::part(0, range.first());
        let above = PageRange::part(range.end(), u64::MAX);
        let mut count = Count { last: None, regions: 0 };
        touched.iter().for_each(|old| count.add(old.part_in(below)));
        touched.iter().for_each(|old| count.add(old.part_in(range).and_then(&changed)));
        count.add(new);
        touched.iter().for_each(|old| count.add(old.part_in(above)));
        self.all().len().saturating_sub(touched.len()).saturating_add(count.regions)
    }

    /// Makes page `page` the first of its region.
    fn split_at(&mut self, page: u64) {
        let (at, _) = self.indices(PageRange::part(page, page.saturating_add(1)));
        let Some(old) = self.get(at) else { return };
        let below = old.part_in(PageRange::part(0, page));
        let above = old.part_in(PageRange::part(page, u64::MAX));
        if let (Some(below), Some(above)) = (below, above) {
            self.open_gap(at);
            self.put(at, below);
            self.put(at.saturating_add(1), above);
        }
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
