//! The loader's core: everything about the Limine boot protocol (base revision 6) that is
//! arithmetic, parsing or layout.
//!
//! Not in here: firmware calls, privileged instructions, device registers. Those are in
//! `platforms/loader/machine` and in the two front ends. Memory is reached only through
//! [`memory::Memory`], so the same code fills the real machine and a host test's vector.
//!
//! The contract, in order of use:
//! 1. [`config::parse`] turns `limine.conf` into one selected entry;
//! 2. [`boot::prepare`] loads the executable and the modules and reads the requests; every
//!    refusal that depends on the files happens here, while the firmware is still there;
//! 3. [`boot::finish`] lays out memory map, page tables, stacks and responses. Request
//!    slots of the executable are written last and only when nothing can fail any more.
//!
//! Decided in ADR 10.
#![no_std]
#![forbid(unsafe_code)]

pub mod acpi;
pub mod boot;
pub mod config;
pub mod date;
pub mod entry;
pub mod files;
pub mod image;
pub mod memmap;
pub mod memory;
pub mod modules;
pub mod mp;
pub mod paging;
pub mod protocol;
pub mod refusal;
pub mod relocate;
pub mod requests;
pub mod respond;
pub mod smbios;
pub mod ustar;

pub use refusal::{Name, Refusal};

#[cfg(test)]
extern crate std;

#[cfg(test)]
mod tests;
