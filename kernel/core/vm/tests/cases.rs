//! Regions by hand: guards, W^X in time, the ends of the space, exact room.

use core_vm::*;

fn list(limit: usize) -> Regions<Vec<Region>> {
    Regions::new(vec![Region::UNUSED; limit + 2]).unwrap()
}

/// Maps own pages and settles them.
fn map_own(
    list: &mut Regions<Vec<Region>>,
    range: PageRange,
    access: Access,
) -> Result<Mapped, VmError> {
    let mapped = list.map_own(range, access)?;
    list.settle(range, |_| {});
    Ok(mapped)
}

/// Unmaps pages and settles them.
fn unmap(list: &mut Regions<Vec<Region>>, range: PageRange) -> Result<(), VmError> {
    list.unmap(range, None)?;
    list.settle(range, |_| {});
    Ok(())
}

/// Protects pages and settles them.
fn protect(
    list: &mut Regions<Vec<Region>>,
    range: PageRange,
    access: Access,
) -> Result<(), VmError> {
    list.protect(range, access, None)?;
    list.settle(range, |_| {});
    Ok(())
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
    let stack = map_own(&mut list, pages(101, 16), Access::Write).unwrap();
    assert_eq!(stack.from_reserved, 16);
    assert_eq!(list.find(100).map(|region| region.usage), Some(Use::Reserved));
    assert_eq!(list.find_free(1, 100 * 4096).map(PageRange::first), Ok(117));
    assert_eq!(protect(&mut list, pages(100, 2), Access::Read), Err(VmError::NotMapped));
    // Stack and guard go in one step.
    unmap(&mut list, pages(100, 17)).unwrap();
    assert_eq!((list.mapped_pages(), list.all().len()), (0, 0));
}

/// C10: code is written, then executed, and never both.
#[test]
fn writable_pages_become_executable_and_stop_being_writable() {
    let mut list = list(4);
    let _ = map_own(&mut list, pages(1, 3), Access::Write).unwrap();
    protect(&mut list, pages(2, 1), Access::Execute).unwrap();
    assert!(
        list.all()
            .iter()
            .all(|region| !matches!(region.usage, Use::Mapped { access: Access::Write, .. })
                || region.range.overlap(pages(2, 1)).is_none())
    );
    protect(&mut list, pages(1, 3), Access::Write).unwrap();
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
    list.settle(range, |_| {});
    for access in [Access::Write, Access::Execute] {
        assert_eq!(protect(&mut list, range, access), Err(VmError::AboveCeiling));
    }
    assert_eq!(list.unmap(range, Some(8)), Err(VmError::NotOfObject));
    assert_eq!(list.unmap(range, Some(9)), Ok(()));
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
    let _ = map_own(&mut list, pages(10, 5), Access::Read).unwrap();
    let before = list.all().to_vec();
    assert_eq!(protect(&mut list, pages(11, 1), Access::Write), Err(VmError::Full));
    assert_eq!(list.all(), before);
    assert_eq!(unmap(&mut list, pages(12, 1)), Err(VmError::Full), "three while it is in transit");
    assert_eq!(list.move_to(vec![Region::UNUSED; 5]).map(|old| old.len()), Ok(4));
    unmap(&mut list, pages(12, 1)).unwrap();
    assert_eq!(list.all().len(), 2);
    let before = list.all().to_vec();
    assert_eq!(unmap(&mut list, pages(11, 1)), Ok(()), "shorter, not more");
    let _ = list.move_to(vec![Region::UNUSED; 4]).unwrap();
    assert_eq!(map_own(&mut list, pages(30, 1), Access::Read), Err(VmError::Full));
    assert_eq!(list.reserve(pages(30, 1)), Err(VmError::Full));
    // What continues its neighbour is a region of its own while it is in transit.
    assert_eq!(map_own(&mut list, pages(11, 1), Access::Read), Err(VmError::Full));
    let _ = list.move_to(vec![Region::UNUSED; 5]).unwrap();
    let _ = map_own(&mut list, pages(11, 1), Access::Read).unwrap();
    assert_eq!(list.all(), before, "it grew the region below");
    let _ = map_own(&mut list, pages(12, 1), Access::Read).unwrap();
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

/// The gap around a page ends at regions, kernel areas and the ends of user memory.
#[test]
fn a_gap_is_what_could_be_mapped_around_a_page() {
    let [low, high] = AREAS;
    assert_eq!(gap_around(5, 0, u64::MAX), Ok(pages(1, low.first - 1)));
    assert_eq!(gap_around(low.end, 0, u64::MAX), Ok(pages(low.end, high.first - low.end)));
    assert_eq!(gap_around(high.end, 7, u64::MAX), Ok(pages(high.end, LAST_PAGE - high.end)));
    assert_eq!(gap_around(9, 8, 11), Ok(pages(8, 3)));
}

/// A mapping that is given up half-way: what siblings may have seen leaves in its own time.
#[test]
fn an_abandoned_mapping_leaves_as_far_as_it_got() {
    for entered in [0, 1, 3, 4] {
        let mut list = list(3);
        let _ = map_own(&mut list, pages(10, 2), Access::Write).unwrap();
        let before = list.all().to_vec();
        let range = pages(12, 4);
        let _ = list.map_own(range, Access::Write).unwrap();
        let mut gone = 0;
        list.abandon(range, 12 + entered, |piece| gone += piece.range.pages());
        assert_eq!(gone, 4 - entered);
        list.check_invariants().unwrap();
        assert_eq!(list.mapped_pages(), 2 + entered);
        assert_eq!(list.find_free(1, 12 * 4096).map(PageRange::first), Ok(12 + entered));
        list.settle(range, |_| {});
        assert_eq!(list.all(), before);
    }
}

/// Pages in transit are their changer's alone, and two changes side by side settle in any order.
#[test]
fn what_is_in_transit_is_nobody_elses() {
    let mut list = list(4);
    let _ = list.map_own(pages(10, 2), Access::Write).unwrap();
    let _ = list.map_own(pages(12, 2), Access::Write).unwrap();
    for range in [pages(10, 1), pages(11, 2), pages(9, 4)] {
        assert_eq!(list.map_own(range, Access::Read), Err(VmError::Busy));
    }
    assert_eq!(list.unmap(pages(10, 4), None), Err(VmError::Busy));
    assert_eq!(list.protect(pages(13, 1), Access::Read, None), Err(VmError::Busy));
    assert_eq!(list.reserve(pages(13, 1)), Err(VmError::Occupied));
    list.settle(pages(12, 2), |_| {});
    assert_eq!(list.all().len(), 2);
    list.settle(pages(10, 2), |_| {});
    assert_eq!(list.all().len(), 1, "both are one now");
    list.unmap(pages(11, 1), None).unwrap();
    assert_eq!(list.mapped_pages(), 4, "what is behind it is still there");
    assert_eq!(list.find_free(1, 10 * 4096).map(PageRange::first), Ok(14));
    list.settle(pages(11, 1), |_| {});
    assert_eq!((list.mapped_pages(), list.all().len()), (3, 2));
    assert_eq!(list.find_free(1, 10 * 4096).map(PageRange::first), Ok(11));
}
