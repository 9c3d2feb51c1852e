//! The registers a thread starts with, written down by its first instructions.

use core::arch::global_asm;
use core::cell::UnsafeCell;

/// All a thread can see of its registers. The order is that of the assembly.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Registers {
    /// XSAVE area of x87, SSE and AVX, in the standard form.
    pub xsave: [u8; 832],
    /// RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP.
    pub low: [u64; 8],
    /// R8 to R15.
    pub high: [u64; 8],
    /// RFLAGS.
    pub flags: u64,
    /// DS, ES, FS, GS.
    pub segments: [u64; 4],
    /// Not 0 once all of it is written.
    pub is_written: u64,
    pad: [u64; 2],
}

const _: () = assert!(size_of::<Registers>() == 1024);

impl Registers {
    /// Nothing written.
    pub const EMPTY: Self = Self {
        xsave: [0; 832],
        low: [0; 8],
        high: [0; 8],
        flags: 0,
        segments: [0; 4],
        is_written: 0,
        pad: [0; 2],
    };

    /// The x87 control word.
    pub fn fcw(&self) -> u16 {
        u16::from_le_bytes([self.xsave[0], self.xsave[1]])
    }

    /// The x87 status word and the tags of registers in use.
    pub fn fsw_and_tags(&self) -> [u8; 3] {
        [self.xsave[2], self.xsave[3], self.xsave[4]]
    }

    /// MXCSR.
    pub fn mxcsr(&self) -> u32 {
        u32::from_le_bytes([self.xsave[24], self.xsave[25], self.xsave[26], self.xsave[27]])
    }

    /// Whether every byte of the x87, XMM and YMM registers is zero.
    pub fn vectors_are_zero(&self) -> bool {
        let zero = |range: core::ops::Range<usize>| self.xsave[range].iter().all(|byte| *byte == 0);
        // Registers of x87 and SSE, then the upper halves of AVX's behind the XSAVE header.
        zero(32..416) && zero(576..832)
    }
}

/// One place to write registers to.
#[derive(Debug)]
#[repr(transparent)]
pub struct Place(UnsafeCell<Registers>);

// SAFETY: written by one thread's first instructions, before anyone is told of it.
unsafe impl Sync for Place {}

impl Place {
    /// An empty one.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(Registers::EMPTY))
    }

    /// What was written there. The thread that writes it has started, and told so.
    pub fn read(&self) -> Registers {
        // SAFETY: the writer is past it, by the contract of the method; the memory is plain.
        unsafe { self.0.get().read_volatile() }
    }

    pub(crate) fn address(&self) -> u64 {
        self.0.get().expose_provenance() as u64
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

/// The first thread's registers, in a program whose ELF entry is `bare_first_entry`.
pub fn first() -> Registers {
    FIRST.read()
}

#[unsafe(no_mangle)]
static FIRST: Place = Place::new();

// `bare_write_registers`: R15's old value is on the stack, R15 has the place, RAX is written.
// The stack is used for the return address and the flags only, and is as it was at the end.
global_asm!(
    ".globl bare_first_entry",
    ".type bare_first_entry, @function",
    "bare_first_entry:",
    "mov qword ptr [rip + FIRST + 832], rax",
    "mov qword ptr [rip + FIRST + 832 + 56], rsp",
    "mov qword ptr [rip + FIRST + 896 + 56], r15",
    "lea r15, [rip + FIRST]",
    "call bare_write_registers",
    "jmp _start",
    ".size bare_first_entry, . - bare_first_entry",
    // A child: RDI is the address of its `raw::Start`, which begins with the place.
    ".globl bare_child_entry",
    ".type bare_child_entry, @function",
    "bare_child_entry:",
    "mov qword ptr [rdi + 832], rax",
    "mov qword ptr [rdi + 832 + 56], rsp",
    "mov qword ptr [rdi + 896 + 56], r15",
    "mov r15, rdi",
    "call bare_write_registers",
    "xor ebp, ebp",
    "call {child}",
    "ud2",
    ".size bare_child_entry, . - bare_child_entry",
    ".type bare_write_registers, @function",
    "bare_write_registers:",
    "mov [r15 + 832 + 8], rbx",
    "mov [r15 + 832 + 16], rcx",
    "mov [r15 + 832 + 24], rdx",
    "mov [r15 + 832 + 32], rsi",
    "mov [r15 + 832 + 40], rdi",
    "mov [r15 + 832 + 48], rbp",
    "mov [r15 + 896], r8",
    "mov [r15 + 896 + 8], r9",
    "mov [r15 + 896 + 16], r10",
    "mov [r15 + 896 + 24], r11",
    "mov [r15 + 896 + 32], r12",
    "mov [r15 + 896 + 40], r13",
    "mov [r15 + 896 + 48], r14",
    "pushfq",
    "pop qword ptr [r15 + 960]",
    "mov ax, ds",
    "movzx eax, ax",
    "mov [r15 + 968], rax",
    "mov ax, es",
    "movzx eax, ax",
    "mov [r15 + 976], rax",
    "mov ax, fs",
    "movzx eax, ax",
    "mov [r15 + 984], rax",
    "mov ax, gs",
    "movzx eax, ax",
    "mov [r15 + 992], rax",
    // x87, SSE and AVX; a CPU without XSAVE has the first two in the same place.
    "mov r14, rdx",
    "mov r13, rcx",
    "mov r12, rbx",
    "mov eax, 1",
    "xor ecx, ecx",
    "cpuid",
    "bt ecx, 27",
    "jnc 2f",
    "mov eax, 7",
    "xor edx, edx",
    "xsave64 [r15]",
    "jmp 3f",
    "2: fxsave64 [r15]",
    "3:",
    "mov rdx, r14",
    "mov rcx, r13",
    "mov rbx, r12",
    "mov qword ptr [r15 + 1000], 1",
    "ret",
    ".size bare_write_registers, . - bare_write_registers",
    child = sym crate::raw::child,
);
