//! The first instructions of a program.
//!
//! The kernel's entry registers are the first five arguments of the C convention, in order, and
//! RSP is 16-byte aligned: a call is all there is to do.

use core::arch::global_asm;

use crate::env::{Entry, Env};
use crate::{syscall, thread};

global_asm!(
    ".globl _start",
    ".type _start, @function",
    "_start:",
    "xor ebp, ebp", // The end of every backtrace.
    "call {start}",
    "ud2",
    ".size _start, . - _start",
    start = sym start,
);

unsafe extern "Rust" {
    /// Defined by [`main!`](crate::main): the program.
    safe fn capos_main(env: &'static Env) -> i64;
}

extern "C" fn start(argument: u64, tid: u64, pid: u64, ring: u64, capset: u64) -> ! {
    thread::remember_first(ring, capset);
    // SAFETY: `_start` passes what the kernel started this thread with, and is the only one who
    // does; the ring is this thread's.
    let env = unsafe { Env::new(Entry { argument, tid, pid, ring, capset }) };
    // SAFETY: this function does not return and a panic does not unwind: the value stays where it
    // is as long as the process lives.
    let env: &'static Env = unsafe { &*core::ptr::from_ref(&env) };
    thread::remember_first_env(env);
    syscall::exit(capos_main(env))
}

/// Names the program's main function: `fn main(env: &Env) -> E`, or `&'static Env`, with any
/// [`Ending`](crate::Ending). When it returns, the process ends.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! main {
    ($main:path) => {
        const _: () = {
            #[unsafe(no_mangle)]
            fn capos_main(env: &'static $crate::Env) -> i64 {
                $crate::Ending::code($main(env), env)
            }
        };
    };
}
