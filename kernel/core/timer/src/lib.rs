//! Deadlines of one CPU, nearest first.
//!
//! A [`DeadlineQueue`] is a binary heap linked through fixed [`Timer`] cells, one per thing that
//! can have a deadline, shared by the queues of all CPUs. Arming, cancelling and taking the next
//! are O(log n) in the worst case and allocate nothing; nobody else's deadlines are touched.
//!
//! Contract:
//! - every call on a queue is made under its lock; the cells of timers armed in it are reached
//!   only so. Cells are plain words in atomics, because queues share them;
//! - deadlines are absolute monotonic ns. A timer expires once, at the first look at or after
//!   its deadline, never before; equal deadlines expire in the order they were armed;
//! - a timer is armed in at most one queue. Taking it out (`pop_expired` or `cancel`) is
//!   claiming it.
//!
//! Not in here: how many a process may have armed; that is its account's.
//!
//! Decided in ADR 63.
#![cfg_attr(not(loom), no_std)]

mod heap;
mod invariants;
mod timer;

pub use heap::{Armed, DeadlineQueue, Error, Expired};
pub use timer::Timer;
