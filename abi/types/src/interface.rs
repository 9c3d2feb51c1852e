//! The tag of an interface: what a capability slot and a CALL are compared by.
//!
//! Decided in ADR 277.

use core::num::NonZeroU32;

/// An interface in 32 bits, folded from the 64-bit id of its Cap'n Proto declaration.
///
/// It is never zero: every slot has an interface, and an SQE whose [`interface`](crate::Sqe::interface)
/// was left at zero means none of them. Two ids may fold into one tag; a test over every schema of the
/// tree says which, and one of them takes another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct InterfaceTag(NonZeroU32);

impl InterfaceTag {
    /// The tag of the interface with this id; `None` if the id folds into zero, as 0 itself does.
    #[inline]
    pub const fn of(id: u64) -> Option<Self> {
        match NonZeroU32::new((id ^ id >> 32) as u32) {
            Some(tag) => Some(Self(tag)),
            None => None,
        }
    }

    /// The value as it stands in an SQE.
    #[inline]
    pub const fn to_bits(self) -> u32 {
        self.0.get()
    }
}

static_assertions::assert_eq_size!(Option<InterfaceTag>, [u8; 4]);
