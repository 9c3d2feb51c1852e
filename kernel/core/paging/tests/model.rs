//! The page-table tree against a plain map of pages, with memory that runs out.

use core_address::{Frame, VirtAddr};
use core_paging::tree::{fill, for_each_page, map, missing_tables, protect, translate, unmap};
use core_paging::{
    Access, Entry, MapError, PageSizes, Request, Rights, TableStore, Translation, UnmapError,
};
use std::collections::BTreeMap;
use test_property::prelude::*;

#[derive(Clone, PartialEq, Debug)]
struct Tables {
    tables: BTreeMap<u64, Vec<Entry>>,
    next: u64,
    limit: usize,
}

impl Tables {
    fn new(limit: usize) -> (Self, Frame) {
        let mut tables = Self { tables: BTreeMap::new(), next: 0x10_0000, limit };
        let root = tables.new_table().unwrap();
        (tables, root)
    }

    fn contents(&self) -> BTreeMap<u64, Vec<Entry>> {
        self.tables.clone()
    }
}

impl TableStore for Tables {
    fn read(&self, table: Frame, index: usize) -> Entry {
        self.tables[&table.number()][index]
    }
    fn write(&mut self, table: Frame, index: usize, entry: Entry) {
        assert!(!entry.is_writable_and_executable() || !is_leaf(entry), "W^X: {entry:?}");
        self.tables.get_mut(&table.number()).unwrap()[index] = entry;
    }
    fn new_table(&mut self) -> Option<Frame> {
        if self.tables.len() == self.limit {
            return None;
        }
        self.next += 1;
        self.tables.insert(self.next, vec![Entry::EMPTY; 512]);
        Frame::new(self.next)
    }
    fn free_table(&mut self, table: Frame) {
        let entries = self.tables.remove(&table.number()).expect("a table freed twice");
        assert!(entries.iter().all(|e| *e == Entry::EMPTY));
    }
}

fn is_leaf(entry: Entry) -> bool {
    // Tables of the model live above frame 0x10_0000, pages below.
    (entry.0 & 0x000f_ffff_ffff_f000) >> 12 < 0x10_0000
}

const BASES: [u64; 3] = [0x40_0000, 0x7fff_c000_0000, 0xffff_fe80_0000_0000];

#[derive(Clone, Debug)]
enum Op {
    Map { base: usize, page: u64, pages: u64, frame: u64, access: Access, large: bool },
    Fill { base: usize, page: u64, pages: u64, access: Access },
    Unmap { base: usize, page: u64, pages: u64 },
    Protect { base: usize, page: u64, pages: u64, access: Access },
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::Execute)]
}

/// Page numbers and counts that often hit 2 MiB boundaries.
fn place() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..1600, (0u64..4).prop_map(|n| n * 512), 500u64..530]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0usize..3, place(), place(), place(), access(), any::<bool>()).prop_map(
            |(base, page, pages, frame, access, large)| Op::Map { base, page, pages, frame, access, large }
        ),
        2 => (0usize..3, place(), 0u64..80, access())
            .prop_map(|(base, page, pages, access)| Op::Fill { base, page, pages, access }),
        2 => (0usize..3, place(), place()).prop_map(|(base, page, pages)| Op::Unmap { base, page, pages }),
        1 => (0usize..3, place(), place(), access())
            .prop_map(|(base, page, pages, access)| Op::Protect { base, page, pages, access }),
    ]
}

