//! Writes a message into a fixed buffer.
//!
//! The `capnp` crate's builder is not used because it panics when its buffer is full and
//! clears the buffer when it is dropped. This one writes front to back, parent before child,
//! and returns [`WireError::Full`]. Offsets come from the schema compiler; an offset outside
//! its struct is `Full` too, never a write elsewhere.

use crate::{ElementLayout, TransferIndex, WireError};

const WORD: usize = 8;

/// Cap'n Proto's pointer kinds, the low two bits of a pointer word.
const KIND_STRUCT: u64 = 0;
const KIND_LIST: u64 = 1;
const KIND_OTHER: u64 = 3;
/// Element size codes of lists: of bytes, 2, 4 and 8 bytes, and of structs with a tag word.
const ELEMENT_BYTE: u64 = 2;
const ELEMENT_TWO_BYTES: u64 = 3;
const ELEMENT_FOUR_BYTES: u64 = 4;
const ELEMENT_EIGHT_BYTES: u64 = 5;
const ELEMENT_COMPOSITE: u64 = 7;
/// Elements, or words of structs, a list pointer can say.
const MAX_COUNT: usize = (1 << 29) - 1;

/// A struct in the buffer: where its sections begin and end, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    data: usize,
    pointers: usize,
    end: usize,
}

impl Place {
    /// The place of element number `position`, if this is the list's first.
    pub(crate) const fn element(self, layout: ElementLayout, position: usize) -> Self {
        let skipped = layout.stride().saturating_mul(position);
        Self {
            data: self.data.saturating_add(skipped),
            pointers: self.pointers.saturating_add(skipped),
            end: self.end.saturating_add(skipped),
        }
    }
}

/// A message being written.
pub struct Writer<'b> {
    bytes: &'b mut [u8],
    used: usize,
}

impl<'b> Writer<'b> {
    /// Starts a message at the beginning of `bytes`.
    pub const fn new(bytes: &'b mut [u8]) -> Self {
        Self { bytes, used: 0 }
    }

    /// The root struct: `data_words` of data, then `pointers`. Comes first and once.
    pub fn root(&mut self, data_words: u16, pointers: u16) -> Result<Place, WireError> {
        let pointer = self.take(WORD)?;
        self.struct_at(pointer, data_words, pointers)
    }

    /// A struct behind pointer `index` of `parent`.
    pub fn child(
        &mut self,
        parent: Place,
        index: u16,
        data_words: u16,
        pointers: u16,
    ) -> Result<Place, WireError> {
        let pointer = Self::pointer_of(parent, index)?;
        self.struct_at(pointer, data_words, pointers)
    }

    /// A number, little-endian, `offset` bytes into the data section.
    #[inline]
    pub fn number<const N: usize>(
        &mut self,
        at: Place,
        offset: usize,
        little_endian: [u8; N],
    ) -> Result<(), WireError> {
        let start = at.data + offset;
        let to = self.bytes.get_mut(start..at.pointers).and_then(|section| section.get_mut(..N));
        to.ok_or(WireError::Full)?.copy_from_slice(&little_endian);
        Ok(())
    }

    /// A bool, `offset` bits into the data section.
    pub fn bit(&mut self, at: Place, offset: usize, value: bool) -> Result<(), WireError> {
        let start = at.data + offset / 8;
        let to = self.bytes.get_mut(start..at.pointers).and_then(|section| section.first_mut());
        let mask = 1 << (offset % 8);
        let to = to.ok_or(WireError::Full)?;
        *to = if value { *to | mask } else { *to & !mask };
        Ok(())
    }

    /// Text behind pointer `index` of `parent`; its NUL is added here.
    pub fn text(&mut self, parent: Place, index: u16, value: &str) -> Result<(), WireError> {
        self.byte_list(parent, index, value.as_bytes(), value.len() + 1)
    }

    /// Bytes behind pointer `index` of `parent`.
    pub fn data(&mut self, parent: Place, index: u16, value: &[u8]) -> Result<(), WireError> {
        self.byte_list(parent, index, value, value.len())
    }

