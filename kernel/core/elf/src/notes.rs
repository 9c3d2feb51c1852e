//! Notes, strictly: each is whole, or the file is refused.
//!
//! Not the `elf` crate's iterator, which ends at a note that is cut as at the last one.

use abi_types::{Guards, NOTE_GUARDS, NOTE_NAME};
use elf::endian::{EndianParse, LittleEndian};
use elf::segment::ProgramHeader;
use zerocopy::FromBytes;

use crate::Error;

/// The notes of one `PT_NOTE`.
pub(crate) struct Notes<'a> {
    bytes: &'a [u8],
    at: usize,
    align: usize,
    header: usize,
}

/// One note.
pub(crate) struct Note<'a> {
    kind: u32,
    name: &'a [u8],
    descriptor: &'a [u8],
}

impl<'a> Notes<'a> {
    /// The notes in `bytes`, which are what the program header names.
    pub fn new(bytes: &'a [u8], header: usize, entry: &ProgramHeader) -> Result<Self, Error> {
        let align = match entry.p_align {
            4 => 4,
            8 => 8,
            align => return Err(Error::NoteAlignment { header, align }),
        };
        Ok(Self { bytes, at: 0, align, header })
    }

    /// The next note; nothing if it is not all there.
    fn read(&mut self) -> Option<Note<'a>> {
        let mut word = || LittleEndian.parse_u32_at(&mut self.at, self.bytes).ok();
        let (name_bytes, descriptor_bytes, kind) = (word()?, word()?, word()?);
        let name = self.take(name_bytes)?;
        let descriptor = self.take(descriptor_bytes)?;
        Some(Note { kind, name, descriptor })
    }

    /// So many bytes, and what pads them. Behind the last ones there may be no padding.
    fn take(&mut self, length: u32) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(length).ok()?)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end.next_multiple_of(self.align).min(self.bytes.len());
        Some(taken)
    }
}

impl<'a> Iterator for Notes<'a> {
    type Item = Result<Note<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let note = self.read();
        if note.is_none() {
            self.at = self.bytes.len();
        }
        Some(note.ok_or(Error::NoteCut { header: self.header }))
    }
}

impl Note<'_> {
    /// What it declares; nothing if it is somebody else's.
    pub fn guards(&self) -> Result<Option<Guards>, Error> {
        if self.name != NOTE_NAME {
            return Ok(None);
        }
        if self.kind != NOTE_GUARDS {
            return Err(Error::NoteType(self.kind));
        }
        let guards = Guards::read_from_bytes(self.descriptor);
        guards.map(Some).map_err(|_| Error::NoteSize(self.descriptor.len()))
    }
}
