//! What an SQE asks for, checked.
//!
//! A [`Request`] is made only by decoding: its reserved fields were zero, its flags belong to
//! its operation, its payload fits its place. What depends on the kernel's state (slots,
//! addresses, park words) is for the operation itself to check.

use abi_types::{CapSlot, ExceptionKind, ReplyToken};

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

/// CALL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The capability.
    pub target: CapSlot,
    /// The method's ordinal.
    pub method: u16,
    /// Capability descriptors after the payload.
    pub transfers: u8,
    /// When the call is no longer worth delivering, absolute; 0 never.
    pub deadline_ns: u64,
    /// The parameters.
    pub params: Payload,
    /// Where the results go.
    pub results: Room,
}

/// RECV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recv {
    /// The endpoint.
    pub endpoint: CapSlot,
    /// Where the parameters go.
    pub room: Room,
}

/// RETURN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// The call that is answered.
    pub token: ReplyToken,
    /// The kind of exception it is answered with; `None` for results.
    pub exception: Option<ExceptionKind>,
    /// Capability descriptors after the payload.
    pub transfers: u8,
    /// The results, or the exception's message.
    pub results: Payload,
    /// What to receive next with the same SQE: it completes once, with that call, or with the
    /// error of a refused answer.
    pub then: Option<Recv>,
}

/// PARK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Park {
    /// The park space.
    pub space: CapSlot,
    /// Where the word is.
    pub address: u64,
    /// The value it must have to park.
    pub expected: u32,
    /// How long at most, in ns.
    pub timeout_ns: u64,
}

/// UNPARK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpark {
    /// The park space.
    pub space: CapSlot,
    /// Where the word is.
    pub address: u64,
    /// How many threads at most.
    pub count: u32,
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
