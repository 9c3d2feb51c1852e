//! The volume the loader was started from, and memory from the firmware.

use arrayvec::ArrayVec;
use loader_core::files::{FileData, Media, Platform};
use loader_core::memmap::{Kind, Region};
use loader_core::memory::{ALLOCATION_LIMIT, Memory, PAGE, page_up};
use loader_core::refusal::{Name, Refusal};
use loader_machine::Identity;
use loader_machine::cpu::Features;
use uefi::boot::{self, AllocateType, MemoryType, ScopedProtocol};
use uefi::proto::device_path::media::PartitionSignature;
use uefi::proto::device_path::{DevicePath, DevicePathNodeEnum};
use uefi::proto::loaded_image::LoadedImage;
use uefi::proto::media::file::{Directory, File, FileAttribute, FileInfo, FileMode};
use uefi::proto::media::fs::SimpleFileSystem;
use uefi::{CStr16, Status};

/// Runs of pages with the executable and modules; neighbours merge.
const MAX_CLAIMS: usize = 256;

/// The boot volume.
pub struct Volume<'a> {
    memory: &'a mut Identity,
    root: Directory,
    // Closing the protocol closes the files: it is dropped after them.
    _filesystem: ScopedProtocol<SimpleFileSystem>,
    features: Features,
    media: Media,
    /// What was taken for the executable and modules.
    pub claims: ArrayVec<Region, MAX_CLAIMS>,
}

fn firmware(what: &str) -> Refusal {
    Refusal::Firmware(Name::new(what))
}

impl<'a> Volume<'a> {
    /// Opens the volume this program was read from.
    pub fn open(memory: &'a mut Identity, features: Features) -> Result<Self, Refusal> {
        let mut filesystem = boot::get_image_file_system(boot::image_handle())
            .map_err(|_| firmware("the loader was not started from a file system"))?;
        let root =
            filesystem.open_volume().map_err(|_| firmware("the boot volume cannot be opened"))?;
        let media = media().unwrap_or_default();
        Ok(Self { memory, root, _filesystem: filesystem, features, media, claims: ArrayVec::new() })
    }

    /// The memory behind it.
    pub fn memory(&self) -> &Identity {
        self.memory
    }

    fn claim(&mut self, region: Region) -> Result<(), Refusal> {
        for other in &mut self.claims {
            if region.end() == other.base || other.end() == region.base {
                other.base = other.base.min(region.base);
                other.length += region.length;
                return Ok(());
            }
        }
        self.claims.try_push(region).map_err(|_| Refusal::MapTooLong { limit: MAX_CLAIMS })
    }
}

/// What the device path says about the volume. UEFI 2.10, 10.3.5.
fn media() -> Option<Media> {
    let own = boot::open_protocol_exclusive::<LoadedImage>(boot::image_handle()).ok()?;
    let device = own.device()?;
    let path = boot::open_protocol_exclusive::<DevicePath>(device).ok()?;
    let mut media = Media::default();
    for node in path.node_iter() {
        match node.as_enum() {
            Ok(DevicePathNodeEnum::MediaHardDrive(drive)) => {
                media.partition = drive.partition_number();
                match drive.partition_signature() {
                    PartitionSignature::Guid(guid) => media.gpt_partition = guid.to_bytes(),
                    PartitionSignature::Mbr(id) => media.mbr_disk_id = u32::from_le_bytes(id),
                    _ => {}
                }
            }
            Ok(DevicePathNodeEnum::MediaCdRom(_)) => media.optical = true,
            _ => {}
        }
    }
    // A disc's boot image is no partition, though firmware may see one in its first sector.
    if media.optical {
        media = Media { optical: true, ..Media::default() };
    }
    Some(media)
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
        // Firmware aligns to pages only: more is taken, and the rest stays the loader's.
        let extra = alignment.max(PAGE) / PAGE - 1;
        let count = usize::try_from(pages.saturating_add(extra)).unwrap_or(usize::MAX);
        let below = AllocateType::MaxAddress(ALLOCATION_LIMIT - 1);
        let base = boot::allocate_pages(below, MemoryType::LOADER_DATA, count)
            .map_err(|_| Refusal::OutOfMemory { pages })?
            .as_ptr() as u64;
        let base = base.next_multiple_of(alignment.max(PAGE));
        if kind == Kind::ExecutableAndModules {
            self.claim(Region { base, length: pages * PAGE, kind })?;
        }
        Ok(base)
    }

    fn load(&mut self, path: &str) -> Result<FileData, Refusal> {
        let name = Name::new(path);
        let mut buffer = [0u16; 260];
        let mut text = [0u8; 256];
        let text = text.get_mut(..path.len()).ok_or(Refusal::NotFound(name))?;
        text.copy_from_slice(path.as_bytes());
        for byte in text.iter_mut().filter(|byte| **byte == b'/') {
            *byte = b'\\';
        }
        let text = core::str::from_utf8(text).map_err(|_| Refusal::NotFound(name))?;
        let wide =
            CStr16::from_str_with_buf(text, &mut buffer).map_err(|_| Refusal::NotFound(name))?;
        let handle =
            self.root.open(wide, FileMode::Read, FileAttribute::empty()).map_err(|error| {
                match error.status() {
                    Status::NOT_FOUND => Refusal::NotFound(name),
                    _ => Refusal::Unreadable(name),
                }
            })?;
        let mut file = handle.into_regular_file().ok_or(Refusal::NotFound(name))?;
        let mut info = InfoBuffer([0; 640]);
        let size = file
            .get_info::<FileInfo>(&mut info.0)
            .map_err(|_| Refusal::Unreadable(name))?
            .file_size();
        let pages = (page_up(size) / PAGE).max(1);
        let base = self.allocate(pages, PAGE, Kind::ExecutableAndModules)?;
        let bytes =
            self.memory.bytes(base, size).ok_or(Refusal::Unreachable { base, length: size })?;
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match file.read(rest) {
                Ok(count @ 1..) => done += count,
                _ => return Err(Refusal::Unreadable(name)),
            }
        }
        Ok(FileData { base, size })
    }

    fn media(&self) -> Media {
        self.media
    }

    fn random(&mut self) -> u64 {
        self.features.random()
    }
}

/// File information, with room for a name of 255 characters, aligned as the protocol asks.
#[repr(align(8))]
struct InfoBuffer([u8; 640]);
