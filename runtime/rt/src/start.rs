//! The first instructions of a program.
//!
//! The kernel's entry registers are the first five arguments of the C convention, in order, and
//! RSP is 16-byte aligned: a call is all there is to do.

use core::arch::global_asm;

use abi_types::{ABI_NUMBER, NOTE_ABI, NOTE_NAME};

use crate::env::{Entry, Env};
use crate::{syscall, thread};

// The note says which ABI the program is made for: a system with another one does not start it. It is where the
// first instructions are, so that every program with them has it.
global_asm!(
    ".pushsection .note.capos, \"a\", @note",
    ".balign 8",
    ".long {name_bytes}, 4, {kind}",
    ".asciz \"capOS\"",
    ".balign 8",
    ".long {number}",
    ".balign 8",
    ".popsection",
    ".globl _start",
    ".type _start, @function",
    "_start:",
    "xor ebp, ebp", // The end of every backtrace.
    "call {start}",
    "ud2",
    ".size _start, . - _start",
    start = sym start,
    name_bytes = const NOTE_NAME.len(),
    kind = const NOTE_ABI,
    number = const ABI_NUMBER,
);

// What is written out above.
const _: () = assert!(matches!(&NOTE_NAME, b"capOS\0"));

unsafe extern "Rust" {
    /// Defined by [`main!`](crate::main): the program.
    safe fn capos_main(env: &'static Env) -> i64;
}

extern "C" fn start(argument: u64, tid: u64, pid: u64, ring: u64, capset: u64) -> ! {
    thread::remember_first(ring, capset);
    // SAFETY: `_start` passes what the kernel started this thread with, and is the only one who
    // does; the ring is this thread's.
    let env = unsafe { Env::first(Entry { argument, tid, pid, ring, capset }) };
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
