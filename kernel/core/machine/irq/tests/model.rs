//! The router against controllers and devices that exist only here: a line that is open interrupts its
//! owner, one that is not does not, and a delegate's device interrupts once for each acknowledgement.

use core_irq::{
    Chips, End, FIRST_VECTOR, LAST_VECTOR, Line, MAX_UNITS, Owner, Polarity, RouteError, Router,
    Trigger, Unit, Wiring, Write, isa,
};
use std::collections::BTreeMap;
use test_property::prelude::*;

fn wiring(line: u32) -> Wiring {
    Wiring { line: Line(line), trigger: Trigger::Level, polarity: Polarity::Low }
}

/// The same, by edge if its number is a multiple of three.
fn any_wiring(line: u32) -> Wiring {
    let trigger = if line.is_multiple_of(3) { Trigger::Edge } else { Trigger::Level };
    Wiring { trigger, ..wiring(line) }
}

fn io_apics() -> Chips {
    let mut units = [Unit::default(); MAX_UNITS];
    units[0] = Unit { first: 0, lines: 24 };
    units[1] = Unit { first: 24, lines: 8 };
    Chips::IoApics(units)
}

/// What controllers were told.
#[derive(Default)]
struct Controllers {
    entries: BTreeMap<(usize, u32), u64>,
    mask: Option<u16>,
}

impl Controllers {
    fn obey(&mut self, write: Write) {
        match write {
            Write::IoApic { unit, pin, entry } => {
                self.entries.insert((unit, pin), entry);
            }
            Write::PicMask(mask) => self.mask = Some(mask),
        }
    }

