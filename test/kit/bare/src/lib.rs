//! What test programs do that no runtime offers: registers as the kernel left them, threads
//! without a runtime's start, faults on purpose. All of their `unsafe` is here.
//!
//! * [`entry`]: the registers a thread starts with. A program whose ELF entry is
//!   `bare_first_entry` has those of its first thread, then starts as usual.
//! * [`program`]: what test programs share. [`raw`]: threads on stacks of one's own, with any FS base.
//! * [`fault`]: instructions that end the process. [`flags`]: bits of RFLAGS around a syscall.
//! * [`vectors`]: registers that must survive a switch. [`tls`]: what FS leads to.
#![no_std]

pub mod entry;
pub mod fault;
pub mod flags;
pub mod program;
pub mod raw;
pub mod tls;
pub mod vectors;
