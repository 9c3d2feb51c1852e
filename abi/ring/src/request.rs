//! What an SQE asks for, checked.
//!
//! A [`Request`] is made only by decoding: its reserved fields were zero, its flags belong to
//! its operation, its payload fits its place. What depends on the kernel's state (slots,
//! addresses, park words) is for the operation itself to check.
//!
//! The operations with payloads are views of the copied SQE, not new structs: taking one apart into
//! fields that most operations do not have costs more than the rest of the dispatch.

use abi_types::{CapSlot, ExceptionKind, Opcode, ReplyToken, Sqe, SqeFlags};

/// A well-formed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Complete at once.
    Nop,
    /// Call a method.
    Call(Call),
    /// Wait for a call.
    Recv(Recv),
    /// Answer a call.
    Return(Return),
    /// Give a capability slot back.
    Release(CapSlot),
    /// End the pending operation with this user data.
    Cancel {
        /// The user data of the operation to end.
        target: u64,
    },
    /// Block while a word has the expected value.
    Park(Park),
    /// Wake parked threads.
    Unpark(Unpark),
    /// Let another thread run.
    Yield,
    /// Park and resume without a peer.
    #[cfg(measure)]
    ParkBench,
}

macro_rules! checked_sqe {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub(crate) Sqe);
    };
}

checked_sqe! {
    /// CALL.
    Call
}

impl Call {
    /// The capability.
    #[inline]
    pub const fn target(&self) -> CapSlot {
        self.0.cap_slot()
    }

    /// The method's ordinal.
    #[inline]
    pub const fn method(&self) -> u16 {
        self.0.method
    }

    /// The bits of the tag of the interface that the method is meant of.
    #[inline]
    pub const fn interface(&self) -> u32 {
        self.0.interface
    }

    /// When the call is no longer worth delivering, absolute; 0 never.
    #[inline]
    pub const fn deadline_ns(&self) -> u64 {
        self.0.arg
    }

    /// Capability descriptors after the payload, at most `MAX_TRANSFERS`.
    #[inline]
    pub const fn transfers(&self) -> u16 {
        self.0.transfers
    }

    /// Capabilities that may come with the results, at most `MAX_TRANSFERS`.
    #[inline]
    pub const fn accepts(&self) -> u16 {
        self.0.result_transfers
    }

    /// The parameters.
    #[inline]
    pub const fn params(&self) -> Payload {
        Payload::of(&self.0)
    }

    /// Where the results go.
    #[inline]
    pub const fn results(&self) -> Room {
        Room::of(&self.0)
    }
}

checked_sqe! {
    /// RECV, alone or of a RETURN.
    Recv
}

impl Recv {
    /// The endpoint.
    #[inline]
    pub const fn endpoint(&self) -> CapSlot {
        self.0.cap_slot()
    }

    /// Capabilities that may come with a call, at most `MAX_TRANSFERS`.
    #[inline]
    pub const fn accepts(&self) -> u16 {
        self.0.result_transfers
    }

    /// Where the parameters go.
    #[inline]
    pub const fn room(&self) -> Room {
        Room::of(&self.0)
    }
}

checked_sqe! {
    /// RETURN.
    Return
}

impl Return {
    /// The call that is answered.
    #[inline]
    pub const fn token(&self) -> ReplyToken {
        self.0.reply_token()
    }

    /// The kind of exception it is answered with; `None` for results.
    #[inline]
    pub const fn exception(&self) -> Option<ExceptionKind> {
        if self.0.flags & SqeFlags::EXCEPTION == 0 {
            return None;
        }
        ExceptionKind::from_number(self.0.method)
    }

    /// Capability descriptors after the payload, at most `MAX_TRANSFERS`.
    #[inline]
    pub const fn transfers(&self) -> u16 {
        self.0.transfers
    }

    /// The results, or the exception's message.
    #[inline]
    pub const fn results(&self) -> Payload {
        Payload::of(&self.0)
    }

    /// What to receive next with the same SQE: it completes once, with that call, or with the
    /// error of a refused answer.
    #[inline]
    pub const fn then(&self) -> Option<Recv> {
        if self.0.flags & SqeFlags::THEN_RECV == 0 { None } else { Some(Recv(self.0)) }
    }
}

/// PARK: a few words, so that it is taken apart at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Park {
    space: CapSlot,
    word_address: u64,
    expected: u32,
    timeout_ns: u64,
}

