//! Physical memory as the loader sees it, and the pages it takes for itself.
//!
//! [`Memory`] is the only way the core reaches memory. [`Frames`] hands out whole pages from
//! the usable ranges below 4 GiB (page table roots and the AP trampoline need 32-bit
//! addresses, and both front ends can reach that part), from the top down, and remembers
//! what it handed out so that the memory map can say so.

use arrayvec::ArrayVec;

use crate::memmap::{Kind, Region};
use crate::refusal::Refusal;

/// A page.
pub const PAGE: u64 = 4096;

/// Nothing the loader allocates lies above this.
pub const ALLOCATION_LIMIT: u64 = 1 << 32;

/// Rounds up to a page; saturates at the last page boundary.
pub const fn page_up(address: u64) -> u64 {
    match address.checked_add(PAGE - 1) {
        Some(sum) => sum & !(PAGE - 1),
        None => !(PAGE - 1),
    }
}

/// Rounds down to a page.
pub const fn page_down(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// Bytes at physical addresses.
///
/// `None` means the range is not memory the loader can reach; the core turns that into a
/// refusal and never assumes an address from a table or a file is good.
pub trait Memory {
    /// `length` bytes at `base`, to read.
    fn view(&self, base: u64, length: u64) -> Option<&[u8]>;
    /// `length` bytes at `base`, to write.
    fn bytes(&mut self, base: u64, length: u64) -> Option<&mut [u8]>;
    /// Copies between two ranges that do not overlap.
    fn copy(&mut self, from: u64, to: u64, length: u64) -> Option<()>;
}

/// A little-endian u64 at the start of `bytes` + `offset`.
pub fn get_u64(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// A little-endian u32 at `offset`.
pub fn get_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// A little-endian u16 at `offset`.
pub fn get_u16(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// Writes a little-endian u64 at `offset`.
pub fn put_u64(bytes: &mut [u8], offset: usize, value: u64) -> Option<()> {
    *bytes.get_mut(offset..)?.first_chunk_mut()? = value.to_le_bytes();
    Some(())
}

/// Free ranges the allocator can keep; more fragments than this are left to the kernel.
const MAX_RANGES: usize = 128;

/// Distinct runs of allocated pages; neighbours of one kind merge.
const MAX_TAKEN: usize = 128;

/// A page allocator over the usable part of a memory map.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    free: ArrayVec<(u64, u64), MAX_RANGES>,
    taken: ArrayVec<Region, MAX_TAKEN>,
}

impl Frames {
    /// Starts with the usable entries of a normalised map.
    ///
    /// The first page is never handed out: firmware keeps its vectors there.
    pub fn new(map: &[Region]) -> Self {
        let mut frames = Self::default();
        for region in map.iter().rev().filter(|region| region.kind == Kind::Usable) {
            let base = page_up(region.base.max(PAGE));
            let end = page_down(region.end().min(ALLOCATION_LIMIT));
            if base < end && frames.free.try_push((base, end)).is_err() {
                break;
            }
        }
        frames
    }

    /// What was handed out, for the memory map.
    pub fn taken(&self) -> &[Region] {
        &self.taken
    }

    /// `pages` pages below `limit` on a multiple of `alignment`, as high as possible.
    pub fn allocate(
        &mut self,
        pages: u64,
        alignment: u64,
        limit: u64,
        kind: Kind,
    ) -> Result<u64, Refusal> {
        let refusal = Refusal::OutOfMemory { pages };
        let length = pages.checked_mul(PAGE).ok_or_else(|| refusal.clone())?;
        let alignment = alignment.max(PAGE);
        if pages == 0 || !alignment.is_power_of_two() {
            return Err(refusal);
        }
        let fits = |&(base, end): &(u64, u64)| {
            let start = end.min(limit).checked_sub(length)? & !(alignment - 1);
            (start >= base).then_some(start)
        };
        let best = self
            .free
            .iter()
            .enumerate()
            .filter_map(|(index, range)| fits(range).map(|start| (start, index)))
            .max();
        let (start, index) = best.ok_or_else(|| refusal.clone())?;
        self.record(Region { base: start, length, kind }, refusal)?;
        let Some(range) = self.free.get_mut(index) else {
            return Err(Refusal::OutOfMemory { pages });
        };
        let above = (start + length, range.1);
        range.1 = start;
        if range.0 == range.1 {
            self.free.swap_remove(index);
        }
        if above.0 < above.1 {
            // A full list loses the gap; the pages stay usable for the kernel.
            let _ = self.free.try_push(above);
        }
        Ok(start)
    }

    fn record(&mut self, region: Region, refusal: Refusal) -> Result<(), Refusal> {
        for other in self.taken.iter_mut().filter(|other| other.kind == region.kind) {
            if region.end() == other.base {
                other.base = region.base;
                other.length += region.length;
                return Ok(());
            }
            if other.end() == region.base {
                other.length += region.length;
                return Ok(());
            }
        }
        self.taken.try_push(region).map_err(|_| refusal)
    }
}
