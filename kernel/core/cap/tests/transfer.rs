//! Transfer between two tables: all or nothing, whatever fails and whoever interferes.

use abi_types::{CapSlot, InterfaceTag};
use core_cap::*;

/// Any interface: the table only keeps it.
const TAG: InterfaceTag = InterfaceTag::of(1).unwrap();

type Held = Table<u32, Vec<Slot<u32>>>;

/// An object whose interface cannot be passed on.
const FIXED: u32 = 1000;

fn may_pass(cap: &Cap<u32>, _: Mode) -> bool {
    cap.object != FIXED
}

struct Two {
    sender: Held,
    receiver: Held,
    grants: Grants<Vec<GrantEntry>>,
    held: Vec<CapSlot>,
}

fn two(receiver_limit: u32) -> Two {
    let mut sender = Table::new(vec![Slot::UNUSED; 16], 16).unwrap();
    let held = (0..8).map(|n| sender.insert(Cap::new(n, TAG)).unwrap()).collect();
    Two {
        sender,
        receiver: Table::new(vec![Slot::UNUSED; 8], receiver_limit).unwrap(),
        grants: Grants::new((0..2).map(|_| GrantEntry::default()).collect()),
        held,
    }
}

fn copy(slot: CapSlot) -> Request {
    Request { slot, mode: Mode::Copy }
}

fn take(slot: CapSlot) -> Request {
    Request { slot, mode: Mode::Move }
}

#[test]
fn copies_stay_moves_leave_and_order_is_kept() {
    let mut two = two(8);
    let list = [take(two.held[2]), copy(two.held[5]), take(two.held[0])];
    let parcel = two.sender.prepare(&list, |grant| two.grants.is_live(grant), may_pass).unwrap();
    assert_eq!(parcel.copies().map(|item| item.cap.object).collect::<Vec<_>>(), [5]);
    let promised = two.receiver.reserve(parcel.count()).unwrap();
    two.sender.depart(&parcel).unwrap();
    let names = promised.slots().to_vec();
    let arrived = two.receiver.arrive(promised, parcel).unwrap();
    assert_eq!(arrived.slots(), names, "what was promised is what is given");
    two.sender.settle(&parcel);
    assert_eq!(two.sender.used(), 6);
    let objects: Vec<_> =
        arrived.slots().iter().map(|slot| two.receiver.get(*slot).unwrap().object).collect();
    assert_eq!(objects, [2, 5, 0]);
    assert_eq!(two.sender.get(two.held[2]), Err(CapError::Disconnected));
    assert_eq!(two.sender.get(two.held[0]), Err(CapError::Disconnected));
    assert!(two.sender.get(two.held[5]).is_ok());
    two.sender.check_invariants().unwrap();
    two.receiver.check_invariants().unwrap();
}

#[test]
fn a_bad_line_refuses_the_whole_list() {
    let mut two = two(8);
    let fixed = two.sender.insert(Cap::new(FIXED, TAG)).unwrap();
    let gone = two.held[7];
    let _ = two.sender.release(gone).unwrap();
    let before = two.sender.clone();
    let good = two.held[1];
    let disconnected = CapError::Disconnected;
    for (list, error) in [
        (vec![copy(good), copy(gone)], TransferError::Unusable { line: 1, error: disconnected }),
        (vec![copy(CapSlot::NONE)], TransferError::Unusable { line: 0, error: disconnected }),
        (vec![take(good), take(fixed)], TransferError::NotTransferable { line: 1 }),
        (vec![take(good), take(good)], TransferError::MovedTwice { line: 1 }),
        (vec![copy(good), take(good)], TransferError::MovedTwice { line: 1 }),
        (vec![take(good), copy(good)], TransferError::MovedTwice { line: 1 }),
        (vec![copy(good); 9], TransferError::TooMany),
    ] {
        assert_eq!(
            two.sender.prepare(&list, |grant| two.grants.is_live(grant), may_pass),
            Err(error),
            "{list:?}"
        );
    }
    assert!(
        two.sender.prepare(&[copy(good); 8], |grant| two.grants.is_live(grant), may_pass).is_ok()
    );
    assert_eq!(two.sender, before);
}

#[test]
fn a_receiver_without_room_promises_nothing() {
    let mut two = two(3);
    let _ = two.receiver.insert(Cap::new(1, TAG)).unwrap();
    let before = two.receiver.clone();
    assert_eq!(two.receiver.reserve(3), Err(ReserveError::Insert(InsertError::Full)));
    assert_eq!(two.receiver.reserve(9), Err(ReserveError::TooMany));
    assert_eq!(two.receiver, before);
    let promised = two.receiver.reserve(2).unwrap();
    assert_eq!(two.receiver.insert(Cap::new(2, TAG)), Err(InsertError::Full), "promised is used");
    two.receiver.abort(promised);
    assert_eq!(two.receiver, before, "taken back without a trace");
}

