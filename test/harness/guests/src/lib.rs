//! A guest that misbehaves on demand: what negative tests of the harness boot.
//!
//! No kernel under it: it depends on the boot protocol and the record protocol alone. It is
//! linked twice, as a PVH program and as a kernel for the Limine protocol. The command line
//! word `behave=…` names one behaviour; all but `good` and its kin must be judged red.
#![no_std]

mod machine;

use abi_report::{Encoder, Exit, Record, Sink};
use core::fmt::Write;
use machine::{Console, Machine, exit_with, hang, triple_fault};
use test_kit::{Outcome, Port, Suite, T, Test, check, check_eq};

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Console, "{info}");
    Machine.exit(Exit::Panic)
}

fn passes(t: &mut T<'_, ()>) -> Outcome {
    t.metric("answer", 42, "units");
    check_eq!(t, 6 * 7, 42);
    Ok(())
}

fn fails(t: &mut T<'_, ()>) -> Outcome {
    check!(t, 1 > 2, "as it must");
    Ok(())
}

fn skips(t: &mut T<'_, ()>) -> Outcome {
    t.skip("nothing to see here")
}

fn panics(_: &mut T<'_, ()>) -> Outcome {
    panic!("a test that panics");
}

fn hangs(_: &mut T<'_, ()>) -> Outcome {
    hang()
}

fn faults(_: &mut T<'_, ()>) -> Outcome {
    triple_fault()
}

fn watchdog(_: &mut T<'_, ()>) -> Outcome {
    Machine.exit(Exit::GuestTimeout)
}

const GOOD: Suite<()> = Suite::new(&[Test::new("one", passes), Test::new("two", passes)]);
const SKIP_BESIDE: Suite<()> = Suite::new(&[Test::new("one", passes), Test::new("two", skips)]);
const ONLY_SKIPS: Suite<()> = Suite::new(&[Test::new("one", skips)]);
const FAILS: Suite<()> = Suite::new(&[Test::new("one", passes), Test::new("two", fails)]);
const PANICS: Suite<()> = Suite::new(&[Test::new("one", passes), Test::new("two", panics)]);
const PANICS_EARLY: Suite<()> = Suite::new(&[Test::new("one", panics), Test::new("two", passes)]);
const HANGS: Suite<()> = Suite::new(&[Test::new("one", passes), Test::new("two", hangs)]);
const FAULTS: Suite<()> = Suite::new(&[Test::new("one", passes), Test::new("two", faults)]);
const WATCHDOG: Suite<()> = Suite::new(&[Test::new("one", passes), Test::new("two", watchdog)]);

/// Does what the command line asks for.
pub fn behave(command_line: &str) -> ! {
    let behaviour = command_line.split_whitespace().find_map(|word| word.strip_prefix("behave="));
    let behaviour = behaviour.unwrap_or_default();
    let _ = writeln!(Console, "behaviour: {behaviour}");
    let good = || test_kit::run(&mut Machine, &GOOD, &mut ());
    match behaviour {
        "good" => suite(&GOOD),
        "skip-beside-pass" => suite(&SKIP_BESIDE),
        "only-skips" => suite(&ONLY_SKIPS),
        "fails" => suite(&FAILS),
        "panics" => suite(&PANICS),
        "panics-early" => suite(&PANICS_EARLY),
        "hangs" => suite(&HANGS),
        "triple-faults" => suite(&FAULTS),
        "watchdog" => suite(&WATCHDOG),
        "pass-without-records" => Machine.exit(Exit::Pass),
        "ok-but-exit-fail" => {
            good();
            Machine.exit(Exit::Fail)
        }
        "fails-but-exit-pass" => {
            test_kit::run(&mut Machine, &FAILS, &mut ());
            Machine.exit(Exit::Pass)
        }
        "unknown-code" => {
            good();
            exit_with(0x55)
        }
        "hangs-after-done" => {
            good();
            hang()
        }
        "resets-after-done" => {
            good();
            triple_fault()
        }
        "garbage" => {
            "this is no record\n".bytes().for_each(|byte| Machine.write(byte));
            let exit = good();
            Machine.exit(exit)
        }
        "garbage-after" => {
            let exit = good();
            (1..=255).for_each(|byte| Machine.write(byte));
            Machine.write(0);
            Machine.exit(exit)
        }
        "floods" => loop {
            let _ = writeln!(Console, "{:512}", "and on and on");
        },
        "truncated-frame" => {
            good();
            [0, 9, 1].into_iter().for_each(|byte| Machine.write(byte));
            Machine.exit(Exit::Pass)
        }
        other => by_hand(other),
    }
}

fn suite(suite: &Suite<()>) -> ! {
    test_kit::main(&mut Machine, suite, &mut ())
}

/// Behaviours the kit cannot be talked into: records written one by one.
fn by_hand(behaviour: &str) -> ! {
    use Record::*;
    const A: &str = "a";
    let plan = Plan { index: 0, total: 1, id: A };
    let (run, ok) = (Run { id: A }, Ok { id: A });
    let done = Done { passed: 1, failed: 0, skipped: 0 };
    let two = |index| Plan { index, total: 2, id: A };
    let (records, lost): (&[Record<'_>], usize) = match behaviour {
        "wrong-count" => (&[plan, run, ok, Done { passed: 2, failed: 0, skipped: 0 }], 0),
        "duplicate-id" => (&[two(0), two(1), run, ok, run, ok, done], 0),
        "run-without-outcome" => (&[plan, run, done], 0),
        "planned-not-run" => (&[plan, Done { passed: 0, failed: 0, skipped: 0 }], 0),
        "no-done" => (&[plan, run, ok], 0),
        "no-plan" => (&[run, ok, done], 0),
        "after-done" => (&[plan, run, ok, done, ok], 0),
        // The record at this place never reaches the port.
        "lost-record" => (&[plan, run, run, ok, done], 2),
        _ => panic!("no such behaviour"),
    };
    let mut encoder = Encoder::new();
    for (place, record) in records.iter().enumerate() {
        if lost == place && lost > 0 {
            encoder.send(&mut Nowhere, record);
        } else {
            encoder.send(&mut Machine, record);
        }
    }
    Machine.exit(Exit::Pass)
}

struct Nowhere;

impl Sink for Nowhere {
    fn write(&mut self, _: u8) {}
}
