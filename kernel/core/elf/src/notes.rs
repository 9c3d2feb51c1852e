//! Notes, strictly: each is whole, or the file is refused.
//!
//! Not the `elf` crate's iterator, which ends at a note that is cut as at the last one.

use abi_types::{Guards, NOTE_ABI, NOTE_GUARDS, NOTE_NAME};
use elf::segment::ProgramHeader;
use zerocopy::FromBytes;

use crate::{Error, FileBytes, Source};

/// The notes of one `PT_NOTE`. Each is copied once: its header, and if it is the system's own its descriptor.
pub(crate) struct Notes<'s, S: ?Sized> {
    file: &'s S,
    bytes: FileBytes,
    at: u64,
    align: u64,
    header: usize,
}

/// What a note says.
pub(crate) enum Meaning {
    /// Where guards are.
    Guards(Guards),
    /// Which ABI the program is made for.
    Abi(u32),
    /// It is somebody else's.
    Nothing,
}

/// The three words that a note begins with: bytes of its name, bytes of its descriptor, its type.
const HEAD_BYTES: usize = 12;
/// The longest descriptor that is read.
const DESCRIPTOR_BYTES: usize = size_of::<Guards>();

impl<'s, S: Source + ?Sized> Notes<'s, S> {
    /// The notes in `bytes` of the file, which are what the program header names.
    pub fn new(
        file: &'s S,
        bytes: FileBytes,
        header: usize,
        entry: &ProgramHeader,
    ) -> Result<Self, Error> {
        let align = match entry.p_align {
            4 => 4,
            8 => 8,
            align => return Err(Error::NoteAlignment { header, align }),
        };
        Ok(Self { file, bytes, at: 0, align, header })
    }

    /// Copies bytes from where the next ones are; nothing if they are not all there.
    fn copy(&self, at: FileBytes, into: &mut [u8]) -> Option<()> {
        self.file.read(at.offset, into).then_some(())
    }

    /// The place of so many bytes, and what pads them is passed. Behind the last ones there may be no padding.
    fn take(&mut self, length: u64) -> Option<FileBytes> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.length)?;
        let taken = FileBytes { offset: self.bytes.offset + self.at, length };
        self.at = end.next_multiple_of(self.align).min(self.bytes.length);
        Some(taken)
    }

    /// The next note; nothing if it is not all there.
    fn read(&mut self) -> Option<Result<Meaning, Error>> {
        let mut head = [0; HEAD_BYTES];
        let first = self.at;
        let head_at = self.take(HEAD_BYTES as u64)?;
        self.copy(head_at, &mut head)?;
        // The name follows without padding.
        self.at = first + HEAD_BYTES as u64;
        let word = |n: usize| head.as_chunks::<4>().0.get(n).map(|word| u32::from_le_bytes(*word));
        let (name_bytes, descriptor_bytes, kind) = (word(0)?, word(1)?, word(2)?);
        let name_at = self.take(name_bytes.into())?;
        let descriptor_at = self.take(descriptor_bytes.into())?;
        let mut name = [0; NOTE_NAME.len()];
        if name_at.length != name.len() as u64 {
            return Some(Ok(Meaning::Nothing));
        }
        self.copy(name_at, &mut name)?;
        if name != NOTE_NAME {
            return Some(Ok(Meaning::Nothing));
        }
        let mut descriptor = [0; DESCRIPTOR_BYTES];
        let length = descriptor_bytes as usize;
        let said = match descriptor.get_mut(..length) {
            Some(said) => {
                self.copy(descriptor_at, said)?;
                Some(&*said)
            }
            None => None,
        };
        Some(meaning(kind, said, length))
    }
}

/// What a note of the system's own says, in a descriptor of `length` bytes; `None` is one that is too long for any.
fn meaning(kind: u32, said: Option<&[u8]>, length: usize) -> Result<Meaning, Error> {
    match kind {
        NOTE_GUARDS => {
            let guards = said.and_then(|said| Guards::read_from_bytes(said).ok());
            guards.map(Meaning::Guards).ok_or(Error::NoteSize(length))
        }
        NOTE_ABI => {
            let number = said.and_then(|said| said.try_into().ok()).map(u32::from_le_bytes);
            number.map(Meaning::Abi).ok_or(Error::AbiSize(length))
        }
        other => Err(Error::NoteType(other)),
    }
}

impl<S: Source + ?Sized> Iterator for Notes<'_, S> {
    type Item = Result<Meaning, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.length {
            return None;
        }
        let note = self.read();
        if note.is_none() {
            self.at = self.bytes.length;
        }
        Some(note.unwrap_or(Err(Error::NoteCut { header: self.header })))
    }
}
