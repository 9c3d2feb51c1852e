//! Every entry of the transferability table: what the schema says of the interface, and what a
//! transfer of such a capability does, as a copy and as a move.
use core_cap::{Cap, GrantEntry, Grants, Mode, Request, Slot, Table, TransferError};
use schema::INTERFACES;
use schema_wire::{Interface, InterfaceTag};

const TABLE: &str = include_str!("../transferability.txt");

/// The entries: name, whether it may go, why.
fn entries() -> Vec<(&'static str, bool, &'static str)> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, rest) = line.split_once(' ').unwrap();
            let (verdict, reason) = rest.trim().split_once(' ').unwrap();
            let may_go = match verdict {
                // What a move is for the table is the object's: the kernel's test has it.
                "yes" | "move" => true,
                "no" => false,
                other => panic!("{name}: {other} is neither yes, no nor move"),
            };
            (name, may_go, reason.trim())
        })
        .collect()
}

#[test]
fn every_interface_has_one_entry_with_a_reason() {
    let names: Vec<&str> = entries().iter().map(|(name, ..)| *name).collect();
    let mut expected: Vec<&str> = INTERFACES.iter().map(|one| one.name).collect();
    expected.sort_unstable();
    assert_eq!(names, expected, "sorted by name, one line each");
    assert!(entries().iter().all(|(.., reason)| !reason.is_empty()));
}

#[test]
fn each_entry_is_what_the_schema_says_and_what_a_transfer_does() {
    for (name, may_go, _) in entries() {
        let interface = INTERFACES.iter().find(|one| one.name == name).unwrap();
        assert_eq!(interface.is_transferable, may_go, "{name}");
        for mode in [Mode::Copy, Mode::Move] {
            let mut table: Table<&Interface, Vec<Slot<&Interface>>> =
                Table::new(vec![Slot::UNUSED; 2], 2).unwrap();
            let grants = Grants::new([GrantEntry::default(), GrantEntry::default()]);
            let slot = table
                .insert(Cap::new(*interface, InterfaceTag::of(interface.id).unwrap()))
                .unwrap();
            let list = [Request { slot, mode }];
            let prepared = table.prepare(
                &list,
                |grant| grants.is_live(grant),
                |cap, _| cap.object.is_transferable,
            );
            let expected =
                if may_go { None } else { Some(TransferError::NotTransferable { line: 0 }) };
            assert_eq!(prepared.err(), expected, "{name} by {mode:?}");
        }
    }
}

/// C4: these by name.
#[test]
fn what_acts_on_the_callers_own_process_stays_there() {
    for name in ["ThreadSpawner", "ThreadHandle", "ThreadControl"] {
        assert!(entries().iter().any(|(entry, may_go, _)| *entry == name && !may_go), "{name}");
    }
}
