//! Pages and tables that were unmapped, and wait until no CPU can reach them.
//!
//! Decided in ADR 28.

use super::{AddressSpace, InUse, Root, SpaceError};
use crate::frames::OwnedFrames;
use crate::tables::Store;
use crate::time_page;
use core::mem::ManuallyDrop;
use core_address::{Frame, VirtAddr};
use core_frames::Order;
use core_ledger::{Charge, ChargeError, Frames};
use core_paging::{Entry, TableStore, UnmapError, tree};
use kernel_arch::cpu;
use kernel_arch::paging::FlushRequest;
use smp_lock::Guard;

/// Pages that one call maps or unmaps, at most: bounds the time with interrupts off, and the list
/// below.
pub const MAX_PAGES: u64 = 64;
/// So many pages touch two tables of each of three levels at most.
const MAX_TABLES: usize = 6;
const MAX_FRAMES: usize = MAX_PAGES as usize + MAX_TABLES;

/// Frames that were unmapped. They are free once every CPU that had the space loaded has flushed;
/// dropping them loses them for good rather than frees them early.
#[derive(Debug)]
#[must_use = "the frames are lost if they are not released"]
pub struct Detached {
    frames: Kept,
    /// Pays for them; lost with them.
    paid: ManuallyDrop<Charge<'static, Frames>>,
    flush: FlushRequest,
}

impl Detached {
    /// The CPUs that have to flush, and whether they have.
    pub fn flush(&self) -> &FlushRequest {
        &self.flush
    }

    /// How many frames there are, tables included.
    pub fn count(&self) -> usize {
        self.frames.count
    }

    /// Frees the frames if every CPU has flushed; otherwise gives them back to be tried later.
    #[allow(clippy::result_large_err, reason = "given back to be tried again; a box could fail")]
    pub fn release(self) -> Result<(), Detached> {
        if !self.flush.is_done() {
            return Err(self);
        }
        for frame in self.frames.iter().filter(|frame| !time_page::is(*frame)) {
            // SAFETY: leaked to the space when it was mapped, or by `new_table`; taken from the
            // tables, and no CPU has a translation left.
            drop(unsafe { OwnedFrames::from_leaked(frame, Order::FRAME) });
        }
        ManuallyDrop::into_inner(self.paid).release();
        Ok(())
    }

    /// Interrupts the CPUs that have to flush and waits until they have. Called without locks: a CPU
    /// that waits for one would not answer.
    pub fn release_when_flushed(self) {
        for cpu in self.flush.cpus().iter().filter_map(|index| cpu::all().get(index)) {
            kernel_arch::apic::send_ipi(cpu.apic_id());
        }
        let mut left = self;
        while let Err(again) = left.release() {
            left = again;
            // Another CPU may wait for this one in the same way.
            kernel_arch::paging::flush_requested();
            cpu::relax();
        }
    }
}

/// A list of frames.
#[derive(Debug)]
struct Kept {
    frames: [Frame; MAX_FRAMES],
    count: usize,
}

impl Kept {
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

/// The tables of a space during one change: what is taken out is kept, not freed, and what is added is paid
/// for.
pub(super) struct Keeping {
    kept: Kept,
    /// Pays for what the change adds.
    paid: Charge<'static, Frames>,
    /// Why there was no table.
    refused: Option<ChargeError>,
}

impl Keeping {
    /// A change whose pages are paid for already, and that pays for its tables as it makes them.
    pub(super) fn paid_by(paid: Charge<'static, Frames>) -> Self {
        let kept = Kept { frames: [Frame::default(); MAX_FRAMES], count: 0 };
        Self { kept, paid, refused: None }
    }

    /// The change is made: the space pays for what was added.
    pub(super) fn settle(self, all: &mut Charge<'static, Frames>) {
        let merged = all.merge(self.paid);
        debug_assert!(merged.is_ok(), "a space has one account");
    }

    /// It pays for so much more.
    fn settle_more(&mut self, more: Charge<'static, Frames>) {
        let merged = self.paid.merge(more);
        debug_assert!(merged.is_ok(), "a space has one account");
    }

