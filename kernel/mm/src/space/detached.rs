//! Pages and tables that were unmapped, and wait until no CPU can reach them.
//!
//! Decided in ADR 28.

use super::{AddressSpace, Root, SpaceError};
use crate::frames::OwnedFrames;
use crate::tables::Store;
use crate::time_page;
use core_address::{Frame, VirtAddr};
use core_frames::Order;
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

/// The tables of a space during one change: what is taken out is kept, not freed.
pub(super) struct Keeping(Kept);

impl Keeping {
    pub(super) fn new() -> Self {
        Self(Kept { frames: [Frame::default(); MAX_FRAMES], count: 0 })
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
            self.0.push(*frame);
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
        Store.new_table()
    }
    fn free_table(&mut self, table: Frame) {
        self.0.push(table);
    }
}

impl AddressSpace {
    /// Unmaps at most [`MAX_PAGES`] pages, all of which are mapped.
    pub fn unmap(&self, start: u64, pages: u64) -> Result<Detached, SpaceError> {
        let virt = Self::check_range(start, pages)?;
        if pages > MAX_PAGES {
            return Err(SpaceError::BadRange);
        }
        let lock = self.root.lock();
        let root = lock.in_use().ok_or(SpaceError::Absent)?;
        let mut taken = Keeping::new();
        taken.take(root, virt, pages)?;
        Ok(Detached { frames: taken.0, flush: self.machine.request_flush() })
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
        Detached { frames: taken.0, flush }.release_when_flushed();
    }
}
