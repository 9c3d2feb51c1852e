//! Instructions that end the process, or would in a wrong kernel go on.

use core::arch::asm;

/// #UD.
pub fn undefined() {
    // SAFETY: ends the process.
    unsafe { asm!("ud2", options(nostack)) };
}

/// #GP: an instruction of the kernel's.
pub fn privileged() {
    // SAFETY: ends the process.
    unsafe { asm!("hlt", options(nostack)) };
}

/// #GP: a port, which only I/O privilege opens.
pub fn port() {
    // SAFETY: ends the process.
    unsafe { asm!("in al, dx", in("dx") 0x60u16, out("al") _, options(nostack)) };
}

/// #DE.
pub fn divide_by_zero() {
    // SAFETY: ends the process.
    unsafe {
        asm!(
            "xor edx, edx",
            "mov eax, 1",
            "div {zero:e}",
            zero = in(reg) 0u32,
            out("eax") _,
            out("edx") _,
            options(nostack),
        );
    }
}

/// #GP: the vector of breakpoints is not for programs to call.
pub fn breakpoint() {
    // SAFETY: ends the process.
    unsafe { asm!("int3", options(nostack)) };
}

/// A vector the kernel keeps for itself: #GP.
pub fn interrupt_of_the_timer() {
    // SAFETY: ends the process.
    unsafe { asm!("int 48", options(nostack)) };
}

/// #DB after the next instruction.
pub fn single_step() {
    // SAFETY: ends the process; the stack is left as it was.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq", "nop") };
}

/// #DB at a syscall: the flag is set when the kernel is entered.
pub fn single_step_into_a_syscall() {
    // SAFETY: an entry without waiting, with the trap flag; ends the process after it.
    unsafe {
        asm!(
            "pushfq",
            "or qword ptr [rsp], 0x100",
            "xor eax, eax",
            "xor edi, edi",
            "xor esi, esi",
            "popfq",
            "syscall",
            "nop",
            out("rax") _,
            out("rdi") _,
            out("rsi") _,
            out("rcx") _,
            out("r11") _,
        );
    }
}

/// #AC: an access that is not aligned, with the flag for it. CR0.AM decides whether it counts.
pub fn misaligned_with_alignment_check() -> u64 {
    let words = [1u64, 2];
    let value: u64;
    // SAFETY: reads within the array; the flag is cleared again.
    unsafe {
        asm!(
            "pushfq",
            "or qword ptr [rsp], 0x40000",
            "popfq",
            "mov {value}, [{at} + 1]",
            "pushfq",
            "and qword ptr [rsp], ~0x40000",
            "popfq",
            at = in(reg) &words,
            value = out(reg) value,
        );
    }
    value
}

/// Reads a byte there.
pub fn read(address: u64) -> u8 {
    let value: u8;
    // SAFETY: what is there may be read; if nothing is, the process ends.
    unsafe {
        asm!("mov {value}, [{at}]", at = in(reg) address, value = out(reg_byte) value,
            options(nostack, readonly))
    };
    value
}

/// Writes a byte there; for addresses where nothing of the program's is.
pub fn write(address: u64) {
    // SAFETY: callers name pages that they must not be able to write: the process ends.
    unsafe { asm!("mov byte ptr [{at}], 1", at = in(reg) address, options(nostack)) };
}

/// Goes on there.
pub fn jump(address: u64) {
    // SAFETY: callers name addresses without code of theirs: the process ends.
    unsafe { asm!("call {at}", at = in(reg) address, clobber_abi("C")) };
}

/// Returns to the kernel's address, by `iretq`.
pub fn iret_to_the_kernel() {
    // SAFETY: the selectors of the kernel are refused: the process ends.
    unsafe {
        asm!("push 0x10", "push rsp", "pushfq", "push 0x08", "push 0", "iretq", clobber_abi("C"))
    };
}

/// A syscall with a stack pointer into the kernel, then a push to it.
pub fn bad_stack_pointer() {
    // SAFETY: the syscall does not look at RSP; the push after it ends the process.
    unsafe {
        asm!(
            "mov rsp, {bad}",
            "xor eax, eax",
            "xor edi, edi",
            "xor esi, esi",
            "syscall",
            "push rax",
            bad = in(reg) 0xffff_ffff_8000_0000u64,
            options(noreturn),
        );
    }
}

/// Uses stack without end.
#[inline(never)]
pub fn overflow_the_stack(depth: u64) -> u64 {
    let mut block = [depth; 64];
    core::hint::black_box(&mut block);
    if depth == u64::MAX { 0 } else { overflow_the_stack(depth + 1) + block[7] }
}
