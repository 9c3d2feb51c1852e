//! A line against a device, a controller and a driver that exist only here: nothing is lost or told twice, who may
//! hear hears, and no device interrupts more often than it may.

use core_interrupt::{BURST, Info, Line, Occupied, Raised, Tell, Trigger, WINDOW_NS, Waiting};
use test_property::prelude::*;

/// What a controller does with a line: it lets interrupts through while it is open and the last one was answered.
#[derive(Default)]
struct Controller {
    is_open: bool,
    is_unanswered: bool,
}

impl Controller {
    fn obey(&mut self, tell: Tell) {
        if let Some(open) = tell.open {
            assert_ne!(open, self.is_open, "it is told what it knows");
            self.is_open = open;
        }
        if tell.acknowledge {
            assert!(self.is_unanswered, "what was answered is answered again");
            self.is_unanswered = false;
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The device wants attention so many times, at once.
    Device(u8),
    Wait(u8),
    GiveUp(u8),
    Acknowledge,
    Enable(bool),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1_u8..50).prop_map(Step::Device),
        5 => (0_u8..3).prop_map(Step::Wait),
        1 => (0_u8..3).prop_map(Step::GiveUp),
        5 => Just(Step::Acknowledge),
        2 => any::<bool>().prop_map(Step::Enable),
        4 => (0..WINDOW_NS).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..150)
}

fn run(trigger: Trigger, steps: &[Step]) {
    let mut line: Line<u8> = Line::new(trigger, 5);
    let mut controller = Controller::default();
    let (mut now, mut wakes_at): (u64, Option<u64>) = (0, None);
    let (mut waiter, mut heard, mut reported) = (None, 0_u64, 0_u64);
    let mut times: Vec<u64> = vec![];
    let mut is_enabled = false;
    for &step in steps {
        match step {
            Step::Device(count) => {
                for _ in 0..count {
                    if !controller.is_open || controller.is_unanswered {
                        continue;
                    }
                    controller.is_unanswered = trigger == Trigger::Level;
                    heard += 1;
                    times.push(now);
                    let Raised { complete, tell } = line.raised(now);
                    controller.obey(tell);
                    match complete {
                        Some((party, told)) => {
                            assert_eq!(waiter.take(), Some(party));
                            wakes_at = None;
                            reported += told;
                            assert_eq!(reported, heard, "a wait takes all there are");
                        }
                        None => assert_eq!(waiter, None, "somebody waits and is not told"),
                    }
                }
            }
            Step::Wait(party) => {
                let before = line;
                match line.wait(party, now) {
                    Err(Occupied) => {
                        assert!(waiter.is_some());
                        assert_eq!(line, before, "an error changes nothing");
                    }
                    Ok((waiting, tell)) => {
                        assert_eq!(waiter, None);
                        controller.obey(tell);
                        match waiting {
                            Waiting::Now(told) => {
                                assert!(told > 0);
                                reported += told;
                                assert_eq!(reported, heard);
                            }
                            Waiting::Later(at) => {
                                assert_eq!(reported, heard, "it waits for what has come");
                                waiter = Some(party);
                                assert!(at.is_none_or(|at| at > now));
                                // Without a time the line is heard, or not to be heard.
                                assert!(at.is_some() || controller.is_open == is_enabled);
                                wakes_at = at;
                            }
                        }
                    }
                }
            }
            Step::GiveUp(party) => {
                let is_its = line.give_up(|waits| *waits == party);
                assert_eq!(is_its, waiter == Some(party));
                if is_its {
                    (waiter, wakes_at) = (None, None);
                }
            }
            Step::Acknowledge => controller.obey(line.acknowledge(now)),
            Step::Enable(enable) => {
                is_enabled = enable;
                controller.obey(line.set_enabled(enable, now));
            }
            Step::Pass(ns) => {
                now += ns;
                if wakes_at.is_some_and(|at| at <= now) {
                    wakes_at = None;
                    controller.obey(line.reopen(now));
                    assert_eq!(controller.is_open, is_enabled, "a wait that lasts hears again");
                }
            }
        }
        assert!(!controller.is_open || is_enabled, "a line that is masked is heard");
        assert_eq!(line.info(), Info { trigger, is_enabled, total: 5 + heard });
        // Every span of a window touches two windows at most.
        let recent = times.iter().rev().take_while(|at| now - **at < WINDOW_NS).count();
        assert!(recent <= 2 * BURST as usize, "{recent} interrupts in a window");
    }
    assert_eq!(line.end(), waiter);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn by_edge(steps in steps()) {
        run(Trigger::Edge, &steps);
    }

    #[test]
    fn by_level(steps in steps()) {
        run(Trigger::Level, &steps);
    }
}

#[test]
fn what_comes_between_two_waits_is_counted_together() {
    let mut line: Line<u8> = Line::new(Trigger::Edge, 0);
    assert_eq!(line.set_enabled(true, 0).open, Some(true));
    for now in 0..3 {
        assert_eq!(line.raised(now).complete, None);
    }
    assert_eq!(line.wait(1, 5).map(|(waiting, _)| waiting), Ok(Waiting::Now(3)));
    assert_eq!(line.wait(1, 5).map(|(waiting, _)| waiting), Ok(Waiting::Later(None)));
    assert_eq!(line.wait(2, 5), Err(Occupied));
    assert_eq!(line.raised(9).complete, Some((1, 1)));
}

#[test]
fn a_storm_is_cut_off_until_somebody_waits_and_the_window_is_over() {
    let mut line: Line<u8> = Line::new(Trigger::Edge, 0);
    assert_eq!(line.set_enabled(true, 0).open, Some(true));
    for number in 1..=BURST {
        let told = line.raised(100).tell.open;
        assert_eq!(told, (number == BURST).then_some(false), "interrupt {number}");
    }
    assert_eq!(line.wait(1, 200), Ok((Waiting::Now(BURST.into()), Tell::default())));
    assert_eq!(line.acknowledge(300), Tell::default(), "not before its time");
    assert_eq!(line.wait(1, 400), Ok((Waiting::Later(Some(100 + WINDOW_NS)), Tell::default())));
    assert_eq!(line.reopen(100 + WINDOW_NS).open, Some(true));
    // A driver that masks and unmasks gains nothing.
    for _ in 0..BURST {
        let _raised = line.raised(200 + WINDOW_NS);
    }
    for _ in 0..10 {
        assert_eq!(line.set_enabled(false, 300 + WINDOW_NS).open, None);
        assert_eq!(line.set_enabled(true, 300 + WINDOW_NS).open, None);
    }
}

#[test]
fn by_level_an_answer_is_told_once() {
    let mut line: Line<u8> = Line::new(Trigger::Level, 0);
    assert_eq!(line.acknowledge(0), Tell::default(), "nothing to be answered");
    assert_eq!(line.set_enabled(true, 0).open, Some(true));
    assert_eq!(line.raised(1).tell, Tell::default(), "its controller masks it by itself");
    assert_eq!(line.acknowledge(2), Tell { open: None, acknowledge: true });
    assert_eq!(line.acknowledge(2), Tell::default());
}
