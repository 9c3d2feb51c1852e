//! Random operations on two tables against a map that remembers every name ever given out.
//!
//! The model knows nothing of slots, lists or generations: it is a map from name to content,
//! and a set of names that must never mean anything again.

use std::collections::{BTreeMap, BTreeSet};

use abi_types::{CapSlot, InterfaceTag};
use core_cap::*;
use test_property::prelude::*;

/// Any interface: the table only keeps it.
const TAG: InterfaceTag = InterfaceTag::of(1).unwrap();

const SLOTS: usize = 16;
const LIMIT: u32 = 12;

#[derive(Default)]
struct Model {
    held: BTreeMap<CapSlot, Cap<u32>>,
    gone: BTreeSet<CapSlot>,
}

impl Model {
    fn give_out(&mut self, name: CapSlot, cap: Cap<u32>) {
        assert!(!self.gone.contains(&name), "a name was given out twice: {name:?}");
        assert!(self.held.insert(name, cap).is_none(), "a name in use was given out: {name:?}");
    }

    fn take(&mut self, name: CapSlot) -> Option<Cap<u32>> {
        let cap = self.held.remove(&name)?;
        self.gone.insert(name);
        Some(cap)
    }

    /// Some name: held, gone or made up.
    fn name(&self, choice: u32) -> CapSlot {
        let known: Vec<_> = self.held.keys().chain(&self.gone).copied().collect();
        match known.get((choice as usize) % (known.len() + 1)) {
            Some(name) => *name,
            None => CapSlot::new(choice % 32, choice % 5),
        }
    }
}

/// Where a transfer fails by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fails {
    Nowhere,
    /// While the bytes are copied.
    Copying,
    /// The receiver's thread is gone when its completion is to be posted.
    Posting,
}

#[derive(Clone, Debug)]
enum Op {
    Insert { table: usize, object: u32 },
    Release { table: usize, choice: u32 },
    Facet { table: usize, choice: u32, badge: u64, revocable: bool },
    Revoke { choice: u32 },
    Transfer { from: usize, to: usize, lines: Vec<(u32, bool)>, fails: Fails, meddle: Option<u32> },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..2_usize, any::<u32>()).prop_map(|(table, object)| Op::Insert { table, object }),
        3 => (0..2_usize, any::<u32>()).prop_map(|(table, choice)| Op::Release { table, choice }),
        2 => (0..2_usize, any::<u32>(), 0..3_u64, any::<bool>()).prop_map(
            |(table, choice, badge, revocable)| Op::Facet { table, choice, badge, revocable }
        ),
        1 => any::<u32>().prop_map(|choice| Op::Revoke { choice }),
        3 => (
            0..2_usize,
            0..2_usize,
            prop::collection::vec((any::<u32>(), any::<bool>()), 0..10),
            prop_oneof![6 => Just(Fails::Nowhere), 1 => Just(Fails::Copying), 1 => Just(Fails::Posting)],
            prop::option::weighted(0.2, any::<u32>()),
        )
            .prop_map(|(from, to, lines, fails, meddle)| Op::Transfer {
                from, to, lines, fails, meddle
            }),
    ]
}

struct World {
    tables: [Table<u32, Vec<Slot<u32>>>; 2],
    models: [Model; 2],
    grants: Grants<Vec<GrantEntry>>,
    opened: Vec<Grant>,
    revoked: BTreeSet<usize>,
}

impl World {
    fn new() -> Self {
        let table = || Table::new(vec![Slot::UNUSED; SLOTS], LIMIT).unwrap();
        Self {
            tables: [table(), table()],
            models: Default::default(),
            grants: Grants::new((0..6).map(|_| GrantEntry::default()).collect()),
            opened: Vec::new(),
            revoked: BTreeSet::new(),
        }
    }

    fn is_live(&self, grant: Grant) -> bool {
        match self.opened.iter().position(|opened| *opened == grant) {
            Some(at) => !self.revoked.contains(&at),
            None => grant == Grant::PERMANENT,
        }
    }

