//! Rings of output beside a slow model: what every process wrote comes out once, in its order, line by line and turn
//! by turn, and who waits is let in as soon as it fits.

use core_output::{
    Admitted, LINE_BYTES, Left, MAX_WAITING, Outlet, Outlets, TURN_BYTES, WRITE_BYTES, Written,
};
use std::collections::VecDeque;
use test_property::prelude::*;

type Rings = Outlets<u32, Vec<u8>>;

const PROCESSES: usize = 4;

fn rings(capacity: usize) -> Rings {
    let mut rings = Rings::new(PROCESSES).unwrap();
    for process in 0..PROCESSES {
        rings.open(process, Outlet::new(vec![0; capacity]).unwrap()).unwrap();
    }
    rings
}

/// A process, as slowly as can be.
#[derive(Clone, Default, Debug)]
struct Model {
    inside: VecDeque<u8>,
    waiting: VecDeque<(u32, Vec<u8>)>,
    is_leaving: bool,
    is_gone: bool,
}

/// All of them: the turn is told by what went out before.
#[derive(Clone, Debug)]
struct Models {
    capacity: usize,
    of: Vec<Model>,
    /// Whose turn it is, and the bytes of it.
    turn: usize,
    gone: Vec<u8>,
    has_begun: bool,
    is_shut: bool,
}

impl Models {
    fn write(&mut self, process: usize, party: Option<u32>, bytes: &[u8]) -> Written {
        let (is_shut, capacity) = (self.is_shut, self.capacity);
        let model = &mut self.of[process];
        if model.is_gone {
            return Written::NotOpen;
        }
        let fits = model.inside.len() + bytes.len() <= capacity;
        if fits && model.waiting.is_empty() && !is_shut {
            model.inside.extend(bytes);
            return Written::Taken;
        }
        let Some(party) = party else { return Written::Full };
        if model.waiting.len() == MAX_WAITING {
            return Written::TooMany;
        }
        model.waiting.push_back((party, bytes.to_vec()));
        Written::Waits
    }

    fn next(&mut self, most: usize) -> Option<(usize, Vec<u8>)> {
        let is_over = !self.has_begun
            || self.gone.ends_with(b"\n")
            || self.gone.len() >= LINE_BYTES
            || self.of[self.turn].inside.is_empty();
        if is_over {
            let after = (1..=PROCESSES).map(|step| (self.turn + step) % PROCESSES);
            self.turn = after.into_iter().find(|process| !self.of[*process].inside.is_empty())?;
            self.gone.clear();
            self.has_begun = true;
        }
        let begins = self.gone.is_empty();
        let room = if begins { TURN_BYTES } else { LINE_BYTES - self.gone.len() };
        let text: Vec<u8> =
            self.of[self.turn].inside.iter().copied().take(room.min(most)).collect();
        let mut ends =
            text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let end = if begins { ends.last() } else { ends.next() };
        Some((self.turn, text[..end.unwrap_or(text.len())].to_vec()))
    }

    fn sent(&mut self, process: usize, count: usize) -> bool {
        let had_some = !self.of[process].inside.is_empty();
        let gone: Vec<u8> = self.of[process].inside.drain(..count).collect();
        self.gone.extend(gone);
        had_some && self.of[process].is_leaving && self.of[process].inside.is_empty()
    }

