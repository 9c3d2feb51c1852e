//! Structs as plain fields.

use abi_types::InterfaceTag;
use capnp::traits::Owned;

use crate::{Place, WireError, Writer};

/// A capability in a message: its position in the list of capabilities that travel with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferIndex(pub u16);

/// A Cap'n Proto struct as plain fields; written by the schema compiler.
pub trait Value<'a>: Sized {
    /// The stock generator's name of it.
    type Stock: Owned;
    /// Words of its data section.
    const DATA_WORDS: u16;
    /// Pointers it has.
    const POINTERS: u16;
    /// Bytes of its sections and of those of the structs in it.
    const FIXED_BYTES: usize;
    /// Whether it holds text, data or lists, so that its size depends on its value.
    const IS_VARIABLE: bool;
    /// Whether it holds lists.
    const HAS_LISTS: bool;

    /// Bytes of the text, data and lists in it, each rounded up to words.
    fn variable_bytes(&self) -> usize;

    /// Reads every element of its lists, which [`read`](Self::read) does not.
    fn check_lists(&self) -> Result<(), WireError>;

    /// Writes the fields into the struct at `at`, which is clear.
    fn write(&self, writer: &mut Writer<'_>, at: Place) -> Result<(), WireError>;

    /// Reads and checks every field, of lists only that they are there.
    fn read(reader: <Self::Stock as Owned>::Reader<'a>) -> Result<Self, WireError>;
}

/// Bytes of a message with a `V` in it, not counting its text, data and lists.
pub const fn fixed_bytes<'a, V: Value<'a>>() -> usize {
    if V::FIXED_BYTES == 0 { 0 } else { 8 + V::FIXED_BYTES }
}

/// What can be sent as a message.
pub trait Encode {
    /// How many bytes [`encode`](Self::encode) writes.
    fn message_bytes(&self) -> usize;

    /// Writes the message at the beginning of `into` and returns its length.
    fn encode(&self, into: &mut [u8]) -> Result<usize, WireError>;
}

impl<'a, V: Value<'a>> Encode for V {
    fn message_bytes(&self) -> usize {
        fixed_bytes::<V>().saturating_add(self.variable_bytes())
    }

    fn encode(&self, into: &mut [u8]) -> Result<usize, WireError> {
        if V::FIXED_BYTES == 0 {
            return Ok(0);
        }
        let mut writer = Writer::new(into);
        let root = writer.root(V::DATA_WORDS, V::POINTERS)?;
        self.write(&mut writer, root)?;
        Ok(writer.finish())
    }
}

/// One method of an interface, as a type: what a runtime needs to make the call in its own
/// way, now or later. Encode the parameters, submit them with the ordinal, and decode what
/// comes back with [`Message::get`](crate::Message::get).
pub trait Method {
    /// The interface's tag, which a CALL carries.
    const INTERFACE: InterfaceTag;
    /// The interface's id.
    const INTERFACE_ID: u64;
    /// The method's number in the interface.
    const ORDINAL: u16;
    /// `Interface.method`.
    const NAME: &'static str;
    /// What it takes.
    type Params<'a>: Value<'a>;
    /// What it gives.
    type Results<'a>: Value<'a>;
}
