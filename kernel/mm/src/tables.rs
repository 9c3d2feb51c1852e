//! The kernel's own page tables.
//!
//! Built once from the memory map and the image's boundaries, then changed only to map and unmap
//! stacks and devices in their windows. User address spaces copy the upper half of the root; its
//! entries exist from the start and never change (invariant PT-2).
//!
//! Decided in ADR 24.

use crate::OutOfMemory;
use crate::frames::{self, OwnedFrames};
use crate::image::{self, Image};
use core::fmt;
use core_address::{Frame, FrameRange, PAGE_SIZE, PhysAddr, VirtAddr};
use core_frames::Order;
use core_paging::entry::Meaning;
use core_paging::layout::{self, WINDOWS};
use core_paging::plan::{self, MemoryKind as Kind};
use core_paging::tree;
use core_paging::{Access, Entry, MapError, PageSizes, Request, Rights, TableStore, Translation};
use kernel_arch::boot::{Handover, MemoryKind};
use kernel_arch::{cpu, paging};
use smp_lock::{LockClass, TicketLock};

/// Root entries of the upper half.
const UPPER_HALF: core::ops::Range<usize> = 256..512;

/// The root of the kernel's tables, once they are in use.
static ROOT: TicketLock<Option<Frame>> = TicketLock::with_class(LockClass::KernelTables, None);

/// Why the kernel's tables could not be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// No frames for them.
    OutOfMemory,
    /// The loader's direct map would overlap the kernel's windows, or is not aligned.
    DirectMap(u64),
    /// Two things want one address.
    Overlap(VirtAddr),
    /// The memory map or the image does not fit the address space.
    BadRange(u64),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::OutOfMemory => f.write_str("not enough memory for page tables"),
            BuildError::DirectMap(at) => write!(
                f,
                "the loader's direct map at {at:#x} is not a multiple of 1 GiB in the upper half, or reaches the kernel's windows"
            ),
            BuildError::Overlap(at) => write!(f, "two mappings overlap at {at:?}"),
            BuildError::BadRange(at) => {
                write!(f, "a range at {at:#x} does not fit the address space")
            }
        }
    }
}

/// What was mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BuildReport {
    /// Frames the tables take.
    pub tables: u64,
    /// Bytes in the direct map.
    pub direct_bytes: u64,
    /// Bytes of code, constants and data of the image.
    pub image_bytes: [u64; 3],
}

/// Page tables in memory, with frames from the allocator.
pub(crate) struct Store;

/// Entries of a table, to be looked at.
#[inline]
fn entries<'t>(table: Frame, from: usize, end: usize) -> &'t [u64] {
    let entries = paging::direct(table.start()).cast::<u64>();
    // SAFETY: a table is a frame of 512 words in the direct map. Nobody else in the kernel writes to it now: who
    // is here has the lock of its space, or the only way to it. Where a CPU walks it, accessed and dirty bits
    // may come into entries that are in use anyway.
    let entries = unsafe { core::slice::from_raw_parts(entries, 512) };
    entries.get(from..end).unwrap_or(&[])
}

impl TableStore for Store {
    #[inline]
    fn read(&self, table: Frame, index: usize) -> Entry {
        // SAFETY: the tree passes only frames it got from `new_table`, and indices below 512.
        unsafe { paging::read_entry(table, index) }
    }
    #[inline]
    fn write(&mut self, table: Frame, index: usize, entry: Entry) {
        // SAFETY: as above; whoever changes tables in use holds ROOT and maps only what is its own.
        unsafe { paging::write_entry(table, index, entry) }
    }
    fn new_table(&mut self) -> Option<Frame> {
        let mut frames = frames::allocate(Order::FRAME).ok()?;
        frames.zero();
        Some(frames.leak())
    }
    fn free_table(&mut self, table: Frame) {
        // SAFETY: the tree frees what came from `new_table`, once nothing refers to it. The CPU
        // may have cached that the entry above led here; callers of unmap flush before reuse.
        drop(unsafe { OwnedFrames::from_leaked(table, Order::FRAME) });
    }
    fn next_used(&self, table: Frame, from: usize, end: usize) -> Option<usize> {
        let rest = entries(table, from, end);
        let is_used = |entry: &u64| *entry != 0;
        // Most tables have few entries: sixteen at a time are looked at in the time of five or six.
        let (groups, last) = rest.as_chunks::<16>();
        let used = |group: &[u64; 16]| group.iter().fold(0, |all, entry| all | entry) != 0;
        match groups.iter().position(used) {
            Some(at) => {
                let group = groups.get(at)?;
                group.iter().position(is_used).map(|within| from + at * 16 + within)
            }
            None => last.iter().position(is_used).map(|at| from + groups.len() * 16 + at),
        }
    }
    fn own_run(&self, table: Frame, from: usize, end: usize, first: Frame) -> usize {
        Entry::own_run(entries(table, from, end), first)
    }
}

