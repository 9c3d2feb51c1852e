//! `_S5`, power off and reset from tables as firmware writes them, and as it should not.

use core_firmware::HEADER_BYTES;
use core_firmware::power::{
    BadS5, NoPowerOff, PowerOff, Reset, SleepTypes, dsdt_address, sleep_types,
};

fn table(code: &[u8]) -> Vec<u8> {
    [vec![0; HEADER_BYTES], code.to_vec()].concat()
}

fn found(code: &[u8]) -> Result<(u8, u8), BadS5> {
    sleep_types(&table(code)).map(|SleepTypes { first, second }| (first, second))
}

/// The emulator's: a package of four in the root scope.
const EMULATOR: &[u8] =
    &[0x10, 0x0f, b'\\', 0, 0x08, b'_', b'S', b'5', b'_', 0x12, 0x06, 0x04, 0, 0, 0, 0];

#[test]
fn packages_as_firmware_writes_them() {
    assert_eq!(found(EMULATOR), Ok((0, 0)));
    // Five and five, with prefixes, after other names, from the root.
    assert_eq!(
        found(b"\x08_S3_\x12\x04\x02\x01\x01\x08\\_S5_\x12\x08\x04\x0a\x05\x0a\x05\x00\x00"),
        Ok((5, 5))
    );
    // Only two of the four it says.
    assert_eq!(found(b"\x08_S5_\x12\x05\x04\x0a\x07\x01"), Ok((7, 1)));
    // Every width of number, and a length in two bytes.
    assert_eq!(
        found(b"\x08_S5_\x12\x40\x01\x03\x0b\x06\x00\x0c\x05\x00\x00\x00\x0e\x01\x00\x00\x00\x00\x00\x00\x00"),
        Err(BadS5::Length)
    );
    assert_eq!(
        found(b"\x08_S5_\x12\x44\x01\x02\x0b\x06\x00\x0e\x03\x00\x00\x00\x00\x00\x00\x00\x0c\0\0\0\0\0"),
        Err(BadS5::Count)
    );
    assert_eq!(
        found(b"\x08_S5_\x12\x4f\x00\x02\x0b\x06\x00\x0e\x03\x00\x00\x00\x00\x00\x00\x00"),
        Ok((6, 3))
    );
}

#[test]
fn what_is_no_plain_package_of_numbers_is_refused() {
    for (what, code, expected) in [
        ("nothing", &b""[..], BadS5::Missing),
        ("another name", b"\x08_S4_\x12\x04\x02\x01\x01", BadS5::Missing),
        ("a mention that is no declaration", b"\x70_S5_\x12\x04\x02\x01\x01", BadS5::Missing),
        ("a method", b"\x14\x0b_S5_\x00\xa4\x12\x04\x02\x01\x01", BadS5::Missing),
        ("a number", b"\x08_S5_\x0a\x05", BadS5::NotAPackage),
        ("a package of variable length", b"\x08_S5_\x13\x04\x02\x01\x01", BadS5::NotAPackage),
        ("the end", b"\x08_S5_", BadS5::NotAPackage),
        ("no length", b"\x08_S5_\x12", BadS5::Length),
        ("a length of nothing", b"\x08_S5_\x12\x00", BadS5::Length),
        ("a length of itself", b"\x08_S5_\x12\x01", BadS5::Length),
        ("a length beyond the table", b"\x08_S5_\x12\x3f\x02\x01\x01", BadS5::Length),
        ("a length that is cut off", b"\x08_S5_\x12\xc0\x00", BadS5::Length),
        ("a number that is cut off", b"\x08_S5_\x12\x04\x02\x01\x0c", BadS5::Length),
        ("no elements", b"\x08_S5_\x12\x02\x02", BadS5::Count),
        ("one element", b"\x08_S5_\x12\x03\x01\x05", BadS5::NotANumber),
        ("one number", b"\x08_S5_\x12\x03\x02\x01", BadS5::Count),
        ("more than it says", b"\x08_S5_\x12\x05\x02\x01\x01\x01", BadS5::Count),
        ("a name in it", b"\x08_S5_\x12\x07\x02ABCD\x01", BadS5::NotANumber),
        ("a string in it", b"\x08_S5_\x12\x06\x02\x0dA\x00\x01", BadS5::NotANumber),
        ("eight", b"\x08_S5_\x12\x05\x02\x0a\x08\x01", BadS5::TooLarge),
        ("ones", b"\x08_S5_\x12\x04\x02\x01\xff", BadS5::TooLarge),
    ] {
        let refused = found(code).expect_err(what);
        assert_eq!(refused, expected, "{what}");
        assert!(!refused.to_string().is_empty());
    }
    // The first declaration decides, though a good one follows.
    assert_eq!(found(b"\x08_S5_\x0a\x05\x08_S5_\x12\x04\x02\x01\x01"), Err(BadS5::NotAPackage));
    assert_eq!(sleep_types(&[]), Err(BadS5::Missing));
}

