//! The kernel's composition: the boot, the CPUs, and what ties the cores, the memory and the machine to
//! running processes.
//!
//! A kernel is this crate and a function named with [`kernel_main!`], which gets the [`Machine`] once
//! it is up: all CPUs in the kernel, memory managed, clock running. The kernel proper and every
//! test kernel are made the same way.
//!
//! Coming up:
//! * [`boot`]: the sequence, step by step. [`steps`]: how long each took. [`image`]: how it was built.
//! * [`machine`]: what was found. [`summary`]: the same for people to read. [`report`]: for a harness.
//! * [`smp`]: other CPUs: starting them, giving them work.
//! * [`start`]: the system starts. [`system`]: the tables it lives in. [`loader`]: processes from the
//!   manifest.
//!
//! The ways in:
//! * [`user`]: system calls and faults. [`interrupts`]: the timer and other CPUs.
//!
//! The machine under the host crates, which hold the order of things (`kernel_dispatch`, `kernel_ops`,
//! `kernel_process`):
//! * [`kernel`]: its name and types. [`sched`]: switching, timers, interrupts, idle. [`rings`]: memory, stacks
//!   and registers. [`object`]: the interfaces it serves.
//! * [`shutdown`]: the end of processes and of the system. [`counters`]: what each CPU counts.
//!
//! What goes wrong:
//! * [`section`]: how long the kernel keeps a CPU. [`symbols`]: names for addresses.
//! * [`fatal`]: panics and faults nobody expects: one report, then the end.
#![no_std]

extern crate alloc;

pub mod boot;
mod counters;
pub mod fatal;
mod image;
mod kernel;
mod lines;
pub mod loader;
pub mod machine;
mod object;
pub mod report;
mod section;
pub mod shutdown;
pub mod smp;
pub mod start;
pub mod steps;
pub mod summary;
mod symbols;
mod system;
pub mod under;
pub mod user;

pub use machine::Machine;

kernel_arch::kernel_hooks! {
    boot = boot::run,
    cpu = smp::other_cpu,
    fault = fatal::fault,
    interrupt = under::interrupt,
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
            timer = $crate::under::timer,
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
