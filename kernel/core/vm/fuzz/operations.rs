//! Fuzzes the list of regions by strings of operations, four bytes each: operation, first page,
//! pages, access. Whatever the string, the list is well formed, an error changes nothing, and the
//! pages of a change are in transit until it is settled.
#![no_main]

use core_vm::*;
use libfuzzer_sys::fuzz_target;

/// Where the small numbers of the string are: at the bottom, around the kernel's areas, at the top.
const BASES: [u64; 4] = [0, AREAS[0].first - 100, AREAS[1].end - 100, LAST_PAGE - 200];

fuzz_target!(|input: &[u8]| {
    let [limit, steps @ ..] = input else { return };
    let mut list = Regions::new(vec![Region::UNUSED; usize::from(limit % 12) + 3]).unwrap();
    for step in steps.chunks_exact(4) {
        let [operation, first, pages, access] = [step[0], step[1], step[2], step[3]];
        let base = BASES[usize::from(operation >> 6)];
        let range = PageRange::from_page(base + u64::from(first), u64::from(pages));
        let wish = core_vm::access(access & 1 != 0, access & 2 != 0, access & 4 != 0);
        let before = (list.all().to_vec(), list.mapped_pages());
        let done = match (operation % 6, range, wish) {
            (0, Ok(range), Ok(wish)) => list.map_own(range, wish).map(|_| ()),
            (1, Ok(range), Ok(wish)) => {
                let id = u64::from(access >> 6);
                let backing = Backing::Object { id, first_page: u64::from(access >> 3 & 7) };
                let ceiling = Ceiling { write: id & 1 == 0, execute: id & 2 == 0 };
                list.map(range, wish, ceiling, backing, 32).map(|_| ())
            }
            (2, Ok(range), _) => list.reserve(range),
            (3, Ok(range), _) => list.unmap(range, None),
            (4, Ok(range), Ok(wish)) => {
                let done = list.protect(range, wish, None);
                assert_eq!(list.mapped_pages(), before.1);
                done
            }
            (5, ..) => {
                let hint = (base + u64::from(first)) * 4096;
                if let Ok(found) = list.find_free(u64::from(pages), hint) {
                    assert_eq!(list.pieces(found).count(), 0);
                    assert_eq!(found.pages(), u64::from(pages));
                }
                Ok(())
            }
            _ => Ok(()),
        };
        list.check_invariants().unwrap();
        if done.is_err() {
            assert_eq!((list.all().to_vec(), list.mapped_pages()), before);
            continue;
        }
        if let (0 | 1 | 4, Ok(range), Ok(_)) | (3, Ok(range), _) = (operation % 6, range, wish) {
            assert_eq!(list.map_own(range, Access::Read), Err(VmError::Busy));
            list.settle(range, |_| {});
            list.check_invariants().unwrap();
            assert_eq!(operation % 6 == 3, list.pieces(range).count() == 0);
            assert!(list.all().iter().all(|region| !region.usage.is_in_transit()));
        }
    }
    while !list.drain(2, |_| ()) {
        list.check_invariants().unwrap();
    }
    assert_eq!(list.mapped_pages(), 0);
});
