//! The parser against a slow and obvious one: the same files are accepted, and memory filled by
//! either holds the same.
//!
//! The model reads fields by their offsets in the standard, calculates in 128 bits and makes a
//! map from page to contents.

use core_elf::{Image, Overflow, limits};
use core_paging::Access;
use elf_testing::{
    Entry, File, NOTES_AT, Note, PF_R, PF_W, PF_X, PT_GNU_STACK, PT_LOAD, PT_NOTE, PT_TLS,
};
use std::collections::{BTreeMap, BTreeSet};
use test_property::prelude::*;

/// Contents (empty: all zero) and permissions by page number; the entry; size of the thread-local data;
/// page numbers of guards with the number of stacks declared with each and their pages.
#[derive(Debug, PartialEq)]
struct Memory {
    pages: BTreeMap<u64, (Vec<u8>, u32)>,
    entry: u64,
    tls: Option<(Vec<u8>, u64, u64)>,
    guards: BTreeMap<u64, (u64, u64)>,
}

/// The model: `None` for everything that is not sound.
fn model(file: &[u8]) -> Option<Memory> {
    let number = |at: usize, bytes: usize| -> Option<u128> {
        let slice = file.get(at..at + bytes)?;
        Some(slice.iter().rev().fold(0, |sum, byte| sum << 8 | u128::from(*byte)))
    };
    let expected = [
        (0, 4, 0x464c_457f),
        (4, 1, 2),
        (5, 1, 1),
        (6, 1, 1),
        (7, 2, 0),
        (16, 2, 2),
        (18, 2, 62),
        (20, 4, 1),
        (48, 4, 0),
        (52, 2, 64),
        (54, 2, 56),
    ];
    for (at, bytes, value) in expected {
        (number(at, bytes)? == value).then_some(())?;
    }
    number(56, 8)?; // The header's last eight bytes are there.
    let (entry, table, count) = (number(24, 8)?, number(32, 8)?, number(56, 2)?);
    (count >= 1 && count <= limits::HEADERS as u128).then_some(())?;
    (table + count * 56 <= file.len() as u128).then_some(())?;
    let mut memory =
        Memory { pages: BTreeMap::new(), entry: entry as u64, tls: None, guards: BTreeMap::new() };
    let (mut loads, mut before, mut entry_is_code) = (0, 0, false);
    let mut segment_of_page = BTreeMap::new();
    let mut declared = Vec::new();
    let mut notes = 0;
    for index in 0..count {
        let at = (table + index * 56) as usize;
        let field = |offset: usize| number(at + offset, 8);
        let (kind, flags) = (number(at, 4)? as u32, number(at + 4, 4)? as u32);
        let (offset, vaddr) = (field(8)?, field(16)?);
        let (filesz, memsz, align) = (field(32)?, field(40)?, field(48)?.max(1));
        match kind {
            2 | 3 => return None,
            PT_GNU_STACK if flags & PF_X != 0 => return None,
            PT_NOTE => {
                (offset + filesz <= file.len() as u128).then_some(())?;
                let align = field(48)?;
                (align == 4 || align == 8).then_some(())?;
                let bytes = &file[offset as usize..(offset + filesz) as usize];
                notes += read_notes(bytes, align as usize, &mut declared)?;
                continue;
            }
            PT_LOAD | PT_TLS => {}
            _ => continue,
        }
        let sound = memsz > 0 && filesz <= memsz && offset + filesz <= file.len() as u128;
        (sound && align.count_ones() == 1).then_some(())?;
        let bytes = &file[offset as usize..(offset + filesz) as usize];
        if kind == PT_TLS {
            let fits = memsz <= u128::from(limits::TLS_BYTES) && align <= 4096;
            (fits && memory.tls.is_none()).then_some(())?;
            memory.tls = Some((bytes.to_vec(), memsz as u64, align as u64));
            continue;
        }
        let modulus = align.max(4096);
        (vaddr % modulus == offset % modulus).then_some(())?;
        [PF_R, PF_R | PF_W, PF_R | PF_X].contains(&flags).then_some(())?;
        (vaddr >= 0x1_0000 && vaddr + memsz <= 0x7f00_0000_0000).then_some(())?;
        (vaddr >= before).then_some(())?;
        loads += 1;
        before = vaddr;
        let last = (vaddr + memsz - 1) / 4096;
        ((last - vaddr / 4096) < (limits::IMAGE_BYTES / 4096).into()).then_some(())?;
        for page in vaddr / 4096..=last {
            let fresh = memory.pages.insert(page as u64, (vec![], flags)).is_none();
            fresh.then_some(())?;
            segment_of_page.insert(page, index);
        }
        for (i, byte) in bytes.iter().enumerate() {
            let address = vaddr as u64 + i as u64;
            let page = memory.pages.get_mut(&(address / 4096))?;
            page.0.resize(4096, 0);
            page.0[(address % 4096) as usize] = *byte;
        }
        entry_is_code |= flags & PF_X != 0 && entry >= vaddr && entry < vaddr + filesz;
    }
    let small = memory.pages.len() as u64 <= limits::IMAGE_BYTES / 4096;
    (loads >= 1 && loads <= limits::SEGMENTS && small && entry_is_code).then_some(())?;
    (notes <= limits::NOTES && declared.len() <= limits::GUARDS).then_some(())?;
    let mut taken = BTreeSet::new();
    for [start, stride, count] in declared {
        (start % 4096 == 0 && stride % 4096 == 0 && stride >= 8192 && count > 0).then_some(())?;
        let (first, pages) = (start / 4096, stride / 4096);
        (pages * count <= u128::from(limits::IMAGE_BYTES)).then_some(())?;
        let segment = segment_of_page.get(&first)?;
        for page in first..first + pages * count {
            // Zeros without a byte of the file, writable, of one segment, and nobody else's.
            let (bytes, flags) = memory.pages.get(&(page as u64))?;
            (bytes.is_empty() && *flags == PF_R | PF_W).then_some(())?;
            (segment_of_page.get(&page) == Some(segment) && taken.insert(page)).then_some(())?;
            if (page - first) % pages == 0 {
                memory.guards.insert(page as u64, (count as u64, pages as u64 - 1));
            }
        }
    }
    memory.pages.retain(|page, _| !memory.guards.contains_key(page));
    Some(memory)
}

