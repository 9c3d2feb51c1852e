//! Lists in messages, without an allocator: read where they are, written from a slice.
//!
//! Decided in ADR 133.

use core::fmt;

use crate::{Place, WireError, Writer};

/// What a list can consist of: integers, and structs without lists. Implemented here and by the
/// schema compiler.
pub trait Element<'a>: Copy + fmt::Debug + Eq {
    /// The stock reader of a list of them.
    type Reader: Copy;
    /// How one lies in a list.
    const LAYOUT: ElementLayout;

    /// How many a list has.
    fn count(reader: Self::Reader) -> u32;

    /// Reads number `index`, which the list has.
    fn read_at(reader: Self::Reader, index: u32) -> Result<Self, WireError>;

    /// Bytes behind its pointers.
    fn extra_bytes(&self) -> usize;

    /// Writes it to its place in a list.
    fn write_at(&self, writer: &mut Writer<'_>, at: Place) -> Result<(), WireError>;
}

/// How an element lies in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementLayout {
    /// A number of 1, 2, 4 or 8 bytes.
    Number(u8),
    /// A struct: words of data, then pointers.
    Struct(u16, u16),
}

impl ElementLayout {
    /// Bytes from one element to the next.
    pub const fn stride(self) -> usize {
        match self {
            Self::Number(bytes) => bytes as usize,
            Self::Struct(data_words, pointers) => 8 * (data_words as usize + pointers as usize),
        }
    }

    /// Bytes of a list of `count`, without what is behind its elements' pointers. None at all
    /// for an empty list, whose pointer is null.
    pub const fn list_bytes(self, count: usize) -> usize {
        let elements = count.saturating_mul(self.stride());
        match (self, count) {
            (_, 0) => 0,
            (Self::Number(_), _) => elements.saturating_add(7) & !7,
            // With the word that says what they look like.
            (Self::Struct(..), _) => elements.saturating_add(8),
        }
    }
}

/// A list in a message: one that was received, or a slice to send.
///
/// A received list was checked as a whole with its message, so its elements can be read. One
/// with text or data in its elements is read once: the limit that keeps a message from growing
/// by shared pointers counts each word behind them, and a second round exceeds it.
#[derive(Clone, Copy)]
pub struct List<'a, E: Element<'a>>(Form<'a, E>);

#[derive(Clone, Copy)]
enum Form<'a, E: Element<'a>> {
    Slice(&'a [E]),
    Wire(E::Reader),
}

impl<'a, E: Element<'a>> List<'a, E> {
    /// Without elements.
    pub const EMPTY: Self = Self(Form::Slice(&[]));

    /// The elements of a slice.
    pub const fn of(elements: &'a [E]) -> Self {
        Self(Form::Slice(elements))
    }

    /// A list in a message, as generated code reads it.
    pub const fn received(reader: E::Reader) -> Self {
        Self(Form::Wire(reader))
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        match self.0 {
            Form::Slice(elements) => elements.len(),
            Form::Wire(reader) => E::count(reader) as usize,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element number `index`, if there are so many.
    pub fn get(&self, index: usize) -> Option<Result<E, WireError>> {
        match self.0 {
            Form::Slice(elements) => elements.get(index).copied().map(Ok),
            Form::Wire(reader) => {
                let index = u32::try_from(index).ok().filter(|index| *index < E::count(reader))?;
                Some(E::read_at(reader, index))
            }
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<E, WireError>> + use<'a, E> {
        let list = *self;
        (0..self.len()).map_while(move |index| list.get(index))
    }

    /// Reads every element once.
    pub fn check(&self) -> Result<(), WireError> {
        self.iter().try_for_each(|element| element.map(|_| ()))
    }

    /// Bytes of it in a message.
    pub fn bytes(&self) -> usize {
        let extra = |element: Result<E, WireError>| element.map_or(0, |e| e.extra_bytes());
        let behind = match E::LAYOUT {
            ElementLayout::Number(_) => 0,
            ElementLayout::Struct(..) => self.iter().map(extra).fold(0, usize::saturating_add),
        };
        E::LAYOUT.list_bytes(self.len()).saturating_add(behind)
    }

    /// Writes it behind pointer `index` of `parent`.
    pub fn write(
        &self,
        writer: &mut Writer<'_>,
        parent: Place,
        index: u16,
    ) -> Result<(), WireError> {
        let first = writer.list(parent, index, E::LAYOUT, self.len())?;
        for (position, element) in self.iter().enumerate() {
            element?.write_at(writer, first.element(E::LAYOUT, position))?;
        }
        Ok(())
    }
}

impl<'a, E: Element<'a>> From<&'a [E]> for List<'a, E> {
    fn from(elements: &'a [E]) -> Self {
        Self::of(elements)
    }
}

impl<'a, E: Element<'a>> Default for List<'a, E> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<'a, E: Element<'a>> PartialEq for List<'a, E> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'a, E: Element<'a>> Eq for List<'a, E> {}

impl<'a, E: Element<'a>> fmt::Debug for List<'a, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for element in self.iter() {
            match element {
                Ok(element) => list.entry(&element),
                Err(error) => list.entry(&error),
            };
        }
        list.finish()
    }
}

macro_rules! number_elements {
    ($($number:ident)*) => {$(
        impl<'a> Element<'a> for $number {
            type Reader = capnp::primitive_list::Reader<'a, $number>;
            const LAYOUT: ElementLayout = ElementLayout::Number(size_of::<$number>() as u8);

            fn count(reader: Self::Reader) -> u32 {
                reader.len()
            }

            fn read_at(reader: Self::Reader, index: u32) -> Result<Self, WireError> {
                Ok(reader.get(index))
            }

            fn extra_bytes(&self) -> usize {
                0
            }

            fn write_at(&self, writer: &mut Writer<'_>, at: Place) -> Result<(), WireError> {
                writer.number(at, 0, self.to_le_bytes())
            }
        }
    )*};
}

number_elements!(i8 i16 i32 i64 u8 u16 u32 u64);
