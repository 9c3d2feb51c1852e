//! What init decides: which services it is told to start, and what becomes of one that ended.
//!
//! * [`service`]: a line of the manifest about one service.
//! * [`supervisor`]: the verdict on its end, by its limits.
//!
//! Time comes in as an argument. Decided in ADR 372.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod service;
pub mod supervisor;

pub use service::{Service, Unclear};
pub use supervisor::{End, Supervisor, Verdict};
