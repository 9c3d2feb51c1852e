//! The server's side: what a method returns and how it becomes bytes.

use abi_types::{ExceptionKind, Status};

use crate::{EXCEPTION_BYTES, Encode, Exception, Value, WireError, fixed_bytes};

/// What a server method returns: results now, or why there are none.
pub type Answer<R> = Result<R, NoResult>;

/// Why a method returns without results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoResult {
    /// The service refuses; the caller gets the exception.
    Exception(Exception),
    /// The call is pending: the service keeps what it needs and answers it another time.
    Later,
}

impl From<Exception> for NoResult {
    fn from(exception: Exception) -> Self {
        Self::Exception(exception)
    }
}

/// What a dispatch did with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Served {
    /// The results are in the buffer, so many bytes.
    Results(usize),
    /// An exception is in the buffer, so many bytes.
    Exception(usize),
    /// Nothing is in the buffer: the service answers later.
    Later,
}

/// Bytes left for text and data beside the fixed part of `R`, in a buffer of `capacity`.
///
/// Asked before the method runs, so that a buffer that cannot hold the results, or an
/// exception, is refused before there are side effects.
pub const fn room_for<'a, R: Value<'a>>(capacity: usize) -> Result<usize, Status> {
    let fixed = fixed_bytes::<R>();
    if capacity < fixed || capacity < EXCEPTION_BYTES {
        return Err(Status::ResultTooLarge);
    }
    Ok(capacity - fixed)
}

/// What the caller gets for parameters that cannot be read. An enum value from another
/// schema is an argument the service does not take; anything else is not a message.
pub fn params_error(error: WireError, results: &mut [u8]) -> Result<Served, Status> {
    if error == WireError::UnknownEnumerant {
        let exception = Exception::new(
            ExceptionKind::InvalidArgument,
            "an enum parameter has a value the interface does not name",
        );
        return encode_exception(&exception, results);
    }
    Err(error.status())
}

/// Puts a method's answer into the buffer.
pub fn answer_with<R: Encode>(answer: Answer<R>, results: &mut [u8]) -> Result<Served, Status> {
    match answer {
        Ok(value) => value.encode(results).map(Served::Results).map_err(|_| Status::ResultTooLarge),
        Err(NoResult::Exception(exception)) => encode_exception(&exception, results),
        Err(NoResult::Later) => Ok(Served::Later),
    }
}

fn encode_exception(exception: &Exception, results: &mut [u8]) -> Result<Served, Status> {
    exception.encode(results).map(Served::Exception).map_err(|_| Status::ResultTooLarge)
}
