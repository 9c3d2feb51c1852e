//! The direct map, raw access to page tables, and the switch between them.
//!
//! The direct map starts where the loader put it, before and after the kernel's own tables take
//! over (invariant PT-1), so a pointer made through it stays good across the switch.

mod space;

pub(crate) use core_tlb::Resident;
pub use space::{
    CpuSet, Flush, FlushPermit, FlushesOf, MAX_CPUS, Space, TooManyFlushes, flush_if_requested,
    flushes_of,
};
pub(crate) use space::{WAY_BARRIER, entry_way_of};

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use core_address::{Frame, PAGE_SIZE, PhysAddr, VirtAddr};
use core_paging::tree;
use core_paging::{Entry, TableStore};

/// Virtual address of physical address 0. Written once, before anything reads it.
static DIRECT_MAP: AtomicU64 = AtomicU64::new(0);
/// CR3 of the kernel's own tables, for CPUs that come up later; 0 before they exist.
pub(crate) static KERNEL_CR3: AtomicU64 = AtomicU64::new(0);

/// Bits of CR3 that hold the root table's address (Intel SDM vol. 3, 4.5).
const CR3_ADDRESS: u64 = 0x000f_ffff_ffff_f000;

pub(crate) fn set_direct_map(offset: u64) {
    DIRECT_MAP.store(offset, Ordering::Relaxed);
}

/// Virtual address of physical address 0.
#[inline]
pub fn direct_map_offset() -> u64 {
    DIRECT_MAP.load(Ordering::Relaxed)
}

/// Where a physical address is seen in the direct map. Whether anything is mapped there is
/// decided by the memory map.
#[inline]
pub fn direct(phys: PhysAddr) -> *mut u8 {
    (direct_map_offset() + phys.as_u64()) as *mut u8
}

/// Reads an entry of a table.
///
/// # Safety
/// `table` is a page table, or memory that may be read as one, in the direct map; `index` < 512.
#[inline]
pub unsafe fn read_entry(table: Frame, index: usize) -> Entry {
    // SAFETY: aligned and inside the frame by the contract.
    Entry(unsafe { direct(table.start()).cast::<u64>().add(index).read_volatile() })
}

/// Writes an entry of a table.
///
/// # Safety
/// `table` is a page table in the direct map that the caller may change, `index` < 512, and if the
/// table is in use the new entry does not break what relies on the old one.
#[inline]
pub unsafe fn write_entry(table: Frame, index: usize, entry: Entry) {
    // SAFETY: aligned and inside the frame by the contract.
    unsafe { direct(table.start()).cast::<u64>().add(index).write_volatile(entry.0) }
}

/// The root of the tables this CPU uses.
pub fn current_root() -> Frame {
    let cr3: u64;
    // SAFETY: reading CR3 has no effect.
    unsafe { asm!("mov {}, cr3", out(reg) cr3, options(nomem, nostack, preserves_flags)) };
    Frame::new((cr3 & CR3_ADDRESS) / PAGE_SIZE).unwrap_or_default()
}

/// Makes `root` this CPU's page tables, and those of every CPU that is started from now on.
///
/// # Safety
/// The tables map the running code, its stack, its data and the direct map at the addresses they
/// have now, and stay valid while in use.
pub unsafe fn activate(root: Frame) {
    let cr3 = root.start().as_u64();
    // Relaxed: other CPUs read it only after they are released with a store that orders this one.
    KERNEL_CR3.store(cr3, Ordering::Relaxed);
    // SAFETY: by the contract everything in use stays where it is.
    unsafe { asm!("mov cr3, {}", in(reg) cr3, options(nostack, preserves_flags)) };
}

/// Makes this CPU use the kernel's own tables, which have nothing in the lower half.
#[inline]
pub(crate) fn load_kernel_tables() {
    // SAFETY: the kernel's tables stay; their upper half is that of all others.
    unsafe { space::load(KERNEL_CR3.load(Ordering::Relaxed)) };
}

/// Forgets this CPU's cached translation of one page.
pub fn flush(virt: VirtAddr) {
    // SAFETY: dropping a translation only makes the CPU walk the tables again.
    unsafe { asm!("invlpg [{}]", in(reg) virt.as_u64(), options(nostack, preserves_flags)) };
}

/// Tables in use, to be looked at and not changed.
struct Looking;

impl TableStore for Looking {
    fn read(&self, table: Frame, index: usize) -> Entry {
        // SAFETY: `translate` starts at the CPU's own root and follows only present table entries,
        // which lead to tables; tables are memory and so in the direct map (invariant PT-1).
        unsafe { read_entry(table, index % 512) }
    }
    fn write(&mut self, _: Frame, _: usize, _: Entry) {}
    fn new_table(&mut self) -> Option<Frame> {
        None
    }
    fn free_table(&mut self, _: Frame) {}
}

/// What an address leads to in the tables this CPU uses.
pub fn translate(virt: VirtAddr) -> Option<tree::Translation> {
    tree::translate(&Looking, current_root(), virt)
}

/// Reads a word that may not be there: `None` where nothing is mapped or for device memory.
pub fn peek(address: u64) -> Option<u64> {
    let virt = VirtAddr::new(address).filter(|v| v.is_upper_half() && address.is_multiple_of(8))?;
    let found = translate(virt)?;
    if found.rights.caching != core_paging::Caching::WriteBack {
        return None;
    }
    // SAFETY: the tables map the word to memory, and an aligned word does not cross a page.
    Some(unsafe { (address as *const u64).read_volatile() })
}
