//! The bundle reader and the calendar.

use std::vec;
use std::vec::Vec;
use test_property::prelude::*;

use crate::date::Civil;
use crate::ustar::{ArchiveError, Member, find};

fn member(name: &str, kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut header = vec![0u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(std::format!("{:011o}\0", bytes.len()).as_bytes());
    header[136..148].copy_from_slice(b"00000000000\0");
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
    header[148..156].copy_from_slice(std::format!("{sum:06o}\0 ").as_bytes());
    header.extend(bytes);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

fn archive() -> Vec<u8> {
    let mut bytes = member("./", b'5', &[]);
    bytes.extend(member("./limine.conf", b'0', b"timeout: 0\n"));
    bytes.extend(member("boot/kernel.elf", b'0', &[1; 1500]));
    bytes.extend(vec![0; 1024]);
    bytes
}

#[test]
fn files_are_found_by_path() {
    let bytes = archive();
    assert_eq!(find(&bytes, "/limine.conf"), Ok(Some(Member { offset: 1024, size: 11 })));
    assert_eq!(find(&bytes, "boot/kernel.elf").unwrap().unwrap().size, 1500);
    assert_eq!(find(&bytes, "/boot"), Ok(None));
    assert_eq!(find(&bytes, "/limine.con"), Ok(None));
}

#[test]
fn damage_is_refused() {
    assert_eq!(find(&[], "/x"), Err(ArchiveError::NotUstar(0)));
    assert_eq!(find(&[0; 2048], "/x"), Err(ArchiveError::NotUstar(0)));
    let mut bytes = archive();
    bytes[512] ^= 1;
    assert_eq!(find(&bytes, "/x"), Err(ArchiveError::Checksum(512)));
    let mut bytes = archive();
    bytes[512 + 257] = b'x';
    assert_eq!(find(&bytes, "/x"), Err(ArchiveError::NotUstar(512)));
    let bytes = archive();
    assert_eq!(find(&bytes[..2500], "/x"), Err(ArchiveError::Truncated(1536)));
}

#[test]
fn dates() {
    let civil = |year, month, day| Civil { year, month, day, hour: 0, minute: 0, second: 0 };
    assert_eq!(civil(1970, 1, 1).unix_seconds(), Some(0));
    assert_eq!(civil(2024, 1, 1).unix_seconds(), Some(19_723 * 86_400));
    assert_eq!(civil(2000, 3, 1).unix_seconds(), Some(951_868_800));
    assert_eq!(civil(2024, 13, 1).unix_seconds(), None);
    assert_eq!(civil(2024, 0, 1).unix_seconds(), None);
}

proptest! {
    #[test]
    fn damaged_archives_do_not_panic(at in 0usize..4000, value in any::<u8>(), cut in 0usize..4096) {
        let mut bytes = archive();
        let length = bytes.len();
        bytes[at % length] = value;
        bytes.truncate(length - cut % length);
        if let Ok(Some(member)) = find(&bytes, "/boot/kernel.elf") {
            prop_assert!(member.offset + member.size <= bytes.len());
        }
    }

    #[test]
    fn days_follow_each_other(day in 0i64..40_000) {
        // The slow way: count through the calendar.
        let leap = |y: i64| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
        let (mut left, mut year) = (day, 1970);
        while left >= if leap(year) { 366 } else { 365 } {
            left -= if leap(year) { 366 } else { 365 };
            year += 1;
        }
        let lengths = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        while left >= lengths[month] {
            left -= lengths[month];
            month += 1;
        }
        let civil = Civil { year, month: month as u8 + 1, day: left as u8 + 1, hour: 1, minute: 2, second: 3 };
        prop_assert_eq!(civil.unix_seconds(), Some(day * 86_400 + 3723));
    }
}