fn kind_for_direct_map(kind: MemoryKind) -> Kind {
    match kind {
        MemoryKind::Usable
        | MemoryKind::AcpiReclaimable
        | MemoryKind::AcpiNvs
        | MemoryKind::LoaderReclaimable
        | MemoryKind::KernelAndModules
        | MemoryKind::ReservedMapped => Kind::Memory,
        MemoryKind::Framebuffer => Kind::Framebuffer,
        MemoryKind::Reserved | MemoryKind::Bad => Kind::Hidden,
    }
}

fn map(
    root: Frame,
    virt: u64,
    frames: FrameRange,
    rights: Rights,
    sizes: PageSizes,
) -> Result<(), BuildError> {
    let bad = BuildError::BadRange(virt);
    let virt = VirtAddr::new(virt).ok_or(bad)?;
    let request = Request { virt, frame: frames.start(), pages: frames.count(), rights, sizes };
    tree::map(&mut Store, root, request).map_err(|error| match error {
        MapError::OutOfMemory => BuildError::OutOfMemory,
        MapError::AlreadyMapped => BuildError::Overlap(virt),
        MapError::BadRange => bad,
    })
}

/// Builds the kernel's tables and makes this CPU use them.
pub fn build_and_activate(handover: &Handover) -> Result<BuildReport, BuildError> {
    let before = frames::counts().free;
    let offset = paging::direct_map_offset();
    let mapped = || {
        handover.memory().filter_map(|r| Some((r.frames_around()?, kind_for_direct_map(r.kind))))
    };
    let end = mapped()
        .filter(|(_, k)| *k != Kind::Hidden)
        .map(|(r, _)| r.end())
        .max()
        .unwrap_or_default();
    if !layout::direct_map_fits(offset, end) {
        return Err(BuildError::DirectMap(offset));
    }
    let root = Store.new_table().ok_or(BuildError::OutOfMemory)?;
    let image = image::boundaries();
    let (phys_base, virt_base) = handover.kernel_address();
    let to_phys = |virt: u64| virt.wrapping_sub(virt_base).wrapping_add(phys_base);
    let constant =
        FrameRange::around(to_phys(image.text_start), image.rodata_end - image.text_start)
            .ok_or(BuildError::BadRange(phys_base))?;

    let sizes = PageSizes { large: true, huge: cpu::this().features().huge_pages };
    let mut report = BuildReport::default();
    plan::direct_map(mapped(), constant, |range, rights| {
        report.direct_bytes += range.count() * PAGE_SIZE;
        map(root, offset + range.start().start().as_u64(), range, rights, sizes)
    })?;

    let Image { text_start, text_end, rodata_end, data_end } = image;
    let parts = [
        (text_start, text_end, Access::Execute),
        (text_end, rodata_end, Access::Read),
        (rodata_end, data_end, Access::Write),
    ];
    for ((start, end, access), bytes) in parts.into_iter().zip(&mut report.image_bytes) {
        *bytes = end - start;
        let frames =
            FrameRange::around(to_phys(start), end - start).ok_or(BuildError::BadRange(start))?;
        map(root, start, frames, Rights::kernel(access), PageSizes::SMALL)?;
    }
    fill_windows(root)?;
    report.tables = before - frames::counts().free;
    // SAFETY: the direct map and the image are where they were; the stack in use is the loader's,
    // which lies in the direct map. The tables are never freed.
    unsafe { paging::activate(root) };
    *ROOT.lock() = Some(root);
    Ok(report)
}

