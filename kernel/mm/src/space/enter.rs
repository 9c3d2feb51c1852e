//! Pages come into a space: frames and tables are made before its lock is taken.
//!
//! Decided in ADR 268.

use super::detached::{MAX_PAGES, MAX_TABLES};
use super::{AddressSpace, InUse, SpaceError};
use crate::OutOfMemory;
use crate::frames::{self, OwnedFrames};
use crate::tables::Store;
use core_address::{Frame, VirtAddr};
use core_frames::Order;
use core_ledger::{Charge, Frames};
use core_paging::{Entry, Rights, TableStore, tree};

/// Single frames full of zeros that nothing refers to; those that are left go back.
#[derive(Debug)]
pub struct Zeroed<const N: usize> {
    frames: [Frame; N],
    /// Those before it were taken out.
    first: usize,
    /// Those from it on were not made.
    end: usize,
}

/// The frames of one mapping.
pub type NewPages = Zeroed<{ MAX_PAGES as usize }>;

impl<const N: usize> Zeroed<N> {
    fn none() -> Self {
        Self { frames: [Frame::default(); N], first: 0, end: 0 }
    }

    /// So many frames, at most `N`.
    pub fn new(count: usize) -> Result<Self, OutOfMemory> {
        let mut made = Self::none();
        made.fill_up_to(count)?;
        Ok(made)
    }

    /// Has at least so many frames, at most `N`, or no more than before.
    fn fill_up_to(&mut self, count: usize) -> Result<(), OutOfMemory> {
        while let Some(left @ 1..) = count.checked_sub(self.count()) {
            let room = self.frames.get_mut(self.end..).ok_or(OutOfMemory)?;
            let mut new = at_most(left.min(room.len()))?;
            new.zero();
            let made = new.count();
            let first = new.leak();
            for (slot, number) in room.iter_mut().zip(0..made) {
                // The order of a block bounds its frames far below where adding would overflow.
                *slot = first.checked_add(number).unwrap_or_default();
            }
            self.end += made as usize;
        }
        Ok(())
    }

    /// How many are left.
    fn count(&self) -> usize {
        self.end - self.first
    }

    /// Takes the first out; it is the caller's. In the order they were made: frames that lie one after the other are
    /// freed together later.
    pub(crate) fn take(&mut self) -> Option<Frame> {
        let frame = self.frames.get(self.first..self.end)?.first().copied()?;
        self.first += 1;
        Some(frame)
    }
}

/// A block of at most so many frames, as large as one comes; a single frame if there is none. Its frames are given
/// back one by one or in runs, as those of any block may be.
fn at_most(frames: usize) -> Result<OwnedFrames, OutOfMemory> {
    let largest = frames.checked_ilog2().and_then(|order| Order::for_frames(1 << order));
    let block = largest.ok_or(OutOfMemory).and_then(frames::allocate);
    block.or_else(|OutOfMemory| match frames {
        0 => Err(OutOfMemory),
        _ => frames::allocate(Order::FRAME),
    })
}

impl<const N: usize> Drop for Zeroed<N> {
    fn drop(&mut self) {
        while let Some(frame) = self.take() {
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
        self.0.take()
    }
    fn free_table(&mut self, _: Frame) {}
}

impl AddressSpace {
    /// Pays for frames before they are allocated.
    pub(super) fn pay_for(&self, frames: u64) -> Result<Charge<'static, Frames>, SpaceError> {
        let frames = u32::try_from(frames).map_err(|_| SpaceError::BadRange)?;
        Ok(self.root.lock().in_use_mut()?.paid.reserve_more(frames)?.commit())
    }

    /// Maps pages, each onto the frame `frame_of` says for it, of which `paid` pays for those that are the space's
    /// own. An error changes nothing, and `frame_of` is not called.
    pub(super) fn enter(
        &self,
        virt: VirtAddr,
        pages: u64,
        rights: Rights,
        mut paid: Charge<'static, Frames>,
        frame_of: impl FnMut(u64) -> Frame,
    ) -> Result<(), SpaceError> {
        let mut tables = Zeroed::none();
        loop {
            let mut lock = self.root.lock();
            let InUse { root, paid: all } = lock.in_use_mut()?;
            let missing = tree::missing_tables(&Store, *root, virt, pages)?;
            if missing > tables.count() {
                let more = all.reserve_more((missing - tables.count()) as u32)?.commit();
                drop(lock);
                let merged = paid.merge(more);
                debug_assert!(merged.is_ok(), "a space has one account");
                tables.fill_up_to(missing)?;
                continue;
            }
            tree::fill(&mut Entering(&mut tables), *root, virt, pages, rights, frame_of)?;
            // Another thread may have made some of the tables meanwhile.
            let unused = paid.split(tables.count() as u32);
            let merged = all.merge(paid);
            debug_assert!(merged.is_ok(), "a space has one account");
            drop(lock);
            // Before what paid for them.
            drop(tables);
            drop(unused);
            return Ok(());
        }
    }
}
