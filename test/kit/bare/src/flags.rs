//! Bits of RFLAGS around a syscall.

use core::arch::asm;

/// Direction.
pub const DF: u64 = 1 << 10;
/// Alignment check.
pub const AC: u64 = 1 << 18;
/// Nested task.
pub const NT: u64 = 1 << 14;
/// I/O privilege 3, which user mode cannot give itself.
pub const IOPL: u64 = 3 << 12;
/// CPUID can be used.
pub const ID: u64 = 1 << 21;
/// The status flags.
pub const STATUS: u64 = 0x8d5;

/// RFLAGS after `cap_enter(0, 0)` that was made with these bits set, and with them taken away
/// again; and what the syscall returned.
pub fn enter_with(bits: u64) -> (u64, u64) {
    let (after, result): (u64, u64);
    // SAFETY: dispatches the thread's ring, which is its own, without waiting; flags are as they
    // were when it ends.
    unsafe {
        asm!(
            "pushfq",
            "pushfq",
            "or qword ptr [rsp], {bits}",
            "xor eax, eax",
            "xor edi, edi",
            "xor esi, esi",
            "popfq",
            "syscall",
            "pushfq",
            "pop {after}",
            "popfq",
            bits = in(reg) bits,
            after = lateout(reg) after,
            out("rax") result,
            out("rdi") _,
            out("rsi") _,
            out("rcx") _,
            out("r11") _,
        );
    }
    (after, result)
}

/// A syscall of any number; the result, and whether the registers it keeps were kept.
pub fn syscall(number: u64) -> (u64, bool) {
    let (result, sum): (u64, u64);
    // SAFETY: callers name numbers that are no syscall; nothing but RAX, RCX and R11 changes.
    unsafe {
        asm!(
            "mov rdi, 1", "mov rsi, 2", "mov rdx, 4", "mov r8, 8", "mov r9, 16", "mov r10, 32",
            "mov r12, 64", "mov r13, 128", "mov r14, 256",
            "syscall",
            "add rdi, rsi", "add rdi, rdx", "add rdi, r8", "add rdi, r9", "add rdi, r10",
            "add rdi, r12", "add rdi, r13", "add rdi, r14",
            inlateout("rax") number => result,
            lateout("rdi") sum,
            out("rsi") _, out("rdx") _, out("r8") _, out("r9") _, out("r10") _,
            out("r12") _, out("r13") _, out("r14") _, out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    (result, sum == 511)
}
