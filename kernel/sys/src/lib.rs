//! The kernel as a whole: the boot sequence, and what happens when something goes wrong.
//!
//! A kernel is this crate and a function named with [`kernel_main!`], which gets the [`Machine`] once
//! it is up: all CPUs in the kernel, memory managed, clock running. The kernel proper and every
//! test kernel are made the same way.
//!
//! * [`boot`]: the sequence, step by step. [`steps`]: how long each took.
//! * [`machine`]: what was found. [`summary`]: the same for people to read.
//! * [`smp`]: other CPUs: starting them, giving them work.
//! * [`report`]: the shipped kernel's own word to a harness.
//! * [`start`]: processes from the boot manifest. [`system`]: the tables they live in.
//! * [`user`]: what user mode leads to. [`enter`]: `cap_enter` and the dispatcher. [`ipc`]: calls.
//!   [`fastpath`]: the same for the one case that has to be fast.
//! * [`sched`]: switching, waking, idle. [`timers`], [`park`]: what threads wait for.
//! * [`section`]: how long the kernel keeps a CPU.
//! * [`object`]: interfaces the kernel serves. [`reaper`]: what is left of the dead.
//! * [`fatal`]: panics and faults nobody expects: one report, then the end.
#![no_std]

extern crate alloc;

pub mod boot;
mod caller;
mod cancel;
mod complete;
mod counters;
mod deadlines;
mod enter;
mod fastpath;
pub mod fatal;
mod ipc;
pub mod machine;
mod message;
mod object;
mod park;
mod party;
mod pass;
mod process;
mod reaper;
pub mod report;
mod sched;
mod section;
pub mod smp;
pub mod start;
pub mod steps;
pub mod summary;
mod symbols;
mod system;
mod thread;
mod timers;
pub mod user;

pub use machine::Machine;

kernel_arch::kernel_hooks! {
    boot = boot::run,
    cpu = smp::other_cpu,
    fault = fatal::fault,
    interrupt = smp::interrupt,
}

/// Names the function a kernel goes on with: `fn(&'static Machine) -> !`.
///
/// User mode leads to [`user`], the kernel's own; a kernel that tests the machine below it names
/// functions of its own: `kernel_main!(main, syscall = …, user_fault = …, timer = …)`, with the types
/// `kernel_arch::user_hooks!` says.
#[macro_export]
macro_rules! kernel_main {
    ($function:path) => {
        $crate::kernel_main!(
            $function,
            syscall = $crate::user::syscall,
            user_fault = $crate::user::fault,
            timer = $crate::user::timer,
        );
    };
    ($function:path, $($hooks:tt)*) => {
        $crate::reexport::export_main!($function, &'static $crate::Machine);
        $crate::reexport::user_hooks! { $($hooks)* }
    };
}

/// What the macros refer to.
#[doc(hidden)]
pub mod reexport {
    pub use kernel_arch::{export_main, user_hooks};
}
