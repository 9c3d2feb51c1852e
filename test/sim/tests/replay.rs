//! A run can be repeated, and its timeline is what happened.
use core_sched_policy::{AnyPolicy, PolicyKind, VirtualTime};
use test_sim::{Defect, Fault, Machine, Workload, of_seed, run_seed, run_with};

fn either(kind: PolicyKind) -> AnyPolicy {
    AnyPolicy::new(kind, VirtualTime::default())
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let mut seen = Vec::new();
    for kind in PolicyKind::ALL {
        for seed in [3, 9, 15, 28] {
            let first = run_seed(seed, kind).unwrap();
            assert_eq!(first, run_seed(seed, kind).unwrap(), "seed {seed}");
            assert!(!seen.contains(&first.fingerprint), "seed {seed} is like another");
            seen.push(first.fingerprint);
        }
    }
}

#[test]
fn a_failure_can_be_seen_again() {
    let (mut config, _) = of_seed(9);
    config.fault = Fault::Planted(Defect::LostIpi, 3);
    let run = || run_with(config, Workload::Mix, "wfq", || either(PolicyKind::Wfq)).unwrap_err();
    let (first, again) = (run(), run());
    assert_eq!((first.at_ns, &first.detail), (again.at_ns, &again.detail));
    assert!(first.replay.contains("--seed 9 --policy wfq --workload mix --cpus"), "{first}");
}

#[test]
fn the_timeline_is_what_ran() {
    for kind in PolicyKind::ALL {
        let (mut config, workload) = of_seed(12);
        config.traces = true;
        let mut m = Machine::new(config, workload.room(config.cpus), || either(kind));
        workload.run(&mut m).unwrap_or_else(|failure| panic!("{failure}"));
        let trace = m.take_trace().expect("a timeline was asked for");
        let (mut ends, mut ran_ns) = (vec![0; config.cpus], 0);
        for &(cpu, _, from_ns, to_ns) in trace.spans() {
            assert!(ends[cpu] <= from_ns && from_ns < to_ns && to_ns <= m.now_ns());
            ends[cpu] = to_ns;
            ran_ns += to_ns - from_ns;
        }
        assert!(ends.iter().all(|&end_ns| end_ns > m.now_ns() / 2), "{ends:?}");
        // Some threads only compute, so no CPU idles for long.
        let all_ns = m.now_ns() * config.cpus as u64;
        assert!(ran_ns > all_ns / 10 * 9, "{ran_ns} of {all_ns} ns are on the timeline");
        // What Chrome's viewer needs: complete events with a row, a start and a length in µs.
        let json = trace.to_json("a run");
        let events = json["traceEvents"].as_array().unwrap();
        let spans: Vec<_> = events.iter().filter(|e| e["ph"] == "X").collect();
        assert_eq!(spans.len(), trace.spans().len());
        let (_, slot, from_ns, to_ns) = trace.spans()[0];
        assert_eq!(spans[0]["name"], format!("thread {slot}"));
        assert_eq!(spans[0]["ts"].as_f64().unwrap(), from_ns as f64 / 1000.0);
        assert_eq!(spans[0]["dur"].as_f64().unwrap(), (to_ns - from_ns) as f64 / 1000.0);
    }
}

#[test]
fn seeds_cover_the_sizes_and_workloads() {
    let cpus = |range: std::ops::Range<u64>| range.map(test_sim::cpus_of_seed).collect::<Vec<_>>();
    assert!(cpus(0..150).iter().all(|n| (1..=8).contains(n)));
    assert!(cpus(150..190).iter().all(|n| (9..=32).contains(n)));
    assert!(cpus(190..200).iter().all(|n| (33..=128).contains(n)));
    assert_eq!(cpus(199..200), [128]);
    for workload in Workload::ALL {
        assert_eq!((0..200).filter(|&s| of_seed(s).1 == workload).count(), 20);
        assert_eq!(Workload::named(workload.name()), Some(workload));
    }
}
