//! The local APIC: put into the protocol's state, and used to start processors.
//!
//! Both register interfaces are served: memory (xAPIC) and model-specific registers
//! (x2APIC). Intel SDM volume 3, chapter 12.

use loader_core::acpi::NmiLine;
use loader_core::refusal::Refusal;

use crate::cpu::{Features, read_msr, write_msr};

const APIC_BASE: u32 = 0x1b;
const ENABLED: u64 = 1 << 11;
const EXTENDED: u64 = 1 << 10;
const X2APIC_REGISTERS: u32 = 0x800;
const XAPIC_DISABLE_STATUS: u32 = 0xbd;
const ARCH_CAPABILITIES: u32 = 0x10a;

const VERSION: u32 = 0x30;
const TASK_PRIORITY: u32 = 0x80;
const SPURIOUS: u32 = 0xf0;
const COMMAND_LOW: u32 = 0x300;
const COMMAND_HIGH: u32 = 0x310;
const LVT_CMCI: u32 = 0x2f0;
const LVT_TIMER: u32 = 0x320;
const LVT_THERMAL: u32 = 0x330;
const LVT_PERFORMANCE: u32 = 0x340;
const LVT_LINT0: u32 = 0x350;
const LVT_LINT1: u32 = 0x360;
const LVT_ERROR: u32 = 0x370;

/// Software enable and vector 0xff.
const SPURIOUS_VALUE: u32 = 0x1ff;
const MASKED: u32 = 1 << 16;
const NMI: u32 = 4 << 8;

/// This processor's local APIC.
#[derive(Clone, Copy, Debug)]
pub enum LocalApic {
    /// Registers in memory at this address.
    Memory(u64),
    /// Registers as MSRs.
    Msr,
}

/// Whether firmware left x2APIC on.
pub fn is_x2apic() -> bool {
    // SAFETY: callers checked that there is a local APIC, which comes with this register.
    unsafe { read_msr(APIC_BASE) & EXTENDED != 0 }
}

/// Whether x2APIC mode cannot be left. Intel SDM volume 3, 12.12.1.1 and LEGACY_XAPIC_DISABLED.
fn is_locked() -> bool {
    const HAS_DISABLE_STATUS: u64 = 1 << 21;
    let seven = core::arch::x86_64::__cpuid_count(7, 0).edx;
    let has_capabilities = core::arch::x86_64::__cpuid(0).eax >= 7 && seven >> 29 & 1 == 1;
    // SAFETY: each register is read only if the one before says that it exists.
    unsafe {
        has_capabilities
            && read_msr(ARCH_CAPABILITIES) & HAS_DISABLE_STATUS != 0
            && read_msr(XAPIC_DISABLE_STATUS) & 1 != 0
    }
}

impl LocalApic {
    /// Enables this processor's local APIC in the wanted mode.
    ///
    /// # Safety
    /// The processor must have a local APIC (and x2APIC if wanted), and its register window
    /// must be mapped one to one.
    pub unsafe fn enable(x2apic: bool) -> Result<Self, Refusal> {
        // SAFETY: the caller vouches for the APIC, which comes with this register.
        let base = unsafe { read_msr(APIC_BASE) };
        if x2apic {
            // SAFETY: going from xAPIC (enabled first) to x2APIC is an allowed transition.
            unsafe {
                write_msr(APIC_BASE, base | ENABLED);
                write_msr(APIC_BASE, base | ENABLED | EXTENDED);
            }
            return Ok(Self::Msr);
        }
        if base & EXTENDED != 0 {
            if is_locked() {
                return Err(Refusal::X2apicLocked);
            }
            // SAFETY: x2APIC is left by way of disabled; nothing uses the APIC meanwhile.
            unsafe { write_msr(APIC_BASE, base & !(ENABLED | EXTENDED)) };
        }
        // SAFETY: disabled or xAPIC to xAPIC is an allowed transition.
        unsafe { write_msr(APIC_BASE, (base & !EXTENDED) | ENABLED) };
        Ok(Self::Memory(base & 0x000f_ffff_ffff_f000))
    }

