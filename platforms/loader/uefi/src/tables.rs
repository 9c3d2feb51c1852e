//! What the firmware leaves behind: configuration tables, the memory map, the time.

use arrayvec::ArrayVec;
use loader_core::acpi::{self, Extents, add_extent};
use loader_core::date::Civil;
use loader_core::memmap::{Kind, Region};
use loader_core::memory::{Memory, PAGE};
use loader_core::refusal::Refusal;
use loader_core::smbios::{self, Smbios};
use uefi::boot::MemoryType;
use uefi::mem::memory_map::{MemoryMap, MemoryMapOwned};
use uefi::table::cfg::ConfigTableEntry;
use uefi::{runtime, system, table};

/// Entries kept after neighbours of one kind were merged.
pub const MAP_ENTRIES: usize = 512;

/// Addresses of the firmware's tables.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// ACPI's root pointer.
    pub rsdp: Option<u64>,
    /// SMBIOS entry points.
    pub smbios: Smbios,
    /// The EFI system table.
    pub system_table: Option<u64>,
    /// Pages of all of it.
    pub extents: Extents,
}

impl Tables {
    /// Looks them up.
    pub fn find(memory: &impl Memory) -> Self {
        let mut tables = Self::default();
        let mut old_rsdp = None;
        system::with_config_table(|entries| {
            for entry in entries {
                let address = Some(entry.address as u64);
                match entry.guid {
                    ConfigTableEntry::ACPI2_GUID => tables.rsdp = address,
                    ConfigTableEntry::ACPI_GUID => old_rsdp = address,
                    ConfigTableEntry::SMBIOS_GUID => tables.smbios.entry32 = address,
                    ConfigTableEntry::SMBIOS3_GUID => tables.smbios.entry64 = address,
                    _ => {}
                }
            }
            let length = size_of_val(entries) as u64;
            add_extent(&mut tables.extents, entries.as_ptr() as u64, length);
        });
        tables.rsdp = tables.rsdp.or(old_rsdp);
        if let Some(rsdp) = tables.rsdp {
            acpi::extents(memory, rsdp, &mut tables.extents);
        }
        smbios::extents(memory, tables.smbios, &mut tables.extents);
        if let Some(system_table) = table::system_table_raw() {
            // SAFETY: the pointer the firmware gave the program; the table lives as long as
            // the runtime services do.
            let header = unsafe { system_table.as_ref() };
            let address = system_table.as_ptr() as u64;
            tables.system_table = Some(address);
            add_extent(&mut tables.extents, address, size_of_val(header) as u64);
            let runtime = header.runtime_services;
            add_extent(&mut tables.extents, runtime as u64, size_of_runtime_services());
            let vendor = system::firmware_vendor();
            let vendor_length = vendor.num_bytes() as u64;
            add_extent(&mut tables.extents, vendor.as_ptr() as u64, vendor_length);
        }
        tables
    }
}

/// UEFI 2.10, 4.5: a header of 24 bytes and 14 pointers.
const fn size_of_runtime_services() -> u64 {
    24 + 14 * 8
}

/// The protocol's kind for a UEFI memory type.
fn kind(memory_type: MemoryType) -> Kind {
    match memory_type {
        MemoryType::LOADER_CODE
        | MemoryType::LOADER_DATA
        | MemoryType::BOOT_SERVICES_CODE
        | MemoryType::BOOT_SERVICES_DATA => Kind::BootloaderReclaimable,
        MemoryType::RUNTIME_SERVICES_CODE | MemoryType::RUNTIME_SERVICES_DATA => {
            Kind::ReservedMapped
        }
        MemoryType::CONVENTIONAL => Kind::Usable,
        MemoryType::UNUSABLE => Kind::Bad,
        MemoryType::ACPI_RECLAIM => Kind::AcpiReclaimable,
        MemoryType::ACPI_NON_VOLATILE => Kind::AcpiNvs,
        _ => Kind::Reserved,
    }
}

/// The memory map, neighbours of one kind merged.
pub fn memory_regions(map: &MemoryMapOwned) -> Result<ArrayVec<Region, MAP_ENTRIES>, Refusal> {
    let mut regions: ArrayVec<Region, MAP_ENTRIES> = ArrayVec::new();
    for entry in map.entries() {
        let region = Region {
            base: entry.phys_start,
            length: entry.page_count.saturating_mul(PAGE),
            kind: kind(entry.ty),
        };
        match regions.last_mut() {
            Some(last) if last.kind == region.kind && last.end() == region.base => {
                last.length += region.length;
            }
            _ => {
                regions.try_push(region).map_err(|_| Refusal::MapTooLong { limit: MAP_ENTRIES })?
            }
        }
    }
    Ok(regions)
}

/// The end of the highest memory, at least 4 GiB: firmware maps all of it one to one.
pub fn top_of_memory(map: &MemoryMapOwned) -> u64 {
    map.entries()
        .filter(|entry| entry.ty != MemoryType::MMIO && entry.ty != MemoryType::RESERVED)
        .map(|entry| entry.phys_start.saturating_add(entry.page_count.saturating_mul(PAGE)))
        .fold(1 << 32, u64::max)
}

/// Seconds since 1970 by the firmware's clock.
pub fn unix_seconds() -> Option<i64> {
    let time = runtime::get_time().ok()?;
    let civil = Civil {
        year: i64::from(time.year()),
        month: time.month(),
        day: time.day(),
        hour: time.hour(),
        minute: time.minute(),
        second: time.second(),
    };
    // Local time is UTC minus the zone in minutes: UEFI 2.10, 8.3.
    let zone_seconds = i64::from(time.time_zone().unwrap_or(0)) * 60;
    Some(civil.unix_seconds()? + zone_seconds)
}