    /// The vector a line would interrupt on now.
    fn raised(&self, chips: &Chips, line: u32) -> Option<u8> {
        match chips {
            Chips::Pic => {
                let mask = self.mask.unwrap_or(u16::MAX);
                // Nothing but the second is on line 2.
                let through = line < 8 || mask & 1 << 2 == 0;
                (line < 16 && line != 2 && mask >> line & 1 == 0 && through)
                    .then_some(32 + line as u8)
            }
            Chips::IoApics(_) => {
                let key = if line < 24 { (0, line) } else { (1, line - 24) };
                self.entries
                    .get(&key)
                    .filter(|entry| **entry >> 16 & 1 == 0)
                    .map(|entry| *entry as u8)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Give(u32, bool),
    TakeBack(u32),
    Open(u32, bool),
    Acknowledge(u32),
    Raise(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let line = 0..34u32;
    let step = prop_oneof![
        (line.clone(), any::<bool>()).prop_map(|(l, d)| Step::Give(l, d)),
        line.clone().prop_map(Step::TakeBack),
        (line.clone(), any::<bool>()).prop_map(|(l, o)| Step::Open(l, o)),
        line.clone().prop_map(Step::Acknowledge),
        line.prop_map(Step::Raise),
    ];
    prop::collection::vec(step, 0..200)
}

#[derive(Clone, Copy)]
struct Given {
    owner: Owner,
    is_open: bool,
    is_unanswered: bool,
}

fn run(chips: Chips, steps: &[Step]) {
    let mut router = Router::new(chips);
    let mut controllers = Controllers::default();
    let mut model: BTreeMap<u32, Given> = BTreeMap::new();
    let exists = |line: u32| match chips {
        Chips::Pic => line < 16 && line != 2,
        Chips::IoApics(_) => line < 32,
    };
    for &step in steps {
        let before = router.clone();
        let told = match step {
            Step::Give(line, is_delegated) => {
                let owner = if is_delegated { Owner::Delegate(line) } else { Owner::Driver(1) };
                match router.give(any_wiring(line), owner, None, 3) {
                    Ok(write) => {
                        assert!(exists(line) && !model.contains_key(&line));
                        model.insert(line, Given { owner, is_open: false, is_unanswered: false });
                        Some(write)
                    }
                    Err(error) => {
                        let right = if model.contains_key(&line) {
                            RouteError::Taken
                        } else {
                            assert!(!exists(line));
                            RouteError::NoSuchLine
                        };
                        assert_eq!((error, &router), (right, &before), "an error changes nothing");
                        None
                    }
                }
            }
            Step::TakeBack(line) => {
                model.remove(&line);
                router.take_back(Line(line))
            }
            Step::Open(line, is_open) => {
                if let Some(given) = model.get_mut(&line) {
                    given.is_open = is_open;
                }
                router.set_open(Line(line), is_open)
            }
            Step::Acknowledge(line) => {
                if let Some(given) = model.get_mut(&line) {
                    given.is_unanswered = false;
                }
                router.acknowledge(Line(line))
            }
            Step::Raise(line) => {
                let heard = model.get(&line).is_some_and(|g| g.is_open && !g.is_unanswered);
                let vector = controllers.raised(&chips, line);
                assert_eq!(vector.is_some(), heard, "line {line}");
                vector.and_then(|vector| {
                    let taken = router.take(vector, |_| true);
                    let given = model.get_mut(&line).expect("it is heard");
                    assert_eq!(taken.owner, Some((Line(line), given.owner)));
                    given.is_unanswered = matches!(given.owner, Owner::Delegate(_))
                        && any_wiring(line).trigger == Trigger::Level;
                    assert_eq!(taken.mask.is_some(), given.is_unanswered);
                    let end = match chips {
                        Chips::IoApics(_) => End::Apic,
                        Chips::Pic if line < 8 => End::First,
                        Chips::Pic => End::Both,
                    };
                    assert_eq!(taken.end, end);
                    taken.mask
                })
            }
        };
        if let Some(write) = told {
            controllers.obey(write);
        }
        for line in 0..34 {
            let heard = model.get(&line).is_some_and(|g| g.is_open && !g.is_unanswered);
            assert_eq!(
                controllers.raised(&chips, line).is_some(),
                heard,
                "line {line} after {step:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn io_apics_interrupt_whom_they_should(steps in steps()) {
        run(io_apics(), &steps);
    }

    #[test]
    fn the_8259s_interrupt_whom_they_should(steps in steps()) {
        run(Chips::Pic, &steps);
    }
}

#[test]
fn an_entry_says_how_the_line_is_wired() {
    let mut router = Router::new(io_apics());
    let write = router.give(wiring(26), Owner::Driver(0), None, 7);
    let masked = 7 << 56 | 1 << 16 | 1 << 15 | 1 << 13 | u64::from(FIRST_VECTOR);
    assert_eq!(write, Ok(Write::IoApic { unit: 1, pin: 2, entry: masked }));
    let isa = isa(4, std::iter::empty()).expect("a line");
    let write = router.give(isa, Owner::Driver(0), Some(32), 0);
    assert_eq!(write, Ok(Write::IoApic { unit: 0, pin: 4, entry: 1 << 16 | 32 }));
    assert_eq!(router.set_open(Line(4), true), Some(Write::IoApic { unit: 0, pin: 4, entry: 32 }));
    assert_eq!(router.set_open(Line(4), true), None);
    assert_eq!((router.vector_of(Line(26)), router.vector_of(Line(4))), (Some(64), Some(32)));
}

#[test]
fn a_vector_is_one_lines() {
    let mut router = Router::new(io_apics());
    let mut give = |line, vector| router.give(wiring(line), Owner::Driver(0), vector, 0);
    assert!(give(1, Some(70)).is_ok());
    for wrong in [70, 48, 49, 255, 31, 63] {
        assert_eq!(give(2, Some(wrong)), Err(RouteError::NoVector), "{wrong}");
    }
    assert!((2..12).all(|line| give(line, None).is_ok()));
    let vectors: Vec<_> = (1..12).filter_map(|line| router.vector_of(Line(line))).collect();
    let mut sorted = vectors.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), vectors.len());
    assert!(vectors.iter().all(|v| (FIRST_VECTOR..=LAST_VECTOR).contains(v)));
    let mut pic = Router::new(Chips::Pic);
    assert_eq!(pic.give(wiring(4), Owner::Driver(0), Some(64), 0), Err(RouteError::NoVector));
}

#[test]
fn an_interrupt_that_went_away_is_nobodys() {
    let mut router = Router::new(Chips::Pic);
    for line in [7, 15] {
        assert!(router.give(wiring(line), Owner::Driver(1), None, 0).is_ok());
        assert!(router.set_open(Line(line), true).is_some());
    }
    let mut take = |vector, is_meant: bool| {
        let taken = router.take(vector, |_| is_meant);
        (taken.owner.is_some(), taken.end)
    };
    assert_eq!(take(39, true), (true, End::First));
    assert_eq!(take(39, false), (false, End::Nothing));
    assert_eq!(take(47, true), (true, End::Both));
    assert_eq!(take(47, false), (false, End::First));
    // Vectors without a line.
    assert_eq!(take(33, true), (false, End::First));
    assert_eq!(Router::new(io_apics()).take(200, |_| true).owner, None);
}

#[test]
fn there_is_an_end_to_lines() {
    let mut units = [Unit::default(); MAX_UNITS];
    units[0] = Unit { first: 0, lines: 240 };
    let mut router = Router::new(Chips::IoApics(units));
    let mut give = |line| router.give(wiring(line), Owner::Driver(0), None, 0);
    assert!((0..64).all(|line| give(line).is_ok()));
    assert_eq!(give(64), Err(RouteError::TooMany));
}
