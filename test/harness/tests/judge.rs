//! The judge, case by case: every ending against every shape of records and every expectation.

use abi_report::{Damage, Exit};
use harness::judge::{Class, Ending, Expect, judge};
use harness::transcript::{Count, Event, Failure, Metric};

/// Events written short: `plan a b`, `run a`, `ok a`, `fail a`, `skip a`, `metric a`,
/// `done P F S`, `garbage`, `cut`, `gap`, `plan! I T a`; separated by `;`.
fn events(script: &str) -> Vec<Event> {
    let mut events = Vec::new();
    for step in script.split(';').map(str::trim).filter(|step| !step.is_empty()) {
        let words: Vec<&str> = step.split_whitespace().collect();
        let id = || words[1].to_owned();
        let number = |i: usize| words[i].parse::<u32>().unwrap();
        events.push(match words[0] {
            "plan" => {
                let total = words.len() as u32 - 1;
                let plan =
                    |(index, id): (u32, &&str)| Event::Plan { index, total, id: (*id).into() };
                events.extend((0..).zip(&words[1..]).map(plan));
                continue;
            }
            "plan!" => Event::Plan { index: number(1), total: number(2), id: words[3].into() },
            "run" => Event::Run { id: id() },
            "ok" => Event::Ok { id: id() },
            "fail" => {
                let failure = Failure { file: "f.rs".into(), line: 1, message: "no".into() };
                Event::Fail { id: id(), failure }
            }
            "skip" => Event::Skip { id: id(), reason: "because".into() },
            "metric" => {
                let metric = Metric { name: "m".into(), value: 1, unit: "ns".into() };
                Event::Metric { id: id(), metric }
            }
            "done" => {
                Event::Done(Count { passed: number(1), failed: number(2), skipped: number(3) })
            }
            "garbage" => Event::Damage(Damage::Garbage { len: 9 }),
            "cut" => Event::Damage(Damage::Truncated { len: 9 }),
            "gap" => Event::Damage(Damage::OutOfSequence { expected: 1, found: 3 }),
            other => panic!("{other}"),
        });
    }
    events
}

fn codes(expect: Expect, ending: &Ending, script: &str) -> (Class, Vec<&'static str>) {
    let verdict = judge(expect, ending, &events(script));
    (verdict.class, verdict.reasons.iter().map(|reason| reason.code()).collect())
}

fn exit(exit: Exit) -> Ending {
    Ending::Status(exit.qemu_status())
}

const GOOD: &str = "plan a b; run a; ok a; run b; metric b; ok b; done 2 0 0";
const ONE_FAILED: &str = "plan a b; run a; fail a; fail a; run b; ok b; done 1 1 0";
const OPEN_LAST: &str = "plan a b; run a; ok a; run b";

