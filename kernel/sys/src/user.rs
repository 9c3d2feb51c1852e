//! What user mode leads to while the kernel runs no process: nothing that would go on.

use crate::fatal;
use abi_types::UNKNOWN_SYSCALL;
use kernel_arch::trap::TrapFrame;

/// A syscall: no number means anything without a process.
pub fn syscall(_number: u64, _a0: u64, _a1: u64) -> u64 {
    UNKNOWN_SYSCALL
}

/// A fault in user mode: nobody's but the kernel's own.
pub fn fault(frame: &TrapFrame) -> ! {
    fatal::fault(frame)
}

/// A deadline has passed: waking the CPU is all it asks for.
pub fn timer(_frame: &TrapFrame) {}
