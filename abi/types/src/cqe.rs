//! A completion queue entry.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{ReplyToken, Status};

/// One completion, 32 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Cqe {
    /// As in the SQE.
    pub user_data: u64,
    /// A [`Status`].
    pub status: u8,
    /// [`CqeFlags`].
    pub flags: u8,
    /// RECV: the method that was called.
    pub method: u16,
    /// Bytes of payload; UNPARK: how many were woken.
    pub length: u32,
    /// RECV: the badge of the facet the call came through.
    pub badge: u64,
    /// RECV: what RETURN answers with, a [`ReplyToken`].
    pub token: u64,
}

/// Bits of [`Cqe::flags`].
pub struct CqeFlags;

impl CqeFlags {
    /// The payload is where the SQE asked for it, not in the CQE's inline slot.
    pub const BY_ADDRESS: u8 = 1 << 0;
    /// RECV: the last 8 bytes of the inline slot hold the call's deadline in ns.
    pub const DEADLINE: u8 = 1 << 1;
    /// Capabilities came along: their slots follow the payload.
    pub const TRANSFERS: u8 = 1 << 2;
}

impl Cqe {
    /// The status, or `None` if a newer kernel wrote it.
    pub const fn status(&self) -> Option<Status> {
        Status::from_number(self.status)
    }

    /// RECV: the token to answer with.
    pub const fn reply_token(&self) -> ReplyToken {
        ReplyToken::from_bits(self.token)
    }
}

static_assertions::assert_eq_size!(Cqe, [u8; 32]);
static_assertions::const_assert!(core::mem::align_of::<Cqe>() == 8);
