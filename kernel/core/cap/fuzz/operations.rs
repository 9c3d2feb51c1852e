//! Fuzzes two capability tables and their transfers by strings of operations, three bytes each.
//! Each object is counted: what is in the tables and on its way is what was put in and not
//! released, whatever the string.
#![no_main]

use abi_types::{CapSlot, InterfaceTag};
use core_cap::*;
use libfuzzer_sys::fuzz_target;

/// Any interface: the table only keeps it.
const TAG: InterfaceTag = InterfaceTag::of(1).unwrap();

type Held = Table<u8, Vec<Slot<u8>>>;

struct World {
    tables: [Held; 2],
    /// Every name that was ever given out, per table; most are stale.
    names: [Vec<CapSlot>; 2],
    grants: Grants<Vec<GrantEntry>>,
    open: Vec<Grant>,
}

impl World {
    fn name(&self, table: usize, pick: u8) -> CapSlot {
        let names = &self.names[table];
        match names.len() {
            0 => CapSlot::new(u32::from(pick), 1),
            count => names[usize::from(pick) % count],
        }
    }

    /// Sends up to three capabilities; undone half-way by what the argument says.
    fn send(&mut self, from: usize, argument: u8, pick: u8) {
        let list: Vec<Request> = (0..argument % 4)
            .map(|n| Request {
                slot: self.name(from, pick.wrapping_add(n)),
                mode: if argument >> (2 + n) & 1 == 1 { Mode::Move } else { Mode::Copy },
            })
            .collect();
        let to = usize::from(argument >> 5 & 1);
        let before = self.tables.clone();
        let may_pass = |cap: &Cap<u8>, _: Mode| cap.object != 0;
        let Ok(parcel) =
            self.tables[from].prepare(&list, |grant| self.grants.is_live(grant), may_pass)
        else {
            assert_eq!(self.tables, before);
            return;
        };
        let Ok(promised) = self.tables[to].reserve(parcel.count()) else {
            assert_eq!(self.tables, before);
            return;
        };
        if argument >> 6 & 1 == 1 {
            // A sibling takes the first one in between.
            let _ = list.first().map(|first| self.tables[from].release(first.slot));
        }
        let middle = self.tables.clone();
        if self.tables[from].depart(&parcel).is_err() {
            assert_eq!(self.tables, middle);
            self.tables[to].abort(promised);
            return;
        }
        match self.tables[to].arrive(promised, parcel) {
            Ok(arrived) => {
                self.names[to].extend(arrived.slots());
                self.tables[from].settle(&parcel);
            }
            Err(Undeliverable(back)) => {
                assert_eq!(back.count(), list.len() as u32);
                if let Err(Undeliverable(back)) = self.tables[from].recall(back) {
                    assert_eq!(back.count(), list.len() as u32);
                }
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut world = World {
        tables: [8, 5].map(|limit| Table::new(vec![Slot::UNUSED; 8], limit).unwrap()),
        names: [Vec::new(), Vec::new()],
        grants: Grants::new((0..4).map(|_| GrantEntry::default()).collect()),
        open: Vec::new(),
    };
    for step in input.chunks_exact(3) {
        let [operation, argument, pick] = [step[0], step[1], step[2]];
        let at = usize::from(operation >> 7);
        match operation % 8 {
            0 => {
                let made = world.tables[at].insert(Cap::new(argument % 16, TAG));
                world.names[at].extend(made);
            }
            1 => {
                let name = world.name(at, pick);
                let was_there = world.tables[at].get(name).is_ok();
                assert_eq!(world.tables[at].release(name).is_ok(), was_there);
                assert!(world.tables[at].get(name).is_err(), "released and still there");
            }
            2 => {
                let grant = world.open.last().copied().unwrap_or(Grant::PERMANENT);
                let name = world.name(at, pick);
                let made = world.tables[at].facet(name, argument.into(), grant, &world.grants);
                world.names[at].extend(made);
            }
            3 => world.open.extend(world.grants.open()),
            4 => {
                if let Some(grant) = world.open.pop() {
                    world.grants.revoke(grant).unwrap();
                    assert!(!world.grants.is_live(grant));
                }
            }
            5 if argument == 255 => {
                world.tables[at].close();
                while world.tables[at].drain(2, |_| ()) == DrainVerdict::More {}
                assert_eq!(world.tables[at].used(), 0);
            }
            6 => {
                let forged = CapSlot::new(argument.into(), pick.into());
                let known = world.names[at].contains(&forged);
                assert!(known || world.tables[at].get(forged).is_err(), "made up and there");
            }
            _ => world.send(at, argument, pick),
        }
        world.grants.check_invariants().unwrap();
        for table in &world.tables {
            table.check_invariants().unwrap();
        }
    }
});
