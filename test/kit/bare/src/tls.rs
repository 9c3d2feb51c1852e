//! What FS leads to.

use core::arch::asm;

/// The word at the FS base; something readable must be there.
pub fn word_at_fs() -> u64 {
    let value: u64;
    // SAFETY: by the caller's FS base; if nothing is there the process ends.
    unsafe { asm!("mov {}, fs:[0]", out(reg) value, options(nostack, readonly, preserves_flags)) };
    value
}

/// Loads FS with a selector, which takes its base away: what a program can do without the kernel.
pub fn load_fs(selector: u16) {
    // SAFETY: the caller has no thread-local data, or gives up its own.
    unsafe { asm!("mov fs, {:e}", in(reg) u32::from(selector), options(nostack, preserves_flags)) };
}

/// Loads DS, ES and GS with a selector.
pub fn load_data_segments(selector: u16) {
    // SAFETY: 64-bit code does not look at these.
    unsafe {
        asm!(
            "mov ds, {s:e}", "mov es, {s:e}", "mov gs, {s:e}",
            s = in(reg) u32::from(selector),
            options(nostack, preserves_flags),
        );
    }
}

/// The selectors in DS, ES, FS and GS.
pub fn selectors() -> [u16; 4] {
    let (ds, es, fs, gs): (u32, u32, u32, u32);
    // SAFETY: reads registers.
    unsafe {
        asm!(
            "mov {0:e}, ds", "mov {1:e}, es", "mov {2:e}, fs", "mov {3:e}, gs",
            out(reg) ds, out(reg) es, out(reg) fs, out(reg) gs,
            options(nomem, nostack, preserves_flags),
        );
    }
    [ds as u16, es as u16, fs as u16, gs as u16]
}
