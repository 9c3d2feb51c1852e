//! A submission queue entry.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{CapSlot, ReplyToken};

/// One request, 64 bytes. Fields an operation does not use must be zero.
///
/// | operation | cap | arg | address | result_address | length |
/// |---|---|---|---|---|---|
/// | CALL | target | deadline in ns, 0 none | parameters¹ | results¹ | parameter bytes |
/// | RECV | endpoint | | buffer¹ | | |
/// | RETURN | endpoint² | reply token | results¹ | buffer² | result bytes |
/// | RELEASE | slot | | | | |
/// | CANCEL | | user data of the target | | | |
/// | PARK | park space | address of the word | expected value | timeout in ns | |
/// | UNPARK | park space | address of the word | how many at most | | |
///
/// ¹ only with `BY_ADDRESS` or `REGISTERED`; otherwise the payload is in the inline slot of
/// the SQE (parameters, results given back) or of the CQE (what arrives).
/// ² only with `THEN_RECV`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Sqe {
    /// An [`Opcode`](crate::Opcode).
    pub opcode: u8,
    /// [`SqeFlags`].
    pub flags: u8,
    /// CALL: the method's ordinal.
    pub method: u16,
    /// Bytes of payload.
    pub length: u32,
    /// Copied to the completion untouched.
    pub user_data: u64,
    /// A [`CapSlot`].
    pub cap: u64,
    /// See the table.
    pub arg: u64,
    /// See the table.
    pub address: u64,
    /// See the table.
    pub result_address: u64,
    /// Bytes that fit at `result_address` (CALL) or `address` (RECV).
    pub result_capacity: u32,
    /// How many capability descriptors follow the payload.
    pub transfers: u16,
    /// With `REGISTERED`: the registered buffer that `address` is an offset into.
    pub buffer: u16,
    /// Zero.
    pub reserved: u64,
}

/// Bits of [`Sqe::flags`].
pub struct SqeFlags;

impl SqeFlags {
    /// RETURN: then receive from the endpoint in `cap`.
    pub const THEN_RECV: u8 = 1 << 0;
    /// RETURN: the payload is an exception.
    pub const EXCEPTION: u8 = 1 << 1;
    /// The payload is at `address` in the caller's memory.
    pub const BY_ADDRESS: u8 = 1 << 2;
    /// The payload is in a registered buffer.
    pub const REGISTERED: u8 = 1 << 3;
    /// Every bit with a meaning.
    pub const KNOWN: u8 = Self::THEN_RECV | Self::EXCEPTION | Self::BY_ADDRESS | Self::REGISTERED;
}

impl Sqe {
    /// The capability slot.
    pub const fn cap_slot(&self) -> CapSlot {
        CapSlot::from_bits(self.cap)
    }

    /// RETURN: the call that is answered.
    pub const fn reply_token(&self) -> ReplyToken {
        ReplyToken::from_bits(self.arg)
    }
}

static_assertions::assert_eq_size!(Sqe, [u8; 64]);
static_assertions::const_assert!(core::mem::align_of::<Sqe>() == 8);
