//! The pages behind a registered buffer, as they were found once: reached through the direct map, without a walk.
//!
//! The frames are not the value's: they stay mapped in their space as long as the value exists, which the list of
//! regions sees to (`core_vm`: pages that are registered are neither unmapped nor protected), and the space stays as
//! long as its process has a buffer open.

use super::{AddressSpace, NotMapped, copy_between};
use core_address::{Frame, PAGE_SIZE};
use core_ledger::Ledger;
use core_vm::PageRange;
use kernel_arch::paging;
use kernel_ops::paid::{NoMemory, PaidVec};
use kernel_ops::registered::Pages;

/// The pages behind a registered buffer, in order.
#[derive(Debug)]
pub struct BufferPages(PaidVec<Frame>);

impl BufferPages {
    /// Room for so many pages.
    pub(crate) fn with_room(ledger: &'static Ledger, count: u64) -> Result<Self, NoMemory> {
        let count = usize::try_from(count).map_err(|_| NoMemory::Machine)?;
        Ok(Self(PaidVec::with_room(ledger, count)?))
    }

    /// What is at an offset, through the direct map, and how many bytes follow in that page.
    #[inline]
    fn at(&self, offset: u64) -> Option<(*mut u8, usize)> {
        let frame = self.0.as_ref().get((offset / PAGE_SIZE) as usize)?;
        let inside = (offset % PAGE_SIZE) as usize;
        let place = paging::direct(frame.start()).wrapping_add(inside);
        Some((place, PAGE_SIZE as usize - inside))
    }
}

impl AddressSpace {
    /// Finds the pages of a range, all of which are mapped, and adds them to a buffer's.
    pub(crate) fn add_to_buffer(
        &self,
        pages: &mut BufferPages,
        part: PageRange,
    ) -> Result<(), NotMapped> {
        for page in part.first()..part.end() {
            let frame = self.translate(page * PAGE_SIZE)?.frame();
            pages.0.push(frame).map_err(|_| NotMapped)?;
        }
        Ok(())
    }
}

impl Pages for BufferPages {
    fn read(&self, offset: u64, to: &mut [u8]) {
        let (mut offset, mut left) = (offset, to);
        while let Some((from, inside)) = self.at(offset)
            && !left.is_empty()
        {
            let (part, rest) = left.split_at_mut(inside.min(left.len()));
            // SAFETY: a page that is mapped as long as this value exists (PT-8), in the direct map; the part is inside of it and of
            // `to`. What the user writes meanwhile is in the copy or not.
            unsafe { copy_between(part.as_mut_ptr(), from, part.len()) };
            offset += part.len() as u64;
            left = rest;
        }
    }

    fn write(&self, offset: u64, from: &[u8]) {
        let (mut offset, mut left) = (offset, from);
        while let Some((to, inside)) = self.at(offset)
            && !left.is_empty()
        {
            let (part, rest) = left.split_at(inside.min(left.len()));
            // SAFETY: as above (PT-8), the other way round; the user may write there, so nothing of the kernel's is.
            unsafe { copy_between(to, part.as_ptr(), part.len()) };
            offset += part.len() as u64;
            left = rest;
        }
    }

    fn copy_to(&self, offset: u64, to: &Self, to_offset: u64, bytes: usize) {
        let mut done = 0;
        while done < bytes
            && let Some((from, readable)) = self.at(offset + done as u64)
            && let Some((into, writable)) = to.at(to_offset + done as u64)
        {
            let part = readable.min(writable).min(bytes - done);
            // SAFETY: both are pages of users, mapped as long as these values exist (PT-8), in the direct map, and the part is
            // inside of both; the target's user may write there. If they are one page, what overlaps is some bytes of it.
            unsafe { copy_between(into, from, part) };
            done += part;
        }
    }
}
