//! Two hundred seeds under both policies.
use core_sched_policy::PolicyKind;
use test_sim::run_seed;

fn all(kind: PolicyKind, seeds: std::ops::Range<u64>) {
    let mut failures = Vec::new();
    for seed in seeds {
        match run_seed(seed, kind) {
            Ok(report) => println!("seed {seed}: {report:?}"),
            Err(failure) => failures.push(format!("seed {seed}: {failure}")),
        }
    }
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
