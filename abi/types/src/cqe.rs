//! A completion queue entry.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limits::MAX_TRANSFERS;
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
    /// RECV: the method that was called. [`Status::Exception`]: its
    /// [`ExceptionKind`](crate::ExceptionKind).
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
    /// Where the number of capabilities that came along begins, in bits; their
    /// [`Transfer`](crate::Transfer)s follow the payload at the next multiple of 8.
    pub const TRANSFERS_SHIFT: u32 = 4;
}

impl Cqe {
    /// The status, or `None` if a newer kernel wrote it.
    #[inline]
    pub const fn status(&self) -> Option<Status> {
        Status::from_number(self.status)
    }

    /// How many capabilities came along.
    #[inline]
    pub const fn transfers(&self) -> u8 {
        self.flags >> CqeFlags::TRANSFERS_SHIFT
    }

    /// RECV: the token to answer with.
    #[inline]
    pub const fn reply_token(&self) -> ReplyToken {
        ReplyToken::from_bits(self.token)
    }
}

static_assertions::const_assert!(MAX_TRANSFERS < 1 << (u8::BITS - CqeFlags::TRANSFERS_SHIFT));
static_assertions::assert_eq_size!(Cqe, [u8; 32]);
static_assertions::const_assert!(core::mem::align_of::<Cqe>() == 8);
