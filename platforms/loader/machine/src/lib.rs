//! The machine under both front ends: processors, interrupt controllers, clocks, and the
//! last steps into the kernel.
//!
//! Everything here runs with interrupts off, on one processor, with memory below 4 GiB (and
//! the loader itself) mapped one to one. Other processors only run [`smp`]'s code.
#![no_std]

pub mod apic;
pub mod clock;
pub mod console;
pub mod cpu;
pub mod depart;
pub mod identity;
pub mod iommu;
pub mod legacy;
pub mod mtrr;
pub mod smp;
pub mod switch;

pub use identity::Identity;
