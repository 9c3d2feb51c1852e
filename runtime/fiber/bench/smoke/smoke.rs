//! The benchmark beside its peers runs, with few operations: every row, every contestant, every form
//! of output. Nothing here looks at a time.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs};

use serde_json::Value;

const ROWS: [&str; 10] = [
    "spawn_join",
    "yield",
    "unbuffered",
    "bounded1",
    "bounded1024_1to1",
    "bounded1024_4to4",
    "select4",
    "mutex",
    "oneshot",
    "timer_1ms",
];

fn contestants() -> Vec<String> {
    env::var("CONTESTANTS").unwrap().split(' ').map(str::to_owned).collect()
}

/// The names in `NAME=PATH` or `NAME:WORKERS=PATH`.
fn names() -> Vec<String> {
    let words = contestants().into_iter().filter(|word| word.contains('='));
    words.map(|word| word.split(['=', ':']).next().unwrap().to_owned()).collect()
}

fn drive(words: &[&str]) -> Output {
    Command::new(env::var("DRIVER").unwrap()).args(contestants()).args(words).output().unwrap()
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env::var("TEST_TMPDIR").unwrap()).join(name)
}

#[test]
fn all_rows_in_every_form() {
    let (json, plot) = (file("figures.jsonl"), file("plot.svg"));
    let output = drive(&[
        "--quick",
        "--reps",
        "1",
        "--json",
        json.to_str().unwrap(),
        "--plot",
        plot.to_str().unwrap(),
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}{errors}");

    let lines = fs::read_to_string(json).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let measured: Vec<(&str, u64)> = lines
        .iter()
        .map(|line| (line["row"].as_str().unwrap(), line["workers"].as_u64().unwrap()))
        .collect();
    let wanted: Vec<(&str, u64)> = ROWS.iter().flat_map(|row| [(*row, 1), (*row, 2)]).collect();
    assert_eq!(measured, wanted);
    let mut seen = BTreeSet::new();
    for line in &lines {
        assert!(line["ours_ns"].is_number() && line["ratio_to_best"].is_number(), "{line}");
        let peers = line["peers"].as_object().unwrap();
        assert!(!peers.is_empty() && peers.values().all(Value::is_number), "{line}");
        seen.extend(peers.keys().cloned());
    }
    assert_eq!(seen, names().into_iter().skip(1).collect());

    let table: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(table.len(), 1 + 2 * ROWS.len(), "{text}");
    assert!(text.contains("may leaves out") && text.contains("of 20 rows won"), "{text}");
    assert!(fs::read_to_string(plot).unwrap().starts_with("<svg"));
}

#[test]
fn a_part_of_it() {
    let plot = file("part.svg");
    let words = ["--quick", "--reps", "2", "--rows", "yield", "--workers", "1", "--peers", "may"];
    let output = drive(&[&words[..], &["--plot", plot.to_str().unwrap()]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("of 1 rows won") && !text.contains("tokio"), "{text}");
}

#[test]
fn bad_words_are_refused() {
    for (words, answer) in [
        (&["--rows", "yeild"][..], "the rows are spawn_join"),
        (&["--reps", "many"], "'many' is not a number"),
        (&["--fast"], "'--fast' is not understood"),
        (&["--peers", "erlang"], "the peers are tokio"),
        // Found out before anything is measured: nobody waits for a run that cannot be kept.
        (&["--reps", "1000", "--json", "/nowhere/f"], "/nowhere/f: No such file or directory"),
        (&["--reps", "1000", "--plot", "/nowhere/f"], "name a file in a folder that is there"),
    ] {
        let output = drive(words);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {errors}");
        assert!(errors.contains(answer), "{words:?}: {errors}");
    }
}

/// A peer that answers `answer` to every run, as words of a shell.
fn peer(name: &str, answer: &str) -> String {
    let path = file(name);
    let script = format!("#!/bin/sh\n[ \"$1\" = --list ] && echo yield || echo {answer}\n");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{name}={}", path.display())
}

/// One row beside `peer` alone; the sixth word a contestant is given is the count.
fn beside(peer: &str, words: &[&str]) -> Output {
    let name = peer.split('=').next().unwrap();
    let plot = file("beside.svg");
    let fixed = ["--contestant", peer, "--peers", name, "--quick", "--rows", "yield"];
    drive(&[&fixed[..], &["--plot", plot.to_str().unwrap()], words].concat())
}

#[test]
fn a_contestant_that_loses_work_is_an_error() {
    let output = beside(&peer("liar", "cpu_ns 1 sum 7"), &[]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("liar, yield with 1 workers: the sum is 7"), "{errors}");
}

#[test]
fn a_lost_row_is_marked_and_fails_the_gate() {
    let fast = peer("fast", "cpu_ns 1 sum $6");
    for (words, code) in [(&[][..], 0), (&["--gate"], 1)] {
        let output = beside(&fast, words);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains("0 of 2 rows won\nLOST: yield (1), yield (2)\n"), "{text}");
    }
    let output = beside(&peer("slow", "cpu_ns 1000000000000 sum $6"), &["--gate"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("2 of 2 rows won\n") && !text.contains("LOST"), "{text}");
}
