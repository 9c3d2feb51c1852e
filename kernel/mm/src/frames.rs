//! Physical frames: who owns which, over the buddy core.
//!
//! Set up from the memory map in two steps: [`init`] places the allocator's bitmaps at the start of
//! the first usable range that holds them (that carving is all the early allocation there is) and
//! gives it all usable memory; [`crate::reclaim`] adds the loader's memory once nothing of it is in use.
//!
//! Decided in ADR 20.

use crate::OutOfMemory;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use core_address::{Frame, FrameRange, PAGE_SIZE};
use core_frames::{AddError, Frames};
pub use core_frames::{Counts, Order};
use kernel_arch::boot::{Handover, MemoryKind};
use kernel_arch::paging;
use smp_lock::{LockClass, TicketLock};

static FRAMES: TicketLock<Option<Frames<'static>>> =
    TicketLock::with_class(LockClass::Frames, None);
/// Allocations still to succeed before they fail on purpose; all ones: never. For tests.
static FAIL_AFTER: AtomicU64 = AtomicU64::new(u64::MAX);

/// Frames below the first megabyte stay unused: firmware data areas and the start of other CPUs
/// live there.
const LOW_MEMORY_END: u64 = 0x10_0000;

/// A block of frames that its holder owns.
#[derive(Debug)]
pub struct OwnedFrames {
    frame: Frame,
    order: Order,
}

impl OwnedFrames {
    /// The first frame.
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.order.frames()
    }

    /// Gives up ownership without giving the frames back.
    pub fn leak(self) -> Frame {
        let frame = self.frame;
        core::mem::forget(self);
        frame
    }

    /// Takes ownership of a block again.
    ///
    /// # Safety
    /// The block was leaked from an `OwnedFrames` of this order and nothing uses it any more.
    pub(crate) unsafe fn from_leaked(frame: Frame, order: Order) -> Self {
        Self { frame, order }
    }

    /// Fills the block with zeros.
    pub fn zero(&mut self) {
        self.zero_some(0, self.count());
    }

    /// Fills `frames` of it with zeros, after the first `from`.
    pub fn zero_some(&mut self, from: u64, frames: u64) {
        let Some(first) = self.frame.checked_add(from.min(self.count())) else { return };
        let words = frames.min(self.count().saturating_sub(from)) * (PAGE_SIZE / 8);
        // Word by word: the byte-wise form of the library counts, and costs, eight times as much
        // where the CPU does not make up for it.
        // SAFETY: the block is memory in the direct map and ours alone; the direction flag is clear in
        // the kernel.
        unsafe {
            asm!(
                "rep stosq",
                inout("rcx") words => _,
                inout("rdi") paging::direct(first.start()) => _,
                in("rax") 0_u64,
                options(nostack, preserves_flags),
            );
        }
    }
}

impl Drop for OwnedFrames {
    fn drop(&mut self) {
        if let Some(frames) = FRAMES.lock().as_mut() {
            let released = frames.release(self.frame, self.order);
            debug_assert!(released.is_ok(), "an owned block was free: {released:?}");
        }
    }
}

/// What the memory map had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InitReport {
    /// Frames given to the allocator.
    pub usable: u64,
    /// Frames its bitmaps take.
    pub bitmaps: u64,
}

fn usable(handover: &Handover, kind: MemoryKind) -> impl Iterator<Item = FrameRange> {
    let first = Frame::new(LOW_MEMORY_END / PAGE_SIZE).unwrap_or_default();
    handover
        .memory()
        .filter(move |region| region.kind == kind)
        .filter_map(|region| region.frames_inside())
        .map(move |range| range.from_frame(first))
        .filter(|range| !range.is_empty())
}

/// Sets the allocator up with all usable memory.
pub fn init(handover: &Handover) -> Result<InitReport, OutOfMemory> {
    let kinds = [MemoryKind::Usable, MemoryKind::LoaderReclaimable];
    let end = kinds
        .iter()
        .flat_map(|kind| usable(handover, *kind))
        .map(|range| range.end().number())
        .max()
        .ok_or(OutOfMemory)?;
    let span = usize::try_from(end).map_err(|_| OutOfMemory)?;
    let words = Frames::words_needed(span);
    let bitmap_frames = (words as u64 * 8).div_ceil(PAGE_SIZE);
    let home = usable(handover, MemoryKind::Usable)
        .find(|range| range.count() >= bitmap_frames)
        .ok_or(OutOfMemory)?;
    let carved = home
        .start()
        .checked_add(bitmap_frames)
        .and_then(|end| FrameRange::new(home.start(), end))
        .ok_or(OutOfMemory)?;
    // SAFETY: usable memory is in the direct map, belongs to nobody yet (the memory map is read here
    // for the first time) and is kept out of the allocator below; frames are 8-aligned.
    let storage = unsafe {
        core::slice::from_raw_parts_mut(paging::direct(carved.start().start()).cast::<u64>(), words)
    };
    let mut frames = Frames::new(span, storage).ok_or(OutOfMemory)?;
    for range in usable(handover, MemoryKind::Usable) {
        for part in <[FrameRange; 2]>::from(range.without(carved)) {
            give(&mut frames, part);
        }
    }
    let usable = frames.counts().managed;
    *FRAMES.lock() = Some(frames);
    Ok(InitReport { usable, bitmaps: bitmap_frames })
}