impl Park {
    /// The PARK that the words of an SQE are, if they are a well-formed one.
    #[inline(always)]
    pub(crate) const fn of(words: &[u64; 8]) -> Option<Self> {
        let [first, _, cap, word_address, expected, timeout_ns, places, last] = *words;
        if first != Opcode::Park as u64 || places | last | expected >> 32 != 0 {
            return None;
        }
        let space = CapSlot::from_bits(cap);
        Some(Self { space, word_address, expected: expected as u32, timeout_ns })
    }

    /// The park space.
    #[inline]
    pub const fn space(&self) -> CapSlot {
        self.space
    }

    /// Where the word is, unchecked.
    #[inline]
    pub const fn word_address(&self) -> u64 {
        self.word_address
    }

    /// The value it must have to park.
    #[inline]
    pub const fn expected(&self) -> u32 {
        self.expected
    }

    /// How long at most.
    #[inline]
    pub const fn timeout_ns(&self) -> u64 {
        self.timeout_ns
    }
}

/// UNPARK, like [`Park`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpark {
    space: CapSlot,
    word_address: u64,
    count: u32,
}

impl Unpark {
    /// The UNPARK that the words of an SQE are, if they are a well-formed one.
    #[inline(always)]
    pub(crate) const fn of(words: &[u64; 8]) -> Option<Self> {
        let [first, _, cap, word_address, count, result_address, places, last] = *words;
        let rest = result_address | places | last | count >> 32;
        if first != Opcode::Unpark as u64 || rest != 0 {
            return None;
        }
        Some(Self { space: CapSlot::from_bits(cap), word_address, count: count as u32 })
    }

    /// The park space.
    #[inline]
    pub const fn space(&self) -> CapSlot {
        self.space
    }

    /// Where the word is, unchecked.
    #[inline]
    pub const fn word_address(&self) -> u64 {
        self.word_address
    }

    /// How many threads at most.
    #[inline]
    pub const fn count(&self) -> u32 {
        self.count
    }
}

/// Where bytes that go out are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// In an inline slot of the submission side, the kernel's until the operation completes.
    Inline {
        /// The slot's number, below the queue's size.
        slot: u16,
        /// Bytes, at most a slot.
        length: u32,
    },
    /// In the caller's memory, unchecked.
    Address {
        /// Where.
        address: u64,
        /// Bytes, within the ring's limit.
        length: u32,
    },
    /// In a registered buffer, unchecked.
    Registered {
        /// The buffer's number.
        buffer: u16,
        /// Where in it.
        offset: u64,
        /// Bytes, within the ring's limit.
        length: u32,
    },
}

impl Payload {
    /// What a checked SQE sends.
    #[inline]
    const fn of(sqe: &Sqe) -> Self {
        let Sqe { address, length, buffer, .. } = *sqe;
        if sqe.flags & SqeFlags::BY_ADDRESS != 0 {
            Self::Address { address, length }
        } else if sqe.flags & SqeFlags::REGISTERED != 0 {
            Self::Registered { buffer, offset: address, length }
        } else {
            Self::Inline { slot: buffer, length }
        }
    }

    /// The same with another length, for what follows the payload in its place.
    #[inline]
    pub const fn with_length(self, length: u32) -> Self {
        match self {
            Self::Inline { slot, .. } => Self::Inline { slot, length },
            Self::Address { address, .. } => Self::Address { address, length },
            Self::Registered { buffer, offset, .. } => Self::Registered { buffer, offset, length },
        }
    }

    /// Bytes.
    #[inline]
    pub const fn length(&self) -> u32 {
        match *self {
            Self::Inline { length, .. }
            | Self::Address { length, .. }
            | Self::Registered { length, .. } => length,
        }
    }
}

/// Where bytes that come in go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// To the inline slot of the completion.
    Inline,
    /// To the caller's memory, unchecked.
    Address {
        /// Where.
        address: u64,
        /// Bytes that fit.
        capacity: u32,
    },
    /// To a registered buffer, unchecked.
    Registered {
        /// The buffer's number.
        buffer: u16,
        /// Where in it.
        offset: u64,
        /// Bytes that fit.
        capacity: u32,
    },
}

impl Room {
    /// What a checked SQE receives into.
    #[inline]
    const fn of(sqe: &Sqe) -> Self {
        let Sqe { result_address, result_capacity: capacity, result_buffer: buffer, .. } = *sqe;
        if sqe.flags & SqeFlags::RESULT_BY_ADDRESS != 0 {
            Self::Address { address: result_address, capacity }
        } else if sqe.flags & SqeFlags::RESULT_REGISTERED != 0 {
            Self::Registered { buffer, offset: result_address, capacity }
        } else {
            Self::Inline
        }
    }
}
