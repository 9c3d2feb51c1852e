//! The table by hand: names, limits, retirement, facets, teardown, and the cases with a name.

use abi_types::{CapSlot, InterfaceTag};
use core_cap::*;

/// Any interface: the table only keeps it.
const TAG: InterfaceTag = InterfaceTag::of(1).unwrap();

type Held = Table<u32, Vec<Slot<u32>>>;

fn table(slots: usize, limit: u32) -> Held {
    Table::new(vec![Slot::UNUSED; slots], limit).unwrap()
}

fn grants() -> Grants<Vec<GrantEntry>> {
    Grants::new((0..8).map(|_| GrantEntry::default()).collect::<Vec<_>>())
}

#[test]
fn storage_is_a_power_of_two_and_holds_the_limit() {
    for (slots, limit, fits) in
        [(0, 0, false), (3, 3, false), (4, 5, false), (4, 4, true), (1, 0, true)]
    {
        let made = Held::new(vec![Slot::UNUSED; slots], limit);
        assert_eq!(made.is_ok(), fits, "{slots} slots, limit {limit}");
    }
}

#[test]
fn a_released_slot_is_stale_for_ever() {
    let mut table = table(4, 4);
    let first = table.insert(Cap::new(7, TAG)).unwrap();
    assert_eq!(table.get(first), Ok(&Cap::new(7, TAG)));
    assert_eq!(table.release(first), Ok(Released(Cap::new(7, TAG))));
    assert_eq!(table.release(first), Err(CapError::Disconnected));
    let second = table.insert(Cap::new(8, TAG)).unwrap();
    assert_eq!(second.index(), first.index(), "the place is used again");
    assert_ne!(second, first);
    assert_eq!(table.get(first), Err(CapError::Disconnected));
    assert_eq!(table.release(first), Err(CapError::Disconnected));
    assert_eq!(table.get(second), Ok(&Cap::new(8, TAG)));
    table.check_invariants().unwrap();
}

/// PB12: no number a program can make up reaches a capability it was not given.
#[test]
fn pb12_a_made_up_slot_reaches_nothing() {
    let mut table = table(4, 4);
    let held = table.insert(Cap::new(7, TAG)).unwrap();
    let before = table.clone();
    let (index, generation) = (held.index(), held.generation());
    for forged in [
        CapSlot::NONE,
        CapSlot::new(index, 0),
        CapSlot::new(index, generation + 1),
        CapSlot::new(index, generation.wrapping_sub(1)),
        CapSlot::new(index + 1, generation),
        // Masked, these positions are the held one.
        CapSlot::new(index + 4, generation),
        CapSlot::new(index | 1 << 31, generation),
        CapSlot::new(u32::MAX, generation),
        CapSlot::from_bits(u64::MAX),
    ] {
        assert_eq!(table.get(forged), Err(CapError::Disconnected), "{forged:?}");
        assert_eq!(table.release(forged), Err(CapError::Disconnected), "{forged:?}");
    }
    assert_eq!(table, before);
}

#[test]
fn the_limit_is_kept_below_the_storage() {
    let mut table = table(8, 2);
    let a = table.insert(Cap::new(1, TAG)).unwrap();
    let _ = table.insert(Cap::new(2, TAG)).unwrap();
    let before = table.clone();
    assert_eq!(table.insert(Cap::new(3, TAG)), Err(InsertError::Full));
    assert_eq!(table, before);
    let _ = table.release(a).unwrap();
    assert!(table.insert(Cap::new(3, TAG)).is_ok());
}

#[test]
fn a_slot_retires_after_its_last_generation() {
    let mut table = Table::new([Slot::used_before(u32::MAX - 1)], 1).unwrap();
    let last = table.insert(Cap::new(1_u8, TAG)).unwrap();
    assert_eq!(last.generation(), u32::MAX);
    let _ = table.release(last).unwrap();
    assert_eq!(table.insert(Cap::new(2, TAG)), Err(InsertError::Full));
    assert_eq!(table.reserve(1), Err(ReserveError::Insert(InsertError::Full)));
    table.check_invariants().unwrap();
    assert_eq!(table.used(), 0);
}

#[test]
fn only_the_unmarked_capability_marks_facets() {
    let (mut table, grants) = (table(8, 8), grants());
    let owner = table.insert(Cap::new(5, TAG)).unwrap();
    let red = table.facet(owner, 0xa, Grant::PERMANENT, &grants).unwrap();
    let blue = table.facet(owner, 0xb, Grant::PERMANENT, &grants).unwrap();
    assert_eq!(table.get(red).map(|cap| (cap.object, cap.badge)), Ok((5, 0xa)));
    assert_eq!(table.get(blue).map(|cap| (cap.object, cap.badge)), Ok((5, 0xb)));
    for badge in [0, 0xb] {
        let refused = table.facet(red, badge, Grant::PERMANENT, &grants);
        assert_eq!(refused, Err(FacetError::AlreadyBadged), "badge {badge}");
    }
    assert!(table.facet(red, 0xa, Grant::PERMANENT, &grants).is_ok(), "a plain copy");
}

