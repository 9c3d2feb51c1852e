//! The kernel's trace: each CPU writes what it does into a buffer of its own, without a lock.
//!
//! In here: the switch ([`Control`]), a CPU's buffer ([`Buffer`]) and its records. Not in here:
//! which events there are, where buffers are kept, and what a viewer makes of them.
//!
//! # Contract
//!
//! - A point asks [`Control::is_on`] and, if so, calls [`Buffer::record`] of its own CPU, with
//!   interrupts off. While the trace is off that is a load, a test and a branch.
//! - Starting is a new session, counted by the control. No buffer is touched by it: a CPU empties
//!   its own at its first record of the session, so a CPU that does nothing is left alone.
//! - A full buffer drops what comes and counts it: what is there is everything up to a point.
//! - Anybody reads any buffer at any time ([`Buffer::read`]): what they get are whole records of
//!   one session, or nothing.
//! - Starting and stopping are called under one lock, or by one CPU.
//!
//! Decided in ADR 135.
#![cfg_attr(not(loom), no_std)]

mod buffer;
mod control;
mod record;

pub use buffer::{Buffer, Portion};
pub use control::{Control, Session};
pub use record::{NO_THREAD, RECORD_BYTES, RECORD_WORDS, Record};

/// Memory of a buffer that there is none of until it is wanted, and which then stays.
pub type Memory = abi_sync::OnceSlice<abi_sync::atomic::AtomicU64>;