/// (what, exit code, records, class, reasons) for runs expected to pass.
#[rustfmt::skip]
const PASS_TABLE: &[(&str, Exit, &str, Class, &[&str])] = &[
    ("all agree", Exit::Pass, GOOD, Class::Green, &[]),
    ("a skip beside a pass", Exit::Pass, "plan a b; run a; skip a; run b; ok b; done 1 0 1", Class::Green, &[]),
    ("pass without records", Exit::Pass, "", Class::Failed, &["no-records"]),
    ("fail without records", Exit::Fail, "", Class::Failed, &["no-records"]),
    ("ok but exit fail", Exit::Fail, GOOD, Class::Failed, &["exit-contradicts"]),
    ("failed but exit pass", Exit::Pass, ONE_FAILED, Class::Failed, &["exit-contradicts", "test-failed"]),
    ("honest failure", Exit::Fail, ONE_FAILED, Class::Failed, &["test-failed"]),
    ("only skips", Exit::Pass, "plan a; run a; skip a; done 0 0 1", Class::Failed, &["nothing-passed"]),
    ("empty plan", Exit::Pass, "done 0 0 0", Class::Failed, &["no-plan", "nothing-passed"]),
    ("count too high", Exit::Pass, "plan a; run a; ok a; done 2 0 0", Class::Failed, &["wrong-count"]),
    ("count too low", Exit::Pass, "plan a b; run a; ok a; run b; ok b; done 1 0 0", Class::Failed, &["wrong-count"]),
    ("count of other kind", Exit::Pass, "plan a b; run a; ok a; run b; skip b; done 2 0 0", Class::Failed, &["wrong-count"]),
    ("no done", Exit::Pass, "plan a; run a; ok a", Class::Failed, &["no-done"]),
    ("done twice", Exit::Pass, "plan a; run a; ok a; done 1 0 0; done 1 0 0", Class::Failed, &["after-done"]),
    ("run after done", Exit::Pass, "plan a; run a; ok a; done 1 0 0; run a; ok a", Class::Failed, &["after-done"]),
    ("planned, not run", Exit::Pass, "plan a b; run a; ok a; done 1 0 0", Class::Failed, &["not-run"]),
    ("run without plan", Exit::Pass, "run a; ok a; done 1 0 0", Class::Failed, &["no-plan", "wrong-count", "nothing-passed", "unplanned", "not-running"]),
    ("unplanned beside planned", Exit::Pass, "plan a; run a; ok a; run x; ok x; done 1 0 0", Class::Failed, &["unplanned", "not-running"]),
    ("duplicate id", Exit::Pass, "plan a a; run a; ok a; run a; ok a; done 2 0 0", Class::Failed, &["duplicate-id"]),
    ("ran twice", Exit::Pass, "plan a; run a; ok a; run a; ok a; done 1 0 0", Class::Failed, &["out-of-turn", "second-outcome"]),
    ("out of turn", Exit::Pass, "plan a b; run b; ok b; run a; ok a; done 2 0 0", Class::Failed, &["not-run", "wrong-count", "out-of-turn", "not-running"]),
    ("run without outcome, then another", Exit::Pass, "plan a b; run a; run b; ok b; done 1 0 0", Class::Failed, &["no-outcome"]),
    ("last run without outcome", Exit::Pass, "plan a b; run a; ok a; run b; done 1 0 0", Class::Failed, &["no-outcome"]),
    ("run without outcome and done", Exit::Pass, OPEN_LAST, Class::Failed, &["no-outcome", "no-done"]),
    ("ok after fail", Exit::Fail, "plan a; run a; fail a; ok a; done 0 1 0", Class::Failed, &["second-outcome", "test-failed"]),
    ("fail after ok", Exit::Fail, "plan a; run a; ok a; fail a; done 1 0 0", Class::Failed, &["exit-contradicts", "second-outcome"]),
    ("fail after skip", Exit::Fail, "plan a; run a; skip a; fail a; done 0 1 0", Class::Failed, &["exit-contradicts", "wrong-count", "nothing-passed", "second-outcome"]),
    ("ok twice", Exit::Pass, "plan a; run a; ok a; ok a; done 1 0 0", Class::Failed, &["second-outcome"]),
    ("outcome of another", Exit::Pass, "plan a b; run a; ok b; ok a; run b; ok b; done 2 0 0", Class::Failed, &["not-running"]),
    ("outcome before run", Exit::Pass, "plan a; ok a; run a; ok a; done 1 0 0", Class::Failed, &["not-running"]),
    ("metric before run", Exit::Pass, "plan a; metric a; run a; ok a; done 1 0 0", Class::Failed, &["not-running"]),
    ("metric of another", Exit::Pass, "plan a b; run a; metric b; ok a; run b; ok b; done 2 0 0", Class::Failed, &["not-running"]),
    ("late plan", Exit::Pass, "plan a; run a; ok a; plan! 1 2 b; run b; ok b; done 2 0 0", Class::Failed, &["wrong-count", "late-plan", "unplanned", "not-running"]),
    ("short plan", Exit::Pass, "plan! 0 3 a; run a; ok a; done 1 0 0", Class::Failed, &["short-plan"]),
    ("plan index wrong", Exit::Pass, "plan! 1 1 a; run a; ok a; done 1 0 0", Class::Failed, &["wrong-plan"]),
    ("plan total changes", Exit::Pass, "plan! 0 2 a; plan! 1 3 b; run a; ok a; run b; ok b; done 2 0 0", Class::Failed, &["wrong-plan"]),
    ("plan beyond total", Exit::Pass, "plan! 0 1 a; plan! 1 1 b; run a; ok a; run b; ok b; done 2 0 0", Class::Failed, &["wrong-plan"]),
    ("plan of zero", Exit::Pass, "plan! 0 0 a; run a; ok a; done 1 0 0", Class::Failed, &["wrong-plan"]),
    ("garbage before", Exit::Pass, "garbage; plan a; run a; ok a; done 1 0 0", Class::Infrastructure, &["garbage"]),
    ("garbage between", Exit::Pass, "plan a; run a; garbage; ok a; done 1 0 0", Class::Infrastructure, &["garbage"]),
    ("only garbage", Exit::Pass, "garbage", Class::Infrastructure, &["garbage", "no-records"]),
    ("cut at the end", Exit::Pass, "plan a; run a; ok a; done 1 0 0; cut", Class::Infrastructure, &["truncated"]),
    ("lost record", Exit::Pass, "plan a; gap; ok a; done 1 0 0", Class::Infrastructure, &["out-of-sequence", "not-run", "wrong-count", "nothing-passed", "not-running"]),
    ("panic with good records", Exit::Panic, GOOD, Class::Failed, &["panicked"]),
    ("panic in a test", Exit::Panic, OPEN_LAST, Class::Failed, &["panicked"]),
    ("panic before any record", Exit::Panic, "", Class::Failed, &["panicked"]),
    ("panic after a failure", Exit::Panic, "plan a b; run a; fail a; run b", Class::Failed, &["panicked", "test-failed"]),
    ("watchdog", Exit::GuestTimeout, OPEN_LAST, Class::Failed, &["guest-timeout"]),
    ("watchdog with good records", Exit::GuestTimeout, GOOD, Class::Failed, &["guest-timeout"]),
];

