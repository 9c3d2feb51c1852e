//! Looking for room.

use core_address::PAGE_SIZE;

use crate::{AREAS, FIRST_PAGE, LAST_PAGE, PageRange, RangeError, Region, Regions, VmError};

/// The free pages around `page`, which can be mapped, between two regions: pages `first..end` but for what cannot
/// be mapped.
pub fn gap_around(page: u64, first: u64, end: u64) -> Result<PageRange, RangeError> {
    let (mut first, mut end) = (first.max(FIRST_PAGE), end.min(LAST_PAGE));
    for area in AREAS {
        if area.end <= page {
            first = first.max(area.end);
        } else {
            end = end.min(area.first);
        }
    }
    PageRange::from_page(first, end.saturating_sub(first))
}

impl<S: AsRef<[Region]> + AsMut<[Region]>> Regions<S> {
    /// The lowest `pages` free pages in a row at or above `hint`, an address; without any, the
    /// lowest at all.
    pub fn find_free(&self, pages: u64, hint: u64) -> Result<PageRange, VmError> {
        let hint = hint.div_ceil(PAGE_SIZE).max(FIRST_PAGE);
        match self.find_from(pages, hint) {
            Err(VmError::NoRoom) if hint > FIRST_PAGE => self.find_from(pages, FIRST_PAGE),
            found => found,
        }
    }

    /// One walk up the list: each turn goes past a region or a kernel area.
    fn find_from(&self, pages: u64, mut first: u64) -> Result<PageRange, VmError> {
        let (from, _) = self.indices(PageRange::part(first, first.saturating_add(1)));
        let mut left = self.all().iter().skip(from);
        let mut next = left.next();
        loop {
            let range = match PageRange::from_page(first, pages) {
                Ok(range) => range,
                Err(RangeError::Kernel) => {
                    let end = first.saturating_add(pages);
                    let hit = AREAS.iter().rfind(|area| first < area.end && end > area.first);
                    first = hit.ok_or(VmError::NoRoom)?.end;
                    continue;
                }
                Err(_) => return Err(VmError::NoRoom),
            };
            match next {
                // Below: a kernel area was in between.
                Some(region) if region.range.end() <= first => {}
                Some(region) if region.range.first() < range.end() => first = region.range.end(),
                _ => return Ok(range),
            }
            next = left.next();
        }
    }
}