    fn read(self, register: u32) -> u32 {
        match self {
            // SAFETY: `enable` gave the address; its caller vouched for the mapping.
            Self::Memory(base) => unsafe {
                ((base + u64::from(register)) as *const u32).read_volatile()
            },
            // SAFETY: `enable` switched to x2APIC, so the register exists.
            Self::Msr => unsafe { read_msr(X2APIC_REGISTERS + register / 16) as u32 },
        }
    }

    fn write(self, register: u32, value: u32) {
        match self {
            // SAFETY: as in `read`; the values written are defined for their registers.
            Self::Memory(base) => unsafe {
                ((base + u64::from(register)) as *mut u32).write_volatile(value);
            },
            // SAFETY: as in `read`.
            Self::Msr => unsafe {
                write_msr(X2APIC_REGISTERS + register / 16, u64::from(value));
            },
        }
    }

    /// Puts the APIC into the state the protocol asks for: enabled, priority 0, everything
    /// masked that would interrupt, NMI pins programmed as the MADT says and masked.
    pub fn settle(self, uid: u32, nmi_lines: &[NmiLine]) {
        self.write(SPURIOUS, SPURIOUS_VALUE);
        self.write(TASK_PRIORITY, 0);
        let highest = self.read(VERSION) >> 16 & 0xff;
        let entries = [
            (LVT_TIMER, 0),
            (LVT_LINT0, 0),
            (LVT_LINT1, 0),
            (LVT_ERROR, 3),
            (LVT_PERFORMANCE, 4),
            (LVT_THERMAL, 5),
            (LVT_CMCI, 6),
        ];
        for (register, least) in entries {
            if highest < least {
                continue;
            }
            let value = self.read(register);
            if matches!(value >> 8 & 7, 0 | 1 | 4 | 7) {
                self.write(register, value | MASKED);
            }
        }
        let ours = |line: &&NmiLine| line.uid.is_none_or(|other| other == uid);
        for line in nmi_lines.iter().filter(ours) {
            let register = if line.pin == 0 { LVT_LINT0 } else { LVT_LINT1 };
            // MPS INTI flags: 3 in bits 0-1 is active low, 3 in bits 2-3 is level.
            let low = u32::from(line.flags & 3 == 3) << 13;
            let level = u32::from(line.flags >> 2 & 3 == 3) << 15;
            self.write(register, NMI | low | level | MASKED);
        }
    }

    /// Sends an INIT to another processor.
    pub fn send_init(self, apic_id: u32) {
        const INIT: u32 = 5 << 8 | 1 << 14;
        self.send(apic_id, INIT);
    }

    /// Sends a start-up interrupt: the processor begins at `page`, below 1 MiB.
    pub fn send_startup(self, apic_id: u32, page: u64) {
        const STARTUP: u32 = 6 << 8 | 1 << 14;
        self.send(apic_id, STARTUP | (page >> 12) as u32 & 0xff);
    }

    fn send(self, apic_id: u32, command: u32) {
        match self {
            Self::Memory(_) => {
                const PENDING: u32 = 1 << 12;
                self.write(COMMAND_HIGH, apic_id << 24);
                self.write(COMMAND_LOW, command);
                // Delivery takes microseconds; a machine where it never ends is caught by
                // the processor not arriving.
                for _ in 0..100_000 {
                    if self.read(COMMAND_LOW) & PENDING == 0 {
                        break;
                    }
                    core::hint::spin_loop();
                }
            }
            Self::Msr => {
                let value = u64::from(apic_id) << 32 | u64::from(command);
                // SAFETY: the interrupt command register of x2APIC mode, which is on.
                unsafe { write_msr(X2APIC_REGISTERS + COMMAND_LOW / 16, value) };
            }
        }
    }
}

/// Enables and settles the local APIC of the processor we run on.
///
/// # Safety
/// As for [`LocalApic::enable`].
pub unsafe fn take(
    features: &Features,
    want_x2apic: bool,
    uid: u32,
    nmi_lines: &[NmiLine],
) -> Result<Option<LocalApic>, Refusal> {
    if !features.apic {
        return Ok(None);
    }
    // SAFETY: the processor has the APIC, and x2APIC if it is asked for; the caller vouches
    // for the mapping.
    let apic = unsafe { LocalApic::enable(want_x2apic && features.x2apic)? };
    apic.settle(uid, nmi_lines);
    Ok(Some(apic))
}
