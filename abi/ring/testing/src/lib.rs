//! Memories a ring can live in outside a machine, for tests, fuzzers and models.
//!
//! - [`PlainMemory`]: does what it is told, and fails the test on an access outside the block;
//! - [`real_block`]: the block of the kernel and of programs, without a machine around it;
//! - [`HostileMemory`]: also lies at any read, and fails the test on a write to what the
//!   kernel does not write;
//! - `ModelMemory` (under loom): entries are plain data, so an access that the index words do
//!   not order is found as a race.
//!
//! [`hostile_session`] drives the kernel's half over hostile memory; the property test and the
//! fuzzer share it.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "this crate reports by panicking"
)]

mod hostile;
#[cfg(loom)]
mod model;
mod session;
mod words;

pub use hostile::HostileMemory;
#[cfg(loom)]
pub use model::{ModelMemory, Weakness};
pub use session::hostile_session;
pub use words::{PlainMemory, WordMemory, Words, real_block};

/// Parameter and result limit of rings under test, in bytes.
pub const LIMIT: u32 = 4096;