/// Reads notes word by word; what those of this system declare, and how many there are.
fn read_notes(bytes: &[u8], align: usize, declared: &mut Vec<[u128; 3]>) -> Option<usize> {
    let number = |at: usize, size: usize| -> Option<u128> {
        let slice = bytes.get(at..at + size)?;
        Some(slice.iter().rev().fold(0, |sum, byte| sum << 8 | u128::from(*byte)))
    };
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        let (name, length) = (number(at, 4)? as usize, number(at + 4, 4)? as usize);
        let kind = number(at + 8, 4)?;
        let name_at = at + 12;
        let mut descriptor = name_at + name;
        let is_ours = bytes.get(name_at..descriptor)? == b"capOS\0";
        while descriptor % align != 0 {
            descriptor += 1;
        }
        at = descriptor + length;
        (length == 0 || at <= bytes.len()).then_some(())?;
        while at % align != 0 {
            at += 1;
        }
        count += 1;
        if is_ours {
            (kind == 1 && length == 24).then_some(())?;
            let field = |i: usize| number(descriptor + i * 8, 8);
            declared.push([field(0)?, field(1)?, field(2)?]);
        }
    }
    Some(count)
}

/// Memory as the parser under test would have it filled.
fn loaded(file: &[u8]) -> Option<Memory> {
    let image = Image::parse(file).ok()?;
    let mut pages = BTreeMap::new();
    for segment in image.parts() {
        assert_eq!(segment.start % 4096, 0);
        assert!(segment.pages > 0 && segment.end() <= limits::END_VADDR);
        let flags = match segment.access {
            Access::Read => PF_R,
            Access::Write => PF_R | PF_W,
            Access::Execute => PF_R | PF_X,
        };
        for page in 0..segment.pages {
            let (zeros, bytes) = segment.page(page);
            let mut contents = vec![];
            if !bytes.is_empty() {
                contents.resize(zeros, 0);
                contents.extend(bytes);
                contents.resize(4096, 0);
            }
            assert!(pages.insert(segment.start / 4096 + page, (contents, flags)).is_none());
        }
    }
    let tls = image.tls().map(|tls| {
        let layout = tls.layout();
        assert!(layout.image + tls.memory_size <= layout.thread_pointer);
        (tls.image.to_vec(), tls.memory_size, tls.align)
    });
    assert_eq!(image.pages(), pages.len() as u64);
    let mut guards = BTreeMap::new();
    for declared in image.guards().declared() {
        for stack in 1..=declared.count {
            let at = declared.start + (stack - 1) * declared.stride;
            let (count, bytes) = (declared.count, declared.stride - 4096);
            for address in [at, at + 4095] {
                let found = image.guards().overflow(address);
                assert_eq!(found, Some(Overflow::Declared { stack, count, bytes }));
            }
            assert_eq!(image.guards().overflow(at + 4096), None);
            guards.insert(at / 4096, (count, bytes / 4096));
        }
    }
    Some(Memory { pages, entry: image.entry(), tls, guards })
}