    /// Room for a list of `count` elements behind pointer `index` of `parent`; gives the place
    /// of the first. An empty list is a null pointer.
    pub(crate) fn list(
        &mut self,
        parent: Place,
        index: u16,
        layout: ElementLayout,
        count: usize,
    ) -> Result<Place, WireError> {
        let pointer = Self::pointer_of(parent, index)?;
        if count == 0 {
            return Ok(Place { data: self.used, pointers: self.used, end: self.used });
        }
        if count > MAX_COUNT || layout.list_bytes(count) / WORD > MAX_COUNT {
            return Err(WireError::Full);
        }
        let start = self.take(layout.list_bytes(count))?;
        let (size, counted, first) = match layout {
            ElementLayout::Number(bytes) => {
                let size = match bytes {
                    1 => ELEMENT_BYTE,
                    2 => ELEMENT_TWO_BYTES,
                    4 => ELEMENT_FOUR_BYTES,
                    _ => ELEMENT_EIGHT_BYTES,
                };
                let end = start + usize::from(bytes);
                (size, count, Place { data: start, pointers: end, end })
            }
            ElementLayout::Struct(data_words, pointers) => {
                // The tag: how many structs, and their sections.
                let sections = u64::from(data_words) << 32 | u64::from(pointers) << 48;
                self.word(start, (count as u64) << 2 | sections)?;
                let data = start + WORD;
                let middle = data + usize::from(data_words) * WORD;
                let words = count * (layout.stride() / WORD);
                (
                    ELEMENT_COMPOSITE,
                    words,
                    Place { data, pointers: middle, end: data + layout.stride() },
                )
            }
        };
        let size = size << 32 | (counted as u64) << 35;
        self.word(pointer, KIND_LIST | offset(pointer, start) | size)?;
        Ok(first)
    }

    /// A capability in pointer `index` of `parent`; without one the pointer stays null.
    pub fn transfer(
        &mut self,
        parent: Place,
        index: u16,
        value: Option<TransferIndex>,
    ) -> Result<(), WireError> {
        let Some(TransferIndex(value)) = value else { return Ok(()) };
        self.word(Self::pointer_of(parent, index)?, KIND_OTHER | u64::from(value) << 32)
    }

    /// How long the message is.
    pub const fn finish(self) -> usize {
        self.used
    }

    /// Takes and clears the next `bytes`, a whole number of words.
    fn take(&mut self, bytes: usize) -> Result<usize, WireError> {
        let start = self.used;
        let end = start.checked_add(bytes).ok_or(WireError::Full)?;
        self.bytes.get_mut(start..end).ok_or(WireError::Full)?.fill(0);
        self.used = end;
        Ok(start)
    }

    fn word(&mut self, at: usize, value: u64) -> Result<(), WireError> {
        let to = self.bytes.get_mut(at..at + WORD).ok_or(WireError::Full)?;
        to.copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn pointer_of(parent: Place, index: u16) -> Result<usize, WireError> {
        let at = parent.pointers + usize::from(index) * WORD;
        if at < parent.end { Ok(at) } else { Err(WireError::Full) }
    }

    fn struct_at(
        &mut self,
        pointer: usize,
        data_words: u16,
        pointers: u16,
    ) -> Result<Place, WireError> {
        let data_bytes = usize::from(data_words) * WORD;
        let data = self.take(data_bytes + usize::from(pointers) * WORD)?;
        let pointers_at = data + data_bytes;
        let place = Place { data, pointers: pointers_at, end: self.used };
        // A struct without sections points at itself (offset -1), so that it is not null.
        let offset =
            if place.end == data { u64::from(u32::MAX << 2) } else { offset(pointer, data) };
        let size = u64::from(data_words) << 32 | u64::from(pointers) << 48;
        self.word(pointer, KIND_STRUCT | offset | size)?;
        Ok(place)
    }

    /// `value`, then zeros up to `length` and to the end of the word.
    fn byte_list(
        &mut self,
        parent: Place,
        index: u16,
        value: &[u8],
        length: usize,
    ) -> Result<(), WireError> {
        let pointer = Self::pointer_of(parent, index)?;
        let start = self.take(length.next_multiple_of(WORD))?;
        let to = self.bytes.get_mut(start..start + value.len()).ok_or(WireError::Full)?;
        to.copy_from_slice(value);
        // The buffer holds it, so it is far below the 2²⁹ elements a list may have.
        let size = ELEMENT_BYTE << 32 | (length as u64) << 35;
        self.word(pointer, KIND_LIST | offset(pointer, start) | size)
    }
}

/// The offset field of a pointer at byte `from` to byte `to`: words between them, from bit 2.
const fn offset(from: usize, to: usize) -> u64 {
    (((to - from) / WORD - 1) as u64) << 2
}