/// C13: revoking a facet makes every copy stale at once, in whichever table, and nothing else.
#[test]
fn revocation_reaches_every_copy_in_every_table() {
    let (mut mine, mut theirs, mut grants) = (table(8, 8), table(8, 8), grants());
    let owner = mine.insert(Cap::new(5, TAG)).unwrap();
    let grant = grants.open().unwrap();
    let facet = mine.facet(owner, 0xa, grant, &grants).unwrap();
    let parcel = mine
        .prepare(
            &[Request { slot: facet, mode: Mode::Copy }],
            |grant| grants.is_live(grant),
            |_, _| true,
        )
        .unwrap();
    let promised = theirs.reserve(1).unwrap();
    mine.depart(&parcel).unwrap();
    let arrived = theirs.arrive(promised, parcel).unwrap();
    let copy = arrived.slots()[0];
    // A facet of a revocable facet falls with it, and cannot have a grant of its own.
    let below = theirs.facet(copy, 0xa, Grant::PERMANENT, &grants).unwrap();
    let other = grants.open().unwrap();
    assert_eq!(theirs.facet(copy, 0xa, other, &grants), Err(FacetError::NestedGrant));

    assert!(theirs.lookup(copy, &grants).is_ok() && theirs.lookup(below, &grants).is_ok());
    assert_eq!(grants.revoke(grant), Ok(()));
    assert_eq!(mine.lookup(facet, &grants), Err(CapError::Revoked));
    assert_eq!(theirs.lookup(copy, &grants), Err(CapError::Revoked));
    assert_eq!(theirs.lookup(below, &grants), Err(CapError::Revoked));
    assert!(mine.lookup(owner, &grants).is_ok(), "the owner's own is not revoked");
    // A revoked slot can still be given back, once, and not passed on.
    let list = [Request { slot: copy, mode: Mode::Move }];
    assert_eq!(
        theirs.prepare(&list, |grant| grants.is_live(grant), |_, _| true),
        Err(TransferError::Unusable { line: 0, error: CapError::Revoked })
    );
    assert!(theirs.release(copy).is_ok());
    assert_eq!(theirs.release(copy), Err(CapError::Disconnected));
}

#[test]
fn teardown_shows_each_capability_once_in_bounded_steps() {
    let mut table = table(16, 16);
    let slots: Vec<_> = (0..10).map(|n| table.insert(Cap::new(n, TAG)).unwrap()).collect();
    let _ = table.release(slots[3]).unwrap();
    table.close();
    assert_eq!(table.insert(Cap::new(99, TAG)), Err(InsertError::Closed));
    assert_eq!(table.reserve(1), Err(ReserveError::Insert(InsertError::Closed)));
    let (mut seen, mut steps) = (Vec::new(), 0);
    loop {
        let before = seen.len();
        let verdict = table.drain(3, |Released(cap)| seen.push(cap.object));
        assert!(seen.len() - before <= 3);
        table.check_invariants().unwrap();
        steps += 1;
        if verdict == DrainVerdict::Done {
            break;
        }
    }
    assert_eq!(steps, 6);
    assert_eq!(seen, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!(table.used(), 0);
    assert_eq!(table.drain(3, |_| panic!("shown twice")), DrainVerdict::Done);
}

#[test]
fn a_promised_slot_is_filled_once_and_not_after_the_close() {
    let mut table = Held::new(vec![Slot::UNUSED; 4], 1).unwrap();
    let promised = table.reserve(1).unwrap();
    assert_eq!(table.insert(Cap::new(1, TAG)), Err(InsertError::Full));
    let slot = table.fill(promised, Cap::new(7, TAG)).unwrap();
    assert_eq!((table.get(slot).unwrap().object, table.used()), (7, 1));
    assert_eq!(table.release(slot), Ok(Released(Cap::new(7, TAG))));
    let promised = table.reserve(1).unwrap();
    table.close();
    assert_eq!(table.fill(promised, Cap::new(8, TAG)), None);
    assert_eq!(table.used(), 0);
    table.check_invariants().unwrap();
}

#[test]
fn an_account_pays_for_each_slot_in_use() {
    use core_ledger::{CapSlots, Ledger, Line, Profile};
    let ledger = Ledger::new(&Profile { cap_slots: 2, ..Profile::NONE });
    let used = || ledger.reading(Line::CapSlots).used;
    let payer = ledger.reserve(CapSlots, 0).unwrap().commit();
    let mut table = Table::paid_by(payer, vec![Slot::UNUSED; 8], 8).unwrap();
    let first = table.insert(Cap::new(1, TAG)).unwrap();
    let promised = table.reserve(1).unwrap();
    assert_eq!(used(), 2);
    assert_eq!(table.insert(Cap::new(2, TAG)), Err(InsertError::Full), "the account has two slots");
    assert!(table.reserve(1).is_err());
    assert_eq!((used(), table.used()), (2, 2), "what is refused is not charged");
    table.abort(promised);
    assert_eq!(used(), 1);
    assert_eq!(table.release(first), Ok(Released(Cap::new(1, TAG))));
    assert_eq!(used(), 0);
    for object in 0..2 {
        table.insert(Cap::new(object, TAG)).unwrap();
    }
    table.close();
    assert_eq!(table.drain(8, |_| {}), DrainVerdict::Done);
    assert_eq!(used(), 0);
    table.check_invariants().unwrap();
    drop(table);
    ledger.close();
    assert!(ledger.is_zero());
}

#[test]
fn a_table_of_fresh_slots_is_the_same_as_one_that_was_looked_through() {
    for count in [1, 2, 8, 64] {
        let fresh: Vec<Slot<u32>> = (0..count).map(|index| Slot::fresh(index, count)).collect();
        let table = Table::of_fresh((), fresh.clone(), count).unwrap();
        assert_eq!(table, Table::new(vec![Slot::UNUSED; count as usize], count).unwrap());
        table.check_invariants().unwrap();
        assert!(Table::of_fresh((), fresh, count + 1).is_err(), "a limit above the slots");
    }
    let three: Vec<Slot<u32>> = (0..3).map(|index| Slot::fresh(index, 3)).collect();
    assert!(Table::of_fresh((), three, 3).is_err());
    assert!(Table::<u32, _>::of_fresh((), vec![Slot::UNUSED; 4], 4).is_err(), "not linked");
}