#[test]
fn retired_slots_do_not_break_a_promise() {
    // The limit allows three, but only two slots are left that can be used.
    let mut slots = vec![Slot::UNUSED; 4];
    slots[1] = Slot::used_before(u32::MAX);
    slots[2] = Slot::used_before(u32::MAX);
    let mut table: Held = Table::new(slots, 4).unwrap();
    let before = table.clone();
    assert_eq!(table.reserve(3), Err(ReserveError::Insert(InsertError::Full)));
    assert_eq!(table, before);
    assert!(table.reserve(2).is_ok());
}

/// A sibling of the sender releases or moves one of the slots while the transfer is under way:
/// it came first, and the transfer does not happen at all.
#[test]
fn a_sibling_that_takes_a_slot_first_undoes_the_whole_transfer() {
    let mut two = two(8);
    let list = [take(two.held[0]), copy(two.held[1]), take(two.held[2])];
    let parcel = two.sender.prepare(&list, |grant| two.grants.is_live(grant), may_pass).unwrap();
    let receiver_before = two.receiver.clone();
    let promised = two.receiver.reserve(parcel.count()).unwrap();
    let _ = two.sender.release(two.held[2]).unwrap();
    // The place is filled again: the name, not the place, is what counts.
    let refilled = two.sender.insert(Cap::new(77, TAG)).unwrap();
    assert_eq!(refilled.index(), two.held[2].index());
    let before = two.sender.clone();
    assert_eq!(
        two.sender.depart(&parcel),
        Err(TransferError::Unusable { line: 2, error: CapError::Disconnected })
    );
    assert_eq!(two.sender, before, "nothing left the sender");
    two.receiver.abort(promised);
    assert_eq!(two.receiver, receiver_before, "nothing reached the receiver");
}

/// PB13: a receiver that ends, or was replaced, between the promise and the arrival gets
/// nothing, and each capability comes back to be released once.
#[test]
fn pb13_a_receiver_that_ended_on_the_way_gets_nothing() {
    let mut two = two(8);
    let list = [take(two.held[0]), copy(two.held[1])];
    let parcel = two.sender.prepare(&list, |grant| two.grants.is_live(grant), may_pass).unwrap();
    let promised = two.receiver.reserve(parcel.count()).unwrap();
    two.sender.depart(&parcel).unwrap();
    two.receiver.close();
    assert_eq!(two.receiver.drain(100, |_| panic!("nothing arrived yet")), DrainVerdict::Done);
    let Err(Undeliverable(back)) = two.receiver.arrive(promised, parcel) else {
        panic!("arrived in an ended process")
    };
    assert_eq!(back.items().map(|item| item.cap.object).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(two.receiver.used(), 0);
    two.receiver.check_invariants().unwrap();
    assert_eq!(two.sender.get(two.held[0]), Err(CapError::Disconnected), "nobody's meanwhile");
    two.sender.check_invariants().unwrap();
    two.sender.recall(back).unwrap();
    assert_eq!(two.sender.get(two.held[0]).unwrap().object, 0, "under its old name");
    assert_eq!(two.sender.used(), 8);
    two.sender.check_invariants().unwrap();
}

/// Sender and receiver may be one process.
#[test]
fn a_process_can_send_to_itself() {
    let mut two = two(8);
    let list = [take(two.held[0]), copy(two.held[1])];
    let used = two.sender.used();
    let parcel = two.sender.prepare(&list, |grant| two.grants.is_live(grant), may_pass).unwrap();
    let promised = two.sender.reserve(2).unwrap();
    two.sender.depart(&parcel).unwrap();
    let arrived = two.sender.arrive(promised, parcel).unwrap();
    two.sender.settle(&parcel);
    assert_eq!(two.sender.get(arrived.slots()[0]).unwrap().object, 0);
    assert_eq!(two.sender.used(), used + 1);
    two.sender.check_invariants().unwrap();
}

/// A place that a capability is leaving is nobody's: not free, not drained, and not called back into a
/// table that has ended.
#[test]
fn a_sender_that_ends_on_the_way_gets_nothing_back() {
    let mut two = two(8);
    let list = [take(two.held[0]), copy(two.held[1])];
    let parcel = two.sender.prepare(&list, |grant| two.grants.is_live(grant), may_pass).unwrap();
    two.sender.depart(&parcel).unwrap();
    assert_eq!(two.sender.release(two.held[0]), Err(CapError::Disconnected));
    assert!(two.sender.depart(&parcel).is_err(), "it leaves once");
    two.sender.close();
    let mut drained = Vec::new();
    let verdict = two.sender.drain(100, |Released(cap)| drained.push(cap.object));
    assert_eq!((verdict, drained.len(), two.sender.used()), (DrainVerdict::Done, 7, 1));
    let Err(Undeliverable(back)) = two.sender.recall(parcel) else { panic!("it has ended") };
    assert_eq!(back.moves().map(|item| item.cap.object).collect::<Vec<_>>(), [0]);
    assert_eq!(two.sender.used(), 0);
    two.sender.check_invariants().unwrap();
}
