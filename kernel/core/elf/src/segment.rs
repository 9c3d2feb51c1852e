//! One range of pages of an image.

use core_address::PAGE_SIZE;
use core_paging::Access;

use crate::FileBytes;

/// Pages with one kind of access: `bytes` from `offset` in the first page on, zero elsewhere.
///
/// Segments of one image share no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First address, a multiple of the page size.
    pub start: u64,
    /// Pages, at least one.
    pub pages: u64,
    /// What the program may do with them.
    pub access: Access,
    /// What the file holds of them.
    pub bytes: FileBytes,
    /// Where `bytes` goes, from `start`; less than a page.
    pub offset: u64,
}

impl Segment {
    /// First address past the pages.
    pub const fn end(&self) -> u64 {
        self.start + self.pages * PAGE_SIZE
    }

    /// Whether an instruction from the file can be at the address.
    pub fn is_code(&self, address: u64) -> bool {
        let at = address.checked_sub(self.start + self.offset);
        self.access == Access::Execute && at.is_some_and(|at| at < self.bytes.length)
    }

    /// What page number `page` begins with: how many zeros, then which bytes of the file. The
    /// rest of the page is zero.
    pub fn page(&self, page: u64) -> (usize, FileBytes) {
        let from = page.saturating_mul(PAGE_SIZE);
        let zeros = self.offset.saturating_sub(from).min(PAGE_SIZE);
        let skipped = from.saturating_sub(self.offset);
        (zeros as usize, self.bytes.part(skipped, PAGE_SIZE - zeros))
    }

    /// What is left of it without some pages, by ascending address. The pages come in that order, are
    /// within it and hold no bytes of the file.
    pub(crate) fn without(
        self,
        mut pages: impl Iterator<Item = u64>,
    ) -> impl Iterator<Item = Self> {
        let mut rest = self;
        core::iter::from_fn(move || {
            while rest.pages > 0 {
                let Some(at) = pages.next() else {
                    let last = rest;
                    rest.pages = 0;
                    return Some(last);
                };
                let before = at.saturating_sub(rest.start) / PAGE_SIZE;
                let part = Self { pages: before, ..rest };
                rest = Self {
                    start: at.saturating_add(PAGE_SIZE),
                    pages: rest.pages.saturating_sub(before + 1),
                    bytes: FileBytes::NONE,
                    offset: 0,
                    ..rest
                };
                if part.pages > 0 {
                    return Some(part);
                }
            }
            None
        })
    }
}
