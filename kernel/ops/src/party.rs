//! A thread's pending operation, as others name it: in endpoints, timers and lifecycles.

use abi_ring::Room;
use abi_types::INLINE_BYTES;
use core_thread::ThreadKey;

/// A thread's pending operation, as others name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// The thread.
    pub thread: ThreadKey,
    /// The operation's cell.
    pub cell: u32,
    /// What its room takes.
    pub room: Fit,
}

impl Party {
    /// No thread's: the position of no record.
    pub const NOBODY: Self =
        Self { thread: ThreadKey { slot: u32::MAX, generation: 0 }, cell: 0, room: Fit::NONE };
}

/// What fits into the room of a pending operation: how many bytes, and whether a message that is
/// inline at its sender goes there from ring to ring, with nothing else to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit(u32);

impl Fit {
    const SIMPLE: u32 = 1 << 31;
    /// Nothing fits, or it does not matter.
    pub const NONE: Self = Self(0);
    /// The inline slot of the completion, for an operation that no timer bounds.
    pub const SIMPLE_INLINE: Self = Self(INLINE_BYTES as u32 | Self::SIMPLE);

    /// How many bytes.
    #[inline]
    pub const fn bytes(self) -> u32 {
        self.0 & !Self::SIMPLE
    }

    /// The same room for an operation that a timer bounds.
    #[inline]
    pub const fn bounded(self) -> Self {
        Self(self.0 & !Self::SIMPLE)
    }
}

impl From<Room> for Fit {
    #[inline]
    fn from(room: Room) -> Self {
        match room {
            Room::Inline => Self::SIMPLE_INLINE,
            Room::Address { capacity, .. } | Room::Registered { capacity, .. } => {
                Self(capacity).bounded()
            }
        }
    }
}
