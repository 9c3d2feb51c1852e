//! Relocations of position-independent images.

use std::vec;
use std::vec::Vec;
use test_property::prelude::*;

use super::kernel::{DYNAMIC, Part, RW, RX, elf, words};
use crate::image::Image;
use crate::relocate::{RelocationError, relocate};

const TABLE: u64 = 0x1000;
const SYMBOLS: u64 = 0x1100;
const RELR: u64 = 0x1200;
const TARGET: u64 = 0x1400;
const DYN: u64 = 0x1800;

fn rela(target: u64, symbol: u64, kind: u64, addend: u64) -> [u64; 3] {
    [target, symbol << 32 | kind, addend]
}

/// An image with these relocations; symbol 1 is defined at 0x30, 2 absolute, 3 missing, 4 weak.
fn image(relas: &[[u64; 3]], relr: &[u64], extra: &[[u64; 2]]) -> (Image, Vec<u8>) {
    let mut data = vec![0u8; 0x1000];
    let mut put = |at: u64, bytes: Vec<u8>| {
        let at = (at - TABLE) as usize;
        data[at..at + bytes.len()].copy_from_slice(&bytes);
    };
    put(TABLE, relas.iter().flat_map(|r| words(r)).collect());
    let symbol =
        |info: u64, section: u64, value: u64| words(&[info << 32 | section << 48, value, 0]);
    let global = 1 << 4;
    let weak = 2 << 4;
    put(
        SYMBOLS,
        [
            symbol(0, 0, 0),
            symbol(global, 1, 0x30),
            symbol(global, 0xfff1, 0x77),
            symbol(global, 0, 0),
            symbol(weak, 0, 0),
        ]
        .concat(),
    );
    put(RELR, words(relr));
    put(TARGET, words(&[0x100, 0x200, 0x300, 0x400]));
    let mut dynamic = vec![
        [7, TABLE],
        [8, relas.len() as u64 * 24],
        [9, 24],
        [6, SYMBOLS],
        [36, RELR],
        [35, relr.len() as u64 * 8],
    ];
    dynamic.extend(extra);
    dynamic.push([0, 0]);
    let dynamic: Vec<u8> = dynamic.iter().flat_map(|d| words(d)).collect();
    let size = dynamic.len() as u64;
    put(DYN, dynamic);
    let parts = [
        Part::load(RX, 0, vec![0x90; 64]),
        Part::load(RW, TABLE, data.clone()),
        Part {
            kind: DYNAMIC,
            flags: RW,
            vaddr: DYN,
            bytes: vec![0; 16],
            memory_size: size,
            align: 8,
        },
    ];
    let image = Image::parse(&elf(3, 0, &parts)).unwrap();
    let mut bytes = vec![0x90; 0x1000];
    bytes.extend(data);
    (image, bytes)
}

fn word(bytes: &[u8], at: u64) -> u64 {
    u64::from_le_bytes(bytes[at as usize..at as usize + 8].try_into().unwrap())
}

const SLIDE: u64 = 0xffff_ffff_8000_0000;

#[test]
fn every_served_type() {
    let relas = [
        rela(TARGET, 0, 8, 0x10),
        rela(TARGET + 8, 1, 1, 4),
        rela(TARGET + 16, 1, 6, 99),
        rela(TARGET + 24, 4, 7, 0),
        rela(TARGET + 32, 2, 1, 1),
        rela(TARGET, 0, 0, 5),
    ];
    let (image, mut bytes) = image(&relas, &[], &[]);
    relocate(&mut bytes, &image, SLIDE).unwrap();
    assert_eq!(word(&bytes, TARGET), SLIDE + 0x10);
    assert_eq!(word(&bytes, TARGET + 8), SLIDE + 0x34);
    assert_eq!(word(&bytes, TARGET + 16), SLIDE + 0x30);
    assert_eq!(word(&bytes, TARGET + 24), 0);
    assert_eq!(word(&bytes, TARGET + 32), 0x78);
}

#[test]
fn packed_relocations() {
    // One address, then a bitmap for the words 2 and 3 after it.
    let (image, mut bytes) = image(&[], &[TARGET, 0b110 << 1 | 1], &[]);
    relocate(&mut bytes, &image, SLIDE).unwrap();
    let found = [0, 8, 16, 24].map(|at| word(&bytes, TARGET + at));
    assert_eq!(found, [SLIDE + 0x100, 0x200, SLIDE + 0x300, SLIDE + 0x400]);
}

#[test]
fn refusals() {
    let one = |relas: &[[u64; 3]], relr: &[u64], extra: &[[u64; 2]]| {
        let (image, mut bytes) = image(relas, relr, extra);
        relocate(&mut bytes, &image, SLIDE).unwrap_err()
    };
    assert_eq!(one(&[rela(TARGET, 0, 2, 0)], &[], &[]), RelocationError::Type(2));
    assert_eq!(one(&[rela(1 << 40, 0, 8, 0)], &[], &[]), RelocationError::Target(1 << 40));
    assert_eq!(one(&[rela(TARGET, 3, 1, 0)], &[], &[]), RelocationError::Symbol(3));
    assert_eq!(one(&[rela(TARGET, 1 << 20, 1, 0)], &[], &[]), RelocationError::Tables);
    assert_eq!(one(&[], &[1 << 40], &[]), RelocationError::Target(1 << 40));
    assert_eq!(one(&[], &[], &[[17, TABLE]]), RelocationError::RelTable);
    assert_eq!(one(&[], &[], &[[8, 24], [9, 16]]), RelocationError::Tables);
    assert_eq!(one(&[], &[], &[[8, 25]]), RelocationError::Tables);
    assert_eq!(one(&[], &[], &[[8, 24], [7, u64::MAX]]), RelocationError::Tables);
}

proptest! {
    #[test]
    fn any_tables_do_not_panic(at in 0usize..0x1000 / 8, value in any::<u64>(), at2 in 0usize..0x1000 / 8, value2 in 0u64..0x3000) {
        let (image, mut bytes) = image(&[rela(TARGET, 0, 8, 0), rela(TARGET + 8, 1, 1, 4)], &[TARGET, 3], &[]);
        for (at, value) in [(at, value), (at2, value2)] {
            bytes[0x1000 + at * 8..][..8].copy_from_slice(&value.to_le_bytes());
        }
        let _ = relocate(&mut bytes, &image, SLIDE);
    }
}
