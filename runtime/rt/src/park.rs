//! Waiting on a word of memory, and waking who waits.

use core::sync::atomic::AtomicU32;

use abi_ring::Memory;
use abi_types::{CapSlot, Opcode, Sqe, Status};

use crate::io::{Io, ok};
use crate::ring::Enter;

/// Why [`park`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// Woken by [`unpark`].
    Woken,
    /// The word did not have the expected value.
    Mismatch,
    /// The time is over.
    TimedOut,
}

/// Blocks this thread while `word` is `expected`, for `timeout_ns` at most.
pub fn park<M: Memory, K: Enter>(
    io: &Io<M, K>,
    space: CapSlot,
    word: &AtomicU32,
    expected: u32,
    timeout_ns: u64,
) -> Result<Parked, Status> {
    let (status, _) = io.run_plain(park_sqe(space, word, expected, timeout_ns))?;
    match status {
        Status::Woken => Ok(Parked::Woken),
        Status::Mismatch => Ok(Parked::Mismatch),
        Status::TimedOut => Ok(Parked::TimedOut),
        other => Err(other),
    }
}

/// Wakes at most `count` threads parked on `word`; how many there were.
pub fn unpark<M: Memory, K: Enter>(
    io: &Io<M, K>,
    space: CapSlot,
    word: &AtomicU32,
    count: u32,
) -> Result<u32, Status> {
    let (status, woken) = io.run_plain(unpark_sqe(space, word, count))?;
    ok(status).map(|()| woken)
}

/// PARK as an SQE.
#[inline]
pub fn park_sqe(space: CapSlot, word: &AtomicU32, expected: u32, timeout_ns: u64) -> Sqe {
    Sqe {
        opcode: Opcode::Park as u8,
        cap: space.to_bits(),
        arg: core::ptr::from_ref(word).expose_provenance() as u64,
        address: u64::from(expected),
        result_address: timeout_ns,
        ..Sqe::default()
    }
}

/// UNPARK as an SQE.
#[inline]
pub fn unpark_sqe(space: CapSlot, word: &AtomicU32, count: u32) -> Sqe {
    Sqe {
        opcode: Opcode::Unpark as u8,
        cap: space.to_bits(),
        arg: core::ptr::from_ref(word).expose_provenance() as u64,
        address: u64::from(count),
        ..Sqe::default()
    }
}
