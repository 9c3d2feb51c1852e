//! A machine of host threads and plain memory: the kernel's own driver, operations, processes and reaper, without
//! a kernel.
//!
//! Every thread of the machine is a thread of the host that runs while it has the baton of a CPU
//! (`smp_ring_testing`); user mode is a Rust function with a ring ([`User`]). Time passes with each look at the
//! clock, and jumps to the next deadline when every CPU is idle. When every CPU halts and no deadline is left,
//! a wake was lost, and the test fails with who waits for what. Under `cfg(shuttle)` a model explores how CPUs
//! interleave; otherwise one CPU is deterministic, and several are as parallel as the host.
//!
//! * `world.rs`: a run, from its processes to the check that nothing is left. `machine.rs`: what the machine
//!   owes the kernel's crates. `space.rs`: memory. `objects.rs`: what it serves. `user.rs`: user mode.
//!   [`children`]: programs that start programs. `accounts.rs`: accounts compared with what there is. `settled.rs`: that nothing is left. [`history`]: random threads that keep book.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this crate reports by panicking"
)]

mod accounts;
pub mod children;
pub mod history;
mod latch;
mod machine;
mod objects;
mod programs;
mod settled;
mod shared;
mod space;
mod user;
mod world;

pub use kernel_object::takes;
pub use machine::Host;
pub use objects::{HostObject, granted, released, retained, serve_call};
pub use plain_schema::plain::INTERFACE_TAG as PLAIN;
pub use programs::program;
pub use shared::HostShared;
pub use space::HostSpace;
pub use user::{Done, User};
pub use world::{Body, Config, Grant, Process, Report, run, with_machine};
