//! The typed answer of a service that does not answer with results.

use core::fmt;

use abi_types::{ExceptionKind, INLINE_BYTES};

use crate::{Message, WireError, Writer, exception_capnp};

/// The longest message text in bytes.
pub const EXCEPTION_MESSAGE_BYTES: usize = 95;

/// The longest exception on the wire: pointer, kind, text pointer, text with its NUL.
pub const EXCEPTION_BYTES: usize = 24 + EXCEPTION_MESSAGE_BYTES + 1;

// Every exception fits an inline slot, so that refusing a caller never needs its memory.
const _: () = assert!(EXCEPTION_BYTES <= INLINE_BYTES && EXCEPTION_BYTES.is_multiple_of(8));

/// A kind programs act on, and a sentence for people.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Exception {
    kind: ExceptionKind,
    length: u8,
    text: [u8; EXCEPTION_MESSAGE_BYTES],
}

impl Exception {
    /// An exception; a message that is too long is cut between two characters.
    pub fn new(kind: ExceptionKind, message: &str) -> Self {
        let mut exception = Self { kind, length: 0, text: [0; EXCEPTION_MESSAGE_BYTES] };
        exception.push(message);
        exception
    }

    /// An exception with a formatted message.
    pub fn with(kind: ExceptionKind, message: fmt::Arguments<'_>) -> Self {
        let mut exception = Self::new(kind, "");
        // Writing cannot fail: what does not fit is cut.
        let _ = fmt::Write::write_fmt(&mut exception, message);
        exception
    }

    /// What programs act on.
    pub const fn kind(&self) -> ExceptionKind {
        self.kind
    }

    /// What people read.
    pub fn message(&self) -> &str {
        let text = self.text.get(..usize::from(self.length)).unwrap_or_default();
        core::str::from_utf8(text).unwrap_or_default()
    }

    /// Writes it at the beginning of `into`, which needs [`EXCEPTION_BYTES`] at most.
    pub fn encode(&self, into: &mut [u8]) -> Result<usize, WireError> {
        let mut writer = Writer::new(into);
        let root = writer.root(1, 1)?;
        writer.number(root, 0, (self.kind as u16).to_le_bytes())?;
        writer.text(root, 0, self.message())?;
        Ok(writer.finish())
    }

    /// Reads one. A kind this side does not know reads as `failed`: it says no in any case.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        use exception_capnp::ExceptionKind as Stock;
        let message = Message::new(bytes)?;
        let root = message.root::<exception_capnp::exception::Reader<'_>>()?;
        let kind = match root.get_kind() {
            Ok(Stock::Overloaded) => ExceptionKind::Overloaded,
            Ok(Stock::Disconnected) => ExceptionKind::Disconnected,
            Ok(Stock::Unimplemented) => ExceptionKind::Unimplemented,
            Ok(Stock::InvalidArgument) => ExceptionKind::InvalidArgument,
            Ok(Stock::Failed) | Err(_) => ExceptionKind::Failed,
        };
        Ok(Self::new(kind, crate::text_of(root.get_message())?))
    }

    fn push(&mut self, message: &str) {
        let length = usize::from(self.length);
        let room = self.text.get_mut(length..).unwrap_or_default();
        let cut = message.floor_char_boundary(room.len());
        let bytes = message.as_bytes().get(..cut).unwrap_or_default();
        if let Some(to) = room.get_mut(..bytes.len()) {
            to.copy_from_slice(bytes);
            // At most 95 altogether.
            self.length = (length + bytes.len()) as u8;
        }
    }
}

impl fmt::Write for Exception {
    fn write_str(&mut self, message: &str) -> fmt::Result {
        self.push(message);
        Ok(())
    }
}

impl fmt::Debug for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:?})", self.kind, self.message())
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ExceptionKind::Failed => "failed",
            ExceptionKind::Overloaded => "overloaded",
            ExceptionKind::Disconnected => "disconnected",
            ExceptionKind::Unimplemented => "unimplemented",
            ExceptionKind::InvalidArgument => "invalid argument",
        };
        write!(f, "{kind}: {}", self.message())
    }
}

impl core::error::Error for Exception {}
