//! The operations of a ring: what CALL, RETURN, RECV, PARK, UNPARK, YIELD, CANCEL and RELEASE do, on any
//! machine.
//!
//! What is *decided* is decided in the cores: who is matched with whom in `core_endpoint`, who waits at which
//! word in `core_park`, which slot holds what in `core_cap`. Which thread runs is `kernel_dispatch`'s. Here
//! stands the order of things between them: an SQE is taken, its operation is kept, made known, completed,
//! and whoever waits for the completion is woken. The kernel implements [`Machine`] over the hardware, tests
//! over threads of the host and plain memory. Decided in ADR 230.
//!
//! The walk of a CALL: [`enter::cap_enter`] → [`pass::run`] reads one SQE → [`ipc::call`] →
//! [`message::Message::deliver`] → [`complete::complete_with`].
//!
//! * `machine.rs`: what a machine owes, and the parts of its records that operations reach.
//!   `capability.rs`: what a slot holds. `service.rs`: what a process serves. `timers.rs`: the timers there are.
//!   `map.rs`: what a process's pages are used for. `shared.rs`: memory objects, and who pays for them.
//!   `paid.rs`: memory beside the charge for it.
//! * `enter.rs`: `cap_enter`. `pass.rs`: the SQEs one after the other. `caller.rs`: the thread that asks,
//!   and what an operation comes to. `wait.rs`: the thread's own wait.
//! * `ipc.rs`: calls. `fastpath.rs`: the same for the one case that has to be fast. `message.rs`: copying.
//!   `transfer.rs`: capabilities that go along, `inherit.rs`: those that a child starts with. `object.rs`: calls on objects of the kernel's. `output.rs`: what
//!   processes write to the console, `outlets.rs`: its rings.
//! * `complete.rs`: completing what others wait for. `cancel.rs`: CANCEL, and how an outcome is claimed.
//!   `party.rs`: what waits, as others name it.
//! * `interrupt.rs`, `lines.rs`: interrupt lines in the hands of programs.
//! * `park.rs`: words that threads wait at. `deadlines.rs`: time limits. `expire.rs`: who serves them.
//!   `pending.rs`: what a thread keeps of its operations. `trace.rs`, `trace_owner.rs`: whose the trace is.
#![cfg_attr(not(any(test, loom)), no_std)]

extern crate alloc;

mod along;
pub mod buffers;
pub mod caller;
pub mod cancel;
pub mod capability;
pub mod complete;
pub mod deadlines;
pub mod enter;
pub mod expire;
pub mod fastpath;
pub mod inherit;
pub mod interrupt;
pub mod ipc;
pub mod lines;
pub mod machine;
pub mod map;
pub mod message;
pub mod object;
pub mod outlets;
pub mod output;
pub mod paid;
pub mod park;
pub mod party;
pub mod pass;
mod pending;
pub mod registered;
pub mod service;
pub mod shared;
pub mod trace;
pub mod trace_owner;
pub mod transfer;
pub mod wait;

pub use machine::Machine;
