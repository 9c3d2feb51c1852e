//! What can be wrong with a message.

use core::fmt;

use abi_types::Status;

/// Why a message could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The length is not a whole number of 8-byte words, or above every limit.
    Length,
    /// The bytes do not begin at a multiple of 8.
    Unaligned,
    /// A pointer leaves the message, the wrong kind of thing is behind it, or there is more
    /// behind the pointers, or it nests deeper, than a message may have.
    Malformed,
    /// A text is not UTF-8.
    NotUtf8,
    /// An enum has a value this side's schema does not know.
    UnknownEnumerant,
    /// The buffer is too small for the message.
    Full,
}

impl WireError {
    /// The completion status of a call whose parameters have this error.
    pub const fn status(self) -> Status {
        match self {
            Self::Full => Status::ParamsTooLarge,
            _ => Status::InvalidArgument,
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "the length is not a whole number of 8-byte words within the limit",
            Self::Unaligned => "the message is not 8-byte aligned",
            Self::Malformed => "a pointer is out of bounds, of the wrong kind or nests too deep",
            Self::NotUtf8 => "a text is not UTF-8",
            Self::UnknownEnumerant => "an enum has a value the schema does not name",
            Self::Full => "the buffer is too small for the message",
        })
    }
}

impl core::error::Error for WireError {}

impl From<capnp::Error> for WireError {
    fn from(_: capnp::Error) -> Self {
        Self::Malformed
    }
}
