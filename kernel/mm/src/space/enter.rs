//! Pages come into a space: frames and tables are made before its lock is taken.

use super::detached::{MAX_PAGES, MAX_TABLES};
use super::{AddressSpace, SpaceError};
use crate::OutOfMemory;
use crate::frames::{self, OwnedFrames};
use crate::tables::Store;
use core_address::{Frame, VirtAddr};
use core_frames::Order;
use core_paging::{Entry, Rights, TableStore, tree};

/// Single frames full of zeros that nothing refers to; those that are left go back.
#[derive(Debug)]
pub struct Zeroed<const N: usize> {
    frames: [Frame; N],
    count: usize,
}

/// The frames of one mapping.
pub type NewPages = Zeroed<{ MAX_PAGES as usize }>;

impl<const N: usize> Zeroed<N> {
    fn none() -> Self {
        Self { frames: [Frame::default(); N], count: 0 }
    }

    /// So many frames, at most `N`.
    pub fn new(count: usize) -> Result<Self, OutOfMemory> {
        let mut made = Self::none();
        made.fill_up_to(count)?;
        Ok(made)
    }

    /// Has at least so many frames, at most `N`, or no more than before.
    fn fill_up_to(&mut self, count: usize) -> Result<(), OutOfMemory> {
        while self.count < count {
            let slot = self.frames.get_mut(self.count).ok_or(OutOfMemory)?;
            let mut new = frames::allocate(Order::FRAME)?;
            new.zero();
            *slot = new.leak();
            self.count += 1;
        }
        Ok(())
    }

    /// Takes one out; it is the caller's.
    pub(crate) fn pop(&mut self) -> Option<Frame> {
        self.count = self.count.checked_sub(1)?;
        self.frames.get(self.count).copied()
    }
}

impl<const N: usize> Drop for Zeroed<N> {
    fn drop(&mut self) {
        while let Some(frame) = self.pop() {
            // SAFETY: leaked in `fill_up_to`; what is still here was given to nobody.
            drop(unsafe { OwnedFrames::from_leaked(frame, Order::FRAME) });
        }
    }
}

/// The tables of a space while pages come into it.
struct Entering<'t>(&'t mut Zeroed<MAX_TABLES>);

impl TableStore for Entering<'_> {
    fn read(&self, table: Frame, index: usize) -> Entry {
        Store.read(table, index)
    }
    fn write(&mut self, table: Frame, index: usize, entry: Entry) {
        Store.write(table, index, entry);
    }
    fn new_table(&mut self) -> Option<Frame> {
        self.0.pop()
    }
    fn free_table(&mut self, _: Frame) {}
}

impl AddressSpace {
    /// Maps at most [`MAX_PAGES`] pages, each onto the frame `frame_of` says for it; how many tables that took. An
    /// error changes nothing, and `frame_of` is not called.
    pub(super) fn enter(
        &self,
        virt: VirtAddr,
        pages: u64,
        rights: Rights,
        frame_of: impl FnMut(u64) -> Frame,
    ) -> Result<usize, SpaceError> {
        let mut tables = Zeroed::none();
        loop {
            let lock = self.root.lock();
            let root = lock.in_use().ok_or(SpaceError::Absent)?;
            let missing = tree::missing_tables(&Store, root, virt, pages)?;
            if missing <= tables.count {
                tree::fill(&mut Entering(&mut tables), root, virt, pages, rights, frame_of)?;
                drop(lock);
                return Ok(missing);
            }
            drop(lock);
            tables.fill_up_to(missing)?;
        }
    }
}
