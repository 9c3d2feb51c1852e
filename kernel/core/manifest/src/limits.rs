//! How large a manifest and its numbers may be.

use core::ops::RangeInclusive;

use abi_types::limits::{MAX_BUFFERS, MAX_PARAMS, MAX_SQ_ENTRIES};
use abi_types::{CAPSET_NAME_BYTES, INLINE_BYTES};

/// The encoding, in bytes.
pub const MANIFEST_BYTES: usize = 256 * 1024;
/// Processes in a manifest.
pub const PROCESSES: usize = 64;
/// Grants of one process: what its CapSet page has entries for.
pub const GRANTS: usize = 63;
/// Endpoints in a manifest.
pub const ENDPOINTS: usize = 256;
/// A name, in bytes.
pub const NAME_BYTES: usize = CAPSET_NAME_BYTES;
/// Structures inside structures.
pub const NESTING: i32 = 8;

/// Scheduling weight.
pub const WEIGHT: RangeInclusive<u32> = 1..=1024;
/// `capSlots`: a result capability is reported in 16 bits.
pub const CAP_SLOTS: RangeInclusive<u32> = 1..=1 << 16;
/// `threads`.
pub const THREADS: RangeInclusive<u32> = 1..=4096;
/// `kernelStackPages`.
pub const KERNEL_STACK_PAGES: RangeInclusive<u32> = 1..=1 << 20;
/// `frames`.
pub const FRAMES: RangeInclusive<u32> = 16..=1 << 24;
/// `sleepWaiters`.
pub const SLEEP_WAITERS: RangeInclusive<u32> = 0..=4096;
/// `kernelBytes`: less than a page holds no table.
pub const KERNEL_BYTES: RangeInclusive<u32> = 4096..=1 << 30;
/// `registeredBuffers`.
pub const REGISTERED_BUFFERS: RangeInclusive<u32> = 0..=MAX_BUFFERS as u32;
/// `ringEntries`, and a power of two.
pub const RING_ENTRIES: RangeInclusive<u32> = 2..=MAX_SQ_ENTRIES;
/// `ringScratchLimitBytes`.
pub const RING_SCRATCH_BYTES: RangeInclusive<u32> = INLINE_BYTES as u32..=MAX_PARAMS;
/// `inFlightCallLimit` and `endpointQueueLimit` count as this if they are more.
pub const CALLS: u32 = 32;
