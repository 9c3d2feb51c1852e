//! Memory maps: odd ones against a slow model, and the rules one by one.

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;
use test_property::prelude::*;

use crate::memmap::{Kind, NO_REGION, Region, direct_map_ranges, normalise};
use crate::memory::{ALLOCATION_LIMIT, Frames, PAGE};
use crate::refusal::Refusal;

fn r(base: u64, length: u64, kind: Kind) -> Region {
    Region { base, length, kind }
}

fn run(firmware: &[Region], overlays: &[&[Region]]) -> Vec<Region> {
    let mut out = vec![NO_REGION; 256];
    let count = normalise(firmware, overlays, &mut out).unwrap();
    out.truncate(count);
    out
}

#[test]
fn sorted_and_merged() {
    let map = run(
        &[
            r(0x5000, 0x1000, Kind::Usable),
            r(0x1000, 0x2000, Kind::Usable),
            r(0x3000, 0x2000, Kind::Usable),
            r(0x9000, 0, Kind::Reserved),
        ],
        &[],
    );
    assert_eq!(map, [r(0x1000, 0x5000, Kind::Usable)]);
}

#[test]
fn worse_kind_wins_an_overlap() {
    let map = run(&[r(0, 0x4000, Kind::Usable), r(0x1000, 0x1000, Kind::Reserved)], &[]);
    assert_eq!(
        map,
        [
            r(0, 0x1000, Kind::Usable),
            r(0x1000, 0x1000, Kind::Reserved),
            r(0x2000, 0x2000, Kind::Usable)
        ]
    );
    let map = run(&[r(0, 0x1000, Kind::Bad), r(0, 0x2000, Kind::Framebuffer)], &[]);
    assert_eq!(map[0].kind, Kind::Bad);
}

#[test]
fn usable_keeps_whole_pages_only() {
    assert_eq!(run(&[r(0x1001, 0x2000, Kind::Usable)], &[]), [r(0x2000, 0x1000, Kind::Usable)]);
    assert_eq!(run(&[r(0x1800, 0x400, Kind::Usable)], &[]), []);
    // The two halves of a page are one page of usable memory.
    let halves = [r(0x1000, 0x800, Kind::Usable), r(0x1800, 0x800, Kind::Usable)];
    assert_eq!(run(&halves, &[]), [r(0x1000, 0x1000, Kind::Usable)]);
    // Others stay as they are.
    assert_eq!(run(&[r(0x1001, 7, Kind::Reserved)], &[]), [r(0x1001, 7, Kind::Reserved)]);
    assert_eq!(run(&[r(0x1000, 0x1000, Kind::Usable)], &[]).len(), 1);
}

#[test]
fn a_framebuffer_trims_what_shares_its_pages() {
    let screen = [r(0x8_0800, 0x1000, Kind::Framebuffer)];
    let map = run(&[r(0x7_0000, 0x2_0000, Kind::Usable)], &[&screen]);
    assert_eq!(
        map,
        [
            r(0x7_0000, 0x1_0000, Kind::Usable),
            r(0x8_0800, 0x1000, Kind::Framebuffer),
            r(0x8_2000, 0xe000, Kind::Usable)
        ]
    );
    let map = run(&[r(0x7_0000, 0x2_0000, Kind::Reserved)], &[&screen]);
    assert_eq!(map[0], r(0x7_0000, 0x1_0000, Kind::Reserved));
    assert_eq!(map[2].base, 0x8_2000);
}

#[test]
fn overlays_only_take_what_they_may() {
    let firmware = [
        r(0, 0x4000, Kind::Usable),
        r(0x4000, 0x4000, Kind::Reserved),
        r(0x8000, 0x4000, Kind::AcpiReclaimable),
    ];
    let taken = [r(0x2000, 0x4000, Kind::ExecutableAndModules)];
    let tables = [r(0x5000, 0x5000, Kind::ReservedMapped)];
    let map = run(&firmware, &[&taken, &tables]);
    assert_eq!(
        map,
        [
            r(0, 0x2000, Kind::Usable),
            r(0x2000, 0x2000, Kind::ExecutableAndModules),
            r(0x4000, 0x1000, Kind::Reserved),
            r(0x5000, 0x3000, Kind::ReservedMapped),
            r(0x8000, 0x4000, Kind::AcpiReclaimable),
        ]
    );
}

