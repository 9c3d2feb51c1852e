//! A tree that is taken apart in steps, against the set of frames that are its own.

use core_address::{Frame, VirtAddr};
use core_paging::teardown::{COST_OF_A_RUN, Teardown};
use core_paging::tree::fill;
use core_paging::{Access, Entry, Rights, TableStore};
use std::collections::{BTreeMap, BTreeSet};
use test_property::prelude::*;

/// Tables, by frame; those that are gone cannot be read.
#[derive(Default)]
struct Tables(BTreeMap<u64, Vec<Entry>>, u64);

impl TableStore for Tables {
    fn read(&self, table: Frame, index: usize) -> Entry {
        self.0[&table.number()][index]
    }
    fn write(&mut self, table: Frame, index: usize, entry: Entry) {
        self.0.get_mut(&table.number()).unwrap()[index] = entry;
    }
    fn new_table(&mut self) -> Option<Frame> {
        self.1 += 1;
        self.0.insert(self.1, vec![Entry::EMPTY; 512]);
        Frame::new(self.1)
    }
    fn free_table(&mut self, _: Frame) {
        unreachable!("a tree is freed by runs");
    }
}

/// A range of pages: where, how many, how many frames from one page to the next, whether they are another's.
#[derive(Clone, Debug)]
struct Range {
    page: u64,
    pages: u64,
    stride: u64,
    is_shared: bool,
}

fn range() -> impl Strategy<Value = Range> {
    let page =
        prop_oneof![1u64..2000, 0x7_ffff_0000u64..0x7_ffff_0800, (0u64..64).prop_map(|n| n << 27)];
    (page, 1u64..700, 1u64..3, prop::bool::weighted(0.2)).prop_map(
        |(page, pages, stride, is_shared)| Range { page: page.max(1), pages, stride, is_shared },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn each_frame_of_its_own_is_freed_once(
        ranges in prop::collection::vec(range(), 0..6),
        budgets in prop::collection::vec(1u64..200, 1..8),
    ) {
        let mut tables = Tables(BTreeMap::new(), 0);
        let root = tables.new_table().unwrap();
        // What is the kernel's stays: it is not even looked at.
        tables.write(root, 300, Entry::table(Frame::new(77_777_777).unwrap(), false));
        let (mut own, mut taken, mut frame) = (BTreeSet::new(), BTreeSet::new(), 1_000_000);
        for Range { page, pages, stride, is_shared } in ranges {
            if (page..page + pages).any(|page| !taken.insert(page)) {
                continue;
            }
            let rights = Rights { shared: is_shared, ..Rights::user(Access::Write) };
            let frame_of = |_| {
                frame += stride;
                if !is_shared {
                    own.insert(frame);
                }
                Frame::new(frame).unwrap()
            };
            fill(&mut tables, root, VirtAddr::new(page * 4096).unwrap(), pages, rights, frame_of).unwrap();
        }
        let pages = own.len() as u64;
        own.extend(tables.0.keys());
        let (mut teardown, mut all_pages, mut all_tables, mut freed) = (Teardown::new(), 0, 0, BTreeSet::new());
        for budget in budgets.iter().cycle() {
            let (mut runs, mut frames) = (0, 0);
            let step = teardown.step(&tables, root, *budget, |first, count| {
                runs += 1;
                frames += count;
                for frame in first.number()..first.number() + count {
                    assert!(freed.insert(frame), "frame {frame:#x} is freed twice");
                }
            });
            // A table that is gone is not read again.
            tables.0.retain(|table, _| !freed.contains(table));
            // The last entry looked at may end a run and four tables.
            prop_assert!(runs <= budget / COST_OF_A_RUN + 6, "{} runs for {}", runs, budget);
            prop_assert!(frames <= budget * 2 + 6, "{} frames for {}", frames, budget);
            prop_assert_eq!(step.pages + step.tables, frames);
            all_pages += step.pages;
            all_tables += step.tables;
            if step.is_done {
                break;
            }
        }
        prop_assert_eq!(all_pages, pages);
        prop_assert_eq!(all_pages + all_tables, own.len() as u64);
        prop_assert_eq!(freed, own);
    }
}
