//! The two syscalls.
//!
//! `syscall` with the number in RAX and arguments in RDI and RSI; the result is in RAX, RCX
//! and R11 are lost, everything else is kept.
//!
//! Decided in ADR 54.

/// A timeout that never expires.
pub const NEVER: u64 = u64::MAX;

/// What an unknown syscall number returns.
pub const UNKNOWN_SYSCALL: u64 = u64::MAX;

/// Syscall numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Syscall {
    /// `cap_enter(min_complete, timeout_ns)`: dispatch this thread's ring and wait.
    CapEnter = 0,
    /// `exit(code)`: end the process.
    Exit = 1,
}

impl Syscall {
    /// The syscall with this number.
    #[inline]
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::CapEnter),
            1 => Some(Self::Exit),
            _ => None,
        }
    }
}

/// What `cap_enter` returns: how many completions wait in the queue, and what stood in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct EnterResult(pub u64);

/// Bits of [`EnterResult`] above the count.
pub struct EnterFlags;

impl EnterFlags {
    /// The SQE at the head needs a completion place and there is none: drain, then enter again.
    pub const CQ_FULL: u32 = 1 << 0;
    /// Another consumer holds the submission queue: enter again.
    pub const BUSY: u32 = 1 << 1;
}

impl EnterResult {
    /// `count` completions wait; `flags` are [`EnterFlags`].
    #[inline]
    pub const fn new(count: u32, flags: u32) -> Self {
        Self(count as u64 | (flags as u64) << 32)
    }

    /// Completions in the queue, old ones included.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0 as u32
    }

    /// [`EnterFlags`].
    #[inline]
    pub const fn flags(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