#[test]
fn a_map_beyond_the_room_is_refused() {
    let firmware: Vec<Region> = (0..10).map(|i| r(i * 0x2000, 0x1000, Kind::Usable)).collect();
    let mut out = [NO_REGION; 4];
    assert_eq!(normalise(&firmware, &[], &mut out), Err(Refusal::MapTooLong { limit: 4 }));
}

#[test]
fn the_top_of_the_address_space() {
    let map =
        run(&[r(u64::MAX - 0xfff, 0x2000, Kind::Reserved), r(1 << 40, 1 << 30, Kind::Usable)], &[]);
    assert_eq!(map[0], r(1 << 40, 1 << 30, Kind::Usable));
    assert_eq!(map[1].base, u64::MAX - 0xfff);
}

#[test]
fn direct_map_ranges_round_outwards_and_keep_screens_apart() {
    let map = [
        r(0, 0x3000, Kind::Usable),
        r(0x3000, 0x1000, Kind::Reserved),
        r(0x5800, 0x100, Kind::ReservedMapped),
        r(0x6000, 0x1000, Kind::AcpiNvs),
        r(0x7000, 0x1800, Kind::Framebuffer),
        r(0x9000, 0x1000, Kind::Usable),
        r(0xb000, 0x1000, Kind::Bad),
    ];
    let mut seen = Vec::new();
    direct_map_ranges(&map, |base, end, screen| {
        seen.push((base, end, screen));
        Ok::<_, ()>(())
    })
    .unwrap();
    assert_eq!(
        seen,
        [
            (0, 0x3000, false),
            (0x5000, 0x7000, false),
            (0x7000, 0x9000, true),
            (0x9000, 0xa000, false)
        ]
    );
}

#[test]
fn frames_come_from_the_top_aligned_and_once() {
    let map = [r(0, 0x10_0000, Kind::Usable), r(1 << 32, 1 << 30, Kind::Usable)];
    let mut frames = Frames::new(&map);
    let kind = Kind::BootloaderReclaimable;
    assert_eq!(frames.allocate(1, PAGE, ALLOCATION_LIMIT, kind), Ok(0xf_f000));
    assert_eq!(frames.allocate(1, 0x1_0000, ALLOCATION_LIMIT, kind), Ok(0xf_0000));
    assert_eq!(frames.allocate(2, PAGE, 0x8_0000, kind), Ok(0x7_e000));
    // The gaps above were not lost.
    assert_eq!(frames.allocate(0xe, PAGE, ALLOCATION_LIMIT, kind), Ok(0xf_1000));
    assert_eq!(
        frames.allocate(1000, PAGE, ALLOCATION_LIMIT, kind),
        Err(Refusal::OutOfMemory { pages: 1000 })
    );
    assert_eq!(
        frames.allocate(0, PAGE, ALLOCATION_LIMIT, kind),
        Err(Refusal::OutOfMemory { pages: 0 })
    );
    assert!(frames.allocate(u64::MAX, PAGE, ALLOCATION_LIMIT, kind).is_err());
    // Never the first page.
    let mut low = Frames::new(&[r(0, 0x2000, Kind::Usable)]);
    assert_eq!(low.allocate(1, PAGE, ALLOCATION_LIMIT, kind), Ok(0x1000));
    assert!(low.allocate(1, PAGE, ALLOCATION_LIMIT, kind).is_err());
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Usable),
        2 => Just(Kind::Reserved),
        1 => Just(Kind::AcpiReclaimable),
        1 => Just(Kind::AcpiNvs),
        1 => Just(Kind::Bad),
        1 => Just(Kind::BootloaderReclaimable),
        1 => Just(Kind::ReservedMapped),
    ]
}

