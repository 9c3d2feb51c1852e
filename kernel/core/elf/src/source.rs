//! Where the bytes of an executable come from, and parts of them by name.

/// The bytes of an executable, which may change while they are read: what is believed was copied first, and
/// nothing that decides is read twice.
pub trait Source {
    /// How many bytes there are.
    fn length(&self) -> u64;

    /// Copies the bytes from `offset` on; `false`, and `into` is anything, if they are not all there.
    fn read(&self, offset: u64, into: &mut [u8]) -> bool;

    /// The bytes in place, if nobody ever changes them.
    fn in_place(&self, _bytes: FileBytes) -> Option<&[u8]> {
        None
    }
}

impl Source for [u8] {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(into.len())?));
        match range.and_then(|range| self.get(range)) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }

    fn in_place(&self, bytes: FileBytes) -> Option<&[u8]> {
        Some(bytes.of(self))
    }
}

/// Bytes of a file by their place in it; all of them are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileBytes {
    /// The first.
    pub offset: u64,
    /// How many.
    pub length: u64,
}

impl FileBytes {
    /// None.
    pub const NONE: Self = Self { offset: 0, length: 0 };

    /// Those of a file of `file_bytes` bytes; `None` if they are not all there.
    pub(crate) fn within(offset: u64, length: u64, file_bytes: u64) -> Option<Self> {
        let end = offset.checked_add(length)?;
        (end <= file_bytes).then_some(Self { offset, length })
    }

    /// Without the first `count`, and at most `most` of the rest.
    pub const fn part(self, count: u64, most: u64) -> Self {
        if count >= self.length {
            return Self::NONE;
        }
        let rest = self.length - count;
        let length = if rest < most { rest } else { most };
        Self { offset: self.offset + count, length }
    }

    /// The same bytes in a file that is in memory.
    pub fn of<'f>(&self, file: &'f [u8]) -> &'f [u8] {
        let start = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(self.length).unwrap_or(usize::MAX));
        file.get(start..end).unwrap_or_default()
    }
}