#[test]
fn runs_expected_to_pass() {
    for (what, code, script, class, reasons) in PASS_TABLE {
        let found = codes(Expect::Pass, &exit(*code), script);
        assert_eq!(found, (*class, reasons.to_vec()), "{what}");
    }
}

/// Every shape of records in the table, under every exit code and every other ending: green
/// exactly where the table says so.
#[test]
fn nothing_else_is_green() {
    let green = |code: Option<Exit>, script: &str| {
        PASS_TABLE
            .iter()
            .any(|(_, c, s, class, _)| Some(*c) == code && *s == script && *class == Class::Green)
    };
    let others = (-1..=255).map(Ending::Status).chain((1..=64).map(Ending::Signal)).chain([
        Ending::Guard,
        Ending::Flood,
        Ending::NotStarted("no such file".into()),
    ]);
    for ending in others {
        let code = match ending {
            Ending::Status(status) => Exit::from_qemu_status(status),
            _ => None,
        };
        for (what, _, script, _, _) in PASS_TABLE {
            let (class, reasons) = codes(Expect::Pass, &ending, script);
            assert_eq!(class == Class::Green, green(code, script), "{what} {ending:?}");
            assert_eq!(class == Class::Green, reasons.is_empty(), "{what} {ending:?}");
        }
    }
}

#[test]
fn endings_no_guest_asks_for() {
    use Class::*;
    let not_started = Ending::NotStarted("qemu: No such file".into());
    for (ending, class, code) in [
        (Ending::Status(0), Infrastructure, "status-zero"),
        (Ending::Status(1), Infrastructure, "unknown-status"),
        (Ending::Status(255), Infrastructure, "unknown-status"),
        (Ending::Signal(9), Infrastructure, "killed"),
        (Ending::Flood, Failed, "flood"),
        (not_started, Infrastructure, "not-started"),
        (Ending::Guard, Failed, "hang"),
    ] {
        for expect in [Expect::Pass, Expect::Panic, Expect::GuestTimeout, Expect::Refused] {
            for script in [GOOD, OPEN_LAST, "", "plan a b"] {
                let found = codes(expect, &ending, script);
                assert_eq!(found, (class, vec![code]), "{ending:?} {expect:?} {script:?}");
            }
        }
    }
}

/// (what, exit code, records, class, reasons) for runs whose last test ends the machine; the
/// exit codes are those of an expected panic, and swapped for an expected watchdog.
#[rustfmt::skip]
const END_TABLE: &[(&str, Exit, &str, Class, &[&str])] = &[
    ("as written", Exit::Panic, OPEN_LAST, Class::Green, &[]),
    ("the only test", Exit::Panic, "plan a; run a", Class::Green, &[]),
    ("with a metric", Exit::Panic, "plan a; run a; metric a", Class::Green, &[]),
    ("after a skip", Exit::Panic, "plan a b; run a; skip a; run b", Class::Green, &[]),
    ("no record", Exit::Panic, "", Class::Failed, &["no-records"]),
    ("before the first test", Exit::Panic, "plan a b", Class::Failed, &["not-run", "not-as-expected"]),
    ("too early", Exit::Panic, "plan a b; run a", Class::Failed, &["not-run", "not-as-expected"]),
    ("between tests", Exit::Panic, "plan a b; run a; ok a", Class::Failed, &["not-run", "not-as-expected"]),
    ("after the last test", Exit::Panic, "plan a; run a; ok a", Class::Failed, &["not-as-expected"]),
    ("after done", Exit::Panic, GOOD, Class::Failed, &["not-as-expected"]),
    ("an earlier failure", Exit::Panic, "plan a b; run a; fail a; run b", Class::Failed, &["test-failed"]),
    ("a failure in the last test", Exit::Panic, "plan a; run a; fail a", Class::Failed, &["not-as-expected", "test-failed"]),
    ("an earlier test open", Exit::Panic, "plan a b; run a; run b", Class::Failed, &["no-outcome"]),
    ("damage", Exit::Panic, "plan a; garbage; run a", Class::Infrastructure, &["garbage"]),
    ("the other end", Exit::GuestTimeout, OPEN_LAST, Class::Failed, &["guest-timeout"]),
    ("a pass", Exit::Pass, GOOD, Class::Failed, &["not-as-expected"]),
    ("a failure", Exit::Fail, ONE_FAILED, Class::Failed, &["not-as-expected", "test-failed"]),
    ("a pass without records", Exit::Pass, "", Class::Failed, &["no-records", "not-as-expected"]),
];

