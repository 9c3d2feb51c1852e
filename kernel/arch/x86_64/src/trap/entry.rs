//! Entry code of all 256 vectors.
//!
//! Each vector has a stub of 16 bytes that pushes its number (and a zero where the CPU pushes no error
//! code). The common part saves all registers and calls [`super::dispatch`].
//!
//! GS: an entry from user mode swaps to the kernel's base, an entry from the kernel does not. The
//! vectors with interrupt stacks can, in the kernel, also come in the few instructions of an entry or exit
//! where the kernel runs with the user's base, so they look at the base itself: a block's address is
//! in the upper half, and user code cannot set such a base because FSGSBASE stays off (invariant CPU-3).
//!
//! The CPU clears IF and TF on entry but not DF and AC: both are cleared here.

use crate::cpu::{ENTRY_STACK_OFFSET, KERNEL_CODE};
use core::arch::global_asm;
use core_fault::Vector;

unsafe extern "C" {
    static trap_stubs: [[u8; STUB_BYTES]; 256];
    /// The way out of a trap: the stack pointer is at a frame. Jumped to, never called.
    pub(crate) fn trap_return();
}

const STUB_BYTES: usize = 16;

/// Where the CPU enters for a vector.
pub(crate) fn entry_address(vector: u8) -> u64 {
    &raw const trap_stubs as u64 + u64::from(vector) * STUB_BYTES as u64
}

const _: () = assert!(KERNEL_CODE & 3 == 0, "entry code takes privilege 0 for the kernel");

global_asm!(
    ".pushsection .text.trap_entry, \"ax\", @progbits",
    ".p2align 4",
    ".global trap_stubs",
    "trap_stubs:",
    ".set vector, 0",
    ".rept 256",
    ".p2align 4",
    ".if (vector >= 32)",
    "push 0",
    ".elseif ((({error_codes} >> vector) & 1) == 0)",
    "push 0",
    ".endif",
    "push vector",
    ".if (vector == 1) || (vector == 2) || (vector == 8) || (vector == 18)",
    "jmp trap_any_gs",
    ".else",
    "jmp trap_common",
    ".endif",
    ".set vector, vector + 1",
    ".endr",
    ".macro trap_save",
    "cld",
    "push rax",
    "push rbx",
    "push rcx",
    "push rdx",
    "push rbp",
    "push rsi",
    "push rdi",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    // CLAC exists only where SMAP does.
    "test byte ptr [rip + {smap_on}], 1",
    "jz 90f",
    "clac",
    "90:",
    ".endm",
    // What user mode has in registers, once it is saved: the kernel does not find it there, were it only by
    // a misprediction (ADR 260). RDI is the argument.
    ".macro trap_clear",
    "xor eax, eax",
    "xor ebx, ebx",
    "xor ecx, ecx",
    "xor edx, edx",
    "xor ebp, ebp",
    "xor esi, esi",
    "xor r8d, r8d",
    "xor r9d, r9d",
    "xor r10d, r10d",
    "xor r11d, r11d",
    "xor r12d, r12d",
    "xor r13d, r13d",
    "xor r14d, r14d",
    "xor r15d, r15d",
    ".endm",
    ".macro trap_restore",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdi",
    "pop rsi",
    "pop rbp",
    "pop rdx",
    "pop rcx",
    "pop rbx",
    "pop rax",
    // The vector and the error code.
    "add rsp, 16",
    ".endm",
    ".p2align 4",
    ".global trap_common",
    "trap_common:",
    // Privilege of the interrupted code, in CS: above vector, error code and RIP.
    "test byte ptr [rsp + 24], 3",
    "jz 1f",
    "swapgs",
    // No speculation past the choice of base.
    "lfence",
    "trap_on_stack:",
    "trap_save",
    "trap_clear",
    "mov rdi, rsp",
    "call {dispatch}",
    ".global trap_return",
    "trap_return:",
    "trap_restore",
    // The frame may have been changed to return elsewhere, so the question is asked again.
    "test byte ptr [rsp + 8], 3",
    "jz 2f",
    "swapgs",
    "2:",
    "iretq",
    // From the kernel: its registers may stay, and its chain of frame pointers goes on.
    "1:",
    "lfence",
    "trap_save",
    "mov rdi, rsp",
    "call {dispatch}",
    "jmp trap_return",
    ".p2align 4",
    ".global trap_any_gs",
    "trap_any_gs:",
    "test byte ptr [rsp + 24], 3",
    "jnz 5f",
    "trap_save",
    "mov ecx, 0xc0000101",
    "rdmsr",
    "xor r15d, r15d",
    "test edx, edx",
    "js 3f",
    "swapgs",
    "inc r15d",
    "3:",
    "lfence",
    "mov rdi, rsp",
    "call {dispatch}",
    // Going on in the kernel instead of where it came from: the base stays the kernel's.
    "test al, al",
    "jnz 4f",
    "test r15d, r15d",
    "jz 4f",
    "swapgs",
    "4:",
    "trap_restore",
    "iretq",
    // From user mode the thread's own stack is empty: what the CPU and the stub pushed moves there,
    // and the rest is as for any other vector. So the handler may switch to another context,
    // which it must not on a stack that the next exception starts over. The stack begins 8 below a
    // multiple of 16, and the frame at the multiple below that.
    "5:",
    "swapgs",
    "lfence",
    "push rax",
    "push rbx",
    "mov rax, gs:[{entry_stack}]",
    ".set word, 0",
    ".rept 7",
    "mov rbx, [rsp + 16 + word * 8]",
    "mov [rax - 64 + word * 8], rbx",
    ".set word, word + 1",
    ".endr",
    "mov rbx, [rsp + 8]",
    "mov [rax - 72], rbx",
    "pop rbx",
    "lea rsp, [rax - 72]",
    "pop rax",
    "jmp trap_on_stack",
    ".popsection",
    entry_stack = const ENTRY_STACK_OFFSET,
    error_codes = const Vector::error_code_mask(),
    smap_on = sym crate::cpu::SMAP_ON,
    dispatch = sym super::dispatch,
);
