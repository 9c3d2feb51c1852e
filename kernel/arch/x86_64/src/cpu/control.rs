//! Control registers: what is turned on, and read back to see that it is.
//!
//! Intel SDM vol. 3, 2.5 (CR0, CR4), 2.2.1 (EFER), 11.12 (PAT).

use super::features::Features;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core_paging::entry::PAT_VALUE;
use x86_64::registers::control::{Cr0, Cr0Flags, Cr4, Cr4Flags};
use x86_64::registers::model_specific::{Efer, EferFlags, Msr};

const IA32_PAT: u32 = 0x277;

/// Whether trap entry has to clear AC (CR4.SMAP is on). Read by the entry code, a byte.
pub(crate) static SMAP_ON: AtomicBool = AtomicBool::new(false);

/// The control registers as read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControlBits {
    /// CR0.
    pub cr0: u64,
    /// CR4.
    pub cr4: u64,
    /// EFER.
    pub efer: u64,
    /// IA32_PAT.
    pub pat: u64,
}

/// Which protections are in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protection {
    /// Read-only pages bind the kernel too.
    pub wp: bool,
    /// No-execute pages.
    pub nx: bool,
    /// The kernel does not execute user pages.
    pub smep: bool,
    /// The kernel does not touch user pages by accident.
    pub smap: bool,
    /// User mode does not read descriptor tables.
    pub umip: bool,
}

impl ControlBits {
    /// Reads them on this CPU.
    pub fn read() -> Self {
        Self {
            cr0: Cr0::read_raw(),
            cr4: Cr4::read_raw(),
            efer: Efer::read_raw(),
            // SAFETY: every CPU in long mode has the PAT MSR.
            pat: unsafe { Msr::new(IA32_PAT).read() },
        }
    }

    /// The protections these bits put in force.
    pub fn protection(&self) -> Protection {
        let cr4 = Cr4Flags::from_bits_truncate(self.cr4);
        Protection {
            wp: Cr0Flags::from_bits_truncate(self.cr0).contains(Cr0Flags::WRITE_PROTECT),
            nx: EferFlags::from_bits_truncate(self.efer).contains(EferFlags::NO_EXECUTE_ENABLE),
            smep: cr4.contains(Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION),
            smap: cr4.contains(Cr4Flags::SUPERVISOR_MODE_ACCESS_PREVENTION),
            umip: cr4.contains(Cr4Flags::USER_MODE_INSTRUCTION_PREVENTION),
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = [
            ("wp", self.wp),
            ("nx", self.nx),
            ("smep", self.smep),
            ("smap", self.smap),
            ("umip", self.umip),
        ];
        for (i, (name, on)) in on.into_iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            write!(f, "{space}{name}{}", if on { "" } else { "(off)" })?;
        }
        Ok(())
    }
}

/// Turns on what the CPU has, on this CPU.
pub(crate) fn enable(features: &Features) {
    let cr0 = Cr0Flags::PROTECTED_MODE_ENABLE
        | Cr0Flags::EXTENSION_TYPE
        | Cr0Flags::PAGING
        | Cr0Flags::WRITE_PROTECT
        | Cr0Flags::NUMERIC_ERROR
        | Cr0Flags::MONITOR_COPROCESSOR
        | Cr0Flags::ALIGNMENT_MASK;
    let mut cr4 = Cr4Flags::PHYSICAL_ADDRESS_EXTENSION;
    // SSE and its exceptions, for user mode: every x86-64 CPU has them.
    cr4 |= Cr4Flags::OSFXSR | Cr4Flags::OSXMMEXCPT_ENABLE;
    cr4.set(Cr4Flags::OSXSAVE, features.xsave);
    cr4.set(Cr4Flags::PAGE_GLOBAL, features.pge);
    cr4.set(Cr4Flags::MACHINE_CHECK_EXCEPTION, features.mce);
    cr4.set(Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION, features.smep);
    cr4.set(Cr4Flags::SUPERVISOR_MODE_ACCESS_PREVENTION, features.smap);
    cr4.set(Cr4Flags::USER_MODE_INSTRUCTION_PREVENTION, features.umip);
    let mut efer = Efer::read() | EferFlags::SYSTEM_CALL_EXTENSIONS;
    efer.set(EferFlags::NO_EXECUTE_ENABLE, features.nx);
    // SAFETY: paging, long mode and write protection stay as the loader set them; the bits added
    // forbid more than before and the kernel does nothing that they forbid. The PAT value is the one
    // the boot protocol already put there, so no page changes its type.
    unsafe {
        Cr0::write(cr0);
        Cr4::write(cr4);
        Efer::write(efer);
        Msr::new(IA32_PAT).write(PAT_VALUE);
    }
    if features.smap {
        // Relaxed: every CPU writes the same value before its first trap from user mode.
        SMAP_ON.store(true, Ordering::Relaxed);
    }
}
