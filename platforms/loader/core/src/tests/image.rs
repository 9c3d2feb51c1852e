//! Executables: good ones, and every way to be refused.

use std::vec;
use std::vec::Vec;
use test_property::prelude::*;

use super::kernel::{INTERP, Part, R, RW, RX, elf, kernel};
use super::ram::Ram;
use crate::image::{HIGHER_HALF, IMAGE_LIMIT, Image, ImageError};

fn put(file: &mut [u8], at: usize, value: u64, bytes: usize) {
    file[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

#[test]
fn a_good_kernel() {
    let image = Image::parse(&kernel(&[])).unwrap();
    assert_eq!(image.start, HIGHER_HALF);
    assert_eq!(image.size(), 0x6000);
    assert_eq!(image.segments.len(), 3);
    assert!(!image.relocatable);
    assert_eq!(image.slide(Some(99)), Ok(0));
}

#[test]
fn loading_copies_and_clears() {
    let file = kernel(&[]);
    let image = Image::parse(&file).unwrap();
    let mut ram = Ram::new(1 << 20);
    ram.0.fill(0xee);
    ram.0[0x8_0000..0x8_0000 + file.len()].copy_from_slice(&file);
    image.load(&mut ram, 0x8_0000, 0x1_0000).unwrap();
    assert_eq!(ram.0[0x1_0000..0x1_0800], vec![0x90; 0x800]);
    assert_eq!(ram.0[0x1_0800..0x1_1000], vec![0; 0x800]);
    assert_eq!(ram.0[0x1_1000..0x1_1100], vec![7; 0x100]);
    assert!(ram.0[0x1_4000..0x1_6000].iter().all(|b| *b == 0));
    assert_eq!(ram.0[0x1_6000], 0xee);
}

/// One change to a good kernel each, and the refusal it must cause.
#[test]
fn every_refusal() {
    type Change = fn(&mut Vec<u8>);
    const FIRST: usize = 64;
    const SECOND: usize = 64 + 56;
    let cases: [(&str, Change, ImageError); 18] = [
        ("magic", |f| f[0] = 0, ImageError::NotElf),
        ("empty", |f| f.clear(), ImageError::NotElf),
        ("class", |f| f[4] = 1, ImageError::NotElf64),
        ("endian", |f| f[5] = 2, ImageError::NotElf),
        ("machine", |f| put(f, 18, 183, 2), ImageError::Machine(183)),
        ("type", |f| put(f, 16, 1, 2), ImageError::Type(1)),
        ("headers past end", |f| put(f, 32, 1 << 40, 8), ImageError::NotElf),
        ("header size", |f| put(f, 54, 32, 2), ImageError::NotElf),
        ("no headers", |f| put(f, 56, 0, 2), ImageError::NoSegments),
        (
            "only other headers",
            |f| (0..3).for_each(|i| put(f, FIRST + 56 * i, 6, 4)),
            ImageError::NoSegments,
        ),
        ("file larger", |f| put(f, FIRST + 40, 1, 8), ImageError::FileLarger(0)),
        (
            "past end",
            |f| {
                put(f, SECOND + 32, 1 << 20, 8);
                put(f, SECOND + 40, 1 << 20, 8)
            },
            ImageError::PastEnd(1),
        ),
        ("offset wraps", |f| put(f, SECOND + 8, u64::MAX, 8), ImageError::PastEnd(1)),
        ("address wraps", |f| put(f, SECOND + 16, u64::MAX - 0xfff, 8), ImageError::Wraps(1)),
        ("alignment", |f| put(f, SECOND + 48, 3000, 8), ImageError::Alignment(1)),
        ("huge alignment", |f| put(f, SECOND + 48, 1 << 40, 8), ImageError::Alignment(1)),
        ("interpreter", |f| put(f, SECOND, u64::from(INTERP), 4), ImageError::Interpreter),
        ("entry", |f| put(f, 24, HIGHER_HALF + 0x1000, 8), ImageError::Entry(HIGHER_HALF + 0x1000)),
    ];
    for (name, change, expected) in cases {
        let mut file = kernel(&[]);
        change(&mut file);
        assert_eq!(Image::parse(&file).unwrap_err(), expected, "{name}");
    }
}

#[test]
fn refusals_between_segments() {
    let code = || Part::load(RX, HIGHER_HALF, vec![0x90; 0x800]);
    let low = elf(2, 0x40_0000, &[Part::load(RX, 0x40_0000, vec![0x90; 16])]);
    assert_eq!(Image::parse(&low).unwrap_err(), ImageError::LowerHalf(0x40_0000));
    let mut tight = Part::load(R, HIGHER_HALF + 0x700, vec![1; 16]);
    tight.align = 16;
    let overlap = elf(2, HIGHER_HALF, &[code(), tight.clone()]);
    assert_eq!(Image::parse(&overlap).unwrap_err(), ImageError::Overlap(HIGHER_HALF + 0x700));
    tight.vaddr = HIGHER_HALF + 0x800;
    let shared = elf(2, HIGHER_HALF, &[code(), tight.clone()]);
    assert_eq!(Image::parse(&shared).unwrap_err(), ImageError::SharedPage(HIGHER_HALF));
    tight.flags = RX;
    assert!(Image::parse(&elf(2, HIGHER_HALF, &[code(), tight])).is_ok());
    let mut large = Part::load(RW, 0x1000, vec![1; 16]);
    large.memory_size = 3 << 30;
    let file = elf(3, 0, &[Part::load(RX, 0, vec![0x90; 16]), large]);
    assert!(matches!(Image::parse(&file).unwrap_err(), ImageError::TooLarge(_)));
    let many: Vec<Part> =
        (0..33).map(|i| Part::load(RX, HIGHER_HALF + i * 4096, vec![0x90; 16])).collect();
    assert_eq!(Image::parse(&elf(2, HIGHER_HALF, &many)).unwrap_err(), ImageError::TooManySegments);
    let dynamic =
        Part { kind: 2, flags: R, vaddr: 0x9000, bytes: vec![0; 16], memory_size: 16, align: 8 };
    let file = elf(3, 0, &[Part::load(RX, 0, vec![0x90; 16]), dynamic]);
    assert_eq!(Image::parse(&file).unwrap_err(), ImageError::Dynamic);
}

#[test]
fn every_refusal_has_a_sentence() {
    for error in [ImageError::NotElf, ImageError::Overlap(1), ImageError::Entry(2)] {
        let text = std::format!("{error}");
        assert!(text.starts_with("executable: ") && text.len() > 20, "{text}");
    }
}

proptest! {
    #[test]
    fn damaged_files_are_refused_or_consistent(changes in prop::collection::vec((0usize..0x3000, any::<u8>()), 1..8), cut in 0usize..0x3000) {
        let mut file = kernel(&[]);
        for (at, value) in changes {
            let length = file.len();
            file[at % length] = value;
        }
        let length = file.len();
        file.truncate(length - cut % (length / 2));
        if let Ok(image) = Image::parse(&file) {
            prop_assert!(image.relocatable || image.start >= HIGHER_HALF);
            prop_assert!(image.end <= IMAGE_LIMIT);
            for s in &image.segments {
                prop_assert!(s.offset + s.file_size <= file.len() as u64);
                prop_assert!(s.vaddr >= image.start && s.vaddr + s.memory_size <= image.end);
            }
        }
    }

    #[test]
    fn header_fields_set_to_anything(field in 0usize..29, value in any::<u64>()) {
        // Every 8-byte word of the file header and the three program headers.
        let mut file = kernel(&[]);
        put(&mut file, field * 8, value, 8);
        let _ = Image::parse(&file);
    }

    #[test]
    fn slides_stay_aligned_and_in_the_upper_2_gib(random in any::<u64>(), shift in 12u32..30, at in 0u64..1 << 20) {
        let align = 1u64 << shift;
        let mut part = Part::load(RX, at & !0xfff, vec![0x90; 64]);
        part.align = 4096;
        let mut second = Part::load(RW, (part.vaddr + 0x1000).next_multiple_of(align), vec![0; 16]);
        second.align = 4096;
        let file = elf(3, part.vaddr, &[part, second]);
        let mut image = Image::parse(&file).unwrap();
        image.alignment = align;
        for random in [None, Some(random)] {
            let slide = image.slide(random).unwrap();
            prop_assert_eq!(slide % align, 0);
            let base = image.start + slide;
            prop_assert!(base >= HIGHER_HALF);
            prop_assert!(base + image.size() <= IMAGE_LIMIT);
        }
    }
}
