//! Boots the script with and without the fast path and compares what it recorded, record by record.

use std::path::PathBuf;

use abi_report::{Decoder, Exit, Item};
use qemu_command::{Lane, Machine, Media, Serial};

fn input(variable: &str) -> PathBuf {
    PathBuf::from(std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set")))
}

/// What a boot recorded: every record in words.
fn boot(name: &str, words: &str) -> Vec<String> {
    let folder = PathBuf::from(std::env::var("TEST_TMPDIR").expect("run by bazel"));
    let (console, records) = (folder.join(format!("{name}.log")), folder.join(name));
    let media = Media::Direct { stub: input("STUB"), bundle: input("BUNDLE") };
    let mut machine = Machine::new(media);
    machine.lane = Lane::Deterministic;
    machine.append = format!("exit=debug {words}");
    machine.exit_port = true;
    machine.serial = Serial::Files { console: console.clone(), records: records.clone() };
    let status = test_boot::run(&machine);
    let console = std::fs::read(&console).unwrap_or_default();
    let console = String::from_utf8_lossy(&console);
    assert_eq!(status, Some(Exit::Pass.qemu_status()), "{name}: {console}");
    let mut decoder = Decoder::new();
    let mut all = Vec::new();
    for byte in std::fs::read(&records).unwrap() {
        decoder.push(byte, |item| match item {
            Item::Record { record, .. } => all.push(format!("{record:?}")),
            Item::Damage(damage) => panic!("{name}: {damage:?}"),
        });
    }
    all
}

#[test]
fn both_paths_give_the_same_completions() {
    let fast = boot("fast", "");
    let general = boot("general", "fastpath=off");
    let metrics = |of: &[String]| of.iter().filter(|line| line.contains("Metric")).count();
    assert!(metrics(&fast) >= 12, "{fast:#?}");
    for (one, other) in fast.iter().zip(&general) {
        assert_eq!(one, other, "with the fast path, and without");
    }
    assert_eq!(fast.len(), general.len());
    // A script that never got where it means to go compares nothing.
    for status in ["ok", "cancelled", "expired", "not found"] {
        let came = fast
            .iter()
            .any(|line| line.contains(&format!("name: {status:?}")) && !line.contains("value: 0,"));
        assert!(came, "no completion with status {status}: {fast:#?}");
    }
}
