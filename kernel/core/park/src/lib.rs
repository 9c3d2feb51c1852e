//! Parked threads: the waiters of each address, in order of arrival.
//!
//! Waiters hash into buckets by [`Key`]. A bucket holds one ring of waiters per key, and chains
//! the first waiter of each ring; so the first of a key is found by looking at the keys of one
//! bucket, never at their waiters, and everything else is O(1). The storage is one fixed
//! [`Waiter`] cell per thread; nothing here allocates.
//!
//! Contract:
//! - every call on a [`Bucket`] is made under that bucket's lock, and the cells of waiters in it
//!   are reached only so. Cells are plain words in atomics, because buckets share them: no
//!   order between threads is asked of them, the locks give that;
//! - the compare of a park is made inside [`Bucket::park`], under the same lock as the wakes: a
//!   wake that follows a change of the word finds the waiter or the waiter sees the change;
//! - a waiter leaves its bucket once. Taking it out (`unpark`, or `unlink` for timeout,
//!   cancel and exit) is claiming it: the claimer completes it, with its own [`Outcome`]. A
//!   wake therefore wins over a timeout that fired but did not get there;
//! - a waiter is named with the ticket of its wait ([`WaiterRef`]): a late timeout or cancel of
//!   an earlier wait finds nothing.
//!
//! Decided in ADR 63.
#![cfg_attr(not(loom), no_std)]

mod admit;
mod bucket;
mod invariants;
mod key;
mod waiter;

pub use admit::{Named, NotAdmitted, admit};
pub use bucket::{Bucket, ParkError, Parked, Unparked};
pub use key::{Hash, Key};
pub use waiter::{Waiter, WaiterRef};

/// How a wait ends; the completion says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Somebody unparked it.
    Woken,
    /// The word did not have the expected value; it never waited.
    Mismatch,
    /// Its deadline passed first.
    TimedOut,
    /// Its operation was cancelled.
    Cancelled,
}
