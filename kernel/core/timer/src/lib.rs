//! Deadlines of one CPU, nearest first.
//!
//! A [`DeadlineQueue`] is a binary heap linked through [`Timer`]s, each of which lies with what it bounds.
//! Arming, cancelling and taking the next are O(log n) in the worst case and allocate nothing. Links are
//! places in memory; whose memory that is, and that a timer stays where it is while it is armed, is the
//! business of the [`Table`] (`smp_timer`'s in the kernel, a slice in tests).
//!
//! Contract:
//! - every call on a queue is made under its lock; timers that are armed in it are written
//!   only so. Their words are atomics, because others may look which queue a timer is in;
//! - deadlines are absolute monotonic ns. A timer expires once, at the first look at or after
//!   its deadline, never before; equal deadlines expire in the order they were armed;
//! - a timer is armed in at most one queue. Taking it out (`pop_expired` or `cancel`) is
//!   claiming it; from then on the queue does not know it.
//!
//! Not in here: how many a process may have armed; that is its account's.
//!
//! Decided in ADR 63, that timers lie with what they bound in ADR 250.
#![cfg_attr(not(loom), no_std)]

mod heap;
mod invariants;
mod timer;

pub use heap::{Armed, DeadlineQueue, Error, Expired};
pub use timer::{Owner, Table, Timer};
