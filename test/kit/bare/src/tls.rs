//! What FS leads to.

use core::arch::asm;

/// The word at the FS base; something readable must be there.
pub fn word_at_fs() -> u64 {
    let value: u64;
    // SAFETY: by the caller's FS base; if nothing is there the process ends.
    unsafe { asm!("mov {}, fs:[0]", out(reg) value, options(nostack, readonly, preserves_flags)) };
    value
}
