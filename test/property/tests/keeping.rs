//! A failure is kept, and what is kept is tried first.
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::{env, fs};
use test_property::inner::test_runner::{TestError, TestRunner};
use test_property::prelude::*;
use test_property::{Kept, file_of};

const SOURCE: &str = "some/crate/tests/x.rs";
const FILE: &str = "some/crate/proptest-regressions/tests/x.txt";

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env::var_os("TEST_TMPDIR").unwrap()).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a property over numbers with what is kept in `kept`; the numbers it saw before it failed
/// for the first time, that one included, and whether it failed.
fn run(kept: &Kept, cases: u32, holds: impl Fn(u32) -> bool) -> (Vec<u32>, bool) {
    let config = ProptestConfig {
        cases,
        source_file: Some(SOURCE),
        failure_persistence: Some(Box::new(kept.clone())),
        ..ProptestConfig::default()
    };
    let seen = RefCell::new((Vec::new(), false));
    let outcome = TestRunner::new(config).run(&any::<u32>(), |n| {
        let mut seen = seen.borrow_mut();
        if !seen.1 {
            seen.0.push(n);
            seen.1 = !holds(n);
        }
        if holds(n) { Ok(()) } else { Err(TestCaseError::fail("too large")) }
    });
    assert!(matches!(outcome, Ok(()) | Err(TestError::Fail(..))), "{outcome:?}");
    assert_eq!(outcome.is_err(), seen.borrow().1);
    seen.into_inner()
}

fn is_small(n: u32) -> bool {
    n < u32::MAX / 16 * 15
}

#[test]
fn what_bazel_run_keeps_is_tried_first() {
    let root = folder("run");
    let kept = Kept { root: root.clone(), workspace: Some(root.clone()), outputs: None };
    let (seen, is_failed) = run(&kept, 10_000, is_small);
    assert!(is_failed);
    let text = fs::read_to_string(root.join(FILE)).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("cc ") && text.contains(" # shrinks to 4026531825"), "{text}");
    // The number that failed is the first one now, as long as it fails and when it does not.
    let found = *seen.last().unwrap();
    assert_eq!(run(&kept, 10_000, is_small), (vec![found], true));
    let (seen, is_failed) = run(&kept, 10, |_| true);
    assert_eq!((seen[0], seen.len(), is_failed), (found, 11, false));
    // A failure that is known is not kept twice.
    assert_eq!(fs::read_to_string(root.join(FILE)).unwrap(), text);
}

#[test]
fn the_oldest_comes_first() {
    let root = folder("oldest");
    let kept = Kept { root: root.clone(), workspace: Some(root), outputs: None };
    let (seen, _) = run(&kept, 10_000, is_small);
    let older = *seen.last().unwrap();
    let (seen, is_failed) = run(&kept, 10_000, |n| n >= 1 << 28);
    assert!(is_failed);
    let newer = *seen.last().unwrap();
    assert_eq!(run(&kept, 0, |_| true).0, [older, newer]);
}

#[test]
fn bazel_test_says_how_and_leaves_the_line() {
    let (root, outputs) = (folder("test"), folder("outputs"));
    let kept = Kept { root: root.clone(), workspace: None, outputs: Some(outputs.clone()) };
    assert!(run(&kept, 10_000, is_small).1);
    assert!(!root.join(FILE).exists());
    let line = fs::read_to_string(outputs.join(FILE)).unwrap();
    // What it says is a command; run it where the workspace is.
    let seed = line.split(" #").next().unwrap().parse().unwrap();
    let line = test_property::Line::new(seed, &"it's\nlong");
    let said = kept.keep(Path::new(SOURCE), &line);
    let command = said.lines().nth(1).unwrap();
    let done = std::process::Command::new("sh").arg("-c").arg(command).current_dir(&root).status();
    assert!(done.unwrap().success(), "{said}");
    let text = fs::read_to_string(root.join(FILE)).unwrap();
    assert_eq!(text, format!("{line}\n"));
    assert_eq!(kept.read(Path::new(SOURCE)), Ok(vec![line.seed]));
}

#[test]
fn what_is_no_seed_is_refused() {
    let root = folder("refused");
    let kept = Kept { root: root.clone(), workspace: None, outputs: None };
    assert_eq!(kept.read(Path::new(SOURCE)), Ok(vec![]));
    fs::create_dir_all(root.join(FILE).parent().unwrap()).unwrap();
    fs::write(root.join(FILE), "# a remark\n\n").unwrap();
    assert_eq!(kept.read(Path::new(SOURCE)), Ok(vec![]));
    for bad in ["cc 12", "17", "cc", &format!("cc {}", "g".repeat(64)), "<<<<<<< ours"] {
        fs::write(root.join(FILE), format!("# a remark\n{bad} # why\n")).unwrap();
        let error = kept.read(Path::new(SOURCE)).unwrap_err();
        assert!(error.starts_with(&format!("{FILE}, line 2: `{bad}` is not a seed")), "{error}");
        assert!(error.contains("`cc` and 64 hexadecimal digits"), "{error}");
    }
}

#[test]
fn a_source_has_its_file() {
    for (source, file) in [
        (SOURCE, FILE),
        ("a/src/b.rs", "a/proptest-regressions/src/b.txt"),
        ("a/src/tests/b.rs", "a/proptest-regressions/src/tests/b.txt"),
        ("test/a/tests/b/c.rs", "test/a/proptest-regressions/tests/b/c.txt"),
        ("a/b.rs", "a/proptest-regressions/b.txt"),
    ] {
        assert_eq!(file_of(Path::new(source)), Path::new(file));
    }
}
