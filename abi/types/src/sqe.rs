//! A submission queue entry.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{CapSlot, ReplyToken};

/// One request, 64 bytes. Fields an operation does not use must be zero; `interface` is CALL's alone.
///
/// | operation | cap | arg | address | result_address | length | method |
/// |---|---|---|---|---|---|---|
/// | CALL | target | deadline in ns, 0 none | parameters¹ | results² | parameter bytes | ordinal |
/// | RECV | endpoint | | | buffer² | | |
/// | RETURN | endpoint³ | reply token | results¹ | buffer²³ | result bytes | kind⁴ |
/// | RELEASE | slot | | | | | |
/// | CANCEL | | user data of the target | | | | |
/// | PARK | park space | address of the word | expected value | timeout in ns | | |
/// | UNPARK | park space | address of the word | how many at most | | | |
///
/// What goes out is `length` bytes, followed at the next multiple of 8 by `transfers`
/// [`Transfer`](crate::Transfer)s. What comes in is at most `result_capacity` bytes, those of its
/// capabilities included, of which there are at most `result_transfers`.
///
/// ¹ with `BY_ADDRESS` an address, with `REGISTERED` an offset into registered buffer `buffer`;
/// with neither zero, and the payload is in inline slot number `buffer`.
/// ² with `RESULT_BY_ADDRESS` an address, with `RESULT_REGISTERED` an offset into registered
/// buffer `result_buffer`; with neither zero, and what comes is in the CQE's inline slot.
/// ³ only with `THEN_RECV`.
/// ⁴ only with `EXCEPTION`: an [`ExceptionKind`](crate::ExceptionKind); the payload is its message.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Sqe {
    /// An [`Opcode`](crate::Opcode).
    pub opcode: u8,
    /// [`SqeFlags`].
    pub flags: u8,
    /// CALL: the method's ordinal. RETURN of an exception: its kind.
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
    /// Bytes that fit at `result_address`.
    pub result_capacity: u32,
    /// How many capability descriptors follow the payload.
    pub transfers: u16,
    /// The inline slot that holds the payload; with `REGISTERED` the registered buffer that
    /// `address` is an offset into.
    pub buffer: u16,
    /// With `RESULT_REGISTERED`: the registered buffer that `result_address` is an offset into.
    pub result_buffer: u16,
    /// CALL, RECV and RETURN with `THEN_RECV`: how many capabilities may come in, at most
    /// `MAX_TRANSFERS`. A message that brings more is refused, so that nobody fills another's table.
    pub result_transfers: u16,
    /// CALL: the bits of the [`InterfaceTag`](crate::InterfaceTag) that `method` is meant of; a slot of
    /// another interface refuses it. Zero is the tag of none.
    pub interface: u32,
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
    /// What comes in goes to `result_address` in the caller's memory.
    pub const RESULT_BY_ADDRESS: u8 = 1 << 4;
    /// What comes in goes to a registered buffer.
    pub const RESULT_REGISTERED: u8 = 1 << 5;
    /// Every bit with a meaning.
    pub const KNOWN: u8 = (1 << 6) - 1;
}

impl Sqe {
    /// The capability slot.
    #[inline]
    pub const fn cap_slot(&self) -> CapSlot {
        CapSlot::from_bits(self.cap)
    }

    /// RETURN: the call that is answered.
    #[inline]
    pub const fn reply_token(&self) -> ReplyToken {
        ReplyToken::from_bits(self.arg)
    }
}

static_assertions::assert_eq_size!(Sqe, [u8; 64]);
static_assertions::const_assert!(core::mem::align_of::<Sqe>() == 8);
