//! A CPU: what it can do, how it is set up, its block of data, and how others are started.

mod control;
mod descriptors;
mod features;
mod job;
mod percpu;
pub mod speculation;
mod start;

pub(crate) use control::SMAP_ON;
pub use control::{ControlBits, Protection};
pub(crate) use descriptors::{KERNEL_CODE, KERNEL_DATA, NOT_PRESENT, USER_CODE, USER_DATA};
pub use features::Features;
pub(crate) use features::stated_tsc_hz;
pub use percpu::{CpuState, IstStacks, PerCpu, all, online_count, publish, this, try_this};
pub(crate) use percpu::{ENTRY_STACK_OFFSET, USER_STACK_OFFSET, keep_boot_cpu_alone};
pub use start::{finish_boot_cpu, retired_count};
pub(crate) use start::{init_boot_cpu, other_cpu_entry, retired_cpu_entry};

use core::arch::asm;
use x86_64::registers::model_specific::Msr;

const IA32_FS_BASE: u32 = 0xc000_0100;

/// Sets the FS base: an address in the lower half.
#[inline]
pub(crate) fn write_fs_base(base: u64) {
    // SAFETY: the kernel does not use FS; callers pass canonical addresses.
    unsafe { Msr::new(IA32_FS_BASE).write(base) };
}

/// What user mode left in DS, ES, FS and GS, or-ed together: 0 if nothing.
#[inline(always)]
pub(crate) fn data_selectors() -> u32 {
    let all: u32;
    // SAFETY: reads registers.
    unsafe {
        asm!(
            "mov {all:e}, ds",
            "mov {one:e}, es",
            "or {all:e}, {one:e}",
            "mov {one:e}, fs",
            "or {all:e}, {one:e}",
            "mov {one:e}, gs",
            "or {all:e}, {one:e}",
            all = out(reg) all,
            one = out(reg) _,
            options(nomem, nostack),
        );
    }
    all
}

/// Takes away what user mode left in the data segment registers. FS may lose its base.
#[cold]
#[inline(never)]
pub(crate) fn clear_data_selectors() {
    // SAFETY: the kernel uses none of these segments but GS, whose base is the user's between the two
    // swaps (NMI and the like look at the base, see `trap/entry.rs`). The caller writes FS's.
    unsafe {
        asm!(
            "mov ds, {zero:e}",
            "mov es, {zero:e}",
            "mov fs, {zero:e}",
            "swapgs",
            "mov gs, {zero:e}",
            "swapgs",
            zero = in(reg) 0u32,
            options(nostack, preserves_flags),
        );
    }
}

/// Waits for the next interrupt with interrupts on, then turns them off again.
///
/// An interrupt that is pending when this is called is taken before the CPU halts: `sti` holds
/// interrupts back for one instruction (Intel SDM vol. 2, STI), so none falls between.
pub fn wait_for_interrupt() {
    // SAFETY: interrupt handlers of this kernel leave everything as they found it.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Lets interrupts that are pending in, and turns them off again: a preemption point. No lock is
/// held here (invariant CPU-4).
pub fn let_interrupts_in() {
    // `sti` holds interrupts back for one instruction, so there is one more.
    // SAFETY: interrupt handlers of this kernel leave everything as they found it.
    unsafe { asm!("sti", "nop", "nop", "cli", options(nostack)) };
}

/// The stack pointer, about where the caller has it.
pub fn stack_pointer() -> u64 {
    let rsp: u64;
    // SAFETY: reading a register has no effect.
    unsafe { asm!("mov {}, rsp", out(reg) rsp, options(nomem, nostack, preserves_flags)) };
    rsp
}

/// The flags, as the caller has them.
pub fn flags() -> u64 {
    x86_64::registers::rflags::read_raw()
}

/// A hint that this is a spin loop.
pub fn relax() {
    core::hint::spin_loop();
}

/// Runs forever on another stack.
///
/// # Safety
/// `stack_top` is 16-byte aligned, the end of a mapped stack that nothing else uses, and stays so.
pub unsafe fn run_on_stack(stack_top: u64, argument: u64, function: extern "C" fn(u64) -> !) -> ! {
    // SAFETY: by the contract the stack is ours. The zero words end the chain of frame pointers
    // there, so a backtrace stops.
    unsafe {
        asm!(
            "mov rsp, {stack}",
            "xor ebp, ebp",
            "push rbp",
            "push rbp",
            "call {function}",
            "ud2",
            stack = in(reg) stack_top,
            function = in(reg) function,
            in("rdi") argument,
            options(noreturn)
        )
    }
}