/// A range of the memory map becomes the allocator's. The map's ranges do not overlap and the span
/// is the map's own; a range that is not as promised stays out, so that no frame counts twice.
fn give(frames: &mut Frames, range: FrameRange) {
    match frames.add(range) {
        Ok(()) | Err(AddError::AlreadyManaged | AddError::BeyondSpan) => {}
    }
}

/// Adds the loader's memory. It takes the handover, so nothing in that memory is read again.
///
/// # Safety
/// No CPU uses the loader's page tables, stacks or records any more (invariant BOOT-1).
pub(crate) unsafe fn reclaim(handover: Handover) -> u64 {
    let mut lock = FRAMES.lock();
    let Some(frames) = lock.as_mut() else { return 0 };
    let before = frames.counts().managed;
    // The memory map itself lies in the memory that is added. Adding writes only bitmaps, and
    // nothing is handed out while the lock is held, so the map stays readable to the end.
    for range in usable(&handover, MemoryKind::LoaderReclaimable) {
        give(frames, range);
    }
    frames.counts().managed - before
}

/// Hands out a block of frames with whatever they contain.
pub fn allocate(order: Order) -> Result<OwnedFrames, OutOfMemory> {
    let budget = FAIL_AFTER.load(Ordering::Relaxed);
    if budget != u64::MAX {
        if budget == 0 {
            return Err(OutOfMemory);
        }
        FAIL_AFTER.store(budget - 1, Ordering::Relaxed);
    }
    let frame =
        FRAMES.lock().as_mut().and_then(|frames| frames.allocate(order)).ok_or(OutOfMemory)?;
    Ok(OwnedFrames { frame, order })
}

/// Takes back frames that lie one after the other, in as few blocks as they make.
///
/// # Safety
/// Each was leaked from an `OwnedFrames`, by itself or as part of a larger block, and nothing uses it any more.
pub(crate) unsafe fn release_run(first: Frame, count: u64) {
    if count > 0
        && let Some(frames) = FRAMES.lock().as_mut()
    {
        let released = frames.release_run(first, count);
        debug_assert!(released.is_ok(), "a frame of a run was free: {released:?}");
    }
}

/// Frames that lie one after the other, and are freed together.
#[derive(Debug, Default)]
pub(crate) struct Run {
    first: Frame,
    count: u64,
}

impl Run {
    /// Adds a frame; if it does not follow those before it, they are freed, and `false` says so.
    ///
    /// # Safety
    /// As for [`release_run`], for those before it now, and for this one when it is freed.
    pub(crate) unsafe fn add(&mut self, frame: Frame) -> bool {
        let follows = self.count > 0 && self.first.checked_add(self.count) == Some(frame);
        if follows {
            self.count += 1;
        } else {
            let before = core::mem::replace(self, Self { first: frame, count: 1 });
            // SAFETY: by the contract.
            unsafe { before.free() };
        }
        follows
    }

    /// Frees them.
    ///
    /// # Safety
    /// As for [`release_run`].
    pub(crate) unsafe fn free(self) {
        // SAFETY: by the contract.
        unsafe { release_run(self.first, self.count) };
    }
}

/// How many frames are managed and free.
pub fn counts() -> Counts {
    FRAMES.lock().as_ref().map(Frames::counts).unwrap_or_default()
}

/// Walks the allocator's bitmaps; says what does not hold.
pub fn check_invariants() -> Result<(), &'static str> {
    FRAMES.lock().as_ref().map_or(Ok(()), Frames::check_invariants)
}

/// Makes allocation fail after `successes` more, or never with `None`. For tests of how the
/// kernel takes it.
pub fn fail_after(successes: Option<u64>) {
    FAIL_AFTER.store(successes.unwrap_or(u64::MAX), Ordering::Relaxed);
}