/// Gives every window its table below the root, so that the root's upper half never changes.
fn fill_windows(root: Frame) -> Result<(), BuildError> {
    for window in WINDOWS {
        let index = (window.start >> 39 & 0x1ff) as usize;
        if Store.read(root, index) == Entry::EMPTY {
            let table = Store.new_table().ok_or(BuildError::OutOfMemory)?;
            Store.write(root, index, Entry::table(table, false));
        }
    }
    Ok(())
}

/// A root with the kernel's half and nothing below it.
pub(crate) fn new_root() -> Result<Frame, OutOfMemory> {
    let kernel = (*ROOT.lock()).ok_or(OutOfMemory)?;
    let root = Store.new_table().ok_or(OutOfMemory)?;
    // SAFETY: halves of two tables, which are frames in the direct map; nobody else has the new one yet, and the other's
    // upper half never changes (invariant PT-2), so a copy is whole and stays true.
    unsafe {
        let half = |table: Frame| paging::direct(table.start()).cast::<u64>().add(UPPER_HALF.start);
        core::ptr::copy_nonoverlapping(half(kernel), half(root), UPPER_HALF.len());
    }
    Ok(root)
}

/// Maps frames in one of the kernel's windows.
///
/// # Safety
/// The addresses belong to the caller and the frames may be used with these rights.
pub(crate) unsafe fn map_kernel(
    virt: VirtAddr,
    frame: Frame,
    pages: u64,
    rights: Rights,
) -> Result<(), MapError> {
    let root = ROOT.lock();
    let root = (*root).ok_or(MapError::OutOfMemory)?;
    let request = Request { virt, frame, pages, rights, sizes: PageSizes::SMALL };
    tree::map(&mut Store, root, request)
}

/// Unmaps pages from the kernel's tables and this CPU's TLB, telling `each` their frames.
///
/// # Safety
/// The pages were mapped with [`map_kernel`] by the caller, and no other CPU has used them.
pub(crate) unsafe fn unmap_kernel(virt: VirtAddr, pages: u64, each: impl FnMut(Frame)) {
    let mut each = each;
    let root = ROOT.lock();
    if let Some(root) = *root {
        let done = tree::unmap(&mut Store, root, virt, pages, |frame, _, _| each(frame));
        debug_assert!(done.is_ok(), "unmapped what was not mapped: {done:?}");
    }
    for page in 0..pages {
        if let Some(page) = virt.checked_add(page * PAGE_SIZE) {
            paging::flush(page);
        }
    }
}

/// What the tables in use allow, page by page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Audit {
    /// Mapped pages of any size.
    pub pages: u64,
    /// Pages that can be executed.
    pub executable: u64,
    /// Pages that can be written and executed: there must be none.
    pub writable_executable: u64,
    /// Pages that user mode can reach.
    pub user: u64,
}

/// Walks all of this CPU's page tables.
pub fn audit() -> Audit {
    let mut audit = Audit::default();
    // Nobody changes the tables meanwhile.
    let _root = ROOT.lock();
    tree::for_each_page(&Store, paging::current_root(), &mut |mapped| {
        audit.pages += 1;
        audit.writable_executable += u64::from(mapped.entry.is_writable_and_executable());
        if let Meaning::Page(_, rights) = mapped.entry.meaning(mapped.size.level()) {
            audit.executable += u64::from(rights.access == Access::Execute);
            audit.user += u64::from(rights.user);
        }
    });
    audit
}

/// What an address leads to.
pub fn translate(virt: VirtAddr) -> Option<Translation> {
    paging::translate(virt)
}

/// Where a frame is seen in the direct map.
pub fn direct_address(phys: PhysAddr) -> u64 {
    paging::direct(phys) as u64
}
