//! Small ELF files with requests, made to order.

use std::vec;
use std::vec::Vec;

use crate::image::HIGHER_HALF;
use crate::protocol::{BASE_TAG, END_MARKER, Feature, REQUEST, START_MARKER};

/// A segment to be.
#[derive(Clone)]
pub struct Part {
    pub kind: u32,
    pub flags: u32,
    pub vaddr: u64,
    pub bytes: Vec<u8>,
    pub memory_size: u64,
    pub align: u64,
}

const LOAD: u32 = 1;
pub const DYNAMIC: u32 = 2;
pub const INTERP: u32 = 3;
pub const RX: u32 = 5;
pub const R: u32 = 4;
pub const RW: u32 = 6;

impl Part {
    pub fn load(flags: u32, vaddr: u64, bytes: Vec<u8>) -> Self {
        let memory_size = bytes.len() as u64;
        Self { kind: LOAD, flags, vaddr, bytes, memory_size, align: 4096 }
    }
}

/// Writes an ELF64 file.
pub fn elf(kind: u16, entry: u64, parts: &[Part]) -> Vec<u8> {
    let mut file = vec![0u8; 64 + 56 * parts.len()];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let put16 = |file: &mut Vec<u8>, at: usize, v: u16| {
        file[at..at + 2].copy_from_slice(&v.to_le_bytes());
    };
    let put32 = |file: &mut Vec<u8>, at: usize, v: u32| {
        file[at..at + 4].copy_from_slice(&v.to_le_bytes());
    };
    let put64 = |file: &mut Vec<u8>, at: usize, v: u64| {
        file[at..at + 8].copy_from_slice(&v.to_le_bytes());
    };
    put16(&mut file, 16, kind);
    put16(&mut file, 18, 62);
    put32(&mut file, 20, 1);
    put64(&mut file, 24, entry);
    put64(&mut file, 32, 64);
    put16(&mut file, 52, 64);
    put16(&mut file, 54, 56);
    put16(&mut file, 56, parts.len() as u16);
    put16(&mut file, 58, 64);
    for (index, part) in parts.iter().enumerate() {
        let modulus = part.align.max(1).min(1 << 21) as usize;
        while file.len() % modulus != part.vaddr as usize % modulus {
            file.push(0);
        }
        let offset = file.len() as u64;
        file.extend(&part.bytes);
        let at = 64 + index * 56;
        put32(&mut file, at, part.kind);
        put32(&mut file, at + 4, part.flags);
        put64(&mut file, at + 8, offset);
        put64(&mut file, at + 16, part.vaddr);
        put64(&mut file, at + 24, part.vaddr);
        put64(&mut file, at + 32, part.bytes.len() as u64);
        put64(&mut file, at + 40, part.memory_size);
        put64(&mut file, at + 48, part.align);
    }
    file
}

pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub const UNTOUCHED: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// A request's bytes.
pub fn request(feature: Feature, revision: u64, members: &[u64]) -> Vec<u8> {
    let [a, b] = feature.id();
    let mut bytes = words(&[REQUEST[0], REQUEST[1], a, b, revision, UNTOUCHED]);
    bytes.extend(words(members));
    bytes
}

/// The data segment with markers, tag and requests; starts at `HIGHER_HALF + DATA`.
pub fn request_area(base_revision: u64, requests: &[Vec<u8>]) -> Vec<u8> {
    let mut data = words(&START_MARKER);
    data.extend(words(&[BASE_TAG[0], BASE_TAG[1], base_revision]));
    for request in requests {
        data.extend(request);
    }
    data.extend(words(&END_MARKER));
    data
}

/// Offset of the data segment in the image.
pub const DATA: u64 = 0x2000;

/// A kernel with code, constants and data.
pub fn kernel(requests: &[Vec<u8>]) -> Vec<u8> {
    kernel_with(6, requests)
}

pub fn kernel_with(base_revision: u64, requests: &[Vec<u8>]) -> Vec<u8> {
    let mut data = Part::load(RW, HIGHER_HALF + DATA, request_area(base_revision, requests));
    data.memory_size += 0x3000;
    let parts = [
        Part::load(RX, HIGHER_HALF, vec![0x90; 0x800]),
        Part::load(R, HIGHER_HALF + 0x1000, vec![7; 0x100]),
        data,
    ];
    elf(2, HIGHER_HALF + 0x10, &parts)
}
