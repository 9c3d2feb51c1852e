//! Two hundred seeds under both policies.
use core_sched_policy::PolicyKind;
use std::io::Write;
use test_sim::run_seed;

fn all(kind: PolicyKind, seeds: std::ops::Range<u64>) {
    let mut failures = Vec::new();
    let (mut events, mut exchanges, mut worst, mut worst_seed) = (0, 0, 0, 0);
    for seed in seeds {
        match run_seed(seed, kind) {
            Ok(report) => {
                events += report.events;
                exchanges += report.exchanges;
                if report.worst_wait_per_mille > worst {
                    (worst, worst_seed) = (report.worst_wait_per_mille, seed);
                }
            }
            Err(failure) => failures.push(format!("seed {seed}: {failure}")),
        }
    }
    let name = kind.name();
    let line = format!(
        "{name}: {events} events, {exchanges} yields in one step; {worst} ‰ of the bound waited in {worst_seed}\n"
    );
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    assert_eq!(exchanges > 0, kind == PolicyKind::Wfq, "who yields in one step");
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn wfq() {
    all(PolicyKind::Wfq, 0..200);
}

#[test]
fn eevdf() {
    all(PolicyKind::Eevdf, 0..200);
}