    /// Why the change failed: no table may be no frame, or nobody who pays for it.
    pub(super) fn why(&self, error: SpaceError) -> SpaceError {
        match (error, self.refused) {
            (SpaceError::OutOfMemory, Some(refused)) => SpaceError::Account(refused),
            (error, _) => error,
        }
    }

    /// Takes mapped pages out, at most [`MAX_PAGES`].
    fn take(&mut self, root: Frame, virt: VirtAddr, pages: u64) -> Result<(), UnmapError> {
        let mut mapped = [Frame::default(); MAX_PAGES as usize];
        let mut slots = mapped.iter_mut();
        tree::unmap(self, root, virt, pages, |frame, _| {
            if let Some(slot) = slots.next() {
                *slot = frame;
            }
        })?;
        for frame in mapped.iter().take(pages as usize) {
            self.kept.push(*frame);
        }
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
        let one = match self.paid.reserve_more(1) {
            Ok(one) => one,
            Err(refused) => {
                self.refused = Some(refused);
                return None;
            }
        };
        let table = Store.new_table()?;
        let merged = self.paid.merge(one.commit());
        debug_assert!(merged.is_ok(), "reserved through this very charge");
        Some(table)
    }
    fn free_table(&mut self, table: Frame) {
        self.kept.push(table);
    }
}

impl AddressSpace {
    /// Unmaps at most [`MAX_PAGES`] pages, all of which are mapped.
    pub fn unmap(&self, start: u64, pages: u64) -> Result<Detached, SpaceError> {
        let virt = Self::check_range(start, pages)?;
        if pages > MAX_PAGES {
            return Err(SpaceError::BadRange);
        }
        let mut lock = self.root.lock();
        let InUse { root, paid } = lock.in_use_mut()?;
        let nothing = paid.split(0).ok_or(SpaceError::Absent)?;
        let mut taken = Keeping::paid_by(nothing);
        taken.take(*root, virt, pages)?;
        let count = taken.kept.iter().filter(|frame| !time_page::is(*frame)).count();
        let paid = paid.split(count as u32);
        debug_assert!(paid.is_some(), "what is mapped was paid for");
        let paid = ManuallyDrop::new(paid.unwrap_or(taken.paid));
        Ok(Detached { frames: taken.kept, paid, flush: self.machine.request_flush() })
    }

    /// Unmaps pages of a block that is another's to free, and waits until no CPU can reach them.
    pub(super) fn forget_block(&self, virt: VirtAddr, pages: u64) {
        let mut lock = self.root.lock();
        let Ok(InUse { root, paid }) = lock.in_use_mut() else { return };
        let Some(of_pages) = paid.split(pages as u32) else { return };
        let mut tables = Keeping::paid_by(of_pages);
        let done = tree::unmap(&mut tables, *root, virt, pages, |_, _| {});
        debug_assert!(done.is_ok(), "what was just mapped is not: {done:?}");
        if let Some(of_tables) = paid.split(tables.kept.count as u32) {
            tables.settle_more(of_tables);
        }
        let flush = self.machine.request_flush();
        drop(lock);
        let paid = ManuallyDrop::new(tables.paid);
        Detached { frames: tables.kept, paid, flush }.release_when_flushed();
    }

    /// Undoes the first pages of a mapping that failed, and gives up the lock. Nobody was told of
    /// them, but a CPU that guessed their address may have cached them, or tables on the way.
    pub(super) fn undo(
        &self,
        lock: Guard<'_, Root>,
        mut taken: Keeping,
        virt: VirtAddr,
        pages: u64,
    ) {
        if let (Some(root), true) = (lock.in_use(), pages > 0) {
            let done = taken.take(root, virt, pages);
            debug_assert!(done.is_ok(), "what was just mapped is not: {done:?}");
        }
        let flush = self.machine.request_flush();
        drop(lock);
        // All that the change has paid for, also what it did not come to make.
        let paid = ManuallyDrop::new(taken.paid);
        Detached { frames: taken.kept, paid, flush }.release_when_flushed();
    }
}
