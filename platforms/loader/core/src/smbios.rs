//! SMBIOS entry points: the legacy search and the pages the tables occupy. SMBIOS 3.7, 5.2.

use crate::acpi::{Extents, add_extent};
use crate::memory::{Memory, get_u16, get_u32, get_u64};

/// The two entry points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Smbios {
    /// 32-bit entry point (`_SM_`).
    pub entry32: Option<u64>,
    /// 64-bit entry point (`_SM3_`).
    pub entry64: Option<u64>,
}

const LEGACY_BASE: u64 = 0xf_0000;
const LEGACY_LENGTH: u64 = 0x1_0000;

fn sums_to_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) == 0
}

/// Searches the BIOS area, on 16-byte boundaries.
pub fn legacy_search(memory: &impl Memory) -> Smbios {
    let mut found = Smbios::default();
    let Some(area) = memory.view(LEGACY_BASE, LEGACY_LENGTH) else { return found };
    for at in (0..area.len()).step_by(16) {
        let rest = area.get(at..).unwrap_or(&[]);
        let address = LEGACY_BASE + at as u64;
        if found.entry32.is_none() && rest.starts_with(b"_SM_") && valid(rest, 5, 0x1f) {
            found.entry32 = Some(address);
        }
        if found.entry64.is_none() && rest.starts_with(b"_SM3_") && valid(rest, 6, 0x18) {
            found.entry64 = Some(address);
        }
    }
    found
}

/// Whether the length byte at `at` is at least `least` and the checksum holds.
fn valid(bytes: &[u8], at: usize, least: u8) -> bool {
    // SMBIOS 2.1 wrote 1Eh where 1Fh was meant.
    let length = bytes.get(at).copied().unwrap_or(0).max(least - 1);
    length < 64 && bytes.get(..usize::from(length.max(least))).is_some_and(sums_to_zero)
}

/// Adds the pages of entry points and structure tables.
pub fn extents(memory: &impl Memory, smbios: Smbios, extents: &mut Extents) {
    if let Some(base) = smbios.entry32 {
        add_extent(extents, base, 0x1f);
        let table = memory
            .view(base, 0x1f)
            .and_then(|entry| Some((get_u32(entry, 0x18)?, get_u16(entry, 0x16)?)));
        if let Some((address, length)) = table {
            add_extent(extents, u64::from(address), u64::from(length));
        }
    }
    if let Some(base) = smbios.entry64 {
        add_extent(extents, base, 0x18);
        let table = memory
            .view(base, 0x18)
            .and_then(|entry| Some((get_u64(entry, 0x10)?, get_u32(entry, 0x0c)?)));
        if let Some((address, length)) = table {
            add_extent(extents, address, u64::from(length));
        }
    }
}
