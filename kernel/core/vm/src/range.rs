//! Pages that user code may dispose of.

use abi_types::place::{CAPSET_VADDR, RING_ROOM, RING_VADDR, TIME_VADDR, USER_END};
use core_address::PAGE_SIZE;

/// Threads a process can have at most, each with a ring block in the arena.
const MOST_THREADS: u64 = 4096;

/// The first page of user memory: the null page is never mapped.
pub const FIRST_PAGE: u64 = 1;
/// The first page after user memory.
pub const LAST_PAGE: u64 = USER_END / PAGE_SIZE;

/// Pages in user memory that the kernel maps and the process cannot change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First page.
    pub first: u64,
    /// The page after the last.
    pub end: u64,
}

/// The kernel's areas, in ascending order: CapSet and time page, ring arena.
pub const AREAS: [Area; 2] = [
    Area { first: CAPSET_VADDR / PAGE_SIZE, end: TIME_VADDR / PAGE_SIZE + 1 },
    Area {
        first: RING_VADDR / PAGE_SIZE,
        end: (RING_VADDR + MOST_THREADS * RING_ROOM) / PAGE_SIZE,
    },
];

const _: () = {
    let [low, high] = AREAS;
    assert!(FIRST_PAGE < low.first && low.first < low.end && low.end < high.first);
    assert!(high.first < high.end && high.end < LAST_PAGE);
};

/// One page or more of user memory, outside the kernel's areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    first: u64,
    end: u64,
}

/// Why an address and a length are no range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// No pages at all.
    Empty,
    /// The address is not a multiple of the page size.
    Misaligned,
    /// It holds the null page, or reaches beyond user memory.
    NotUser,
    /// It touches the ring arena, the CapSet or the time page.
    Kernel,
}

impl PageRange {
    /// `pages` pages from `address`.
    pub const fn new(address: u64, pages: u64) -> Result<Self, RangeError> {
        if !address.is_multiple_of(PAGE_SIZE) {
            return Err(RangeError::Misaligned);
        }
        Self::from_page(address / PAGE_SIZE, pages)
    }

    /// As [`new`](Self::new), by page number.
    pub const fn from_page(first: u64, pages: u64) -> Result<Self, RangeError> {
        if pages == 0 {
            return Err(RangeError::Empty);
        }
        let Some(end) = first.checked_add(pages) else { return Err(RangeError::NotUser) };
        if first < FIRST_PAGE || end > LAST_PAGE {
            return Err(RangeError::NotUser);
        }
        let [low, high] = AREAS;
        if (first < low.end && end > low.first) || (first < high.end && end > high.first) {
            return Err(RangeError::Kernel);
        }
        Ok(Self { first, end })
    }

    /// Pages `first..end`, a part of a range that was checked.
    pub(crate) const fn part(first: u64, end: u64) -> Self {
        Self { first, end }
    }

    /// The first page's number.
    #[inline]
    pub const fn first(self) -> u64 {
        self.first
    }

    /// The number after the last page's.
    #[inline]
    pub const fn end(self) -> u64 {
        self.end
    }

    /// How many pages.
    #[inline]
    pub const fn pages(self) -> u64 {
        self.end.saturating_sub(self.first)
    }

    /// The first byte's address.
    #[inline]
    pub const fn address(self) -> u64 {
        self.first.saturating_mul(PAGE_SIZE)
    }

    /// The pages that are in both.
    pub const fn overlap(self, other: Self) -> Option<Self> {
        let first = if self.first > other.first { self.first } else { other.first };
        let end = if self.end < other.end { self.end } else { other.end };
        if first < end { Some(Self { first, end }) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_user_pages_outside_the_kernels_areas() {
        let new = PageRange::new;
        assert_eq!(new(0x1000, 1).map(PageRange::pages), Ok(1));
        assert_eq!(new(0x1000, 0), Err(RangeError::Empty));
        assert_eq!(new(0x1001, 1), Err(RangeError::Misaligned));
        assert_eq!(new(0, 1), Err(RangeError::NotUser));
        assert_eq!(new(0, 2), Err(RangeError::NotUser));
        assert_eq!(new(USER_END - 0x1000, 1).map(PageRange::pages), Ok(1));
        assert_eq!(new(USER_END - 0x1000, 2), Err(RangeError::NotUser));
        assert_eq!(new(USER_END, 1), Err(RangeError::NotUser));
        assert_eq!(new(0xffff_8000_0000_0000, 1), Err(RangeError::NotUser));
        assert_eq!(new(0xffff_ffff_ffff_f000, 1), Err(RangeError::NotUser));
        assert_eq!(new(0x1000, u64::MAX), Err(RangeError::NotUser));
    }

    #[test]
    fn the_kernels_areas_are_refused_to_the_page() {
        for address in [CAPSET_VADDR, TIME_VADDR, RING_VADDR, RING_VADDR + 4095 * RING_ROOM] {
            assert_eq!(PageRange::new(address, 1), Err(RangeError::Kernel), "{address:#x}");
        }
        for area in AREAS {
            assert!(PageRange::from_page(area.first - 1, 1).is_ok());
            assert_eq!(PageRange::from_page(area.first - 1, 2), Err(RangeError::Kernel));
            assert_eq!(PageRange::from_page(area.end - 1, 1), Err(RangeError::Kernel));
            assert!(PageRange::from_page(area.end, 1).is_ok());
        }
        // One that holds a whole area.
        assert_eq!(PageRange::from_page(FIRST_PAGE, LAST_PAGE - 1), Err(RangeError::Kernel));
    }
}
