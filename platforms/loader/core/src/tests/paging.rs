//! Page tables, read back as the processor would.

use std::vec;
use test_property::prelude::*;

use super::ram::Ram;
use crate::entry::{HHDM_4_LEVEL, HHDM_5_LEVEL, hhdm_base};
use crate::memmap::{Kind, Region};
use crate::memory::{Frames, PAGE};
use crate::paging::{LARGE_PAGE, PageTables, Rights, translate};
use crate::refusal::Refusal;

fn machine() -> (Ram, Frames) {
    let map = [Region { base: 0, length: 4 << 20, kind: Kind::Usable }];
    (Ram::new(4 << 20), Frames::new(&map))
}

const DATA: Rights = Rights { write: true, execute: false, write_combining: false };

#[test]
fn large_pages_where_they_fit() {
    let (mut ram, mut frames) = machine();
    let tables = PageTables::new(&mut ram, &mut frames, 4).unwrap();
    let start = LARGE_PAGE - PAGE;
    tables
        .map(&mut ram, &mut frames, HHDM_4_LEVEL + start, start, 2 * LARGE_PAGE, Rights::ALL)
        .unwrap();
    let at = |phys: u64| translate(&ram, tables.root(), 4, HHDM_4_LEVEL + phys);
    assert_eq!(at(start).unwrap().page, PAGE);
    assert_eq!(at(LARGE_PAGE).unwrap().page, LARGE_PAGE);
    assert_eq!(at(LARGE_PAGE + 0x12_3456).unwrap().phys, LARGE_PAGE + 0x12_3456);
    assert_eq!(at(start + 2 * LARGE_PAGE - 1).unwrap().page, PAGE);
    assert_eq!(at(start - 1), None);
    assert_eq!(at(start + 2 * LARGE_PAGE), None);
}

#[test]
fn rights_and_cache_types_in_both_page_sizes() {
    let (mut ram, mut frames) = machine();
    let tables = PageTables::new(&mut ram, &mut frames, 4).unwrap();
    for (slot, rights) in [Rights::ALL, Rights::FRAMEBUFFER, DATA].into_iter().enumerate() {
        let small = 0xffff_ffff_8000_0000 + slot as u64 * PAGE;
        let large = HHDM_4_LEVEL + slot as u64 * LARGE_PAGE;
        tables.map(&mut ram, &mut frames, small, 0x7000, PAGE, rights).unwrap();
        tables.map(&mut ram, &mut frames, large, LARGE_PAGE, LARGE_PAGE, rights).unwrap();
        assert_eq!(translate(&ram, tables.root(), 4, small).unwrap().rights, rights);
        assert_eq!(translate(&ram, tables.root(), 4, large).unwrap().rights, rights);
    }
}

#[test]
fn mapping_otherwise_is_refused() {
    let (mut ram, mut frames) = machine();
    let tables = PageTables::new(&mut ram, &mut frames, 4).unwrap();
    tables.map(&mut ram, &mut frames, HHDM_4_LEVEL, 0, LARGE_PAGE, Rights::ALL).unwrap();
    tables.map(&mut ram, &mut frames, HHDM_4_LEVEL, 0, LARGE_PAGE, Rights::ALL).unwrap();
    let other =
        tables.map(&mut ram, &mut frames, HHDM_4_LEVEL, LARGE_PAGE, LARGE_PAGE, Rights::ALL);
    assert!(matches!(other, Err(Refusal::Unreachable { .. })));
    let inside = tables.map(&mut ram, &mut frames, HHDM_4_LEVEL, 0, PAGE, DATA);
    assert!(matches!(inside, Err(Refusal::Unreachable { .. })));
}

#[test]
fn five_levels() {
    let (mut ram, mut frames) = machine();
    let tables = PageTables::new(&mut ram, &mut frames, 5).unwrap();
    tables.map(&mut ram, &mut frames, HHDM_5_LEVEL, 0, LARGE_PAGE, Rights::ALL).unwrap();
    tables.map(&mut ram, &mut frames, 0xffff_ffff_8000_0000, 0x9000, PAGE, DATA).unwrap();
    assert_eq!(translate(&ram, tables.root(), 5, HHDM_5_LEVEL + 5).unwrap().phys, 5);
    assert_eq!(translate(&ram, tables.root(), 5, 0xffff_ffff_8000_0123).unwrap().phys, 0x9123);
    assert_eq!(translate(&ram, tables.root(), 5, HHDM_4_LEVEL), None);
}

#[test]
fn switch_tables_share_the_upper_half() {
    let (mut ram, mut frames) = machine();
    let tables = PageTables::new(&mut ram, &mut frames, 4).unwrap();
    tables.map(&mut ram, &mut frames, HHDM_4_LEVEL, 0, PAGE, DATA).unwrap();
    let other = tables.with_identity(&mut ram, &mut frames, 1 << 30).unwrap();
    assert_eq!(translate(&ram, other, 4, HHDM_4_LEVEL).unwrap().rights, DATA);
    assert_eq!(translate(&ram, other, 4, 0x12_3456).unwrap().phys, 0x12_3456);
    assert_eq!(translate(&ram, tables.root(), 4, 0x12_3456), None);
}

#[test]
fn out_of_memory_is_an_answer() {
    let mut ram = Ram::new(1 << 20);
    let map = vec![Region { base: 0x1000, length: 0x2000, kind: Kind::Usable }];
    let mut frames = Frames::new(&map);
    let tables = PageTables::new(&mut ram, &mut frames, 4).unwrap();
    let result = tables.map(&mut ram, &mut frames, HHDM_4_LEVEL, 0, PAGE, DATA);
    assert_eq!(result, Err(Refusal::OutOfMemory { pages: 1 }));
}

proptest! {
    #[test]
    fn direct_map_bases_keep_their_place(random in any::<u64>(), bits in 20u32..46, five in any::<bool>()) {
        let levels = if five { 5 } else { 4 };
        let top = 1u64 << bits;
        prop_assert_eq!(hhdm_base(levels, None, top), if five { HHDM_5_LEVEL } else { HHDM_4_LEVEL });
        let base = hhdm_base(levels, Some(random), top);
        prop_assert_eq!(base % (1 << 30), 0);
        prop_assert!(base.checked_add(top).is_some_and(|end| end < 0xffff_ffff_8000_0000));
    }

    #[test]
    fn every_mapped_page_translates(start in 0u64..1024, pages in 1u64..1200, shift in 0u64..3) {
        let (mut ram, mut frames) = machine();
        let tables = PageTables::new(&mut ram, &mut frames, 4).unwrap();
        // A virtual address out of step with the physical one takes small pages.
        let virt = HHDM_4_LEVEL + (start + shift) * PAGE;
        tables.map(&mut ram, &mut frames, virt, start * PAGE, pages * PAGE, DATA).unwrap();
        for page in 0..pages {
            let found = translate(&ram, tables.root(), 4, virt + page * PAGE).unwrap();
            prop_assert_eq!(found.phys, (start + page) * PAGE);
        }
        prop_assert_eq!(translate(&ram, tables.root(), 4, virt + pages * PAGE), None);
    }
}