    fn room(&self, table: usize) -> usize {
        LIMIT as usize - self.models[table].held.len()
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Insert { table, object } => {
                let before = self.tables[table].clone();
                match self.tables[table].insert(Cap::new(object, TAG)) {
                    Ok(name) => {
                        assert!(self.room(table) > 0);
                        self.models[table].give_out(name, Cap::new(object, TAG));
                    }
                    Err(error) => {
                        assert_eq!((error, self.room(table)), (InsertError::Full, 0));
                        assert_eq!(self.tables[table], before);
                    }
                }
            }
            Op::Release { table, choice } => {
                let name = self.models[table].name(choice);
                let before = self.tables[table].clone();
                match (self.tables[table].release(name), self.models[table].take(name)) {
                    (Ok(Released(cap)), Some(expected)) => assert_eq!(cap, expected),
                    (Err(CapError::Disconnected), None) => {
                        assert_eq!(self.tables[table], before);
                    }
                    (real, model) => panic!("release of {name:?}: {real:?}, model {model:?}"),
                }
            }
            Op::Facet { table, choice, badge, revocable } => {
                let name = self.models[table].name(choice);
                let grant = if revocable { self.grants.open().ok() } else { None };
                self.opened.extend(grant);
                let grant = grant.unwrap_or(Grant::PERMANENT);
                let source = self.models[table].held.get(&name).copied();
                let before = self.tables[table].clone();
                let made = self.tables[table].facet(name, badge, grant, &self.grants);
                let expected = match source {
                    None => Err(FacetError::Source(CapError::Disconnected)),
                    Some(cap) if !self.is_live(cap.grant) => {
                        Err(FacetError::Source(CapError::Revoked))
                    }
                    Some(cap) if cap.badge != 0 && cap.badge != badge => {
                        Err(FacetError::AlreadyBadged)
                    }
                    Some(cap) if cap.grant.is_revocable() && grant.is_revocable() => {
                        Err(FacetError::NestedGrant)
                    }
                    Some(_) if self.room(table) == 0 => Err(FacetError::Insert(InsertError::Full)),
                    Some(cap) if cap.grant.is_revocable() => Ok(Cap { badge, ..cap }),
                    Some(cap) => Ok(Cap { badge, grant, ..cap }),
                };
                match (made, expected) {
                    (Ok(name), Ok(cap)) => self.models[table].give_out(name, cap),
                    (Err(real), Err(model)) => {
                        assert_eq!(real, model);
                        assert_eq!(self.tables[table], before);
                    }
                    (real, model) => panic!("facet of {name:?}: {real:?}, model {model:?}"),
                }
            }
            Op::Revoke { choice } => {
                if self.opened.is_empty() {
                    return;
                }
                let at = choice as usize % self.opened.len();
                let revoked = self.grants.revoke(self.opened[at]);
                assert_eq!(revoked.is_ok(), self.revoked.insert(at));
            }
            Op::Transfer { from, to, ref lines, fails, meddle } => {
                self.transfer(from, to, lines, fails, meddle);
            }
        }
    }

    fn transfer(
        &mut self,
        from: usize,
        to: usize,
        lines: &[(u32, bool)],
        fails: Fails,
        meddle: Option<u32>,
    ) {
        let list: Vec<_> = lines
            .iter()
            .map(|(choice, moves)| Request {
                slot: self.models[from].name(*choice),
                mode: if *moves { Mode::Move } else { Mode::Copy },
            })
            .collect();
        let moved: Vec<_> = list.iter().filter(|r| r.mode == Mode::Move).map(|r| r.slot).collect();
        let is_good = list.len() <= 8
            && list.iter().all(|r| {
                self.models[from].held.get(&r.slot).is_some_and(|cap| self.is_live(cap.grant))
            })
            && moved.iter().all(|slot| list.iter().filter(|r| r.slot == *slot).count() == 1);
        let before = self.tables.clone();
        let parcel =
            match self.tables[from].prepare(&list, |grant| self.grants.is_live(grant), |_, _| true)
            {
                Ok(parcel) => parcel,
                Err(error) => {
                    assert!(!is_good, "{error:?}");
                    assert_eq!(self.tables, before);
                    return;
                }
            };
        assert!(is_good);
        let promised = match self.tables[to].reserve(parcel.count()) {
            Ok(promised) => promised,
            Err(error) => {
                assert_eq!(error, ReserveError::Insert(InsertError::Full));
                assert!(self.room(to) < list.len());
                assert_eq!(self.tables, before);
                return;
            }
        };
        assert!(self.room(to) >= list.len());
        // A sibling of the sender may release something meanwhile.
        let mut is_in_the_way = false;
        if let Some(choice) = meddle {
            let name = self.models[from].name(choice);
            let released = self.tables[from].release(name).is_ok();
            assert_eq!(released, self.models[from].take(name).is_some());
            is_in_the_way = released && moved.contains(&name);
        }
        self.check();
        if fails == Fails::Copying {
            self.tables[to].abort(promised);
            return;
        }
        let before = self.tables.clone();
        let departed = self.tables[from].depart(&parcel);
        assert_eq!(departed.is_err(), is_in_the_way);
        if departed.is_err() {
            assert_eq!(self.tables, before);
            self.tables[to].abort(promised);
            return;
        }
        // Nobody's, and not free: the places are counted until the transfer has ended.
        for slot in &moved {
            assert_eq!(self.tables[from].get(*slot), Err(CapError::Disconnected));
        }
        self.tables[from].check_invariants().unwrap();
        if fails == Fails::Posting {
            self.tables[to].abort(promised);
            self.tables[from].recall(parcel).unwrap();
            return;
        }
        let arrived = self.tables[to].arrive(promised, parcel).unwrap();
        assert_eq!(arrived.slots().len(), list.len());
        self.tables[from].settle(&parcel);
        for slot in moved {
            assert!(self.models[from].take(slot).is_some());
        }
        for (name, item) in arrived.slots().iter().zip(parcel.items()) {
            self.models[to].give_out(*name, item.cap);
        }
    }

    fn check(&self) {
        self.grants.check_invariants().unwrap();
        for (table, model) in self.tables.iter().zip(&self.models) {
            table.check_invariants().unwrap();
            for (name, cap) in &model.held {
                assert_eq!(table.get(*name), Ok(cap));
                let live = self.is_live(cap.grant);
                assert_eq!(table.lookup(*name, &self.grants).is_ok(), live);
            }
            for name in &model.gone {
                assert_eq!(table.get(*name), Err(CapError::Disconnected));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn tables_do_what_the_model_does(ops in prop::collection::vec(op(), 1..80)) {
        let mut world = World::new();
        for op in &ops {
            world.step(op);
            world.check();
            for (table, model) in world.tables.iter().zip(&world.models) {
                prop_assert_eq!(table.used() as usize, model.held.len());
            }
        }
    }
}
