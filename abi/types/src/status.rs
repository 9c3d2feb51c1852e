//! How an operation ended.
//!
//! Decided in ADR 53.

/// The status of a CQE: what happened on the way. What the service itself thought of the
/// request is an exception, marked by [`Status::Exception`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// Done; the payload holds the results.
    Ok = 0,
    /// The service answered with an exception: its [`ExceptionKind`] is in the CQE's `method`,
    /// its message (UTF-8) is the payload.
    Exception = 1,
    /// The slot is empty or stale, or the object behind it is gone.
    Disconnected = 2,
    /// Ended by CANCEL, or because a party to it ended.
    Cancelled = 3,
    /// A limit of the process or the endpoint is reached; nothing was done.
    Overloaded = 4,
    /// The opcode is unknown or not in this image.
    UnsupportedOpcode = 5,
    /// A field has a value the operation does not take, or a reserved field is not zero.
    InvalidArgument = 6,
    /// An address is outside the process's memory, misaligned or not mapped as needed.
    BadAddress = 7,
    /// The parameters exceed the limit; nothing was transferred.
    ParamsTooLarge = 8,
    /// The results exceed what the caller can take; nothing was transferred.
    ResultTooLarge = 9,
    /// CANCEL found no pending operation with that user data.
    NotFound = 10,
    /// The call's deadline passed before a server took it.
    DeadlineExpired = 11,
    /// PARK: woken by UNPARK.
    Woken = 12,
    /// PARK: the word did not have the expected value.
    Mismatch = 13,
    /// PARK, or a wait with a time limit: the time is over.
    TimedOut = 14,
    /// The interface of the capability has no such method, or the object no such operation.
    Unimplemented = 15,
    /// The consumer that took the SQE is no longer the ring's owner; nothing was done.
    StaleSqConsumer = 16,
    /// Kernel memory is exhausted; nothing was done.
    OutOfMemory = 17,
    /// CALL: the slot holds a capability of another interface than the one the caller means; nothing
    /// was done.
    WrongInterface = 18,
    /// A capability in the message is of an interface that is not passed on, or not in this way; nothing
    /// was sent.
    NotTransferable = 19,
    /// The message brings more capabilities than its receiver takes; nothing was sent.
    TransferRefused = 20,
}

impl Status {
    /// The status with this number; a number that is not here comes from a newer kernel.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Ok,
            1 => Self::Exception,
            2 => Self::Disconnected,
            3 => Self::Cancelled,
            4 => Self::Overloaded,
            5 => Self::UnsupportedOpcode,
            6 => Self::InvalidArgument,
            7 => Self::BadAddress,
            8 => Self::ParamsTooLarge,
            9 => Self::ResultTooLarge,
            10 => Self::NotFound,
            11 => Self::DeadlineExpired,
            12 => Self::Woken,
            13 => Self::Mismatch,
            14 => Self::TimedOut,
            15 => Self::Unimplemented,
            16 => Self::StaleSqConsumer,
            17 => Self::OutOfMemory,
            18 => Self::WrongInterface,
            19 => Self::NotTransferable,
            20 => Self::TransferRefused,
            _ => return None,
        })
    }
}

/// The kinds of exception a service answers with. There is no `denied`: without the
/// capability there is nothing to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ExceptionKind {
    /// The request is well formed and cannot be done.
    Failed = 0,
    /// A limit is reached; it may work later.
    Overloaded = 1,
    /// Something the service relies on is gone.
    Disconnected = 2,
    /// The method is not implemented.
    Unimplemented = 3,
    /// A parameter has a value the method does not take.
    InvalidArgument = 4,
}

impl ExceptionKind {
    /// The kind with this number.
    pub const fn from_number(number: u16) -> Option<Self> {
        Some(match number {
            0 => Self::Failed,
            1 => Self::Overloaded,
            2 => Self::Disconnected,
            3 => Self::Unimplemented,
            4 => Self::InvalidArgument,
            _ => return None,
        })
    }
}