/// Regions on quarter pages, in any order, overlapping, some above 4 GiB.
fn any_map() -> impl Strategy<Value = Vec<Region>> {
    prop::collection::vec(
        (0u64..200, 0u64..60, any_kind(), any::<bool>()).prop_map(|(at, length, kind, high)| {
            let offset = if high { 1 << 32 } else { 0 };
            r(offset + at * 0x400, length * 0x400, kind)
        }),
        0..24,
    )
}

proptest! {
    #[test]
    fn maps_keep_the_rules(firmware in any_map(), screen in prop::option::of((0u64..200, 1u64..30))) {
        let screens: Vec<Region> =
            screen.map(|(at, length)| r(at * 0x400, length * 0x400, Kind::Framebuffer)).into_iter().collect();
        let map = run(&firmware, &[&screens]);
        // The model: each quarter page by itself.
        let mut model: BTreeMap<u64, Kind> = BTreeMap::new();
        let rank = |kind: Kind| match kind {
            Kind::Usable => 0, Kind::BootloaderReclaimable => 1, Kind::AcpiReclaimable => 3, Kind::AcpiNvs => 4,
            Kind::ReservedMapped => 5, Kind::Reserved => 6, Kind::Bad => 8, _ => 7,
        };
        for region in &firmware {
            for cell in (region.base..region.end()).step_by(0x400) {
                let worse = model.get(&cell).is_none_or(|old| rank(*old) < rank(region.kind));
                if worse {
                    model.insert(cell, region.kind);
                }
            }
        }
        for screen in &screens {
            for cell in (screen.base & !0xfff..screen.end().next_multiple_of(0x1000)).step_by(0x400) {
                if (screen.base..screen.end()).contains(&cell) {
                    if model.get(&cell) != Some(&Kind::Bad) {
                        model.insert(cell, Kind::Framebuffer);
                    }
                } else if matches!(model.get(&cell), Some(Kind::Usable | Kind::Reserved | Kind::BootloaderReclaimable)) {
                    model.remove(&cell);
                }
            }
        }
        for pair in map.windows(2) {
            prop_assert!(pair[0].end() <= pair[1].base, "overlap or disorder: {map:x?}");
        }
        for region in &map {
            prop_assert!(region.length > 0);
            if matches!(region.kind, Kind::Usable | Kind::BootloaderReclaimable) {
                prop_assert_eq!((region.base | region.length) % PAGE, 0);
            }
            for cell in (region.base..region.end()).step_by(0x400) {
                prop_assert_eq!(model.remove(&cell), Some(region.kind), "at {:#x}", cell);
            }
        }
        // What is missing is part of a page that is not wholly usable or reclaimable.
        for (cell, kind) in &model {
            prop_assert!(matches!(kind, Kind::Usable | Kind::BootloaderReclaimable), "{kind:?} lost at {cell:#x}");
            let page = cell & !0xfff;
            let whole = (0..4).all(|i| model.get(&(page + i * 0x400)) == Some(kind));
            prop_assert!(!whole, "whole page lost at {page:#x}");
        }
    }

    #[test]
    fn frames_never_overlap(firmware in any_map(), sizes in prop::collection::vec((1u64..6, 12u32..16), 0..40)) {
        let map = run(&firmware, &[]);
        let mut frames = Frames::new(&map);
        let mut given: Vec<(u64, u64)> = Vec::new();
        for (pages, shift) in sizes {
            let before = frames.clone();
            match frames.allocate(pages, 1 << shift, ALLOCATION_LIMIT, Kind::BootloaderReclaimable) {
                Ok(base) => {
                    let end = base + pages * PAGE;
                    prop_assert_eq!(base % (1 << shift), 0);
                    prop_assert!(map.iter().any(|m| m.kind == Kind::Usable && m.base <= base && end <= m.end()));
                    prop_assert!(given.iter().all(|(b, e)| end <= *b || *e <= base));
                    given.push((base, end));
                }
                Err(_) => prop_assert_eq!(std::format!("{before:?}"), std::format!("{frames:?}")),
            }
        }
        let total: u64 = given.iter().map(|(b, e)| e - b).sum();
        prop_assert_eq!(frames.taken().iter().map(|t| t.length).sum::<u64>(), total);
    }
}
