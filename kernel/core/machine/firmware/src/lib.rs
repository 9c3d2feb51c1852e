//! Checks on ACPI tables before anything interprets them.
//!
//! Firmware is outside the kernel's control: a table is looked at only after its length, its
//! checksum and the lengths of its inner records are known to be sound, and only if the memory
//! map says there is firmware memory where it lies. ACPI 6.5, 5.2.5 to 5.2.12.
#![no_std]

pub mod power;

use core::fmt;

/// Bytes of the header every table starts with.
pub const HEADER_BYTES: usize = 36;

/// Bytes of a version 2 root pointer, which is also what is read of a version 1 one.
pub const RSDP_BYTES: usize = 36;

/// What is wrong with a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsound {
    /// It lies where the memory map has no firmware memory.
    NotInFirmwareMemory,
    /// Its signature is not the expected one.
    Signature,
    /// It is shorter than its own header or than it says.
    Length,
    /// Its bytes do not sum to zero.
    Checksum,
    /// A record inside does not fit the table or its own kind.
    Record,
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unsound::NotInFirmwareMemory => "lies outside the memory map's firmware memory",
            Unsound::Signature => "has another signature than expected",
            Unsound::Length => "is shorter than it says",
            Unsound::Checksum => "has a wrong checksum",
            Unsound::Record => "has a record of impossible length",
        })
    }
}

fn sums_to_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0u8, |sum, b| sum.wrapping_add(*b)) == 0
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// Where the table of tables lies, and how wide its entries are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root {
    /// Physical address of the XSDT, or of the RSDT.
    pub address: u64,
    /// Eight-byte entries (XSDT), otherwise four (RSDT).
    pub is_wide: bool,
}

/// Reads the root pointer; `bytes` are the [`RSDP_BYTES`] at its address.
pub fn root(bytes: &[u8]) -> Result<Root, Unsound> {
    let first = bytes.get(..20).ok_or(Unsound::Length)?;
    if !first.starts_with(b"RSD PTR ") {
        return Err(Unsound::Signature);
    }
    if !sums_to_zero(first) {
        return Err(Unsound::Checksum);
    }
    let revision = first.get(15).copied().unwrap_or(0);
    let narrow = Root { address: u32_at(first, 16).ok_or(Unsound::Length)?.into(), is_wide: false };
    if revision < 2 {
        return Ok(narrow);
    }
    let whole = bytes.get(..RSDP_BYTES).ok_or(Unsound::Length)?;
    if !sums_to_zero(whole) {
        return Err(Unsound::Checksum);
    }
    match u64_at(whole, 24) {
        Some(address) if address != 0 => Ok(Root { address, is_wide: true }),
        _ => Ok(narrow),
    }
}

/// The length a table says it has; `bytes` are at least its header.
pub fn stated_length(bytes: &[u8]) -> Result<usize, Unsound> {
    let header = bytes.get(..HEADER_BYTES).ok_or(Unsound::Length)?;
    let length = u32_at(header, 4).ok_or(Unsound::Length)? as usize;
    if length < HEADER_BYTES { Err(Unsound::Length) } else { Ok(length) }
}

/// The signature of a table.
pub fn signature(bytes: &[u8]) -> Option<[u8; 4]> {
    bytes.get(..4)?.try_into().ok()
}

/// Checks a whole table: length, checksum, and the records of an interrupt table (MADT).
pub fn check(bytes: &[u8]) -> Result<(), Unsound> {
    if stated_length(bytes)? != bytes.len() {
        return Err(Unsound::Length);
    }
    if !sums_to_zero(bytes) {
        return Err(Unsound::Checksum);
    }
    match signature(bytes) {
        Some(s) if s == *b"APIC" => check_madt_records(bytes),
        Some(s) if s == *b"MCFG" && bytes.len() < 44 => Err(Unsound::Length),
        Some(s) if s == *b"HPET" && bytes.len() < 56 => Err(Unsound::Length),
        // The fields up to the reset register, as every table since ACPI 2 has them.
        Some(s) if s == *b"FACP" && bytes.len() < 116 => Err(Unsound::Length),
        _ => Ok(()),
    }
}

/// Bytes a MADT record of a kind has at least (ACPI 6.5, 5.2.12.2 ff.); unknown kinds: its header.
fn madt_record_minimum(kind: u8) -> usize {
    match kind {
        0 | 8 => 8,
        1 | 5 | 9 | 10 => 12,
        2 => 10,
        3 => 8,
        4 => 6,
        6 | 7 | 0x10 => 16,
        0xb => 76,
        0xc | 0xd => 24,
        0xe => 16,
        0xf => 20,
        _ => 2,
    }
}

