//! The runs that once failed do not fail again.
use core_sched_policy::{AnyPolicy, VirtualTime};
use test_sim::{Done, KEPT_FILE, Options, Report, Workload, kept_runs, run_with};

const KEPT: &str = include_str!("../kept.txt");

fn run(options: &Options, seed: u64) -> Done<Report> {
    let (config, workload) = options.of(seed);
    let kind = options.kind;
    run_with(config, workload, kind.name(), || AnyPolicy::new(kind, VirtualTime::default()))
}

#[test]
fn kept() {
    let runs = kept_runs(KEPT).unwrap_or_else(|error| panic!("{error}"));
    assert!(!runs.is_empty(), "{KEPT_FILE} has none");
    let mut failures = Vec::new();
    for (words, options) in &runs {
        for seed in options.seeds() {
            if let Err(failure) = run(options, seed) {
                failures.push(format!("{words}: {failure}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), runs.len(), failures.join("\n"));
}

#[test]
fn a_line_is_the_words_of_the_program() {
    let text = "# all\n\n--seed 9 --policy eevdf --workload mix --cpus 3 # Starved\n --seed 7\n";
    let runs = kept_runs(text).unwrap();
    assert_eq!(runs.len(), 2);
    let (words, options) = &runs[0];
    assert_eq!(*words, "--seed 9 --policy eevdf --workload mix --cpus 3");
    let (config, workload) = options.of(9);
    assert_eq!((options.seeds(), options.kind.name()), (9..=9, "eevdf"));
    assert_eq!((config.seed, config.cpus, workload), (9, 3, Workload::Mix));
}

#[test]
fn a_wrong_line_is_refused() {
    for (line, words) in [
        ("--seed x", "line 2: --seed takes a number from 0 to 18446744073709551615"),
        ("17", "line 2: unexpected argument \"17\""),
        ("--policy wfq", "line 2: `--policy wfq` names no seed, as --seed 17 would"),
    ] {
        let error = kept_runs(&format!("# a remark\n{line} # why\n")).unwrap_err();
        assert!(error.starts_with(&format!("{KEPT_FILE}, {words}")), "{error}");
    }
}
