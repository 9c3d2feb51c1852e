//! Looking for room.

use core_address::PAGE_SIZE;

use crate::{AREAS, FIRST_PAGE, PageRange, RangeError, Region, Regions, VmError};

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

    /// Each turn goes past a region or a kernel area, so it takes as many turns as there are.
    fn find_from(&self, pages: u64, mut first: u64) -> Result<PageRange, VmError> {
        loop {
            first = match PageRange::from_page(first, pages) {
                Ok(range) => match self.pieces(range).last() {
                    // Whatever is free before its end is shorter than the range.
                    Some(last) => last.range.end(),
                    None => return Ok(range),
                },
                Err(RangeError::Kernel) => {
                    let end = first.saturating_add(pages);
                    let hit = AREAS.iter().rfind(|area| first < area.end && end > area.first);
                    hit.ok_or(VmError::NoRoom)?.end
                }
                Err(_) => return Err(VmError::NoRoom),
            };
        }
    }
}
