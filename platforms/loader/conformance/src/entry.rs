//! The first instructions: keep every register as the loader left it.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;

/// General registers rax to r15 (without rsp), flags, and rsp at entry.
#[repr(C)]
pub struct Registers {
    /// rax, rbx, rcx, rdx, rsi, rdi, rbp, r8 to r15.
    pub general: [u64; 15],
    /// rflags.
    pub flags: u64,
    /// rsp.
    pub stack: u64,
    /// Whether the entry point request's address was used.
    pub other_entry: u64,
}

global_asm!(
    ".global capos_conformance_start",
    ".global capos_conformance_other_start",
    "capos_conformance_other_start:",
    "mov qword ptr [rip + {registers} + 17 * 8], 1",
    "capos_conformance_start:",
    "mov [rip + {registers} + 0 * 8], rax",
    "mov [rip + {registers} + 1 * 8], rbx",
    "mov [rip + {registers} + 2 * 8], rcx",
    "mov [rip + {registers} + 3 * 8], rdx",
    "mov [rip + {registers} + 4 * 8], rsi",
    "mov [rip + {registers} + 5 * 8], rdi",
    "mov [rip + {registers} + 6 * 8], rbp",
    "mov [rip + {registers} + 7 * 8], r8",
    "mov [rip + {registers} + 8 * 8], r9",
    "mov [rip + {registers} + 9 * 8], r10",
    "mov [rip + {registers} + 10 * 8], r11",
    "mov [rip + {registers} + 11 * 8], r12",
    "mov [rip + {registers} + 12 * 8], r13",
    "mov [rip + {registers} + 13 * 8], r14",
    "mov [rip + {registers} + 14 * 8], r15",
    "mov [rip + {registers} + 16 * 8], rsp",
    "pushfq",
    "pop qword ptr [rip + {registers} + 15 * 8]",
    "and rsp, -16",
    "call {main}",
    "ud2",
    // A processor released from its parking: rdi is its record.
    ".global capos_conformance_processor",
    "capos_conformance_processor:",
    "pushfq",
    "or rax, rbx",
    "or rax, rcx",
    "or rax, rdx",
    "or rax, rsi",
    "or rax, rbp",
    "or rax, r8",
    "or rax, r9",
    "or rax, r10",
    "or rax, r11",
    "or rax, r12",
    "or rax, r13",
    "or rax, r14",
    "or rax, r15",
    "pop rcx",
    "mov rdx, [rsp]",
    "mov rsi, rsp",
    "mov r8, rax",
    "and rsp, -16",
    // record, stack pointer, return address, flags, all other registers or-ed
    "call {processor}",
    "ud2",
    registers = sym REGISTERS,
    main = sym crate::main,
    processor = sym crate::processors::processor_main,
);

unsafe extern "C" {
    /// The entry the entry point request names.
    pub fn capos_conformance_other_start() -> !;
    /// Where released processors begin.
    pub fn capos_conformance_processor() -> !;
}

static REGISTERS: Kept =
    Kept(UnsafeCell::new(Registers { general: [0; 15], flags: 0, stack: 0, other_entry: 0 }));

/// Written by the entry code.
#[repr(transparent)]
struct Kept(UnsafeCell<Registers>);

// SAFETY: written before Rust runs, only read after.
unsafe impl Sync for Kept {}

/// What was kept.
pub fn registers() -> &'static Registers {
    // SAFETY: written by the entry code only, before Rust runs.
    unsafe { &*REGISTERS.0.get() }
}

/// The privileged state of the processor that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Control registers.
    pub cr0: u64,
    /// Page table root.
    pub cr3: u64,
    /// CR4.
    pub cr4: u64,
    /// EFER.
    pub efer: u64,
    /// IA32_PAT.
    pub pat: u64,
    /// FS and GS base.
    pub bases: [u64; 2],
    /// cs, ds, es, ss, fs, gs, ldtr, tr.
    pub selectors: [u16; 8],
    /// GDT limit and base.
    pub gdt: (u16, u64),
    /// IDT limit and base.
    pub idt: (u16, u64),
}

/// Reads a model-specific register that every 64-bit processor has.
pub fn msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the callers name EFER, PAT, the base registers and APIC_BASE.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack));
    }
    u64::from(high) << 32 | u64::from(low)
}

impl State {
    /// Reads this processor's.
    pub fn read() -> Self {
        let (cr0, cr3, cr4): (u64, u64, u64);
        let (cs, ds, es, ss): (u16, u16, u16, u16);
        let (fs, gs, ldtr, tr): (u16, u16, u16, u16);
        let mut gdt = [0u8; 10];
        let mut idt = [0u8; 10];
        // SAFETY: reads of privileged registers, in ring 0; the two stores go to the arrays.
        unsafe {
            asm!("mov {}, cr0", "mov {}, cr3", "mov {}, cr4",
                 out(reg) cr0, out(reg) cr3, out(reg) cr4, options(nomem, nostack));
            asm!("mov {:x}, cs", "mov {:x}, ds", "mov {:x}, es", "mov {:x}, ss",
                 out(reg) cs, out(reg) ds, out(reg) es, out(reg) ss, options(nomem, nostack));
            asm!("mov {:x}, fs", "mov {:x}, gs", "sldt {:x}", "str {:x}",
                 out(reg) fs, out(reg) gs, out(reg) ldtr, out(reg) tr, options(nomem, nostack));
            asm!("sgdt [{}]", "sidt [{}]", in(reg) gdt.as_mut_ptr(), in(reg) idt.as_mut_ptr(),
                 options(nostack));
        }
        let table = |bytes: [u8; 10]| {
            let [a, b, rest @ ..] = bytes;
            (u16::from_le_bytes([a, b]), u64::from_le_bytes(rest))
        };
        Self {
            cr0,
            cr3,
            cr4,
            efer: msr(0xc000_0080),
            pat: msr(0x277),
            bases: [msr(0xc000_0100), msr(0xc000_0101)],
            selectors: [cs, ds, es, ss, fs, gs, ldtr, tr],
            gdt: table(gdt),
            idt: table(idt),
        }
    }
}
