//! Bugs put in on purpose: the seeds find every one of them.
//!
//! A waker that does not look at the idle CPUs again is not among them: between its look and its
//! queueing nothing comes in a machine of events. The driver's models find that one.
//!
//! Each test says which rules may tell on the bug, and the same seeds without it are green in
//! the test of all seeds.
use core_sched_policy::{AnyPolicy, Policy, PolicyKind, VirtualTime};
use std::io::Write;
use test_sim::{Defect, Fault, NoCreditFloor, OperationDefect, Rule, StaleTag, of_seed, run_with};

const SEEDS: std::ops::Range<u64> = 0..100;

/// What the seeds find; every finding names the seed to replay.
fn findings<P: Policy + 'static>(fault: Fault, policy: impl Fn() -> P) -> Vec<(u64, Rule)> {
    let mut found = Vec::new();
    for seed in SEEDS {
        let (mut config, workload) = of_seed(seed);
        config.fault = fault;
        if let Err(failure) = run_with(config, workload, "planted", &policy) {
            assert!(failure.replay.contains(&format!("--seed {seed} ")), "{failure}");
            println!("seed {seed}: {failure}");
            found.push((seed, failure.rule));
        }
    }
    let line = format!("found by {} of {} seeds\n", found.len(), SEEDS.end);
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    found
}

fn assert_found(found: &[(u64, Rule)], at_least: usize, rules: &[Rule]) {
    assert!(found.len() >= at_least, "only {} seeds found it: {found:?}", found.len());
    assert!(found.iter().all(|(_, rule)| rules.contains(rule)), "{found:?}");
}

fn either(kind: PolicyKind) -> AnyPolicy {
    AnyPolicy::new(kind, VirtualTime::default())
}

#[test]
fn no_credit_floor() {
    let found = findings(Fault::None, NoCreditFloor::default);
    assert_found(&found, 1, &[Rule::Starved, Rule::Unfair]);
}

#[test]
fn stale_tag() {
    let found = findings(Fault::None, StaleTag::default);
    assert_found(&found, 10, &[Rule::Starved, Rule::Unfair, Rule::Invariant]);
}

#[test]
fn double_enqueue() {
    for kind in PolicyKind::ALL {
        let found = findings(Fault::Planted(Defect::DoubleEnqueue, 50), || either(kind));
        assert_found(&found, 40, &[Rule::Refused, Rule::Invariant]);
    }
}

#[test]
fn lost_ipi() {
    for kind in PolicyKind::ALL {
        let found = findings(Fault::Planted(Defect::LostIpi, 20), || either(kind));
        assert_found(&found, 10, &[Rule::Idle, Rule::Starved, Rule::Unfair]);
    }
}

#[test]
fn requeued_before_its_stack_is_left() {
    for kind in PolicyKind::ALL {
        let found = findings(Fault::Planted(Defect::RequeueBeforeSwitch, 1), || either(kind));
        assert_found(&found, 40, &[Rule::Invariant, Rule::Refused]);
    }
}

#[test]
fn a_slice_that_is_not_armed() {
    for kind in PolicyKind::ALL {
        let found = findings(Fault::Planted(Defect::LostSliceArm, 1), || either(kind));
        assert_found(&found, 20, &[Rule::Starved, Rule::Unfair, Rule::Idle]);
    }
}

/// Bugs in the order of operations and ends, which host tests of the operations plant too.
fn in_operations(defect: OperationDefect, at_least: usize, rules: &[Rule]) {
    let wfq = || either(PolicyKind::Wfq);
    assert_found(&findings(Fault::InOperations(defect), wfq), at_least, rules);
}

#[test]
fn a_completion_that_wakes_nobody() {
    in_operations(OperationDefect::LostWake, 60, &[Rule::Stuck]);
}

#[test]
fn a_sleep_of_the_dead_that_goes_on() {
    in_operations(OperationDefect::SleepNotCountedOut, 5, &[Rule::Invariant]);
}
