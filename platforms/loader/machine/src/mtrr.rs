//! Memory type range registers: the other processors get the first one's.
//!
//! Intel SDM volume 3, 13.11.8 describes the order of steps.

use core::arch::asm;

use arrayvec::ArrayVec;

use crate::cpu::{Features, read_msr, write_msr};

const CAPABILITY: u32 = 0xfe;
const DEFAULT_TYPE: u32 = 0x2ff;
const FIXED: [u32; 11] =
    [0x250, 0x258, 0x259, 0x268, 0x269, 0x26a, 0x26b, 0x26c, 0x26d, 0x26e, 0x26f];
const VARIABLE: u32 = 0x200;
const ENABLE: u64 = 1 << 11;

/// Registers and values, without the default type.
#[derive(Clone, Debug, Default)]
pub struct Mtrrs {
    ranges: ArrayVec<(u32, u64), 64>,
    default_type: Option<u64>,
}

impl Mtrrs {
    /// Reads this processor's; empty if it has none.
    pub fn read(features: &Features) -> Self {
        let mut mtrrs = Self::default();
        if !features.mtrr {
            return mtrrs;
        }
        // SAFETY: CPUID says MTRRs exist; the capability register says which.
        unsafe {
            let capability = read_msr(CAPABILITY);
            let fixed = if capability >> 8 & 1 == 1 { FIXED.as_slice() } else { &[] };
            let variable = VARIABLE..VARIABLE + 2 * (capability & 0xff) as u32;
            for register in fixed.iter().copied().chain(variable) {
                // Processors have at most 20 variable ranges: the list has room.
                let _ = mtrrs.ranges.try_push((register, read_msr(register)));
            }
            mtrrs.default_type = Some(read_msr(DEFAULT_TYPE));
        }
        mtrrs
    }

    /// Gives this processor these values, if it has others.
    ///
    /// # Safety
    /// The processor must be of the kind the values were read on and do nothing else.
    pub unsafe fn apply(&self) {
        let Some(default_type) = self.default_type else { return };
        // SAFETY: the registers exist, as on the processor they were read on. Caches are off
        // and empty and the ranges disabled while they change.
        unsafe {
            let same = read_msr(DEFAULT_TYPE) == default_type
                && self.ranges.iter().all(|(register, value)| read_msr(*register) == *value);
            if same {
                return;
            }
            let cr0: u64;
            asm!("mov {0}, cr0", out(reg) cr0, options(nomem, nostack));
            const CACHE_DISABLE: u64 = 1 << 30;
            asm!("mov cr0, {0}", "wbinvd", "mov {1}, cr3", "mov cr3, {1}",
                 in(reg) cr0 | CACHE_DISABLE, out(reg) _, options(nostack));
            write_msr(DEFAULT_TYPE, default_type & !ENABLE);
            for (register, value) in &self.ranges {
                write_msr(*register, *value);
            }
            write_msr(DEFAULT_TYPE, default_type);
            asm!("wbinvd", "mov {1}, cr3", "mov cr3, {1}", "mov cr0, {0}",
                 in(reg) cr0, out(reg) _, options(nostack));
        }
    }
}
