//! Entry from user mode by SYSCALL, and back by SYSRET.
//!
//! The number is in RAX, arguments in RDI and RSI, the result in RAX; RCX and R11 are the
//! instruction's, everything else is kept. The frame holds what a function may change; RBX and R12 to
//! R15 are kept by the functions called, and over a switch on this stack.
//!
//! Hygiene: SYSCALL clears every flag in [`CLEARED_FLAGS`], so no trap flag, direction, nested task,
//! alignment check (which would turn SMAP off) or privilege level of the user's reaches the kernel.
//! SYSRET to a non-canonical address faults with the kernel's privilege on the user's stack on some
//! CPUs (Intel SDM vol. 2, SYSRET), so the address is looked at and such a return becomes the
//! user's own fault. NMI, machine check and debug exceptions in the instructions that
//! run with the user's stack or base are taken on stacks of their own that look at the base
//! (`trap/entry.rs`).
//!
//! Decided in ADRs 26 and 260.

use crate::cpu::{ENTRY_STACK_OFFSET, KERNEL_CODE, USER_CODE, USER_DATA, USER_STACK_OFFSET};
use crate::hooks;
use core::arch::naked_asm;
use core_address::LOWER_HALF_BITS;
use core_fault::Vector;
use x86_64::registers::model_specific::Msr;

const IA32_STAR: u32 = 0xc000_0081;
const IA32_LSTAR: u32 = 0xc000_0082;
const IA32_FMASK: u32 = 0xc000_0084;
const IA32_SYSENTER_CS: u32 = 0x174;

/// Every flag that has a meaning, but for the one that is always set: CF, PF, AF, ZF, SF, TF, IF, DF,
/// OF, IOPL, NT, RF, VM, AC, VIF, VIP, ID.
const CLEARED_FLAGS: u64 = 0x3f_7fd5;

/// TF, IF, DF, IOPL, NT, AC: those that change what kernel code does. An emulator may clear some whatever the mask says.
const HARMFUL_FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 10 | 3 << 12 | 1 << 14 | 1 << 18;
const _: () = assert!(CLEARED_FLAGS & HARMFUL_FLAGS == HARMFUL_FLAGS);

/// SYSRET takes SS from this selector plus 8 and CS from it plus 16.
const SYSRET_BASE: u64 = USER_DATA as u64 - 8;
const _: () = assert!(USER_CODE as u64 == SYSRET_BASE + 16);

/// Lets user mode on this CPU enter by SYSCALL. EFER.SCE is on already.
pub(crate) fn enable() {
    let entry: unsafe extern "C" fn() = syscall_entry;
    // SAFETY: the selectors are those of the segment table, in the order the instructions want; the
    // entry expects exactly what SYSCALL leaves. SYSENTER with a selector of 0 faults in user mode.
    unsafe {
        Msr::new(IA32_STAR).write(SYSRET_BASE << 48 | u64::from(KERNEL_CODE) << 32);
        Msr::new(IA32_LSTAR).write(entry as usize as u64);
        Msr::new(IA32_FMASK).write(CLEARED_FLAGS);
        Msr::new(IA32_SYSENTER_CS).write(0);
    }
}

/// Where the frame the entry pushes has the return address. Lowest first: R15, R14, R13, R12, RBP, RBX, R10,
/// R9, R8, RDX, RSI, RDI, RCX, R11, RSP.
const FRAME_RCX: usize = 96;

/// Bits of an address's upper half word that are zero in the lower half.
const NOT_LOWER_HALF: i32 = -(1 << (LOWER_HALF_BITS - 32));

/// The entry. Fifteen words are pushed, so the stack is aligned for the call (`PerCpu::set_user_entry_stack`).
///
/// What user mode has in registers is pushed and cleared, so that no code of the kernel finds it there, were
/// it only by a misprediction (ADR 260). RDI, RSI and RAX carry the arguments; RCX and R11 hold what SYSCALL
/// put there.
///
/// # Safety
/// Reached by SYSCALL only.
#[unsafe(naked)]
unsafe extern "C" fn syscall_entry() {
    naked_asm!(
        "swapgs",
        "mov gs:[{user_stack}], rsp",
        "mov rsp, gs:[{entry_stack}]",
        "push qword ptr gs:[{user_stack}]",
        "push r11",
        "push rcx",
        "push rdi",
        "push rsi",
        "push rdx",
        "push r8",
        "push r9",
        "push r10",
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r10d, r10d",
        "xor ebx, ebx",
        // The chain of frame pointers ends here, too: what the user has in RBP is no frame.
        "xor ebp, ebp",
        "xor r12d, r12d",
        "xor r13d, r13d",
        "xor r14d, r14d",
        "xor r15d, r15d",
        "mov rdx, rax",
        "call {syscall}",
        "test dword ptr [rsp + {rcx} + 4], {not_lower_half}",
        "jnz 2f",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rcx",
        "pop r11",
        "pop rsp",
        "swapgs",
        "sysretq",
        // The address is none that user mode may return to: a general protection fault of the
        // user's. The frame becomes that of a trap, on top of it; nothing returns.
        "2:",
        "mov rdx, rsp",
        "push {user_data}",
        "push qword ptr [rdx + 112]",
        "push qword ptr [rdx + 104]",
        "push {user_code}",
        "push qword ptr [rdx + 96]",
        "push 0",
        "push {general_protection}",
        "push rax",
        "push qword ptr [rdx + 40]",
        "push qword ptr [rdx + 96]",
        "push qword ptr [rdx + 72]",
        "push qword ptr [rdx + 32]",
        "push qword ptr [rdx + 80]",
        "push qword ptr [rdx + 88]",
        "push qword ptr [rdx + 64]",
        "push qword ptr [rdx + 56]",
        "push qword ptr [rdx + 48]",
        "push qword ptr [rdx + 104]",
        "push qword ptr [rdx + 24]",
        "push qword ptr [rdx + 16]",
        "push qword ptr [rdx + 8]",
        "push qword ptr [rdx + 0]",
        "mov rdi, rsp",
        "call {dispatch}",
        "ud2",
        user_stack = const USER_STACK_OFFSET,
        entry_stack = const ENTRY_STACK_OFFSET,
        syscall = sym hooks::capos_syscall,
        rcx = const FRAME_RCX,
        not_lower_half = const NOT_LOWER_HALF,
        user_data = const USER_DATA,
        user_code = const USER_CODE,
        general_protection = const Vector::GENERAL_PROTECTION.0,
        dispatch = sym crate::trap::dispatch,
    )
}
