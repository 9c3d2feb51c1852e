//! Responses: their memory, their bytes, and the one moment they are handed over.

use arrayvec::ArrayVec;

use crate::files::{FileData, Media};
use crate::memmap::Kind;
use crate::memory::{ALLOCATION_LIMIT, Frames, Memory, PAGE, get_u64, page_up, put_u64};
use crate::protocol::{BASE_REVISION, Feature, RESPONSE_OFFSET};
use crate::refusal::Refusal;
use crate::requests::{MAX_REQUESTS, Requests};

/// Memory, the pages in it, and where the kernel will see it.
pub struct Space<'a, M: Memory> {
    /// Physical memory.
    pub memory: &'a mut M,
    /// Its free pages.
    pub frames: &'a mut Frames,
    /// Base of the direct map.
    pub hhdm: u64,
}

impl<M: Memory> Space<'_, M> {
    /// The kernel's address for a physical one.
    pub fn virt(&self, phys: u64) -> u64 {
        self.hhdm + phys
    }

    /// Writes words one after the other.
    pub fn put(&mut self, at: u64, words: &[u64]) -> Result<(), Refusal> {
        let length = words.len() as u64 * 8;
        let bytes = self.bytes(at, length)?;
        for (index, word) in words.iter().enumerate() {
            put_u64(bytes, index * 8, *word);
        }
        Ok(())
    }

    /// Reads a word.
    pub fn get(&self, at: u64) -> Result<u64, Refusal> {
        self.memory
            .view(at, 8)
            .and_then(|bytes| get_u64(bytes, 0))
            .ok_or(Refusal::Unreachable { base: at, length: 8 })
    }

    /// Bytes to write.
    pub fn bytes(&mut self, at: u64, length: u64) -> Result<&mut [u8], Refusal> {
        self.memory.bytes(at, length).ok_or(Refusal::Unreachable { base: at, length })
    }

    /// Zeroed pages the kernel may reclaim.
    pub fn pages(&mut self, pages: u64, limit: u64) -> Result<u64, Refusal> {
        let base = self.frames.allocate(pages, PAGE, limit, Kind::BootloaderReclaimable)?;
        self.bytes(base, pages * PAGE)?.fill(0);
        Ok(base)
    }
}

/// A bump allocator for small things.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap {
    next: u64,
    end: u64,
}

impl Heap {
    /// Pages taken at a time.
    const STEP: u64 = 4;

    /// `size` zeroed bytes.
    pub fn take(
        &mut self,
        space: &mut Space<'_, impl Memory>,
        size: u64,
        alignment: u64,
    ) -> Result<u64, Refusal> {
        let mut base = self.next.next_multiple_of(alignment);
        if base + size > self.end || self.end == 0 {
            let pages = (page_up(size) / PAGE).max(Self::STEP);
            base = space.pages(pages, ALLOCATION_LIMIT)?;
            self.end = base + pages * PAGE;
        }
        self.next = base + size;
        Ok(base)
    }

    /// A copy of `words`.
    pub fn words(
        &mut self,
        space: &mut Space<'_, impl Memory>,
        words: &[u64],
    ) -> Result<u64, Refusal> {
        let base = self.take(space, words.len() as u64 * 8, 8)?;
        space.put(base, words)?;
        Ok(base)
    }

    /// A NUL-terminated copy of `text`.
    pub fn text(&mut self, space: &mut Space<'_, impl Memory>, text: &str) -> Result<u64, Refusal> {
        let base = self.take(space, text.len() as u64 + 1, 1)?;
        let bytes = space.bytes(base, text.len() as u64)?;
        bytes.copy_from_slice(text.as_bytes());
        Ok(base)
    }
}

/// A file with its strings placed (physical addresses).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PlacedFile {
    /// Its bytes.
    pub data: FileData,
    /// Its path.
    pub path: u64,
    /// Its string.
    pub string: u64,
}

/// Writes a file record: revision, address, size, path, string, media type, an unused u32,
/// TFTP address and port, partition index, MBR id and three UUIDs.
pub fn file_record(
    space: &mut Space<'_, impl Memory>,
    heap: &mut Heap,
    file: &PlacedFile,
    media: &Media,
) -> Result<u64, Refusal> {
    const SIZE: u64 = 112;
    let base = heap.take(space, SIZE, 8)?;
    let words = [
        0,
        space.virt(file.data.base),
        file.data.size,
        space.virt(file.path),
        space.virt(file.string),
        u64::from(media.optical),
        // TFTP address and port: this loader does not boot from the network.
        0,
        u64::from(media.partition) | u64::from(media.mbr_disk_id) << 32,
    ];
    space.put(base, &words)?;
    let uuids = [media.gpt_disk, media.gpt_partition, media.filesystem];
    let bytes = space.bytes(base + 64, 48)?;
    for (to, from) in bytes.iter_mut().zip(uuids.iter().flatten()) {
        *to = *from;
    }
    Ok(base)
}

/// Responses waiting to be handed over.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    list: ArrayVec<(Feature, u64), MAX_REQUESTS>,
}

impl Answers {
    /// The response to `feature` is at this physical address.
    pub fn add(&mut self, feature: Feature, response: u64) {
        // There are fewer features than places.
        let _ = self.list.try_push((feature, response));
    }

    /// Writes every response pointer and accepts the base revision. The image is touched
    /// only here, and nothing here can fail half way: the slots were checked at discovery.
    pub fn hand_over(&self, image: &mut [u8], requests: &Requests, hhdm: u64) {
        for (feature, response) in &self.list {
            if let Some(slot) = requests.get(*feature) {
                put_u64(image, slot.offset + RESPONSE_OFFSET, hhdm + response);
            }
        }
        put_u64(image, requests.base_tag + 8, BASE_REVISION);
        put_u64(image, requests.base_tag + 16, 0);
    }
}
