//! A machine for tests: memory from 0, files by name.

use std::collections::HashMap;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use crate::files::{FileData, Media, Platform};
use crate::memmap::{Kind, Region};
use crate::memory::{ALLOCATION_LIMIT, Frames, Memory, PAGE, page_up};
use crate::refusal::{Name, Refusal};

/// Memory from address 0.
#[derive(Clone)]
pub struct Ram(pub Vec<u8>);

impl Ram {
    pub fn new(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    pub fn word(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.0[at as usize..at as usize + 8].try_into().unwrap())
    }

    pub fn text(&self, at: u64) -> String {
        let rest = &self.0[at as usize..];
        let end = rest.iter().position(|&b| b == 0).unwrap();
        String::from_utf8(rest[..end].to_vec()).unwrap()
    }
}

impl Memory for Ram {
    fn view(&self, base: u64, length: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(base).ok()?..usize::try_from(base.checked_add(length)?).ok()?)
    }

    fn bytes(&mut self, base: u64, length: u64) -> Option<&mut [u8]> {
        let end = usize::try_from(base.checked_add(length)?).ok()?;
        self.0.get_mut(usize::try_from(base).ok()?..end)
    }

    fn copy(&mut self, from: u64, to: u64, length: u64) -> Option<()> {
        let part = self.view(from, length)?.to_vec();
        self.bytes(to, length)?.copy_from_slice(&part);
        Some(())
    }
}

/// Size of the test machine's memory.
pub const RAM_SIZE: usize = 32 << 20;

/// The test machine's firmware map: low memory, a hole for devices, the rest, and tables.
pub fn firmware_map() -> Vec<Region> {
    let region = |base, end, kind| Region { base, length: end - base, kind };
    vec![
        region(0, 0x9_f000, Kind::Usable),
        region(0xf_0000, 0x10_0000, Kind::Reserved),
        region(0x10_0000, 0x1f0_0000, Kind::Usable),
        region(0x1f0_0000, 0x1f4_0000, Kind::AcpiReclaimable),
        region(0x1f4_0000, 0x1f8_0000, Kind::AcpiNvs),
        region(0x1f8_0000, 0x200_0000, Kind::Reserved),
    ]
}

/// The test machine.
pub struct Machine {
    pub ram: Ram,
    pub frames: Frames,
    pub files: HashMap<String, Vec<u8>>,
    pub random: u64,
}

impl Machine {
    pub fn new() -> Self {
        Self {
            ram: Ram::new(RAM_SIZE),
            frames: Frames::new(&firmware_map()),
            files: HashMap::new(),
            random: 12345,
        }
    }

    pub fn with(mut self, path: &str, bytes: &[u8]) -> Self {
        self.files.insert(path.to_string(), bytes.to_vec());
        self
    }
}

impl Memory for Machine {
    fn view(&self, base: u64, length: u64) -> Option<&[u8]> {
        self.ram.view(base, length)
    }

    fn bytes(&mut self, base: u64, length: u64) -> Option<&mut [u8]> {
        self.ram.bytes(base, length)
    }

    fn copy(&mut self, from: u64, to: u64, length: u64) -> Option<()> {
        self.ram.copy(from, to, length)
    }
}

impl Platform for Machine {
    fn allocate(&mut self, pages: u64, alignment: u64, kind: Kind) -> Result<u64, Refusal> {
        self.frames.allocate(pages, alignment, ALLOCATION_LIMIT, kind)
    }

    fn load(&mut self, path: &str) -> Result<FileData, Refusal> {
        let bytes = self.files.get(path).cloned().ok_or(Refusal::NotFound(Name::new(path)))?;
        let pages = (page_up(bytes.len() as u64) / PAGE).max(1);
        let base = self.allocate(pages, PAGE, Kind::ExecutableAndModules)?;
        self.ram.0[base as usize..base as usize + bytes.len()].copy_from_slice(&bytes);
        Ok(FileData { base, size: bytes.len() as u64 })
    }

    fn media(&self) -> Media {
        Media { partition: 2, ..Media::default() }
    }

    fn random(&mut self) -> u64 {
        self.random
    }
}
