//! IOMMUs: translation and remapping that firmware left on are switched off.
//!
//! Firmware that protects itself against DMA during boot hands the machine over with VT-d
//! or AMD-Vi enabled; a kernel that does not know would see its devices fault. VT-d: Intel
//! VT for Directed I/O, 11.4.4. AMD-Vi: AMD I/O Virtualization Technology, 3.4.

use loader_core::acpi;
use loader_core::memory::{Memory, get_u16, get_u64};

use crate::clock::delay_us;

/// Switches off every IOMMU the ACPI tables list. Gives how many did not obey.
///
/// # Safety
/// Register windows named by the tables must be mapped one to one.
pub unsafe fn disable(memory: &impl Memory, rsdp: u64) -> u32 {
    let mut stubborn = 0;
    let table = |signature| {
        let (base, length) = acpi::find(memory, rsdp, signature)?;
        memory.view(base, length)
    };
    // DMAR: entries from byte 48, each with type and length as u16; type 0 is a unit whose
    // registers are at the address in byte 8.
    for entry in entries(table(b"DMAR").unwrap_or(&[]), 48, |entry| {
        Some((get_u16(entry, 0)?, get_u16(entry, 2)?))
    }) {
        if get_u16(entry, 0) == Some(0)
            && let Some(base) = get_u64(entry, 8)
        {
            // SAFETY: the caller vouches for the windows.
            stubborn += u32::from(!unsafe { disable_vt_d(base) });
        }
    }
    // IVRS: blocks from byte 48; types 10h, 11h and 40h are units, registers in byte 8.
    for entry in entries(table(b"IVRS").unwrap_or(&[]), 48, |entry| {
        Some((u16::from(*entry.first()?), get_u16(entry, 2)?))
    }) {
        if matches!(entry.first(), Some(0x10 | 0x11 | 0x40))
            && let Some(base) = get_u64(entry, 8)
        {
            // SAFETY: the caller vouches for the windows.
            unsafe { disable_amd_vi(base) };
        }
    }
    stubborn
}

/// The variable-length entries of a table.
fn entries(
    table: &[u8],
    start: usize,
    header: impl Fn(&[u8]) -> Option<(u16, u16)>,
) -> impl Iterator<Item = &[u8]> {
    let mut at = start;
    core::iter::from_fn(move || {
        let rest = table.get(at..)?;
        let (_, length) = header(rest)?;
        let entry = rest.get(..usize::from(length)).filter(|entry| entry.len() >= 4)?;
        at += entry.len();
        Some(entry)
    })
}

/// Turns a VT-d unit's translation, interrupt remapping and queued invalidation off.
///
/// # Safety
/// `base` must be the unit's register window.
unsafe fn disable_vt_d(base: u64) -> bool {
    const COMMAND: u64 = 0x18;
    const STATUS: u64 = 0x1c;
    // One-shot commands must be written as zero: only the lasting bits are kept.
    const LASTING: u32 = 0x96ff_ffff;
    const BITS: [u32; 3] = [1 << 31, 1 << 25, 1 << 26];
    let status = (base + STATUS) as *const u32;
    let command = (base + COMMAND) as *mut u32;
    for bit in BITS {
        // SAFETY: the unit's status and command registers.
        let now = unsafe { status.read_volatile() };
        if now & bit == 0 {
            continue;
        }
        // SAFETY: clearing one enable bit while keeping the others is the defined way off.
        unsafe { command.write_volatile(now & LASTING & !bit) };
        let mut off = false;
        for _ in 0..10_000 {
            // SAFETY: as above.
            if unsafe { status.read_volatile() } & bit == 0 {
                off = true;
                break;
            }
            delay_us(1);
        }
        if !off {
            return false;
        }
    }
    true
}

/// Turns an AMD-Vi unit off: the enable bit, then its command buffer and logs.
///
/// # Safety
/// `base` must be the unit's register window.
unsafe fn disable_amd_vi(base: u64) {
    const CONTROL: u64 = 0x18;
    const ENABLE: u64 = 1;
    // Event log, its interrupt, completion interrupt, command buffer, PPR log and interrupt.
    const EXTRAS: u64 = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 12 | 1 << 13 | 1 << 14;
    let control = (base + CONTROL) as *mut u64;
    // SAFETY: the unit's control register; translation goes off first, its helpers after.
    unsafe {
        let now = control.read_volatile();
        if now & ENABLE != 0 {
            control.write_volatile(now & !ENABLE);
            control.write_volatile(now & !(ENABLE | EXTRAS));
        }
    }
}