fn agree(file: &[u8]) -> bool {
    let (expected, found) = (model(file), loaded(file));
    assert_eq!(found, expected, "{:?}", Image::parse(file).err());
    found.is_some()
}

#[test]
fn the_sound_files_and_every_truncation() {
    // Only what lies behind the last segment's bytes and the notes can be cut.
    for (file, used) in [(File::default(), 0x640), (File::guarded(), NOTES_AT + 0x48)] {
        let bytes = file.bytes();
        assert!(agree(&bytes));
        let accepted = (0..bytes.len()).filter(|length| agree(&bytes[..*length])).count();
        assert_eq!(accepted, 0x700 - used);
    }
}

#[test]
fn every_flipped_bit() {
    let headers = |count: usize| 0..(64 + count * 56) * 8;
    let notes = NOTES_AT * 8..(NOTES_AT + 0x48) * 8;
    let plain = (File::default(), headers(5).chain(0..0), 2000);
    for (file, bits, most) in [plain, (File::guarded(), headers(6).chain(notes), 2500)] {
        let good = file.bytes();
        let mut accepted = 0;
        for bit in bits {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            accepted += usize::from(agree(&bytes));
        }
        // Physical addresses, section fields and what stack headers and notes leave open can change.
        assert!((1..most).contains(&accepted), "{accepted} accepted");
    }
}

#[test]
fn every_field_with_every_extreme() {
    let good = File::guarded().bytes();
    let extremes = [
        0,
        1,
        63,
        64,
        4095,
        4096,
        0x20_0000,
        0x20_1480,
        0x20_4000,
        0x7f00_0000_0000,
        0x7fff_ffff_f000,
        1 << 63,
        u64::MAX - 4095,
        u64::MAX,
    ];
    for at in (24..64 + 6 * 56).step_by(8).chain((NOTES_AT..NOTES_AT + 0x48).step_by(4)) {
        for value in extremes {
            let mut bytes = good.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            agree(&bytes);
        }
    }
}

