//! Requests between CPUs: the word of those that are pending, and the set of idle CPUs.
//!
//! Two promises, each a pair of a store and a load that must not pass each other:
//!
//! - **Pending.** A sender makes its work visible, then posts a request ([`Pending::post`]); if
//!   one was pending already it sends no interrupt, because the target has yet to look. The
//!   target takes the requests ([`Pending::take`]), then looks for work. If the sender found a
//!   request pending, its work is visible to the look that follows the take of that request.
//! - **Idle.** A CPU announces that it is idle ([`IdleSet::announce`]), then looks for work a
//!   last time, then halts. A sender makes its work visible, then asks which are idle
//!   ([`IdleSet::seek`]). Either the sender sees the announcement or the last look sees the work.
//!
//! On the machine the last look, its answer "none" and the halt happen with interrupts off, and
//! enabling them and halting is one step: an interrupt posted in between ends the halt.
#![cfg_attr(not(loom), no_std)]

mod idle;
mod pending;

pub use idle::IdleSet;
pub use pending::{Pending, Requests};
