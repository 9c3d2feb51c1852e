//! The frames behind a memory object, and the index that finds them.
//!
//! An index is a frame of entries, as a page table has them, in the order of the object's pages; of more than fit one
//! there is one for each 512 pages, and one that leads to them. Entries are written by whoever makes the object and
//! emptied by whoever frees it; in between they stay as they are, so that mapping reads them without a walk of its own.

use crate::OutOfMemory;
use crate::frames::{self, Run};
use crate::space::copy_between;
use crate::tables::Store;
use core_address::{Frame, PAGE_SIZE};
use core_frames::Order;
use core_paging::entry::Meaning;
use core_paging::{Access, Entry, Level, PageSize, Rights, TableStore};
use kernel_arch::paging;
use kernel_ops::shared::Shared;
use smp_lock::{LockClass, TicketLock};

/// Entries of an index.
const ENTRIES: u64 = 512;
/// Pages of an object: as many as two levels of indices lead to, which are 1 GiB.
const MAX_PAGES: u64 = ENTRIES * ENTRIES;

/// The frames behind a memory object, or room for some.
#[derive(Debug)]
pub struct SharedFrames {
    index: TicketLock<Index>,
}

#[derive(Clone, Copy, Debug)]
struct Index {
    root: Option<Frame>,
    /// Whether the root leads to indices, not to pages.
    is_deep: bool,
    /// Pages before it were freed.
    first: u64,
    /// Pages from it on were not made.
    end: u64,
}

impl Index {
    const NONE: Self = Self { root: None, is_deep: false, first: 0, end: 0 };

    /// The index that a page's entry is in, if it was made.
    fn leaf(&self, page: u64) -> Option<Frame> {
        let root = self.root?;
        if !self.is_deep {
            return Some(root);
        }
        match Store.read(root, Level::L2.index(page)).meaning(Level::L2) {
            Meaning::Table(leaf) => Some(leaf),
            _ => None,
        }
    }

    /// The frame of a page.
    fn frame(&self, page: u64) -> Option<Frame> {
        match Store.read(self.leaf(page)?, Level::L1.index(page)).meaning(Level::L1) {
            Meaning::Page(frame, _) => Some(frame),
            _ => None,
        }
    }

    /// Frees about so many frames; whether nothing is left.
    fn free(&mut self, most: u64) -> bool {
        let Some(root) = self.root else { return true };
        let mut run = Run::default();
        for _ in 0..most {
            let page = self.first;
            let leaf = self.leaf(page);
            // The last page of an index, and the last of all: the index goes with it.
            let is_last = page >= self.end;
            if let (false, Some(leaf)) = (is_last, leaf) {
                if let Some(frame) = self.frame(page) {
                    Store.write(leaf, Level::L1.index(page), Entry::EMPTY);
                    // SAFETY: leaked in `fill`; the object is over, so nothing maps it, and its entry is empty.
                    unsafe { run.add(frame) };
                }
                self.first += 1;
            }
            if let (true, Some(leaf)) = (self.is_deep, leaf)
                && (is_last || Level::L1.index(self.first) == 0)
            {
                Store.write(root, Level::L2.index(page), Entry::EMPTY);
                Store.free_table(leaf);
            }
            if is_last {
                // SAFETY: as above.
                unsafe { run.free() };
                Store.free_table(root);
                *self = Self::NONE;
                return true;
            }
        }
        // SAFETY: as above.
        unsafe { run.free() };
        false
    }
}

impl SharedFrames {
    /// None.
    pub const fn new() -> Self {
        Self { index: TicketLock::with_class(LockClass::Space, Index::NONE) }
    }

    /// The frames of pages in a row.
    pub(crate) fn find(&self, first: u64, into: &mut [Frame]) {
        let index = self.index.lock();
        for (page, place) in (first..).zip(into) {
            *place = index.frame(page).unwrap_or_default();
        }
    }
}

impl Shared for SharedFrames {
    fn frames_for(pages: u64) -> Option<u32> {
        let indices = if pages <= ENTRIES { 1 } else { 1 + pages.div_ceil(ENTRIES) };
        if pages > MAX_PAGES { None } else { u32::try_from(pages + indices).ok() }
    }

    fn begin(&self, pages: u64) -> Result<(), OutOfMemory> {
        let root = Store.new_table().ok_or(OutOfMemory)?;
        let mut index = self.index.lock();
        debug_assert!(index.root.is_none(), "the last object's frames are here");
        *index = Index { root: Some(root), is_deep: pages > ENTRIES, ..Index::NONE };
        Ok(())
    }

    fn fill(&self, pages: u64) -> Result<(), OutOfMemory> {
        let Index { root, is_deep, end, .. } = *self.index.lock();
        let root = root.ok_or(OutOfMemory)?;
        for page in end..end + pages {
            if is_deep && Level::L1.index(page) == 0 {
                let leaf = Store.new_table().ok_or(OutOfMemory)?;
                Store.write(root, Level::L2.index(page), Entry::table(leaf, false));
            }
            let mut new = frames::allocate(Order::FRAME)?;
            new.zero();
            let mut index = self.index.lock();
            let leaf = index.leaf(page).ok_or(OutOfMemory)?;
            let rights = Rights::kernel(Access::Write);
            let entry = Entry::page(new.leak(), PageSize::Small, rights);
            Store.write(leaf, Level::L1.index(page), entry);
            index.end = page + 1;
        }
        Ok(())
    }

    fn read(&self, offset: u64, to: &mut [u8]) {
        let index = self.index.lock();
        let (mut at, mut left) = (offset, to);
        while !left.is_empty() {
            let inside = (PAGE_SIZE - at % PAGE_SIZE).min(left.len() as u64);
            let (part, rest) = left.split_at_mut(inside as usize);
            if let Some(frame) = index.frame(at / PAGE_SIZE) {
                let from = paging::direct(frame.start()).wrapping_add((at % PAGE_SIZE) as usize);
                // SAFETY: a page of the object, in the direct map; the part is inside of it and of `to`. What others
                // write meanwhile is in the copy or not.
                unsafe { copy_between(part.as_mut_ptr(), from, part.len()) };
            }
            (at, left) = (at + inside, rest);
        }
    }

    fn free(&self, frames: u64) -> bool {
        self.index.lock().free(frames)
    }
}

impl Default for SharedFrames {
    fn default() -> Self {
        Self::new()
    }
}
