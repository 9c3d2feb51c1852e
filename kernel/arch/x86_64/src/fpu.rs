//! The state of x87, SSE and AVX: saved and restored whole at every switch between user threads.
//!
//! Kernel code uses none of these registers, so they hold the running user thread's values from
//! one switch to the next, through every entry. There is no lazy switching: what a CPU's
//! registers hold always belongs to the thread it runs.
//!
//! Intel SDM vol. 1, 13.1 to 13.11. The area's size comes from CPUID; a CPU without XSAVE uses FXSAVE.
//!
//! Decided in ADR 27.

use crate::cpu::Features;
use core::arch::asm;
use core::arch::x86_64::__cpuid_count;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// The areas' alignment (13.4).
pub const AREA_ALIGN: usize = 64;

/// Bytes FXSAVE writes, and the legacy part of every area.
const LEGACY_BYTES: u32 = 512;
/// Where the legacy part keeps the x87 control word and MXCSR (13.4.1).
const FCW_OFFSET: usize = 0;
const MXCSR_OFFSET: usize = 24;
/// Their values after reset: all exceptions masked.
const FCW_INITIAL: u16 = 0x37f;
const MXCSR_INITIAL: u32 = 0x1f80;

/// State components (13.1): x87, SSE, AVX, and the three of AVX-512, which come together.
const X87_SSE: u64 = 0b11;
const AVX: u64 = 0b100;
const AVX_512: u64 = 0b1110_0000;

/// How the state is saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Format {
    /// FXSAVE: no XSAVE on this CPU.
    Fxsave = 0,
    /// XSAVE.
    Xsave = 1,
    /// XSAVEOPT: leaves out what has not changed.
    Xsaveopt = 2,
    /// XSAVEC: leaves out what is in its initial state.
    Xsavec = 3,
}

static FORMAT: AtomicU8 = AtomicU8::new(Format::Fxsave as u8);
/// [`FORMAT`] says XSAVEOPT; by itself, so that a switch asks once.
static IS_XSAVEOPT: AtomicBool = AtomicBool::new(false);
static AREA_BYTES: AtomicU32 = AtomicU32::new(LEGACY_BYTES);

/// How the state is saved on this machine.
#[inline]
pub fn format() -> Format {
    match FORMAT.load(Ordering::Relaxed) {
        1 => Format::Xsave,
        2 => Format::Xsaveopt,
        3 => Format::Xsavec,
        _ => Format::Fxsave,
    }
}

/// Bytes of an area on this machine, a multiple of [`AREA_ALIGN`].
pub fn area_bytes() -> usize {
    (AREA_BYTES.load(Ordering::Relaxed) as usize).next_multiple_of(AREA_ALIGN)
}

/// Whether user mode has AVX: its state is on (XCR0), and so saved.
pub fn has_avx() -> bool {
    if format() == Format::Fxsave {
        return false;
    }
    let enabled: u32;
    // SAFETY: CR4.OSXSAVE is on, as the format says; reading has no effect.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") enabled, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    u64::from(enabled) & AVX != 0
}

/// Turns on the state components this kernel lets user mode have, on this CPU. The control registers
/// are set up already.
pub(crate) fn enable(features: &Features) {
    if !features.xsave {
        return;
    }
    let main = __cpuid_count(0xd, 0);
    let offered = u64::from(main.edx) << 32 | u64::from(main.eax);
    let mut wanted = X87_SSE;
    for group in [AVX, AVX_512] {
        if offered & group == group {
            wanted |= group;
        }
    }
    // SAFETY: CR4.OSXSAVE is on, and CPUID offers every component that is set.
    unsafe {
        asm!("xsetbv", in("ecx") 0, in("eax") wanted as u32, in("edx") (wanted >> 32) as u32, options(nostack));
    }
    let format = if features.xsavec {
        Format::Xsavec
    } else if features.xsaveopt {
        Format::Xsaveopt
    } else {
        Format::Xsave
    };
    // What the components enabled now take, in the standard form; the compacted one is no larger.
    // Relaxed: every CPU writes the same before the first area is made.
    AREA_BYTES.store(__cpuid_count(0xd, 0).ebx.max(LEGACY_BYTES), Ordering::Relaxed);
    FORMAT.store(format as u8, Ordering::Relaxed);
    IS_XSAVEOPT.store(format == Format::Xsaveopt, Ordering::Relaxed);
}

/// Makes an area hold the initial state.
///
/// # Safety
/// `area` is aligned to [`AREA_ALIGN`], has [`area_bytes`] bytes, and is the caller's alone.
pub(crate) unsafe fn init_area(area: *mut u8) {
    // SAFETY: by the contract. A header of zeros says that every component is in its initial
    // state, in the standard form; MXCSR is taken from the area even then (13.8.1).
    unsafe {
        area.write_bytes(0, area_bytes());
        area.add(FCW_OFFSET).cast::<u16>().write(FCW_INITIAL);
        area.add(MXCSR_OFFSET).cast::<u32>().write(MXCSR_INITIAL);
    }
}

/// Saves the registers' state.
///
/// # Safety
/// As for [`init_area`].
#[inline]
pub(crate) unsafe fn save(area: u64) {
    let all = u32::MAX;
    // SAFETY: the area is large enough and aligned, by the contract; the mask is cut by the CPU to
    // the components that are on.
    unsafe {
        if IS_XSAVEOPT.load(Ordering::Relaxed) {
            asm!("xsaveopt64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack, preserves_flags));
            return;
        }
        match format() {
            Format::Xsavec => {
                asm!("xsavec64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack, preserves_flags));
            }
            Format::Xsave | Format::Xsaveopt => {
                asm!("xsave64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack, preserves_flags));
            }
            Format::Fxsave => {
                asm!("fxsave64 [{}]", in(reg) area, options(nostack, preserves_flags));
            }
        }
    }
}

/// Loads the registers' state.
///
/// # Safety
/// As for [`init_area`]; the area holds what `init_area` or [`save`] wrote.
#[inline]
pub(crate) unsafe fn restore(area: u64) {
    let all = u32::MAX;
    // SAFETY: by the contract the area is one that the CPU accepts. Kernel code holds nothing in
    // these registers.
    unsafe {
        if FORMAT.load(Ordering::Relaxed) == Format::Fxsave as u8 {
            asm!("fxrstor64 [{}]", in(reg) area, options(nostack, preserves_flags));
        } else {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack, preserves_flags));
        }
    }
}
