//! Pages and tables that were unmapped, and wait until no CPU can reach them.
//!
//! Decided in ADRs 28 and 132.

use super::{AddressSpace, InUse, SpaceError};
use crate::frames::OwnedFrames;
use crate::tables::Store;
use core::mem::ManuallyDrop;
use core_address::{Frame, VirtAddr};
use core_frames::Order;
use core_ledger::{Charge, Frames};
use core_paging::{Access, Entry, TableStore, UnmapError, tree};
use kernel_arch::paging::{CpuSet, Flush, FlushPermit};
use kernel_ops::machine::Taken;

/// Pages that one call maps, unmaps or protects, at most: bounds the time with interrupts off, and the list
/// below.
pub const MAX_PAGES: u64 = kernel_ops::machine::MAX_STEP_PAGES;
/// So many pages touch two tables of each of three levels at most.
pub(super) const MAX_TABLES: usize = 6;
const MAX_FRAMES: usize = MAX_PAGES as usize + MAX_TABLES;

/// What was taken out of the tables, or narrowed. Frames are free once every CPU that had the space loaded has
/// flushed; dropping them loses them for good rather than frees them early.
#[derive(Debug)]
#[must_use = "the frames are lost if they are not released"]
pub struct Detached {
    frames: Kept,
    /// Pays for them; lost with them.
    paid: ManuallyDrop<Charge<'static, Frames>>,
    flush: Flush,
    interrupt: CpuSet,
}

impl Detached {
    /// The CPUs that are to be interrupted, to flush: those that have no such interrupt on its way.
    pub fn interrupt(&self) -> CpuSet {
        self.interrupt
    }

    /// Whether every CPU that had to flush has.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.flush.is_done()
    }

    /// How many frames there are, tables included.
    pub fn count(&self) -> usize {
        self.frames.count
    }

    /// Frees the frames if every CPU has flushed, and says how many; otherwise gives them back to be tried
    /// later.
    #[allow(clippy::result_large_err, reason = "given back to be tried again; a box could fail")]
    pub fn release(self) -> Result<usize, Detached> {
        let Self { frames, paid, flush, interrupt } = self;
        match flush.finish() {
            Ok(()) => {
                frames.iter().for_each(|frame| {
                    // SAFETY: leaked to the space when it was mapped, or by `new_table`; taken from the
                    // tables, and no CPU has a translation left.
                    drop(unsafe { OwnedFrames::from_leaked(frame, Order::FRAME) });
                });
                ManuallyDrop::into_inner(paid).release();
                Ok(frames.count)
            }
            Err(flush) => Err(Self { frames, paid, flush, interrupt }),
        }
    }
}

impl Taken for Detached {
    fn interrupt(&self) -> CpuSet {
        self.interrupt
    }

    fn is_flushed(&self) -> bool {
        Detached::is_flushed(self)
    }

    fn release(self) -> Result<(), Self> {
        Detached::release(self).map(|_| ())
    }
}

/// A list of frames.
#[derive(Debug)]
struct Kept {
    frames: [Frame; MAX_FRAMES],
    count: usize,
}

impl Kept {
    fn new() -> Self {
        Self { frames: [Frame::default(); MAX_FRAMES], count: 0 }
    }

    fn push(&mut self, frame: Frame) {
        debug_assert!(self.count < MAX_FRAMES, "more frames than a range can have");
        if let Some(slot) = self.frames.get_mut(self.count) {
            *slot = frame;
            self.count += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = Frame> + '_ {
        self.frames.iter().take(self.count).copied()
    }
}

/// The tables of a space while pages leave it: what is taken out is kept, not freed.
struct Keeping(Kept);

impl Keeping {
    /// Takes mapped pages out, at most [`MAX_PAGES`]; those that are another's stay that one's.
    fn take(&mut self, root: Frame, virt: VirtAddr, pages: u64) -> Result<(), UnmapError> {
        let mut own = Kept::new();
        tree::unmap(self, root, virt, pages, |frame, _, rights| {
            if !rights.shared {
                own.push(frame);
            }
        })?;
        own.iter().for_each(|frame| self.0.push(frame));
        Ok(())
    }
}

impl TableStore for Keeping {
    fn read(&self, table: Frame, index: usize) -> Entry {
        Store.read(table, index)
    }
    fn write(&mut self, table: Frame, index: usize, entry: Entry) {
        Store.write(table, index, entry);
    }
    fn new_table(&mut self) -> Option<Frame> {
        None
    }
    fn free_table(&mut self, table: Frame) {
        self.0.push(table);
    }
    fn is_unused(&self, table: Frame) -> bool {
        Store.is_unused(table)
    }
}

impl AddressSpace {
    /// Unmaps at most [`MAX_PAGES`] pages, all of which are mapped.
    pub fn unmap(&self, start: u64, pages: u64) -> Result<Detached, SpaceError> {
        self.take_away(start, pages, |root, virt| {
            let mut taken = Keeping(Kept::new());
            taken.take(root, virt, pages)?;
            Ok(taken.0)
        })
    }

    /// Gives at most [`MAX_PAGES`] mapped pages another kind of access. No frame is free then; translations of
    /// the old kind are forgotten when the flush is done.
    pub fn protect(&self, start: u64, pages: u64, access: Access) -> Result<Detached, SpaceError> {
        self.take_away(start, pages, |root, virt| {
            tree::protect(&mut Store, root, virt, pages, access)?;
            Ok(Kept::new())
        })
    }

    /// Changes tables with `change`, and asks for the flush.
    fn take_away(
        &self,
        start: u64,
        pages: u64,
        change: impl FnOnce(Frame, VirtAddr) -> Result<Kept, UnmapError>,
    ) -> Result<Detached, SpaceError> {
        let virt = Self::check_range(start, pages)?;
        if pages > MAX_PAGES {
            return Err(SpaceError::BadRange);
        }
        let permit = FlushPermit::new().map_err(|_| SpaceError::TooManyFlushes)?;
        let mut lock = self.root.lock();
        let InUse { root, paid } = lock.in_use_mut()?;
        // Before anything changes: of nothing there is always some.
        let nothing = paid.split(0).ok_or(SpaceError::Absent)?;
        let frames = change(*root, virt)?;
        let paid = paid.split(frames.count as u32);
        debug_assert!(paid.is_some(), "what is mapped was paid for");
        let paid = ManuallyDrop::new(paid.unwrap_or(nothing));
        let (flush, interrupt) = self.machine.request_flush(permit, virt, pages);
        Ok(Detached { frames, paid, flush, interrupt })
    }
}
