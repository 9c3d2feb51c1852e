//! How much faster more CPUs do six jobs of equal threads, in total time and in work done.
//!
//! The bars are on simulated time, with the costs of locks, interrupts and switches that
//! `Costs` names; every figure is printed.
use core_sched_policy::{AnyPolicy, PolicyKind, VirtualTime};
use std::io::Write;
use test_sim::{Job, JobTimes};

/// CPUs, and the least speed-up there in hundredths.
const BARS: [(usize, u64); 3] = [(2, 190), (4, 370), (32, 2800)];

fn times(job: Job, kind: PolicyKind, cpus: usize) -> JobTimes {
    job.run(cpus, || AnyPolicy::new(kind, VirtualTime::default()))
        .unwrap_or_else(|failure| panic!("{job:?} on {cpus} CPUs: {failure}"))
}

fn check(kind: PolicyKind) {
    let mut slow = Vec::new();
    for job in Job::ALL {
        let one = times(job, kind, 1);
        let mut line = format!("{} {job:?}: {} ms on 1", kind.name(), one.total_ns / 1_000_000);
        for (cpus, bar) in BARS {
            let many = times(job, kind, cpus);
            let total = 100 * one.total_ns / many.total_ns;
            // Work for time in the first half, against all of the work on one CPU.
            let rate = |work: u64, ns: u64| u128::from(work) * 1_000_000 / u128::from(ns);
            let work = 100 * rate(many.work_by_half_ns, many.total_ns / 2)
                / rate(one.work_ns, one.total_ns);
            let (total, work) = (total as u128, work);
            line += &format!(", {total} % and {work} % in work on {cpus}");
            if total < bar.into() || work < bar.into() {
                slow.push(format!("{job:?} on {cpus} CPUs: {total} %, {work} % of {bar} %"));
            }
        }
        // Not by println, which a passing test swallows.
        std::io::stderr().write_all((line + "\n").as_bytes()).unwrap();
    }
    assert!(slow.is_empty(), "{}: {slow:#?}", kind.name());
}

#[test]
fn wfq() {
    check(PolicyKind::Wfq);
}

#[test]
fn eevdf() {
    check(PolicyKind::Eevdf);
}
