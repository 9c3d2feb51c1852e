//! The start information QEMU's firmware leaves: memory map, RSDP, bundle, command line.
//!
//! Layout: `struct hvm_start_info` of Xen's public headers, version 1.

use arrayvec::ArrayVec;
use loader_core::memmap::{Kind, Region};
use loader_core::memory::{Memory, get_u32, get_u64};
use loader_core::refusal::{Name, Refusal};

const MAGIC: u32 = 0x336e_c578;

/// The most memory map entries.
pub const MAX_ENTRIES: usize = 256;

/// The start information.
#[derive(Clone, Debug)]
pub struct StartInfo {
    /// The firmware's memory map.
    pub map: ArrayVec<Region, MAX_ENTRIES>,
    /// ACPI's root pointer, if the firmware gave one.
    pub rsdp: Option<u64>,
    /// The bundle: address and length.
    pub bundle: (u64, u64),
    /// Address and length of the command line.
    pub command_line: (u64, u64),
}

fn bad(what: &str) -> Refusal {
    Refusal::Firmware(Name::new(what))
}

impl StartInfo {
    /// Reads it.
    pub fn read(memory: &impl Memory, address: u64) -> Result<Self, Refusal> {
        const VERSION_1_SIZE: u64 = 56;
        let info = memory
            .view(address, VERSION_1_SIZE)
            .filter(|info| get_u32(info, 0) == Some(MAGIC))
            .ok_or_else(|| bad("not started through the PVH entry; use qemu -kernel"))?;
        let word = |at| get_u64(info, at).unwrap_or(0);
        let small = |at| get_u32(info, at).unwrap_or(0);
        if small(4) < 1 {
            return Err(bad("the PVH start information has no memory map; use a newer QEMU"));
        }
        if small(12) == 0 {
            return Err(bad("no boot bundle; start QEMU with -initrd bundle.tar"));
        }
        let module =
            memory.view(word(16), 32).ok_or_else(|| bad("the module list is unreachable"))?;
        let bundle = (get_u64(module, 0).unwrap_or(0), get_u64(module, 8).unwrap_or(0));
        let mut map = ArrayVec::new();
        for index in 0..u64::from(small(48)) {
            let entry = memory
                .view(word(40) + index * 24, 24)
                .ok_or_else(|| bad("the memory map is unreachable"))?;
            let kind = match get_u32(entry, 16) {
                Some(1) => Kind::Usable,
                Some(3) => Kind::AcpiReclaimable,
                Some(4) => Kind::AcpiNvs,
                Some(5) => Kind::Bad,
                _ => Kind::Reserved,
            };
            let base = get_u64(entry, 0).unwrap_or(0);
            let length = get_u64(entry, 8).unwrap_or(0);
            map.try_push(Region { base, length, kind })
                .map_err(|_| Refusal::MapTooLong { limit: MAX_ENTRIES })?;
        }
        let rsdp = Some(word(32)).filter(|rsdp| *rsdp != 0);
        Ok(Self { map, rsdp, bundle, command_line: (word(24), text_length(memory, word(24))) })
    }
}

/// Bytes before the NUL, at most a page.
fn text_length(memory: &impl Memory, address: u64) -> u64 {
    const LONGEST: u64 = 4096;
    (0..LONGEST)
        .find(|&at| memory.view(address + at, 1).is_none_or(|byte| byte == [0]))
        .unwrap_or(LONGEST)
}
