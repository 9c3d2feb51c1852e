//! What the operations of a service answer.

use abi_types::{ReplyToken, Status};

use crate::record::{CallKey, Donation, RecvKey};

/// What follows from a CALL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum CallVerdict<R> {
    /// Copy the message to this receiver and complete its RECV with the token. The caller's
    /// pending operation keeps [`CallKey::of`] the token.
    Deliver {
        /// The receiver, first in its queue.
        to: R,
        /// The name by which its RETURN answers this call.
        token: ReplyToken,
    },
    /// The call waits; arm its deadline, if it has one.
    Queued(CallKey),
}

/// Why a CALL is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The endpoint or its owner is gone.
    Disconnected,
    /// As many calls wait as may, or the owner has no record left.
    Overloaded,
    /// The deadline had passed before the call was made.
    DeadlineExpired,
}

impl CallError {
    /// The status of the caller's completion.
    pub const fn status(self) -> Status {
        match self {
            Self::Disconnected => Status::Disconnected,
            Self::Overloaded => Status::Overloaded,
            Self::DeadlineExpired => Status::DeadlineExpired,
        }
    }
}

/// What follows from a RECV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RecvVerdict<C> {
    /// Copy the message of this caller and complete the RECV with badge, deadline and token.
    Deliver {
        /// The caller, first in its queue.
        caller: C,
        /// The badge of its facet.
        badge: u64,
        /// Its deadline, 0 for none.
        deadline_ns: u64,
        /// The name by which RETURN answers this call.
        token: ReplyToken,
    },
    /// The receive waits; its pending operation keeps this key.
    Waiting(RecvKey),
}

/// Why a RECV is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// The endpoint or its owner is gone.
    Disconnected,
    /// As many calls are being served or waited for as may be, or no record is left.
    Overloaded,
}

impl RecvError {
    /// The status of the receiver's completion.
    pub const fn status(self) -> Status {
        match self {
            Self::Disconnected => Status::Disconnected,
            Self::Overloaded => Status::Overloaded,
        }
    }
}

/// What follows from a RETURN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ReplyVerdict<C> {
    /// Give the donation back, if there is one, then complete the caller.
    Complete {
        /// The party that made the call, and waits.
        caller: C,
        /// What came along with its call.
        donation: Option<Donation>,
    },
    /// Nobody waits for the answer any more; the RETURN itself is done.
    Dropped,
}

/// The token names no call that is being served: never given out, or used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleToken;

/// Why a RETURN with THEN_RECV is refused; neither half was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyThenRecvError {
    /// No call with this token is being served: see [`StaleToken`](crate::StaleToken).
    StaleToken,
    /// The receive is not possible.
    Recv(RecvError),
}

/// A call that ended other than by an answer. Give the donation back, if there is one, then
/// complete the caller, unless it is the caller that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct CallEnd<C> {
    /// The party that made the call.
    pub caller: C,
    /// What came along with its call.
    pub donation: Option<Donation>,
    /// Whether a receiver had it; its RETURN will be dropped.
    pub was_delivered: bool,
}

/// No such operation is pending: it has ended, or never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFound;

/// Why a call does not expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpireError {
    /// It has ended, or a receiver has it.
    NotFound,
    /// It has no deadline, or that is still to come.
    NotDue,
}

/// Why nothing can be lent with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LendError {
    /// No receiver serves it.
    NotFound,
    /// Something is lent with it already.
    AlreadyLent,
}

/// Why no endpoint was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// Every endpoint of the service is open.
    Full,
    /// The service is ending.
    Closed,
}

/// One operation that a fan-out ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<C, R> {
    /// A call completes with this status.
    Call {
        /// The caller to complete, and what came along with its call.
        end: CallEnd<C>,
        /// The status of its completion.
        status: Status,
    },
    /// A receive completes with this status.
    Recv {
        /// The receiver.
        receiver: R,
        /// The status of its completion.
        status: Status,
    },
}

/// An endpoint that was closed, until nobody waits there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ClosedEndpoint {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// How far a teardown got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum DrainVerdict {
    /// There may be more: call again.
    More,
    /// Every record is free.
    Done,
}
