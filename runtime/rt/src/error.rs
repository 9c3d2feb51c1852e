//! Why a program's step did not work.

use core::fmt;

use abi_types::Status;
use schema_wire::CallError;

use crate::NoCap;

/// What `?` in a main function collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A capability the program needs was not granted.
    Cap(NoCap),
    /// A call has no results.
    Call(CallError),
    /// An operation of the ring ended with this status.
    Status(Status),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cap(missing) => missing.fmt(f),
            Self::Call(error) => error.fmt(f),
            Self::Status(Status::WrongInterface) => {
                CallError::Status(Status::WrongInterface).fmt(f)
            }
            Self::Status(status) => write!(f, "the operation ended with status {status:?}"),
        }
    }
}

impl core::error::Error for Error {}

impl From<NoCap> for Error {
    fn from(missing: NoCap) -> Self {
        Self::Cap(missing)
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}
