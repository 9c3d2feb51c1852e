//! Processes and threads: the records, how one begins, and how what is left of the dead is taken apart.
//!
//! A process is an address space, a capability table, the endpoints it serves, and the right of its threads
//! to all of them. Records are type-stable; a process or thread is named by position and generation. What
//! operations reach of a record is `kernel_ops`'s part of it, what the scheduler reaches `kernel_dispatch`'s.
//! The kernel implements [`Machine`] over stacks and page tables, tests over threads of the host.
//! Decided in ADR 230.
//!
//! * `thread.rs`, `process.rs`: the records. `records.rs`: the tables of them, `growth.rs`: how they grow.
//!   `remains.rs`: what waits to be taken apart. `machine.rs`: what a machine owes.
//! * `spawn.rs`: a thread begins. `join.rs`: handles, and waiting for a thread's end. `end.rs`: the end of
//!   threads and processes, and the reaper. `drain.rs`: what processes wrote goes to the console.
//!   `memory.rs`, `change.rs`: changes of an address space. `shared.rs`, `attach.rs`: memory objects.
//!   `scheduling.rs`: threads by name, for who sets shares and reads accounts.
//! * `session.rs`: which processes belong together.
//! * `child.rs`: a program starts a program. `load.rs`: its memory is filled. `entry.rs`: a process of the manifest
//!   starts; `image.rs`: one in a memory object. `handle.rs`, `ending.rs`: waiting for its end, and what comes back then.
//!   `directory.rs`: what there is, to read; `listed.rs`: as it is told.
#![cfg_attr(not(any(test, loom)), no_std)]

extern crate alloc;

pub mod attach;
pub mod buffers;
pub mod change;
pub mod child;
pub mod directory;
pub mod drain;
pub mod end;
mod ending;
pub mod entries;
pub mod entry;
mod growth;
pub mod handle;
pub mod image;
pub mod join;
pub mod listed;
pub mod load;
pub mod machine;
pub mod memory;
pub mod process;
pub mod records;
pub mod remains;
pub mod scheduling;
pub mod session;
pub mod shared;
pub mod spawn;
pub mod thread;

pub use machine::Machine;
pub use process::{BeginError, NewProcess, Process};
pub use records::Records;
pub use thread::Thread;
