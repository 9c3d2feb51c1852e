//! The direct-boot bundle: an uncompressed ustar archive of the boot medium's tree.
//!
//! Only what `tar --format=ustar` writes for plain files and folders is read. Every header's
//! checksum and size is checked before its name is believed. POSIX.1-1988 ustar, pax(1).

use core::fmt;

const BLOCK: usize = 512;

/// What is wrong with the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveError {
    /// Not an archive: no ustar header at this offset.
    NotUstar(usize),
    /// A header's checksum does not match.
    Checksum(usize),
    /// A number field is not octal.
    Number(usize),
    /// A member reaches past the end.
    Truncated(usize),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, offset) = match self {
            Self::NotUstar(offset) => ("no ustar header", offset),
            Self::Checksum(offset) => ("wrong header checksum", offset),
            Self::Number(offset) => ("a number that is not octal", offset),
            Self::Truncated(offset) => ("a file longer than the archive", offset),
        };
        write!(
            f,
            "boot bundle: {what} at offset {offset}; expected an uncompressed `tar --format=ustar` archive"
        )
    }
}

/// One member: where it is in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Offset of its first byte.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
}

fn octal(field: &[u8]) -> Option<usize> {
    let digits = field.split(|&b| b == 0 || b == b' ').find(|part| !part.is_empty())?;
    digits.iter().try_fold(0usize, |sum, &digit| {
        let value = digit.checked_sub(b'0').filter(|v| *v < 8)?;
        sum.checked_mul(8)?.checked_add(usize::from(value))
    })
}

fn c_text(field: &[u8]) -> &[u8] {
    field.split(|&b| b == 0).next().unwrap_or(field)
}

/// Whether the header's prefix and name spell `path` (given without leading slash).
fn names(header: &[u8; BLOCK], path: &[u8]) -> bool {
    let name = c_text(header.get(..100).unwrap_or(&[]));
    let prefix = c_text(header.get(345..500).unwrap_or(&[]));
    let trim = |part: &[u8]| -> usize {
        // `tar -C tree .` writes `./limine.conf`; `tar -P /x` writes `/x`.
        let mut skip = 0;
        while part.get(skip..).is_some_and(|p| p.starts_with(b"./")) {
            skip += 2;
        }
        while part.get(skip) == Some(&b'/') {
            skip += 1;
        }
        skip
    };
    if prefix.is_empty() {
        return name.get(trim(name)..) == Some(path);
    }
    let Some(prefix) = prefix.get(trim(prefix)..) else { return false };
    path.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(b"/")) == Some(name)
}

/// Finds the plain file `path` (with or without leading slash).
///
/// A damaged header ends the search with the error even if the file would come later: a
/// bundle that is wrong anywhere is not booted from.
pub fn find(archive: &[u8], path: &str) -> Result<Option<Member>, ArchiveError> {
    let wanted = path.trim_start_matches('/').as_bytes();
    let mut at = 0;
    let mut found = None;
    loop {
        let Some(header) = archive.get(at..).and_then(|rest| rest.first_chunk::<BLOCK>()) else {
            // QEMU pads nothing: an archive may also end without its two zero blocks.
            return if at == 0 || at > archive.len() {
                Err(ArchiveError::NotUstar(at))
            } else {
                Ok(found)
            };
        };
        if header.iter().all(|&b| b == 0) {
            return if at == 0 { Err(ArchiveError::NotUstar(0)) } else { Ok(found) };
        }
        if header.get(257..262) != Some(b"ustar") {
            return Err(ArchiveError::NotUstar(at));
        }
        let stated = header.get(148..156).and_then(octal).ok_or(ArchiveError::Number(at))?;
        let sum: usize = header
            .iter()
            .enumerate()
            .map(|(i, &b)| if (148..156).contains(&i) { 32 } else { usize::from(b) })
            .sum();
        if sum != stated {
            return Err(ArchiveError::Checksum(at));
        }
        let size = header.get(124..136).and_then(octal).ok_or(ArchiveError::Number(at))?;
        let offset = at + BLOCK;
        let end = offset.checked_add(size).ok_or(ArchiveError::Truncated(at))?;
        if end > archive.len() {
            return Err(ArchiveError::Truncated(at));
        }
        let is_file = matches!(header.get(156), Some(b'0' | 0));
        if found.is_none() && is_file && names(header, wanted) {
            found = Some(Member { offset, size });
        }
        at = offset + size.div_ceil(BLOCK) * BLOCK;
    }
}
