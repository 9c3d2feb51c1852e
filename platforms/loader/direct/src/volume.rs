//! The boot volume of a direct boot: the bundle QEMU loaded as initrd.

use loader_core::files::{FileData, Media, Platform};
use loader_core::memmap::Kind;
use loader_core::memory::{ALLOCATION_LIMIT, Frames, Memory, PAGE, page_up};
use loader_core::refusal::{Name, Refusal};
use loader_core::ustar;
use loader_machine::Identity;
use loader_machine::cpu::Features;

/// The bundle, with free memory to unpack it to.
pub struct Volume<'a> {
    /// Physical memory.
    pub memory: &'a mut Identity,
    /// Its free pages.
    pub frames: &'a mut Frames,
    /// The processor, for random numbers.
    pub features: Features,
    /// Where the bundle is.
    pub bundle: (u64, u64),
}

impl Memory for Volume<'_> {
    fn view(&self, base: u64, length: u64) -> Option<&[u8]> {
        self.memory.view(base, length)
    }

    fn bytes(&mut self, base: u64, length: u64) -> Option<&mut [u8]> {
        self.memory.bytes(base, length)
    }

    fn copy(&mut self, from: u64, to: u64, length: u64) -> Option<()> {
        self.memory.copy(from, to, length)
    }
}

impl Platform for Volume<'_> {
    fn allocate(&mut self, pages: u64, alignment: u64, kind: Kind) -> Result<u64, Refusal> {
        self.frames.allocate(pages, alignment, ALLOCATION_LIMIT, kind)
    }

    fn load(&mut self, path: &str) -> Result<FileData, Refusal> {
        let (base, length) = self.bundle;
        let archive =
            self.memory.view(base, length).ok_or(Refusal::Unreachable { base, length })?;
        let member = ustar::find(archive, path)?.ok_or(Refusal::NotFound(Name::new(path)))?;
        let size = member.size as u64;
        let pages = (page_up(size) / PAGE).max(1);
        let to = self.allocate(pages, PAGE, Kind::ExecutableAndModules)?;
        self.memory
            .copy(base + member.offset as u64, to, size)
            .ok_or(Refusal::Unreachable { base: to, length: size })?;
        Ok(FileData { base: to, size })
    }

    fn media(&self) -> Media {
        Media::default()
    }

    fn random(&mut self) -> u64 {
        self.features.random()
    }
}