    fn admit(&mut self, process: usize) -> Option<Admitted<u32>> {
        let model = &mut self.of[process];
        let (_, bytes) = model.waiting.front()?;
        if self.is_shut || model.inside.len() + bytes.len() > self.capacity {
            return None;
        }
        let (party, bytes) = model.waiting.pop_front()?;
        model.inside.extend(&bytes);
        Some(Admitted { party, length: bytes.len() })
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write { process: usize, bytes: Vec<u8>, waits: bool },
    GiveUp { process: usize, which: usize },
    Drain { most: usize, of_it: usize, admits: bool },
    Leave { process: usize },
    Shut,
}

fn step() -> impl Strategy<Value = Step> {
    let byte = prop_oneof![1 => Just(b'\n'), 12 => b'a'..=b'z'];
    let bytes = prop::collection::vec(byte, 0..=WRITE_BYTES);
    prop_oneof![
        60 => (0..PROCESSES, bytes, any::<bool>())
            .prop_map(|(process, bytes, waits)| Step::Write { process, bytes, waits }),
        5 => (0..PROCESSES, 0usize..6).prop_map(|(process, which)| Step::GiveUp { process, which }),
        30 => (1usize..300, 0usize..300, any::<bool>())
            .prop_map(|(most, of_it, admits)| Step::Drain { most, of_it, admits }),
        3 => (0..PROCESSES).prop_map(|process| Step::Leave { process }),
        1 => Just(Step::Shut),
    ]
}

proptest! {
    #[test]
    fn rings_do_what_the_slow_model_does(
        capacity in prop_oneof![Just(WRITE_BYTES), 64usize..2000],
        steps in prop::collection::vec(step(), 0..400),
    ) {
        let mut rings = rings(capacity);
        let of = vec![Model::default(); PROCESSES];
        let mut models = Models { capacity, of, turn: 0, gone: Vec::new(), has_begun: false, is_shut: false };
        for (number, step) in (0_u32..).zip(steps) {
            match step {
                Step::Write { process, bytes, waits } => {
                    // A process that has ended writes no more.
                    if models.of[process].is_leaving { continue }
                    let party = waits.then_some(number);
                    let got = rings.write(process, party, &bytes);
                    prop_assert_eq!(got, models.write(process, party, &bytes));
                }
                Step::GiveUp { process, which } => {
                    let waiting = &mut models.of[process].waiting;
                    let party = waiting.get(which).map_or(u32::MAX, |(party, _)| *party);
                    let was_there = waiting.len() > which;
                    waiting.retain(|(other, _)| *other != party);
                    prop_assert_eq!(rings.give_up(process, |other| *other == party), was_there);
                }
                Step::Drain { most, of_it, admits } => {
                    let mut into = vec![0; most];
                    let got = rings.peek(&mut into).map(|(process, count)| (process, into[..count].to_vec()));
                    let expected = models.next(most);
                    prop_assert_eq!(&got, &expected);
                    let Some((process, bytes)) = got else { continue };
                    let count = of_it.min(bytes.len());
                    prop_assert_eq!(rings.sent(process, count), models.sent(process, count));
                    while admits {
                        let admitted = rings.admit(process);
                        prop_assert_eq!(admitted, models.admit(process));
                        if admitted.is_none() { break }
                    }
                }
                Step::Leave { process } => {
                    // Its threads have ended, and with them what they waited for.
                    while rings.give_up(process, |_| true) {}
                    let model = &mut models.of[process];
                    model.waiting.clear();
                    match rings.leave(process) {
                        Left::Drained(ring) => {
                            prop_assert!(model.inside.is_empty());
                            prop_assert_eq!(ring.is_some(), !model.is_gone);
                            model.is_gone = true;
                        }
                        Left::Later => {
                            prop_assert!(!model.inside.is_empty());
                            model.is_leaving = true;
                        }
                    }
                }
                Step::Shut => {
                    rings.shut();
                    models.is_shut = true;
                }
            }
            let has_output = models.of.iter().any(|model| !model.inside.is_empty());
            prop_assert_eq!(rings.has_output(), has_output);
            for (process, model) in models.of.iter().enumerate() {
                prop_assert_eq!(rings.is_open(process), !model.is_gone);
            }
        }
    }

    #[test]
    fn nobody_waits_for_more_than_a_turn_of_each_other(
        texts in prop::collection::vec(prop::collection::vec(prop_oneof![1 => Just(b'\n'), 60 => Just(b'x')], 64), 1..60),
    ) {
        // Everybody floods but the last, who has one line.
        let mut rings = rings(4096);
        for (number, text) in texts.iter().enumerate() {
            let _ = rings.write(number % (PROCESSES - 1), None, text);
        }
        prop_assert_eq!(rings.write(PROCESSES - 1, None, b"one line\n"), Written::Taken);
        let mut before = 0;
        let mut into = [0; TURN_BYTES];
        while let Some((process, count)) = rings.peek(&mut into) {
            if process == PROCESSES - 1 {
                prop_assert_eq!(&into[..count], b"one line\n");
                break;
            }
            before += count;
            let _ = rings.sent(process, count);
        }
        prop_assert!(before <= (PROCESSES - 1) * LINE_BYTES, "{} bytes before", before);
    }
}

#[test]
fn lines_of_two_processes_are_not_mixed() {
    let mut rings = rings(4096);
    let long = [b'l'; 64];
    for _ in 0..9 {
        assert_eq!(rings.write(0, None, &long), Written::Taken);
    }
    assert_eq!(rings.write(0, None, b"\nshort\n"), Written::Taken);
    assert_eq!(rings.write(1, None, b"other\nunfinished"), Written::Taken);
    let (mut out, mut into) = (Vec::new(), [0; TURN_BYTES]);
    while let Some((process, count)) = rings.peek(&mut into) {
        out.extend_from_slice(&into[..count]);
        let _ = rings.sent(process, count);
    }
    let expected = format!("other\n{}\nunfinishedshort\n", "l".repeat(9 * 64));
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_ring_is_opened_once_and_only_where_there_is_a_place() {
    let mut rings = rings(64);
    assert!(rings.open(0, Outlet::new(vec![0; 64]).unwrap()).is_err(), "it has one");
    assert!(rings.open(PROCESSES, Outlet::new(vec![0; 64]).unwrap()).is_err(), "no such place");
    assert_eq!(rings.write(PROCESSES, None, b"x"), Written::NotOpen);
    assert_eq!(rings.open_count(), PROCESSES);
    assert!(matches!(rings.leave(PROCESSES), Left::Drained(None)));
    // A write that is longer than one may be is refused, not cut.
    assert_eq!(rings.write(0, Some(1), &[0; WRITE_BYTES + 1]), Written::TooMany);
}

/// Turns go round however far apart the places are.
#[test]
fn turns_go_round_over_many_places() {
    let places = [0, 63, 64, 130, 199];
    let mut rings = Rings::new(200).unwrap();
    for place in places {
        rings.open(place, Outlet::new(vec![0; 64]).unwrap()).unwrap();
        assert_eq!(rings.write(place, None, b"a\nb\n"), Written::Taken);
    }
    let mut into = [0; 2];
    let mut turns = Vec::new();
    while let Some((process, count)) = rings.peek(&mut into) {
        turns.push(process);
        assert!(!rings.sent(process, count));
    }
    // The first turn is that of the place after the one that had it last.
    assert_eq!(turns, [63, 64, 130, 199, 0, 63, 64, 130, 199, 0]);
    assert!(!rings.has_output());
}
