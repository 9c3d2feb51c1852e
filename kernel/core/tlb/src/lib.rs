//! When no CPU can still use a translation that was taken away.
//!
//! In here: the CPUs that have an address space loaded ([`Residents`]), which flushes each was
//! asked for and has done ([`Shootdown`]), and the value that says when a flush is over
//! ([`Token`]).
//! Not in here: page tables, CR3, interrupts, the frames that wait.
//!
//! # Contract
//!
//! A CPU that takes translations away
//! 1. asks for room ([`Shootdown::begin`]), which is refused before anything has changed;
//! 2. changes the tables, under the address space's lock;
//! 3. posts the request ([`Permit::post`]), still under the lock, flushes itself where the
//!    verdict says so, and interrupts the CPUs it names;
//! 4. outside of all locks, tries [`Token::finish`] until it succeeds; then frames and tables are
//!    reused.
//!
//! A CPU says that it is resident before it loads a root and takes that back after it has loaded
//! another. It drains ([`Shootdown::drain`]) in the interrupt, at kernel entry and before it
//! returns to user mode, with interrupts off.
//!
//! A request that finds another pending at a CPU sends no interrupt: the drain that answers the
//! other one either sees it too, or its poster sees that it is over. Requests of several CPUs
//! overlap freely and none is lost.
//!
//! Decided in ADR 132.
#![cfg_attr(not(loom), no_std)]

mod cpu_set;
mod residents;
mod shootdown;
mod token;

pub use cpu_set::CpuSet;
pub use residents::{Resident, Residents};
pub use shootdown::{BeginError, Permit, Posted, Shootdown};
pub use token::Token;
