//! The registers a trap saves, in the order the entry code pushes them.

use crate::cpu::{USER_CODE, USER_DATA};
use core::arch::naked_asm;
use core::fmt;
use core_fault::{ErrorCode, Vector};
use x86_64::registers::control::Cr2;

/// RFLAGS: the bit that is always set, and interrupts on.
const FLAG_ALWAYS: u64 = 1 << 1;
const FLAG_INTERRUPTS: u64 = 1 << 9;

/// The registers at a trap.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct TrapFrame {
    /// General registers.
    pub registers: Registers,
    vector: u64,
    error: u64,
    rip: u64,
    cs: u64,
    rflags: u64,
    rsp: u64,
    ss: u64,
}

/// The general registers.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
#[allow(missing_docs, reason = "their names say all there is to say")]
pub struct Registers {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rdx: u64,
    pub rcx: u64,
    pub rbx: u64,
    pub rax: u64,
}

/// A fault that was provoked: what a test looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The exception.
    pub vector: Vector,
    /// Its error code.
    pub error: u64,
    /// The address a page fault is about (CR2).
    pub address: u64,
    /// Where it happened.
    pub rip: u64,
    /// Whether it came from user mode.
    pub from_user: bool,
    /// RFLAGS of the kernel while it handled it.
    pub kernel_flags: u64,
}

impl Fault {
    pub(super) fn from_frame(frame: &TrapFrame) -> Fault {
        Fault {
            vector: frame.vector(),
            error: frame.error,
            address: Cr2::read_raw(),
            rip: frame.rip,
            from_user: frame.is_from_user(),
            kernel_flags: x86_64::registers::rflags::read_raw(),
        }
    }

    /// The error code in words.
    pub fn error_code(&self) -> ErrorCode {
        ErrorCode { vector: self.vector, code: self.error }
    }
}

impl TrapFrame {
    /// The exception or interrupt.
    pub fn vector(&self) -> Vector {
        Vector(self.vector as u8)
    }

    /// The error code in words.
    pub fn error_code(&self) -> ErrorCode {
        ErrorCode { vector: self.vector(), code: self.error }
    }

    /// The instruction it points at.
    pub fn rip(&self) -> u64 {
        self.rip
    }

    /// The flags.
    pub fn rflags(&self) -> u64 {
        self.rflags
    }

    /// The stack pointer.
    pub fn rsp(&self) -> u64 {
        self.rsp
    }

    /// Whether user mode was interrupted.
    pub fn is_from_user(&self) -> bool {
        self.cs & 3 != 0
    }

    /// The address a page fault is about, read from CR2 now.
    pub fn fault_address(&self) -> u64 {
        Cr2::read_raw()
    }

    /// The frame of user code that is about to run its first instruction: interrupts on, everything
    /// else zero.
    pub(crate) fn user(rip: u64, rsp: u64) -> TrapFrame {
        TrapFrame {
            rip,
            rsp,
            cs: USER_CODE.into(),
            ss: USER_DATA.into(),
            rflags: FLAG_ALWAYS | FLAG_INTERRUPTS,
            ..TrapFrame::default()
        }
    }

    pub(super) fn resume_at(&mut self, rip: u64, rsp: u64, cs: u16, ss: u16) {
        self.rip = rip;
        self.rsp = rsp;
        self.cs = cs.into();
        self.ss = ss.into();
        // Only the bit that is always set: interrupts off, no trap flag.
        self.rflags = FLAG_ALWAYS;
    }

    /// Goes on at another instruction of the kernel's, with everything else as it is.
    pub(super) fn go_on_at(&mut self, rip: u64) {
        self.rip = rip;
    }

    /// The registers of the caller, as far as a function can see them: for a report without a trap.
    pub fn here() -> TrapFrame {
        let mut frame = TrapFrame::default();
        // SAFETY: the frame is ours and large enough for what is stored.
        unsafe { capture(&mut frame) };
        frame
    }
}

/// Stores the registers into the frame in RDI.
#[unsafe(naked)]
unsafe extern "C" fn capture(frame: &mut TrapFrame) {
    naked_asm!(
        "mov [rdi], r15",
        "mov [rdi + 8], r14",
        "mov [rdi + 16], r13",
        "mov [rdi + 24], r12",
        "mov [rdi + 32], r11",
        "mov [rdi + 40], r10",
        "mov [rdi + 48], r9",
        "mov [rdi + 56], r8",
        "mov [rdi + 64], rdi",
        "mov [rdi + 72], rsi",
        "mov [rdi + 80], rbp",
        "mov [rdi + 88], rdx",
        "mov [rdi + 96], rcx",
        "mov [rdi + 104], rbx",
        "mov [rdi + 112], rax",
        "mov rax, [rsp]",
        "mov [rdi + 136], rax",
        "mov ax, cs",
        "movzx rax, ax",
        "mov [rdi + 144], rax",
        "pushfq",
        "pop rax",
        "mov [rdi + 152], rax",
        "lea rax, [rsp + 8]",
        "mov [rdi + 160], rax",
        "mov ax, ss",
        "movzx rax, ax",
        "mov [rdi + 168], rax",
        "ret",
    )
}

impl fmt::Display for TrapFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let r = &self.registers;
        writeln!(
            f,
            "  rax {:016x} rbx {:016x} rcx {:016x} rdx {:016x}",
            r.rax, r.rbx, r.rcx, r.rdx
        )?;
        writeln!(
            f,
            "  rsi {:016x} rdi {:016x} rbp {:016x} rsp {:016x}",
            r.rsi, r.rdi, r.rbp, self.rsp
        )?;
        writeln!(f, "  r8  {:016x} r9  {:016x} r10 {:016x} r11 {:016x}", r.r8, r.r9, r.r10, r.r11)?;
        writeln!(
            f,
            "  r12 {:016x} r13 {:016x} r14 {:016x} r15 {:016x}",
            r.r12, r.r13, r.r14, r.r15
        )?;
        writeln!(
            f,
            "  rip {:016x} rflags {:08x} cs {:02x} ss {:02x}",
            self.rip, self.rflags, self.cs, self.ss
        )
    }
}