fn at(base: usize, page: u64) -> VirtAddr {
    VirtAddr::new(BASES[base] + page * 4096).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn behaves_like_a_map_of_pages(ops in prop::collection::vec(op(), 1..40), limit in 4usize..24) {
        let (mut tables, root) = Tables::new(limit);
        // (base, page) → frame, access
        let mut model: BTreeMap<(usize, u64), (u64, Access)> = BTreeMap::new();
        for op in ops {
            let before = tables.contents();
            match op {
                Op::Map { base, page, pages, frame, access, large } => {
                    let rights = if base == 2 { Rights::kernel(access) } else { Rights::user(access) };
                    let request = Request {
                        virt: at(base, page),
                        frame: Frame::new(frame).unwrap(),
                        pages,
                        rights,
                        sizes: PageSizes { large, huge: false },
                    };
                    let taken = model.range((base, page)..(base, page + pages)).next().is_some();
                    match map(&mut tables, root, request) {
                        Ok(()) => {
                            prop_assert!(!taken && pages > 0);
                            for i in 0..pages {
                                model.insert((base, page + i), (frame + i, access));
                            }
                        }
                        Err(MapError::BadRange) => prop_assert_eq!(pages, 0),
                        Err(MapError::AlreadyMapped) => {
                            prop_assert!(taken);
                            prop_assert_eq!(&before, &tables.contents());
                        }
                        Err(MapError::OutOfMemory) => {
                            // All but the kept table below the root of the upper half is as before.
                            let extra = tables.tables.len() - before.len();
                            prop_assert!(extra == 0 || (base == 2 && extra == 1));
                        }
                    }
                }
                Op::Fill { base, page, pages, access } => {
                    let rights = if base == 2 { Rights::kernel(access) } else { Rights::user(access) };
                    let taken = model.range((base, page)..(base, page + pages)).next().is_some();
                    match missing_tables(&tables, root, at(base, page), pages) {
                        Ok(missing) if before.len() + missing <= limit => {
                            prop_assert!(!taken && pages > 0);
                            // Frames in no order.
                            let frame_of = |n: u64| Frame::new(5000 - 3 * n).unwrap();
                            let done = fill(&mut tables, root, at(base, page), pages, rights, frame_of);
                            prop_assert_eq!(done, Ok(()));
                            prop_assert_eq!(tables.tables.len(), before.len() + missing);
                            for i in 0..pages {
                                model.insert((base, page + i), (5000 - 3 * i, access));
                            }
                        }
                        Ok(_) => {}
                        Err(MapError::BadRange) => prop_assert_eq!(pages, 0),
                        Err(MapError::AlreadyMapped) => prop_assert!(taken),
                        Err(MapError::OutOfMemory) => prop_assert!(false, "nothing was allocated"),
                    }
                }
                Op::Unmap { base, page, pages } => {
                    let mut seen = Vec::new();
                    let result = unmap(&mut tables, root, at(base, page), pages, |frame, size, _| {
                        seen.extend(frame.number()..frame.number() + size.frames());
                    });
                    let mapped = model.range((base, page)..(base, page + pages)).count() as u64;
                    match result {
                        Ok(()) => {
                            prop_assert_eq!(mapped, pages);
                            let expected: Vec<u64> =
                                (0..pages).map(|i| model.remove(&(base, page + i)).unwrap().0).collect();
                            prop_assert_eq!(seen, expected);
                        }
                        Err(error) => {
                            match error {
                                UnmapError::BadRange => prop_assert_eq!(pages, 0),
                                UnmapError::NotMapped => prop_assert!(mapped < pages),
                                UnmapError::CutsLargePage => {}
                            }
                            prop_assert_eq!(&before, &tables.contents());
                        }
                    }
                }
                Op::Protect { base, page, pages, access } => {
                    match protect(&mut tables, root, at(base, page), pages, access) {
                        Ok(()) => for i in 0..pages {
                            model.get_mut(&(base, page + i)).unwrap().1 = access;
                        },
                        Err(_) => prop_assert_eq!(&before, &tables.contents()),
                    }
                }
            }
            for base in 0..3 {
                for page in (0..3300).step_by(13).chain([511, 512, 1023, 1024]) {
                    let virt = VirtAddr::new(BASES[base] + page * 4096 + 7).unwrap();
                    let found = translate(&tables, root, virt);
                    let expected = model.get(&(base, page));
                    prop_assert_eq!(found.map(|t| (t.phys.frame().number(), t.rights.access)), expected.copied());
                    if let Some(Translation { phys, rights, .. }) = found {
                        prop_assert_eq!(phys.page_offset(), 7);
                        prop_assert_eq!(rights.user, base != 2);
                    }
                }
            }
        }
        let mut pages = 0;
        for_each_page(&tables, root, &mut |mapped| {
            pages += mapped.size.frames();
            assert!(!mapped.entry.is_writable_and_executable());
        });
        prop_assert_eq!(pages, model.len() as u64);
        // Unmapping everything leaves the root and at most the kept table.
        for base in 0..3 {
            for page in 0..3300 {
                if model.contains_key(&(base, page)) {
                    let one = unmap(&mut tables, root, at(base, page), 1, |_, _, _| ());
                    if one == Err(UnmapError::CutsLargePage) {
                        unmap(&mut tables, root, at(base, page), 512, |_, _, _| ()).unwrap();
                        for i in 0..512 { model.remove(&(base, page + i)); }
                    } else {
                        one.unwrap();
                    }
                }
            }
        }
        prop_assert!(tables.tables.len() <= 2);
    }
}

#[test]
fn ranges_that_leave_their_half_or_page_grid_are_refused() {
    let (mut tables, root) = Tables::new(10);
    let request = |virt: u64, pages| Request {
        virt: VirtAddr::new(virt).unwrap(),
        frame: Frame::new(0).unwrap(),
        pages,
        rights: Rights::user(Access::Read),
        sizes: PageSizes::SMALL,
    };
    for (virt, pages) in [
        (0x1001, 1),
        (0x1000, 0),
        (0x7fff_ffff_f000, 2),
        (0xffff_ffff_ffff_f000, 2),
        (0x1000, u64::MAX),
    ] {
        assert_eq!(map(&mut tables, root, request(virt, pages)), Err(MapError::BadRange));
    }
    assert_eq!(map(&mut tables, root, request(0xffff_ffff_ffff_f000, 1)), Ok(()));
}

#[test]
fn a_gigabyte_takes_one_entry() {
    let (mut tables, root) = Tables::new(10);
    let request = Request {
        virt: VirtAddr::new(0xffff_8000_0000_0000).unwrap(),
        frame: Frame::new(0).unwrap(),
        pages: 512 * 512 + 512 + 1,
        rights: Rights::kernel(Access::Write),
        sizes: PageSizes { large: true, huge: true },
    };
    map(&mut tables, root, request).unwrap();
    // Root, one table of 1 GiB entries, one of 2 MiB entries, one of 4 KiB entries.
    assert_eq!(tables.tables.len(), 4);
}
