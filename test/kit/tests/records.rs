//! What a suite says on the wire, record by record.

use abi_report::{Decoder, Exit, Item};
use test_kit::{
    LastWords, Outcome, Sink, Suite, T, Test, check, check_eq, require, require_eq, require_ok,
    require_some, run,
};

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn write(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

fn records<E>(suite: &Suite<E>, env: &mut E) -> (Vec<String>, Exit) {
    let mut bytes = Bytes(Vec::new());
    let exit = run(&mut bytes, suite, env);
    (decode(bytes.0), exit)
}

fn decode(bytes: Vec<u8>) -> Vec<String> {
    let (mut decoder, mut seen) = (Decoder::new(), Vec::new());
    for byte in bytes {
        decoder.push(byte, |item| match item {
            Item::Record { record, .. } => seen.push(format!("{record:?}")),
            Item::Damage(damage) => panic!("{damage:?}"),
        });
    }
    assert_eq!(decoder.finish(), None);
    seen
}

fn passes(t: &mut T<'_, u32>) -> Outcome {
    *t.env += 1;
    check!(t, true);
    check_eq!(t, 1, 1);
    require!(t, true, "never {}", "seen");
    require_eq!(t, require_ok!(t, "7".parse::<u32>()), require_some!(t, Some(7)));
    t.metric("cost", u64::MAX, "instructions");
    Ok(())
}

#[test]
fn a_passing_suite() {
    const SUITE: Suite<u32> = Suite::new(&[Test::new("a", passes), Test::new("b", passes)]);
    let mut runs = 0;
    let (seen, exit) = records(&SUITE, &mut runs);
    assert_eq!(
        seen,
        [
            "Plan { index: 0, total: 2, id: \"a\" }",
            "Plan { index: 1, total: 2, id: \"b\" }",
            "Run { id: \"a\" }",
            "Metric { id: \"a\", name: \"cost\", value: 18446744073709551615, unit: \"instructions\" }",
            "Ok { id: \"a\" }",
            "Run { id: \"b\" }",
            "Metric { id: \"b\", name: \"cost\", value: 18446744073709551615, unit: \"instructions\" }",
            "Ok { id: \"b\" }",
            "Done { passed: 2, failed: 0, skipped: 0 }",
        ]
    );
    assert_eq!((exit, runs), (Exit::Pass, 2));
}

#[test]
fn soft_failures_go_on_and_hard_ones_end_the_test() {
    fn soft(t: &mut T<'_, ()>) -> Outcome {
        check!(t, 1 > 2, "one is {}", "less");
        check_eq!(t, 1 + 1, 3);
        check!(t, false);
        Ok(())
    }
    fn hard(t: &mut T<'_, ()>) -> Outcome {
        let value: u32 = require_ok!(t, "x".parse::<u32>().map_err(|_| "no number"));
        panic!("the test went on with {value}");
    }
    fn hard_none(t: &mut T<'_, ()>) -> Outcome {
        require_some!(t, None::<u32>);
        panic!("the test went on");
    }
    fn hard_eq(t: &mut T<'_, ()>) -> Outcome {
        require_eq!(t, "a", "b");
        panic!("the test went on");
    }
    fn hard_condition(t: &mut T<'_, ()>) -> Outcome {
        require!(t, 1 > 2);
        panic!("the test went on");
    }
    const SUITE: Suite<()> = Suite::new(&[
        Test::new("soft", soft),
        Test::new("hard", hard),
        Test::new("hard_none", hard_none),
        Test::new("hard_eq", hard_eq),
        Test::new("hard_condition", hard_condition),
    ]);
    let (seen, exit) = records(&SUITE, &mut ());
    let fails: Vec<_> = seen.iter().filter(|r| r.starts_with("Fail")).collect();
    let expected = [
        ("soft", "1 > 2 does not hold: one is less"),
        ("soft", "1 + 1 is 2, expected 3"),
        ("soft", "false does not hold"),
        (
            "hard",
            "\\\"x\\\".parse::<u32>().map_err(|_| \\\"no number\\\") is Err(\\\"no number\\\")",
        ),
        ("hard_none", "None::<u32> is None"),
        ("hard_eq", "\\\"a\\\" is \\\"a\\\", expected \\\"b\\\""),
        ("hard_condition", "1 > 2 does not hold"),
    ];
    assert_eq!(fails.len(), expected.len(), "{fails:#?}");
    for (fail, (id, message)) in fails.iter().zip(expected) {
        assert!(fail.contains(&format!("id: \"{id}\"")), "{fail}");
        assert!(fail.contains("file: \"test/kit/tests/records.rs\""), "{fail}");
        assert!(fail.contains(&format!("message: \"{message}\"")), "{fail}");
    }
    assert!(!seen.iter().any(|r| r.starts_with("Ok")));
    assert_eq!(seen.last().unwrap(), "Done { passed: 0, failed: 5, skipped: 0 }");
    assert_eq!(exit, Exit::Fail);
}

#[test]
fn skips_are_told_with_their_reason_and_never_hide_a_failure() {
    fn skips(t: &mut T<'_, ()>) -> Outcome {
        t.skip("needs two CPUs")
    }
    fn fails_then_skips(t: &mut T<'_, ()>) -> Outcome {
        check!(t, false);
        t.skip("too late")
    }
    const SUITE: Suite<()> =
        Suite::new(&[Test::new("skips", skips), Test::new("fails_then_skips", fails_then_skips)]);
    let (seen, exit) = records(&SUITE, &mut ());
    assert!(seen.contains(&"Skip { id: \"skips\", reason: \"needs two CPUs\" }".into()));
    assert!(!seen.iter().any(|r| r.contains("too late")));
    assert_eq!(seen.last().unwrap(), "Done { passed: 0, failed: 1, skipped: 1 }");
    assert_eq!(exit, Exit::Fail);
}

/// A handler that runs instead of the rest of a suite, as after a panic.
#[test]
fn last_words_close_a_suite_as_its_end_would() {
    fn takes(t: &mut T<'_, Option<LastWords>>) -> Outcome {
        *t.env = t.last_words();
        Ok(())
    }
    fn fails(t: &mut T<'_, Option<LastWords>>) -> Outcome {
        check!(t, false);
        takes(t)
    }
    const LAST: Suite<Option<LastWords>> =
        Suite::new(&[Test::new("a", fails), Test::new("b", takes)]);
    const NOT_LAST: Suite<Option<LastWords>> =
        Suite::new(&[Test::new("a", takes), Test::new("b", |_| Ok(()))]);
    const FAILED: Suite<Option<LastWords>> = Suite::new(&[Test::new("a", fails)]);

    let (mut words, mut bytes) = (None, Bytes(Vec::new()));
    run(&mut bytes, &LAST, &mut words);
    let ended = bytes.0.len();
    // Everything but the last two records, then the handler's.
    let frames: Vec<usize> =
        bytes.0.iter().enumerate().filter(|(_, b)| **b == 0).map(|(i, _)| i).collect();
    let cut = frames[frames.len() - 4];
    let before = bytes.0[..cut].to_vec();
    let mut passed = Bytes(before.clone());
    assert_eq!(words.unwrap().passed(&mut passed), Exit::Fail);
    assert_eq!(passed.0.len(), ended);
    assert_eq!(passed.0, bytes.0);

    let mut failed = Bytes(before);
    assert_eq!(words.unwrap().failed(&mut failed, format_args!("a {}", "surprise")), Exit::Fail);
    let seen = decode(failed.0);
    assert!(seen[seen.len() - 2].contains("message: \"a surprise\""), "{seen:?}");
    assert_eq!(seen.last().unwrap(), "Done { passed: 0, failed: 2, skipped: 0 }");

    for suite in [NOT_LAST, FAILED] {
        let mut words = None;
        records(&suite, &mut words);
        assert!(words.is_none());
    }
}
