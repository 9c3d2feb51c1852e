//! Reads a message somebody else wrote.

use abi_types::limits::{MAX_PARAMS, MAX_RESULT};
use capnp::message::{Reader, ReaderOptions, ReaderSegments};
use capnp::traits::{FromPointerReader, IntoInternalStructReader};

use crate::{TransferIndex, Value, WireError};

/// How deep structures may nest in a message.
pub const NESTING_LIMIT: i32 = 8;

/// The longest message in bytes.
const MAX_BYTES: usize = if MAX_PARAMS > MAX_RESULT { MAX_PARAMS } else { MAX_RESULT } as usize;

#[repr(align(8))]
struct Word([u8; 8]);

/// A null root pointer: what an empty message stands for.
static NULL_ROOT: Word = Word([0; 8]);

/// The only segment of a message.
struct OneSegment<'b>(&'b [u8]);

impl ReaderSegments for OneSegment<'_> {
    fn get_segment(&self, index: u32) -> Option<&[u8]> {
        (index == 0).then_some(self.0)
    }

    fn len(&self) -> usize {
        1
    }
}

/// A message to read. The bytes must not change while it exists: the kernel reads a copy of
/// its own, never memory a program can write.
pub struct Message<'b> {
    reader: Reader<OneSegment<'b>>,
    /// Reads the message's lists once before anybody else does, with a limit of its own.
    checker: Reader<OneSegment<'b>>,
}

impl<'b> Message<'b> {
    /// The message in `bytes`.
    pub fn new(bytes: &'b [u8]) -> Result<Self, WireError> {
        if !bytes.len().is_multiple_of(8) || bytes.len() > MAX_BYTES {
            return Err(WireError::Length);
        }
        let bytes = if bytes.is_empty() { &NULL_ROOT.0 } else { bytes };
        if !bytes.as_ptr().addr().is_multiple_of(8) {
            return Err(WireError::Unaligned);
        }
        let options = ReaderOptions {
            traversal_limit_in_words: Some(bytes.len() / 8),
            nesting_limit: NESTING_LIMIT,
        };
        let reader = || Reader::new(OneSegment(bytes), options);
        Ok(Self { reader: reader(), checker: reader() })
    }

    /// The root as plain fields, with its lists checked to the last element. Works once: reading
    /// again would visit words twice, which the limit against messages that grow by shared
    /// pointers does not allow.
    pub fn get<'m, V: Value<'m>>(&'m self) -> Result<V, WireError> {
        if V::HAS_LISTS {
            V::read(self.checker.get_root()?)?.check_lists()?;
        }
        V::read(self.root()?)
    }

    /// The root as the stock generator's reader.
    pub fn root<'m, R: FromPointerReader<'m>>(&'m self) -> Result<R, WireError> {
        Ok(self.reader.get_root()?)
    }
}

/// A text field as generated code reads it.
pub fn text_of<'a>(field: capnp::Result<capnp::text::Reader<'a>>) -> Result<&'a str, WireError> {
    field?.to_str().map_err(|_| WireError::NotUtf8)
}

/// A data field as generated code reads it.
pub fn data_of(field: capnp::Result<&[u8]>) -> Result<&[u8], WireError> {
    Ok(field?)
}

/// An enum field as generated code reads it.
pub fn enum_of<E>(field: Result<E, capnp::NotInSchema>) -> Result<E, WireError> {
    field.map_err(|_| WireError::UnknownEnumerant)
}

/// The capability in pointer `index` of a struct, `None` if the pointer is null.
pub fn transfer_of<'a, R: IntoInternalStructReader<'a>>(
    reader: R,
    index: usize,
) -> Result<Option<TransferIndex>, WireError> {
    let section = capnp::raw::get_list_bytes(capnp::raw::get_struct_pointer_section(reader));
    let (words, _) = section.as_chunks::<8>();
    // A struct of an older schema has fewer pointers; those it lacks are null.
    let Some(&word) = words.get(index) else { return Ok(None) };
    let word = u64::from_le_bytes(word);
    if word == 0 {
        return Ok(None);
    }
    // A capability pointer is 3 in the low half and the position in the high half.
    match (word as u32, u16::try_from(word >> 32)) {
        (3, Ok(position)) => Ok(Some(TransferIndex(position))),
        _ => Err(WireError::Malformed),
    }
}
