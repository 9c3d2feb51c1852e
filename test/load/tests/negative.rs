//! The tool against guests that misbehave: each is counted as what it is, and leaves evidence.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs};

fn out_dir(name: &str) -> PathBuf {
    PathBuf::from(env::var_os("TEST_TMPDIR").unwrap()).join(name)
}

/// Runs the tool; a guest that hangs is given four seconds.
fn load(name: &str, words: &[&str]) -> Output {
    Command::new(env::var_os("MISBEHAVING").unwrap())
        .args(["--times=2", "--seed=7", "--burners=1", "--pause-ms=3", "--guard-seconds=4"])
        .arg("--out")
        .arg(out_dir(name))
        .args(words)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The first four numbers behind a suite's name in the table.
fn counts(text: &str, suite: &str) -> Vec<u32> {
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("//test/load:{suite} ")) && !line.contains(": "))
        .unwrap_or_else(|| panic!("{suite} is not in\n{text}"));
    line.split_whitespace().skip(1).take(4).map(|word| word.parse().unwrap()).collect()
}

#[test]
fn each_guest_is_counted_as_what_it_is() {
    let output = load("all", &[]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for (suite, expected) in [
        ("guest_good", [2, 0, 0, 0]),
        ("guest_fails", [0, 2, 0, 0]),
        ("guest_hangs", [0, 0, 2, 0]),
        ("guest_triple-faults", [0, 0, 0, 2]),
    ] {
        assert_eq!(counts(&text, suite), expected, "{text}");
    }
    assert!(text.starts_with("seed 7: 4 suites, 2 runs each"), "{text}");
    assert!(text.contains("//test/load:guest_fails run 2: RED: two failed\n"), "{text}");
    assert!(text.contains("6 of 8 runs were not green\nagain with the same pauses: --seed 7\n"));
    let evidence = out_dir("all").join("test.load.guest_hangs/run-1");
    assert_eq!(fs::read_to_string(evidence.join("console.log")).unwrap(), "behaviour: hangs\n");
    assert!(text.contains(&format!("  console: {}\n", evidence.join("console.log").display())));
    assert!(fs::read_to_string(evidence.join("runner.log")).unwrap().contains("[hang]"));
    assert!(text.contains(&format!("  CPUs:    {}\n", evidence.join("cpus.txt").display())));
    // Of green runs nothing is kept.
    let good = out_dir("all").join("test.load.guest_good");
    assert_eq!(fs::read_dir(good).unwrap().count(), 0);
    assert!(fs::read_to_string(out_dir("all").join("report.txt")).unwrap().contains("guest_hangs"));
}

#[test]
fn green_is_green_and_the_guests_cpu_was_stopped() {
    let output = load("good", &["--times=5", "//test/load:guest_good"]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(counts(&text, "guest_good"), [5, 0, 0, 0]);
    let hung = load("stopped", &["--times=1", "--core", "//test/load:guest_hangs"]);
    assert!(out_dir("stopped").join("test.load.guest_hangs/run-1/core.elf").exists());
    let text = self::text(&hung);
    let line = text
        .lines()
        .find(|line| line.starts_with("//test/load:guest_hangs ") && !line.contains(": "))
        .unwrap();
    let pauses: u64 = line.split_whitespace().last().unwrap().parse().unwrap();
    assert!(pauses > 0 || text.contains("refuses to have threads stopped"), "{text}");
}

#[test]
fn a_wrong_word_is_no_campaign() {
    let output = load("wrong", &["--often"]);
    assert_eq!(output.status.code(), Some(64));
    let output = load("wrong", &["//test/qemu/nowhere"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output).contains("there are\n  //test/load:guest_fails"), "{}", text(&output));
}
