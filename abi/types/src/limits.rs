//! Limits both sides know.

/// Parameters of one call, in bytes, at most.
pub const MAX_PARAMS: u32 = 64 * 1024;
/// Results of one call, in bytes, at most.
pub const MAX_RESULT: u32 = 64 * 1024;
/// Capabilities in one message, at most.
pub const MAX_TRANSFERS: u16 = 8;
/// SQEs one pass takes when the ring's own thread is not in the kernel: bounds the time an
/// interrupt spends on somebody's ring.
pub const RING_BATCH_TIMER: u32 = 4;
/// SQEs one pass takes for a kernel poller: a poller that serves several rings comes back soon.
pub const RING_BATCH_SQPOLL: u32 = 2;
/// Submission queue entries of a ring whose process's profile does not say otherwise.
pub const DEFAULT_SQ_ENTRIES: u32 = 64;
/// Submission queue entries, at most.
pub const MAX_SQ_ENTRIES: u32 = 1024;
/// Registered buffers of a process, at most.
pub const MAX_BUFFERS: u16 = 32;
/// Bytes of a registered buffer, at most.
pub const MAX_BUFFER_BYTES: u64 = 1 << 20;