#[test]
fn runs_expected_to_panic_or_to_be_ended_by_the_watchdog() {
    for (what, code, script, class, reasons) in END_TABLE {
        let found = codes(Expect::Panic, &exit(*code), script);
        assert_eq!(found, (*class, reasons.to_vec()), "panic: {what}");

        let (code, other) = match code {
            Exit::Panic => (Exit::GuestTimeout, None),
            Exit::GuestTimeout => (Exit::Panic, Some("panicked")),
            code => (*code, None),
        };
        let reasons = other.map_or(reasons.to_vec(), |code| vec![code]);
        let found = codes(Expect::GuestTimeout, &exit(code), script);
        assert_eq!(found, (*class, reasons), "watchdog: {what}");
    }
}

/// A kernel that refuses its machine does so before it plans anything; nothing else is a refusal.
#[test]
fn runs_expected_to_be_refused() {
    assert_eq!(codes(Expect::Refused, &exit(Exit::Refused), ""), (Class::Green, vec![]));
    for script in [GOOD, OPEN_LAST, "plan a b"] {
        let (class, reasons) = codes(Expect::Refused, &exit(Exit::Refused), script);
        assert_eq!((class, reasons[0]), (Class::Failed, "not-as-expected"), "{script:?}");
    }
    for code in Exit::ALL.into_iter().filter(|code| *code != Exit::Refused) {
        assert_ne!(codes(Expect::Refused, &exit(code), "").0, Class::Green, "{code:?}");
    }
    for expect in [Expect::Pass, Expect::Panic, Expect::GuestTimeout, Expect::PowerOff] {
        let found = codes(expect, &exit(Exit::Refused), "");
        assert_eq!(found, (Class::Failed, vec!["not-as-expected"]), "{expect:?}");
    }
}

/// Without an exit port the records alone say what passed, and the emulator how the guest ended it.
#[test]
fn runs_expected_to_end_by_themselves() {
    let ways = [(Expect::PowerOff, Ending::PoweredOff), (Expect::Reset, Ending::WasReset)];
    for (expect, ending) in &ways {
        assert_eq!(codes(*expect, ending, GOOD), (Class::Green, vec![]), "{expect:?}");
        for script in [ONE_FAILED, OPEN_LAST, "", "plan a b", "plan a; run a; ok a"] {
            assert_ne!(codes(*expect, ending, script).0, Class::Green, "{expect:?} {script:?}");
        }
        for (other, _) in ways.iter().filter(|(other, _)| other != expect) {
            let found = codes(*other, ending, GOOD);
            assert_eq!(found, (Class::Infrastructure, vec!["status-zero"]), "{other:?}");
        }
        for status in [0, 1, Exit::Pass.qemu_status()] {
            let (class, _) = codes(*expect, &Ending::Status(status), GOOD);
            assert_ne!(class, Class::Green, "{expect:?} {status}");
        }
        assert_ne!(codes(Expect::Pass, ending, GOOD).0, Class::Green);
    }
}

#[test]
fn reasons_name_the_test_that_ran() {
    for (ending, words) in [
        (exit(Exit::Panic), "the kernel panicked while b ran"),
        (exit(Exit::GuestTimeout), "the guest's watchdog ended the run while b ran"),
        (Ending::Guard, "no verdict before the wall-clock guard ran out, while b ran"),
    ] {
        let verdict = judge(Expect::Pass, &ending, &events(OPEN_LAST));
        assert_eq!(verdict.reasons[0].to_string(), words);
    }
    let verdict = judge(Expect::Pass, &Ending::Guard, &events(GOOD));
    assert!(verdict.reasons[0].to_string().ends_with("while no test ran"));
}