fn check_madt_records(bytes: &[u8]) -> Result<(), Unsound> {
    let mut rest = bytes.get(44..).ok_or(Unsound::Length)?;
    while let [kind, length, ..] = *rest {
        let minimum = madt_record_minimum(kind);
        let next = rest.get(usize::from(length)..).ok_or(Unsound::Record)?;
        if usize::from(length) < minimum {
            return Err(Unsound::Record);
        }
        rest = next;
    }
    if rest.is_empty() { Ok(()) } else { Err(Unsound::Record) }
}

/// The addresses a checked XSDT or RSDT lists.
pub fn entries(table: &[u8], is_wide: bool) -> impl Iterator<Item = u64> {
    let width = if is_wide { 8 } else { 4 };
    table.get(HEADER_BYTES..).unwrap_or(&[]).chunks_exact(width).filter_map(move |entry| {
        if is_wide { u64_at(entry, 0) } else { u32_at(entry, 0).map(u64::from) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    fn seal(bytes: &mut [u8], at: usize) {
        bytes[at] = 0;
        let sum = bytes.iter().fold(0u8, |s, b| s.wrapping_add(*b));
        bytes[at] = sum.wrapping_neg();
    }

    fn table(signature: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let mut bytes = signature.to_vec();
        bytes.extend(((HEADER_BYTES + body.len()) as u32).to_le_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend(body);
        seal(&mut bytes, 9);
        bytes
    }

    fn madt(records: &[&[u8]]) -> Vec<u8> {
        let mut body = std::vec![0u8; 8];
        body.extend(records.concat());
        table(b"APIC", &body)
    }

    fn rsdp(revision: u8, xsdt: u64) -> Vec<u8> {
        let mut bytes = b"RSD PTR \0BOCHS ".to_vec();
        bytes.push(revision);
        bytes.extend(0x1000u32.to_le_bytes());
        seal(&mut bytes, 8);
        bytes.extend(36u32.to_le_bytes());
        bytes.extend(xsdt.to_le_bytes());
        bytes.extend([0; 4]);
        seal(&mut bytes, 32);
        bytes
    }

    #[test]
    fn the_root_pointer_of_each_version() {
        assert_eq!(root(&rsdp(0, 5)), Ok(Root { address: 0x1000, is_wide: false }));
        assert_eq!(root(&rsdp(2, 0x2000)), Ok(Root { address: 0x2000, is_wide: true }));
        assert_eq!(root(&rsdp(2, 0)), Ok(Root { address: 0x1000, is_wide: false }));
        let mut bad = rsdp(2, 0x2000);
        bad[25] ^= 1;
        assert_eq!(root(&bad), Err(Unsound::Checksum));
        bad[0] = b'X';
        assert_eq!(root(&bad), Err(Unsound::Signature));
        assert_eq!(root(&rsdp(2, 0x2000)[..30]), Err(Unsound::Length));
    }

    #[test]
    fn tables_must_sum_to_zero_and_have_their_length() {
        let good = table(b"XSDT", &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(check(&good), Ok(()));
        assert_eq!(entries(&good, true).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(entries(&good, false).collect::<Vec<_>>(), [1, 0, 2, 0]);
        assert_eq!(check(&good[..good.len() - 1]), Err(Unsound::Length));
        let mut bad = good.clone();
        bad[40] ^= 1;
        assert_eq!(check(&bad), Err(Unsound::Checksum));
        bad[4] = 35;
        assert_eq!(check(&bad), Err(Unsound::Length));
    }

    #[test]
    fn interrupt_records_must_fit() {
        let cpu: &[u8] = &[0, 8, 0, 0, 1, 0, 0, 0];
        assert_eq!(check(&madt(&[cpu, cpu])), Ok(()));
        assert_eq!(check(&madt(&[])), Ok(()));
        // Of length zero it would be read forever.
        assert_eq!(check(&madt(&[cpu, &[0x7f, 0]])), Err(Unsound::Record));
        assert_eq!(check(&madt(&[&[0, 6, 0, 0, 1, 0]])), Err(Unsound::Record));
        assert_eq!(check(&madt(&[&[1, 200, 0, 0]])), Err(Unsound::Record));
        assert_eq!(check(&madt(&[cpu, &[9]])), Err(Unsound::Record));
    }

    #[test]
    fn short_tables_of_known_kinds_are_refused() {
        for (signature, least) in [(b"APIC", 44), (b"MCFG", 44), (b"HPET", 56), (b"FACP", 116)] {
            for length in HEADER_BYTES..least {
                let bytes = table(signature, &std::vec![0; length - HEADER_BYTES]);
                assert_eq!(check(&bytes), Err(Unsound::Length), "{signature:?} {length}");
            }
            let enough = table(signature, &std::vec![0; least - HEADER_BYTES]);
            assert_eq!(check(&enough), Ok(()));
        }
    }
}
