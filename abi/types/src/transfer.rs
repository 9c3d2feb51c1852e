//! A capability that travels with a message.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::CapSlot;

/// One capability in a message, 16 bytes; the list begins at the first multiple of 8 after the
/// payload.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Transfer {
    /// Going out: the sender's [`CapSlot`]. Coming in: the receiver's new one.
    pub slot: u64,
    /// Going out: [`TransferMode`]. Coming in: zero.
    pub mode: u32,
    /// Zero.
    pub reserved: u32,
}

/// What becomes of the sender's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum TransferMode {
    /// It stays.
    Copy = 0,
    /// It is emptied when the message is delivered.
    Move = 1,
}

impl TransferMode {
    /// The mode with this number.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Copy),
            1 => Some(Self::Move),
            _ => None,
        }
    }
}

impl Transfer {
    /// The capability slot.
    pub const fn cap_slot(&self) -> CapSlot {
        CapSlot::from_bits(self.slot)
    }
}

static_assertions::assert_eq_size!(Transfer, [u8; 16]);