/// A FADT of so many bytes with numbers put into it.
fn fadt(bytes: usize, fields: &[(usize, u64, usize)]) -> Vec<u8> {
    let mut table = vec![0; bytes];
    for (at, value, width) in fields {
        table[*at..at + width].copy_from_slice(&value.to_le_bytes()[..*width]);
    }
    table
}

const TYPES: SleepTypes = SleepTypes { first: 5, second: 4 };

#[test]
fn the_control_registers_of_each_version() {
    let old = fadt(116, &[(40, 0x1000, 4), (64, 0x604, 4)]);
    let off = PowerOff { pm1a: 0x604, pm1b: None, types: TYPES, enable: None };
    assert_eq!(PowerOff::of(&old, Ok(TYPES)), Ok(off));
    assert_eq!((dsdt_address(&old), Reset::of(&old)), (Some(0x1000), None));
    // Two registers, the wide ones before the narrow, and the firmware's port.
    let new = fadt(
        244,
        &[(40, 0x1000, 4), (48, 0xb2, 4), (52, 0xa0, 1), (64, 0x604, 4), (68, 0x608, 4)]
            .into_iter()
            .chain([
                (140, 0x1_0000_2000, 8),
                (172, 1, 1),
                (176, 0x704, 8),
                (184, 1, 1),
                (188, 0x708, 8),
            ])
            .collect::<Vec<_>>(),
    );
    let off = PowerOff { pm1a: 0x704, pm1b: Some(0x708), types: TYPES, enable: Some((0xb2, 0xa0)) };
    assert_eq!(PowerOff::of(&new, Ok(TYPES)), Ok(off));
    assert_eq!(dsdt_address(&new), Some(0x1_0000_2000));
    // A wide one in memory is not driven: the narrow one is.
    let memory = fadt(244, &[(64, 0x604, 4), (172, 0, 1), (176, 0xfed0_0000, 8)]);
    assert_eq!(PowerOff::of(&memory, Ok(TYPES)).map(|off| off.pm1a), Ok(0x604));
}

#[test]
fn a_machine_that_cannot_be_switched_off_says_why() {
    let none = fadt(116, &[]);
    assert_eq!(PowerOff::of(&none, Ok(TYPES)), Err(NoPowerOff::NoControl));
    assert_eq!(dsdt_address(&none), None);
    let reduced = fadt(244, &[(64, 0x604, 4), (112, 1 << 20, 4)]);
    assert_eq!(PowerOff::of(&reduced, Ok(TYPES)), Err(NoPowerOff::HardwareReduced));
    let good = fadt(116, &[(64, 0x604, 4)]);
    let missing = PowerOff::of(&good, Err(BadS5::Missing));
    assert_eq!(missing, Err(NoPowerOff::S5(BadS5::Missing)));
    let beyond_ports = fadt(116, &[(64, 0x1_0604, 4)]);
    assert_eq!(PowerOff::of(&beyond_ports, Ok(TYPES)), Err(NoPowerOff::NoControl));
    for why in [NoPowerOff::NoTable, NoPowerOff::HardwareReduced, NoPowerOff::S5(BadS5::Count)] {
        assert!(why.to_string().len() > 10);
    }
}

#[test]
fn the_reset_register() {
    let fields = [(112, 1 << 10, 4), (116, 1, 1), (120, 0xcf9, 8), (128, 0xf, 1)];
    assert_eq!(Reset::of(&fadt(129, &fields)), Some(Reset { port: 0xcf9, value: 0xf }));
    // Too short for the value, not said to be there, in memory.
    assert_eq!(Reset::of(&fadt(129, &fields)[..128]), None);
    assert_eq!(Reset::of(&fadt(129, &fields[1..])), None);
    assert_eq!(Reset::of(&fadt(129, &[fields[0], (116, 0, 1), fields[2], fields[3]])), None);
}

#[test]
fn what_is_written_keeps_the_other_bits() {
    assert_eq!(PowerOff::control(0, 5), 5 << 10 | 1 << 13);
    assert_eq!(PowerOff::control(0xffff, 0), 0xffff & !(7 << 10));
    assert_eq!(PowerOff::control(1, 7), 1 | 7 << 10 | 1 << 13);
}
