//! Firmware tables: extents, MADT, SMBIOS.

use std::vec;
use std::vec::Vec;
use test_property::prelude::*;

use super::ram::Ram;
use crate::acpi::{self, Extents, Madt, NmiLine, Processor};
use crate::memmap::Kind;
use crate::smbios::{self, Smbios};

fn put(ram: &mut Ram, at: usize, bytes: &[u8]) {
    ram.0[at..at + bytes.len()].copy_from_slice(bytes);
}

fn table(signature: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = signature.to_vec();
    bytes.extend((36 + body.len() as u32).to_le_bytes());
    bytes.resize(36, 0);
    bytes.extend(body);
    bytes
}

fn madt_body() -> Vec<u8> {
    let mut body = vec![0, 0, 0xe0, 0xfe, 1, 0, 0, 0];
    body.extend([0, 8, 0, 0, 1, 0, 0, 0]);
    body.extend([0, 8, 1, 2, 1, 0, 0, 0]);
    body.extend([0, 8, 2, 4, 0, 0, 0, 0]);
    body.extend([1, 12, 0, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0]);
    body.extend([4, 6, 0xff, 0, 0, 1]);
    body.extend([9, 16, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0]);
    body.extend([9, 16, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    body
}

fn machine() -> Ram {
    let mut ram = Ram::new(1 << 20);
    let mut rsdp = b"RSD PTR ".to_vec();
    rsdp.resize(36, 0);
    rsdp[15] = 2;
    rsdp[24..32].copy_from_slice(&0x2000u64.to_le_bytes());
    let sum = rsdp[..20].iter().fold(0u8, |s, b| s.wrapping_add(*b));
    rsdp[8] = 0u8.wrapping_sub(sum);
    put(&mut ram, 0xe_0010, &rsdp);
    let pointers: Vec<u8> =
        [0x3000u64, 0x5ff0].iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
    put(&mut ram, 0x2000, &table(b"XSDT", &pointers));
    let mut facp = vec![0u8; 240];
    facp[0..4].copy_from_slice(&0x8000u32.to_le_bytes());
    facp[4..8].copy_from_slice(&0x9000u32.to_le_bytes());
    put(&mut ram, 0x3000, &table(b"FACP", &facp));
    put(&mut ram, 0x5ff0, &table(b"APIC", &madt_body()));
    put(&mut ram, 0x8000, &table(b"FACS", &[0; 28]));
    put(&mut ram, 0x9000, &table(b"DSDT", &[0; 5000]));
    ram
}

#[test]
fn the_root_pointer_is_found() {
    assert_eq!(acpi::legacy_search(&machine()), Some(0xe_0010));
    assert_eq!(acpi::legacy_search(&Ram::new(1 << 20)), None);
}

#[test]
fn every_table_is_covered() {
    let mut extents = Extents::new();
    acpi::extents(&machine(), 0xe_0010, &mut extents);
    for address in [0xe_0010, 0x2000, 0x3000, 0x5ff0, 0x6010, 0x8000, 0x9000, 0xa300] {
        let covered = extents.iter().any(|e| e.base <= address && address < e.end());
        assert!(covered, "{address:#x} in {extents:x?}");
    }
    assert!(extents.iter().all(|e| (e.base | e.length) % 4096 == 0));
    assert!(extents.iter().all(|e| e.kind == Kind::ReservedMapped));
    assert!(!extents.iter().any(|e| e.base <= 0x4000 && 0x4000 < e.end()));
}

#[test]
fn the_madt() {
    let madt = Madt::read(&machine(), 0xe_0010).unwrap();
    assert_eq!(madt.local_apic, 0xfee0_0000);
    let expected = [(0, 0), (1, 2), (7, 0x100)].map(|(uid, apic_id)| Processor { uid, apic_id });
    assert_eq!(madt.processors[..], expected);
    assert_eq!(madt.io_apics[..], [0xfec0_0000]);
    assert_eq!(madt.nmi_lines[..], [NmiLine { uid: None, pin: 1, flags: 0 }]);
    assert!(!madt.overflow);
}

#[test]
fn too_many_processors_are_noticed() {
    let mut body = vec![0; 8];
    for id in 0..1025u32 {
        body.extend([9, 16, 0, 0]);
        body.extend(id.to_le_bytes());
        body.extend(1u32.to_le_bytes());
        body.extend(id.to_le_bytes());
    }
    assert!(Madt::parse(&table(b"APIC", &body)).overflow);
}

#[test]
fn smbios_entry_points() {
    let mut ram = Ram::new(1 << 20);
    let mut old = b"_SM_".to_vec();
    old.resize(0x1f, 0);
    old[5] = 0x1f;
    old[0x16..0x18].copy_from_slice(&300u16.to_le_bytes());
    old[0x18..0x1c].copy_from_slice(&0x7_0ff0u32.to_le_bytes());
    old[4] = 0u8.wrapping_sub(old.iter().fold(0u8, |s, b| s.wrapping_add(*b)));
    put(&mut ram, 0xf_5000, &old);
    let mut new = b"_SM3_".to_vec();
    new.resize(0x18, 0);
    new[6] = 0x18;
    new[0x0c..0x10].copy_from_slice(&100u32.to_le_bytes());
    new[0x10..0x18].copy_from_slice(&0x7_5000u64.to_le_bytes());
    new[5] = 0u8.wrapping_sub(new.iter().fold(0u8, |s, b| s.wrapping_add(*b)));
    put(&mut ram, 0xf_6000, &new);
    let found = smbios::legacy_search(&ram);
    assert_eq!(found, Smbios { entry32: Some(0xf_5000), entry64: Some(0xf_6000) });
    let mut extents = Extents::new();
    smbios::extents(&ram, found, &mut extents);
    for address in [0xf_5000, 0xf_6000, 0x7_0ff0, 0x7_1100, 0x7_5000] {
        assert!(extents.iter().any(|e| e.base <= address && address < e.end()), "{address:#x}");
    }
    ram.0[0xf_5010] ^= 1;
    assert_eq!(smbios::legacy_search(&ram).entry32, None);
}

proptest! {
    #[test]
    fn any_tables_do_not_panic(changes in prop::collection::vec((0usize..0xb000, any::<u8>()), 1..30)) {
        let mut ram = machine();
        for (at, value) in changes {
            ram.0[at] = value;
        }
        let mut extents = Extents::new();
        acpi::extents(&ram, 0xe_0010, &mut extents);
        let _ = Madt::read(&ram, 0xe_0010);
    }
}
