//! Reads of user memory where it lies, through the page tables that are loaded.
//!
//! A page that is not there, or goes away meanwhile, is a fault at an instruction of a known list, the
//! exception table: the fault handler goes on after the read, which then answers that there was nothing. Each
//! read of this kind puts its instruction and the place to go on into the section `.fixups`. A fault anywhere
//! else in the kernel stops the machine.
//!
//! Decided in ADR 267.

use crate::cpu::SMAP_ON;
use core::arch::asm;
use core_address::is_lower_half;

/// One read that may fault, and where to go on then.
#[repr(C)]
struct Fixup {
    read: u64,
    after: u64,
}

unsafe extern "C" {
    static kernel_fixups_start: Fixup;
    static kernel_fixups_end: Fixup;
}

/// Where to go on if the instruction at `rip` is a read that may fault.
pub(crate) fn fixup_for(rip: u64) -> Option<u64> {
    let start = &raw const kernel_fixups_start;
    let bytes = (&raw const kernel_fixups_end as usize).saturating_sub(start as usize);
    // SAFETY: the linker script puts both symbols around the section, which holds nothing but these.
    let all = unsafe { core::slice::from_raw_parts(start, bytes / size_of::<Fixup>()) };
    all.iter().find(|fixup| fixup.read == rip).map(|fixup| fixup.after)
}

/// What a read that found nothing leaves: more than 32 bits.
const NOTHING: u64 = u64::MAX;

/// Reads an aligned 32-bit word of the address space that is loaded, in one access; `None` if it is not
/// user memory that can be read.
///
/// An address of the lower half is user memory or nothing: no tables map anything else there (invariant PT-7).
#[inline(always)]
pub fn load_u32(address: u64) -> Option<u32> {
    if !address.is_multiple_of(4) || !is_lower_half(address) {
        return None;
    }
    let mut word = NOTHING;
    // SAFETY: the read has no effect but its value, and none at all if it faults, because its place is in
    // the exception table. Flags: AC is set only where the CPU knows STAC, and cleared on both ways out.
    unsafe {
        asm!(
            "test byte ptr [rip + {smap_on}], 1",
            "jz 3f",
            "stac",
            "2: mov {word:e}, [{address}]",
            "4: clac",
            "jmp 5f",
            "3: mov {word:e}, [{address}]",
            "5:",
            ".pushsection .fixups, \"a\", @progbits",
            ".quad 2b, 4b",
            ".quad 3b, 5b",
            ".popsection",
            smap_on = sym SMAP_ON,
            address = in(reg) address,
            word = inout(reg) word,
            options(nostack),
        );
    }
    u32::try_from(word).ok()
}
