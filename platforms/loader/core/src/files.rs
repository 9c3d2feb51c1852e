//! Files the kernel is told about, and the strings that go with them.

use blake2::{Blake2b512, Digest};

use crate::memmap::Kind;
use crate::memory::Memory;
use crate::refusal::{Name, Refusal};

/// A file in memory: page-aligned, in pages of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileData {
    /// Physical address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

/// Where the boot volume is; the same for every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Media {
    /// Whether it is an optical disc.
    pub optical: bool,
    /// Partition number from 1; 0 without partitions.
    pub partition: u32,
    /// MBR disk identifier, 0 if unknown.
    pub mbr_disk_id: u32,
    /// GPT disk GUID, zero if unknown.
    pub gpt_disk: [u8; 16],
    /// GPT partition GUID, zero if unknown.
    pub gpt_partition: [u8; 16],
    /// File system UUID, zero if unknown.
    pub filesystem: [u8; 16],
}

/// What a front end provides while files are loaded.
pub trait Platform: Memory {
    /// `pages` pages below 4 GiB, not cleared; the memory map will call them `kind`.
    fn allocate(&mut self, pages: u64, alignment: u64, kind: Kind) -> Result<u64, Refusal>;
    /// Brings a file of the boot volume into pages of its own; `path` starts with a slash.
    fn load(&mut self, path: &str) -> Result<FileData, Refusal>;
    /// The boot volume.
    fn media(&self) -> Media;
    /// A random number, for address randomisation only.
    fn random(&mut self) -> u64;
}

/// Loads a file and checks its hash if there is one.
pub fn load_checked(
    platform: &mut impl Platform,
    path: &str,
    blake2b: Option<&str>,
) -> Result<FileData, Refusal> {
    let file = platform.load(path)?;
    let Some(expected) = blake2b else { return Ok(file) };
    let bytes = platform
        .view(file.base, file.size)
        .ok_or(Refusal::Unreachable { base: file.base, length: file.size })?;
    let digest = Blake2b512::digest(bytes);
    let nibble = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, _) = expected.as_bytes().as_chunks::<2>();
    let same = pairs.len() == digest.len()
        && pairs.iter().zip(digest.iter()).all(|([high, low], byte)| {
            nibble(*high).zip(nibble(*low)).is_some_and(|(h, l)| h * 16 + l == u32::from(*byte))
        });
    if same { Ok(file) } else { Err(Refusal::HashDiffers(Name::new(path))) }
}