fn entry() -> impl Strategy<Value = Entry> {
    let kinds = prop_oneof![
        20 => Just(PT_LOAD), 3 => Just(PT_TLS), 1 => Just(PT_GNU_STACK), 2 => Just(PT_NOTE),
        1 => Just(2), 1 => Just(3), 1 => Just(0x6474_e550)
    ];
    let flags = prop_oneof![
        6 => Just(PF_R), 6 => Just(PF_R | PF_W), 10 => Just(PF_R | PF_X), 1 => 0u32..16
    ];
    let filesz = prop_oneof![8 => 0u64..0x1800, 1 => Just(u64::MAX)];
    let memory = prop_oneof![4 => Just(0u64), 8 => 0u64..0x3000, 1 => Just(1 << 40), 1 => Just(u64::MAX / 2)];
    let skew = prop_oneof![12 => Just(0u64), 1 => 0u64..9000];
    let align = prop_oneof![20 => Just(4096u64), 4 => Just(1), 2 => Just(64), 1 => 0u64..0x4000];
    (kinds, flags, 0u64..0x1800, filesz, memory, (skew, align)).prop_map(
        |(p_type, p_flags, p_offset, p_filesz, more, (skew, p_align))| Entry {
            p_type,
            p_flags,
            p_offset,
            p_vaddr: p_offset.wrapping_add(skew),
            p_paddr: 0,
            p_filesz,
            p_memsz: p_filesz.wrapping_add(more),
            p_align,
        },
    )
}

/// Mostly guards within the pages of the guarded file's data, or beside them.
fn note() -> impl Strategy<Value = Note> {
    let start = (0x1fcu64..0x220, prop_oneof![20 => Just(0u64), 1 => 0u64..4096]);
    let stride = prop_oneof![20 => (1u64..6).prop_map(|pages| pages * 4096), 1 => 0u64..0x4000, 1 => any::<u64>()];
    let count = prop_oneof![20 => 0u64..5, 1 => any::<u64>()];
    let guards = (start, stride, count)
        .prop_map(|((page, skew), stride, count)| Note::guards(page * 4096 + skew, stride, count));
    let odd = (any::<bool>(), 0u32..3, prop::collection::vec(any::<u8>(), 0..40));
    let other = odd.prop_map(|(is_ours, kind, descriptor)| {
        let name = if is_ours { b"capOS\0".to_vec() } else { b"other".to_vec() };
        Note { name, kind, descriptor, align: 8 }
    });
    prop_oneof![12 => guards, 1 => other]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn random_headers(
        entries in prop::collection::vec((entry(), 0u64..12), 1..5),
        target in (any::<prop::sample::Index>(), 0u64..0x20),
    ) {
        let mut file = File { length: 0x2000, ..File::default() };
        let mut base = 0xf000;
        file.entries = entries.into_iter().map(|(mut entry, step)| {
            base += step * 0x1000;
            entry.p_vaddr = entry.p_vaddr.wrapping_add(base);
            entry
        }).collect();
        file.header.e_entry = target.0.get(&file.entries).p_vaddr + target.1;
        agree(&file.bytes());
    }

    #[test]
    fn random_notes(
        notes in prop::collection::vec(note(), 0..6),
        align in prop_oneof![Just(4usize), Just(8)],
        cut in prop_oneof![8 => Just(0u64), 1 => 0u64..40],
    ) {
        let notes = notes.into_iter().map(|note| Note { align, ..note }).collect();
        let mut file = File::guarded().with_notes(notes);
        file.entries[2].p_memsz = 0x1_8a00;
        file.entries[5].p_filesz = file.entries[5].p_filesz.saturating_sub(cut);
        agree(&file.bytes());
    }

    #[test]
    fn random_damage_of_notes(
        changes in prop::collection::vec((NOTES_AT..NOTES_AT + 0x48, any::<u8>()), 1..4),
    ) {
        let mut bytes = File::guarded().bytes();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        agree(&bytes);
    }

    #[test]
    fn random_damage(changes in prop::collection::vec((0usize..0x700, any::<u8>()), 1..6)) {
        let mut bytes = File::default().bytes();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        agree(&bytes);
    }
}
