//! Interrupt controllers as the loader left them, through a mapping of this kernel's own.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use x86_64::instructions::port::Port;

use crate::entry::{State, msr};
use crate::memory::{hhdm, word};
use crate::requests::{Answer, EXECUTABLE_ADDRESS};

/// A page table.
#[repr(C, align(4096))]
struct Table(UnsafeCell<[u64; 512]>);

// SAFETY: written by the first processor before others are released.
unsafe impl Sync for Table {}

static TABLES: [Table; 3] = [const { Table(UnsafeCell::new([0; 512])) }; 3];

/// An upper-half slot that neither the direct map nor the executable uses.
const SLOT: u64 = 400;
const WINDOW: u64 = 0xffff_0000_0000_0000 | SLOT << 39;

/// Where the local APIC and the first I/O APIC appear.
const LOCAL: u64 = WINDOW;
const IO: u64 = WINDOW + 4096;

/// Whether the window is there.
static IS_MAPPED: AtomicBool = AtomicBool::new(false);

/// Maps the controllers' registers uncached. Needs the HHDM and executable address answers,
/// and 4 levels; without them nothing is said about the controllers.
pub fn map(state: &State) {
    let (Some(hhdm), Some(address)) = (hhdm(), EXECUTABLE_ADDRESS.response()) else { return };
    if state.cr4 >> 12 & 1 == 1 {
        return;
    }
    let root = state.cr3;
    let (phys, virt) = (word(address + 8), word(address + 16));
    const TABLE: u64 = 3;
    const UNCACHED: u64 = 0x1b;
    let [top, middle, low] = &TABLES;
    let phys_of = |table: &Table| table.0.get() as u64 - virt + phys;
    let put = |place: *mut u64, value: u64| {
        // SAFETY: this kernel's own tables and a free slot of the root, seen through the
        // direct map, which is writable.
        unsafe { place.write_volatile(value) };
    };
    let first = |table: &Table| table.0.get().cast::<u64>();
    put(first(top), phys_of(middle) | TABLE);
    put(first(middle), phys_of(low) | TABLE);
    put(first(low), (msr(0x1b) & 0x000f_ffff_ffff_f000) | UNCACHED);
    put(first(low).wrapping_add(1), 0xfec0_0000 | UNCACHED);
    put((hhdm + (root & !4095) + SLOT * 8) as *mut u64, phys_of(top) | TABLE);
    // Other processors are released later: their release orders this.
    IS_MAPPED.store(true, Ordering::Relaxed);
}

fn read(address: u64) -> u32 {
    // SAFETY: in the window mapped above.
    unsafe { (address as *const u32).read_volatile() }
}

/// A local APIC register in either mode.
fn register(offset: u64) -> u32 {
    const EXTENDED: u64 = 1 << 10;
    let is_x2apic = msr(0x1b) & EXTENDED != 0;
    if is_x2apic { msr(0x800 + (offset / 16) as u32) as u32 } else { read(LOCAL + offset) }
}

/// Spurious vector, task priority, and whether every local interrupt is masked; `None`
/// without a mapping.
pub fn local_apic() -> Option<(u32, u32, bool)> {
    if !IS_MAPPED.load(Ordering::Relaxed) {
        return None;
    }
    let interrupts = [0x320, 0x330, 0x340, 0x350, 0x360, 0x370];
    let masked = |offset: u64| {
        let value = register(offset);
        !matches!(value >> 8 & 7, 0 | 1 | 4 | 7) || value >> 16 & 1 == 1
    };
    Some((register(0xf0), register(0x80), interrupts.into_iter().all(masked)))
}

/// The pin that is programmed as NMI, or 9.
pub fn nmi_pin() -> u32 {
    (0..2).find(|pin| register(0x350 + 0x10 * u64::from(*pin)) >> 8 & 7 == 4).unwrap_or(9)
}

/// Whether every input of the first I/O APIC that would interrupt is masked.
pub fn io_apic_masked() -> bool {
    let register = |index: u32| {
        // SAFETY: the window mapped above; selecting a register has no other effect.
        unsafe { (IO as *mut u32).write_volatile(index) };
        read(IO + 0x10)
    };
    let inputs = (register(1) >> 16 & 0xff) + 1;
    (0..inputs).all(|input| {
        let low = register(0x10 + 2 * input);
        !matches!(low >> 8 & 7, 0 | 1 | 4 | 7) || low >> 16 & 1 == 1
    })
}

/// Masks of both 8259 controllers.
pub fn pic_masks() -> (u8, u8) {
    // SAFETY: reading the mask registers changes nothing.
    unsafe { (Port::<u8>::new(0x21).read(), Port::<u8>::new(0xa1).read()) }
}
