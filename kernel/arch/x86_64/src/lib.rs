//! The machine: everything of the kernel that knows it runs on x86-64.
//!
//! Safe interfaces over assembly, control registers, traps, the local APIC, counters, ports and
//! the boot protocol. No policy: what a fault or a stop means is decided in `kernel_sys`, which
//! is called through the functions declared by [`kernel_hooks!`].
//!
//! * [`boot`]: entry from the loader and what it handed over.
//! * [`cpu`]: features, control registers, per-CPU blocks, descriptor tables, other CPUs.
//! * [`trap`]: exception and interrupt entry, faults that a test provokes on purpose.
//! * [`context`]: what a CPU can run, user threads and idle, and the switch between them.
//! * `syscall`: entry from user mode by instruction. [`fpu`]: the state of x87, SSE and AVX.
//! * [`paging`]: the direct map, table access, switching page tables.
//! * [`apic`], [`time`]: local APIC, counters and the clock.
//! * [`user`]: reads of user memory in place. [`irq`]: interrupts of devices.
//! * [`entropy`]: random bytes.
//! * [`console`]: serial ports, screen, log.
//! * [`firmware`]: ACPI tables.
//! * [`stop`], [`exit`], [`power`], [`unwind`]: how a run ends and what is reported then.
#![no_std]
#![feature(allow_internal_unsafe)]
#![allow(internal_features, reason = "kernel_hooks! lets crates without unsafe define symbols")]

pub mod apic;
pub mod boot;
pub mod console;
pub mod context;
pub mod cpu;
pub mod entropy;
pub mod exit;
pub mod firmware;
pub mod fpu;
mod hooks;
pub mod irq;
pub mod mmio;
pub mod paging;
mod port;
pub mod power;
pub mod stop;
mod syscall;
mod take_once;
pub mod time;
pub mod trap;
pub mod unwind;
pub mod user;
