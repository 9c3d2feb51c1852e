//! The two ways into the kernel.

use core::arch::asm;

use abi_types::{EnterResult, Syscall};

use crate::ring::{Enter, Kernel};

/// Dispatches this thread's ring, then waits until `min_complete` completions are in its queue or
/// `timeout_ns` have passed; 0 and 0 for a visit without a wait.
#[inline(always)]
pub fn cap_enter(min_complete: u32, timeout_ns: u64) -> EnterResult {
    let result: u64;
    // SAFETY: RCX and R11 are lost, RAX holds the result, all else is kept. The kernel accesses
    // the thread's ring, which is atomics, and memory that SQEs name: the compiler takes all of
    // memory as changed, as it does for any assembly without `nomem`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") Syscall::CapEnter as u64 => result,
            in("rdi") u64::from(min_complete),
            in("rsi") timeout_ns,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    EnterResult(result)
}

/// Ends the process, all its threads with it.
pub fn exit(code: i64) -> ! {
    // SAFETY: does not return, and what happens to the process's memory is the kernel's business.
    unsafe {
        asm!(
            "syscall",
            "ud2",
            in("rax") Syscall::Exit as u64,
            in("rdi") code,
            options(noreturn, nostack),
        );
    }
}

impl Enter for Kernel {
    #[inline(always)]
    fn cap_enter(&mut self, min_complete: u32, timeout_ns: u64) -> EnterResult {
        cap_enter(min_complete, timeout_ns)
    }
}
