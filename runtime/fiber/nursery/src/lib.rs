//! Nurseries: fibers that cannot outlive the block that spawned them.
//!
//! In here: the policy of a scope, which is that of `fiber_rt`: who is cancelled when, what a
//! deadline does, where a panic goes. Not in here: how a scope waits, and anything unsafe.
//!
//! # Contract
//!
//! - [`nursery`] returns when its closure and every fiber in it has ended.
//! - Cancellation is cooperative and sticky: waits of cancelled fibers end, and go on ending.
//! - A panic is carried to the join. If nobody joins, it cancels the siblings and goes on out of
//!   `nursery`.
#![no_std]

extern crate alloc;

mod handle;
mod scoped;

pub use fiber_rt::JoinError;
pub use handle::JoinHandle;
pub use scoped::{Nursery, SpawnError, nursery, spawn};
