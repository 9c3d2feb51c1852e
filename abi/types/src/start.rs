//! The start page: the arguments and the environment of a program.
//!
//! A header, then an entry for each argument and each variable, then their texts, in one read-only page at
//! [`START_VADDR`](crate::place::START_VADDR). A variable is `name=value`. A process without either has no such page;
//! the first thread's argument (RDI) is the page's address, or 0. Both halves are here: who fills a page, and who
//! reads one.
//!
//! Decided in ADR 286.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First word of a start page.
pub const START_MAGIC: u64 = u64::from_le_bytes(*b"capOSarg");
/// Bytes of a start page.
pub const START_BYTES: usize = 4096;

/// The start of the page.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StartHeader {
    /// [`START_MAGIC`].
    pub magic: u64,
    /// Entries that are arguments; those of variables follow.
    pub arguments: u32,
    /// Entries that are variables.
    pub variables: u32,
}

/// One text.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StartEntry {
    /// Where it begins in the page.
    pub offset: u32,
    /// Its bytes.
    pub length: u32,
}

static_assertions::assert_eq_size!(StartHeader, [u8; 16]);
static_assertions::assert_eq_size!(StartEntry, [u8; 8]);

const HEADER: usize = size_of::<StartHeader>();
const ENTRY: usize = size_of::<StartEntry>();

/// Arguments and environment do not fit a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartFull;

/// Fills a start page.
#[derive(Debug)]
pub struct StartWriter<'p> {
    page: &'p mut [u8; START_BYTES],
    entries: usize,
    added: usize,
    /// Where the next text begins.
    end: usize,
}

impl<'p> StartWriter<'p> {
    /// A page for so many arguments and variables, all of which are added then, arguments first.
    pub fn new(
        page: &'p mut [u8; START_BYTES],
        arguments: usize,
        variables: usize,
    ) -> Result<Self, StartFull> {
        let entries = arguments.checked_add(variables).ok_or(StartFull)?;
        let end = entries.checked_mul(ENTRY).and_then(|bytes| bytes.checked_add(HEADER));
        let end = end.filter(|end| *end <= START_BYTES).ok_or(StartFull)?;
        let header = StartHeader {
            magic: START_MAGIC,
            // At most a page's entries each.
            arguments: arguments as u32,
            variables: variables as u32,
        };
        put(page, 0, header.as_bytes());
        Ok(Self { page, entries, added: 0, end })
    }

    /// Adds a text that is made of these pieces.
    pub fn add(&mut self, pieces: &[&str]) -> Result<(), StartFull> {
        if self.added == self.entries {
            return Err(StartFull);
        }
        let offset = self.end;
        for piece in pieces {
            let end = self.end.checked_add(piece.len()).filter(|end| *end <= START_BYTES);
            let end = end.ok_or(StartFull)?;
            put(self.page, self.end, piece.as_bytes());
            self.end = end;
        }
        let entry = StartEntry { offset: offset as u32, length: (self.end - offset) as u32 };
        put(self.page, HEADER + self.added * ENTRY, entry.as_bytes());
        self.added += 1;
        Ok(())
    }

    /// Bytes of the page that say something.
    pub fn length(&self) -> usize {
        self.end
    }
}

fn put(page: &mut [u8; START_BYTES], at: usize, bytes: &[u8]) {
    for (to, from) in page.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}

/// Reads a start page.
#[derive(Clone, Copy, Debug)]
pub struct StartReader<'p> {
    page: &'p [u8],
    arguments: usize,
    variables: usize,
}

impl<'p> StartReader<'p> {
    /// Without arguments and variables.
    pub const EMPTY: Self = Self { page: &[], arguments: 0, variables: 0 };

    /// What a page says; nothing if it is no start page.
    pub fn new(page: &'p [u8]) -> Self {
        match StartHeader::read_from_prefix(page) {
            Ok((header, _)) if header.magic == START_MAGIC => Self {
                page,
                arguments: header.arguments as usize,
                variables: header.variables as usize,
            },
            _ => Self::EMPTY,
        }
    }

    fn text(&self, entry: usize) -> Option<&'p str> {
        let at = entry.checked_mul(ENTRY)?.checked_add(HEADER)?;
        let (entry, _) = StartEntry::read_from_prefix(self.page.get(at..)?).ok()?;
        let start = entry.offset as usize;
        let end = start.checked_add(entry.length as usize)?;
        core::str::from_utf8(self.page.get(start..end)?).ok()
    }

    /// The arguments, in order.
    pub fn arguments(&self) -> impl Iterator<Item = &'p str> + use<'p> {
        let reader = *self;
        (0..self.arguments).map_while(move |entry| reader.text(entry))
    }

    /// Name and value of each variable, in order.
    pub fn variables(&self) -> impl Iterator<Item = (&'p str, &'p str)> + use<'p> {
        let reader = *self;
        let entries = self.arguments..self.arguments.saturating_add(self.variables);
        entries.map_while(move |entry| reader.text(entry)?.split_once('='))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut page = [0; START_BYTES];
        let mut writer = StartWriter::new(&mut page, 2, 1).unwrap();
        assert_eq!(writer.add(&["first"]), Ok(()));
        assert_eq!(writer.add(&[""]), Ok(()));
        assert_eq!(writer.add(&["PATH", "=", "a=b"]), Ok(()));
        assert_eq!(writer.length(), HEADER + 3 * ENTRY + 5 + 8);
        assert_eq!(writer.add(&["one too many"]), Err(StartFull));
        let reader = StartReader::new(&page);
        assert!(reader.arguments().eq(["first", ""]));
        assert!(reader.variables().eq([("PATH", "a=b")]));
        assert_eq!(StartReader::new(&[0; 64]).arguments().count(), 0);
        assert_eq!(StartReader::EMPTY.variables().count(), 0);
    }

    #[test]
    fn a_page_is_filled_to_its_last_byte_and_no_further() {
        let text = "x".repeat(START_BYTES - HEADER - ENTRY);
        let mut page = [0; START_BYTES];
        let mut writer = StartWriter::new(&mut page, 1, 0).unwrap();
        assert_eq!(writer.add(&[&text, "y"]), Err(StartFull));
        let mut writer = StartWriter::new(&mut page, 1, 0).unwrap();
        assert_eq!(writer.add(&[&text]), Ok(()));
        assert!(StartReader::new(&page).arguments().eq([text.as_str()]));
        let most = (START_BYTES - HEADER) / ENTRY;
        assert!(StartWriter::new(&mut page, most, 0).is_ok());
        assert!(StartWriter::new(&mut page, most, 1).is_err());
        assert!(StartWriter::new(&mut page, usize::MAX, 1).is_err());
    }

    #[test]
    fn a_page_that_lies_names_nothing_outside() {
        let mut page = [0; START_BYTES];
        let mut writer = StartWriter::new(&mut page, 1, 0).unwrap();
        assert_eq!(writer.add(&["a"]), Ok(()));
        for (at, value) in [(8, u32::MAX), (16, 4095), (16, u32::MAX), (20, u32::MAX)] {
            let mut bad = page;
            put(&mut bad, at, &value.to_le_bytes());
            if at != 8 {
                put(&mut bad, 20, &4096_u32.to_le_bytes());
                assert_eq!(StartReader::new(&bad).arguments().count(), 0);
            } else {
                assert!(StartReader::new(&bad).arguments().count() < START_BYTES);
            }
        }
    }
}
