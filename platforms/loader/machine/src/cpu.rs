//! What the processor can do, its model-specific registers and its random numbers.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count, _rdtsc};

/// Features the loader decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// 5-level paging.
    pub la57: bool,
    /// No-execute pages.
    pub no_execute: bool,
    /// A local APIC.
    pub apic: bool,
    /// x2APIC mode.
    pub x2apic: bool,
    /// Memory type range registers.
    pub mtrr: bool,
    /// The RDRAND instruction.
    pub rdrand: bool,
    /// A time stamp counter that never changes its rate.
    pub invariant_tsc: bool,
    /// This processor's APIC id.
    pub apic_id: u32,
}

impl Features {
    /// Asks the processor.
    pub fn detect() -> Self {
        let highest = __cpuid(0).eax;
        let highest_extended = __cpuid(0x8000_0000).eax;
        let one = __cpuid(1);
        let seven = if highest >= 7 { __cpuid_count(7, 0).ecx } else { 0 };
        let extended = if highest_extended >= 0x8000_0001 { __cpuid(0x8000_0001).edx } else { 0 };
        let power = if highest_extended >= 0x8000_0007 { __cpuid(0x8000_0007).edx } else { 0 };
        let wide_id = if highest >= 0xb { __cpuid_count(0xb, 0) } else { __cpuid(0) };
        let has_wide_id = highest >= 0xb && wide_id.ebx != 0;
        Self {
            la57: seven >> 16 & 1 == 1,
            no_execute: extended >> 20 & 1 == 1,
            apic: one.edx >> 9 & 1 == 1,
            x2apic: one.ecx >> 21 & 1 == 1,
            mtrr: one.edx >> 12 & 1 == 1,
            rdrand: one.ecx >> 30 & 1 == 1,
            invariant_tsc: power >> 8 & 1 == 1,
            apic_id: if has_wide_id { wide_id.edx } else { one.ebx >> 24 },
        }
    }

    /// A random number; without RDRAND the time stamp counter, spread out.
    pub fn random(&self) -> u64 {
        if self.rdrand {
            // The manual asks for ten attempts before giving up: Intel SDM volume 1, 7.3.17.
            for _ in 0..10 {
                let (value, good): (u64, u8);
                // SAFETY: CPUID says the instruction is there; it touches registers only.
                unsafe {
                    asm!("rdrand {}", "setc {}", out(reg) value, out(reg_byte) good,
                         options(nomem, nostack));
                }
                if good == 1 {
                    return value;
                }
            }
        }
        timestamp().wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }
}

/// The time stamp counter.
pub fn timestamp() -> u64 {
    // SAFETY: every 64-bit processor has the instruction, and the loader runs privileged.
    unsafe { _rdtsc() }
}

/// The frequency the processor itself states, if it does.
pub fn stated_tsc_hz() -> Option<u64> {
    let highest = __cpuid(0).eax;
    if highest >= 0x15 {
        let leaf = __cpuid(0x15);
        let (denominator, numerator, crystal) =
            (u64::from(leaf.eax), u64::from(leaf.ebx), u64::from(leaf.ecx));
        if denominator > 0 && numerator > 0 && crystal > 0 {
            return Some(crystal * numerator / denominator);
        }
    }
    // Hypervisors state kilohertz in 0x40000010 if their highest leaf reaches it.
    let is_guest = __cpuid(1).ecx >> 31 & 1 == 1;
    if is_guest && (0x4000_0010..0x4000_1000).contains(&__cpuid(0x4000_0000).eax) {
        let khz = u64::from(__cpuid(0x4000_0010).eax);
        return (khz > 0).then_some(khz * 1000);
    }
    None
}

/// Reads a model-specific register.
///
/// # Safety
/// The register must exist on this processor.
pub unsafe fn read_msr(msr: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller vouches for the register; reading changes nothing.
    unsafe {
        asm!("rdmsr", in("ecx") msr, out("eax") low, out("edx") high, options(nomem, nostack));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
/// The register must exist and the value must be one the processor may run on with.
pub unsafe fn write_msr(msr: u32, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: the caller vouches for register and value.
    unsafe { asm!("wrmsr", in("ecx") msr, in("eax") low, in("edx") high, options(nostack)) };
}

/// Stops this processor for good.
pub fn halt() -> ! {
    loop {
        // SAFETY: with interrupts off the processor only stops.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
