//! Regions by hand: guards, W^X in time, the ends of the space, exact room.

use core_vm::*;

fn list(limit: usize) -> Regions<Vec<Region>> {
    Regions::new(vec![Region::UNUSED; limit + 2]).unwrap()
}

fn pages(first: u64, count: u64) -> PageRange {
    PageRange::from_page(first, count).unwrap()
}

#[test]
fn storage_has_room_for_at_least_one() {
    for (places, fits) in [(0, false), (2, false), (3, true)] {
        assert_eq!(Regions::new(vec![Region::UNUSED; places]).is_ok(), fits);
    }
}

/// C10: a guard below a stack is nobody's and stays when the stack is mapped beside it.
#[test]
fn a_guard_gives_no_access_and_keeps_others_out() {
    let mut list = list(4);
    list.reserve(pages(100, 17)).unwrap();
    assert_eq!(list.mapped_pages(), 0);
    let stack = list.map_own(pages(101, 16), Access::Write).unwrap();
    assert_eq!(stack.from_reserved, 16);
    assert_eq!(list.find(100).map(|region| region.usage), Some(Use::Reserved));
    assert_eq!(list.find_free(1, 100 * 4096).map(PageRange::first), Ok(117));
    assert_eq!(list.protect(pages(100, 2), Access::Read, |_| panic!()), Err(VmError::NotMapped));
    // Stack and guard go in one step; only what was mapped is shown.
    let mut gone = 0;
    list.unmap(pages(100, 17), |piece| gone += piece.range.pages()).unwrap();
    assert_eq!((gone, list.all().len()), (16, 0));
}

/// C10: code is written, then executed, and never both.
#[test]
fn writable_pages_become_executable_and_stop_being_writable() {
    let mut list = list(4);
    let _ = list.map_own(pages(1, 3), Access::Write).unwrap();
    let mut seen = Vec::new();
    list.protect(pages(2, 1), Access::Execute, |piece| seen.push(piece)).unwrap();
    assert_eq!(seen.len(), 1);
    assert!(
        list.all()
            .iter()
            .all(|region| !matches!(region.usage, Use::Mapped { access: Access::Write, .. })
                || region.range.overlap(pages(2, 1)).is_none())
    );
    // Nothing changes: nothing is shown, no table is touched.
    list.protect(pages(2, 1), Access::Execute, |_| panic!("shown")).unwrap();
    list.protect(pages(1, 3), Access::Write, |piece| assert_eq!(piece.range, pages(2, 1))).unwrap();
    assert_eq!(list.all().len(), 1, "it is one region again");
}

/// C11: a facet without writing stays without, however it is mapped or protected.
#[test]
fn a_read_only_facet_is_never_writable() {
    let mut list = list(4);
    let ceiling = Ceiling { write: false, execute: false };
    let object = Backing::Object { id: 9, first_page: 2 };
    let range = pages(8, 2);
    assert_eq!(list.map(range, Access::Write, ceiling, object, 4), Err(VmError::AboveCeiling));
    assert_eq!(list.map(range, Access::Read, ceiling, object, 3), Err(VmError::ObjectTooShort));
    let _ = list.map(range, Access::Read, ceiling, object, 4).unwrap();
    for access in [Access::Write, Access::Execute] {
        assert_eq!(list.protect(range, access, |_| panic!()), Err(VmError::AboveCeiling));
    }
    let beyond = Backing::Object { id: 9, first_page: u64::MAX };
    assert_eq!(
        list.map(pages(20, 1), Access::Read, ceiling, beyond, u64::MAX),
        Err(VmError::ObjectTooShort)
    );
}

/// The limit counts what there is afterwards: a change that fits is never refused, and one that
/// does not leaves the list as it was.
#[test]
fn the_limit_is_exact() {
    let mut list = list(2);
    let _ = list.map_own(pages(10, 5), Access::Read).unwrap();
    let before = list.all().to_vec();
    assert_eq!(list.protect(pages(11, 1), Access::Write, |_| panic!()), Err(VmError::Full));
    assert_eq!(list.all(), before);
    list.unmap(pages(12, 1), |_| ()).unwrap();
    assert_eq!(list.all().len(), 2);
    let before = list.all().to_vec();
    assert_eq!(list.unmap(pages(11, 1), |_| ()), Ok(()), "shorter, not more");
    assert_eq!(list.map_own(pages(30, 1), Access::Read), Err(VmError::Full));
    assert_eq!(list.reserve(pages(30, 1)), Err(VmError::Full));
    let _ = list.map_own(pages(11, 1), Access::Read).unwrap();
    assert_eq!(list.all(), before, "it grew the region below");
    let _ = list.map_own(pages(12, 1), Access::Read).unwrap();
    assert_eq!(list.all().len(), 1, "both are one again");
}

/// Room is found up to the end of user memory, around the kernel's areas, and not beyond.
#[test]
fn room_is_found_everywhere_and_nowhere_else() {
    let mut list = list(8);
    let [low, high] = AREAS;
    let near = |first: u64| first * 4096;
    assert_eq!(list.find_free(2, near(low.first - 1)).map(PageRange::first), Ok(low.end));
    assert_eq!(list.find_free(1, near(low.first - 1)).map(PageRange::first), Ok(low.first - 1));
    assert_eq!(list.find_free(2, near(high.first - 1)).map(PageRange::first), Ok(high.end));
    let last = LAST_PAGE - 1;
    assert_eq!(list.find_free(1, near(last)).map(PageRange::first), Ok(last));
    assert_eq!(list.find_free(2, near(last)).map(PageRange::first), Ok(FIRST_PAGE), "from below");
    assert_eq!(list.find_free(1, u64::MAX).map(PageRange::first), Ok(FIRST_PAGE));
    assert_eq!(list.find_free(u64::MAX, 0), Err(VmError::NoRoom));
    // Everything above the kernel's areas is taken; the largest gap is below them.
    list.reserve(pages(high.end, LAST_PAGE - high.end)).unwrap();
    list.reserve(pages(low.end, high.first - low.end)).unwrap();
    let largest = low.first - FIRST_PAGE;
    assert_eq!(list.find_free(largest, near(high.end)).map(PageRange::first), Ok(FIRST_PAGE));
    assert_eq!(list.find_free(largest + 1, 0), Err(VmError::NoRoom));
}
