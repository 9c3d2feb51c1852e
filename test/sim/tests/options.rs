//! What the program says to words that are wrong: what would be right, with an example.
use std::process::Command;
use test_sim::Options;

/// The program's own words: its status, what it printed, what it complained of.
fn sim(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(std::env::var("SIM").unwrap()).args(words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn wrong_values() {
    const SEED: &str = "--seed takes a number from 0 to 18446744073709551615, as in --seed 17; ";
    const SEEDS: &str =
        "--seeds takes two numbers, the first below the second, as in --seeds 200..1000; ";
    const CPUS: &str = "--cpus takes a number from 1 to 128, as in --cpus 4; ";
    const POLICY: &str = "--policy takes wfq or eevdf, as in --policy eevdf; ";
    const WORKLOAD: &str = "--workload takes one of hogs, weights, sleepers, ipc, reweigh, storm, \
                            migrate, gates, kill, mix, as in --workload mix; ";
    const TRACE: &str = "--trace takes the file to write, as in --trace /tmp/timeline.json; ";
    for (words, right, end) in [
        (&["--seed", "abc"][..], SEED, "not `abc`"),
        (&["--seed", "-1"], SEED, "not `-1`"),
        (&["--seed", ""], SEED, "not ``"),
        (&["--seed", "18446744073709551616"], SEED, "not `18446744073709551616`"),
        (&["--seed"], SEED, "nothing was given"),
        (&["--seeds", "7"], SEEDS, "not `7`"),
        (&["--seeds", "7..7"], SEEDS, "not `7..7`"),
        (&["--seeds", "9..3"], SEEDS, "not `9..3`"),
        (&["--seeds", "0..0"], SEEDS, "not `0..0`"),
        (&["--seeds", "a..b"], SEEDS, "not `a..b`"),
        (&["--seeds"], SEEDS, "nothing was given"),
        (&["--cpus", "0"], CPUS, "not `0`"),
        (&["--cpus", "129"], CPUS, "not `129`"),
        (&["--cpus", "four"], CPUS, "not `four`"),
        (&["--cpus"], CPUS, "nothing was given"),
        (&["--policy", "fifo"], POLICY, "not `fifo`"),
        (&["--policy"], POLICY, "nothing was given"),
        (&["--workload", "nothing"], WORKLOAD, "not `nothing`"),
        (&["--workload"], WORKLOAD, "nothing was given"),
        (&["--trace", ""], TRACE, "not ``"),
        (&["--trace"], TRACE, "nothing was given"),
    ] {
        let (status, printed, complaint) = sim(words);
        assert_eq!(complaint, format!("sim: {right}{end}\n"), "{words:?}");
        assert_eq!((status, printed.as_str()), (2, ""), "{words:?}");
    }
}

#[test]
fn wrong_words() {
    for (words, complaint) in [
        (&["--sed", "7"][..], "--sed is not an option\nusage: sim "),
        (&["7"], "unexpected argument \"7\"\nusage: sim "),
        (&["-s"], "invalid option '-s'\nusage: sim "),
        (&["--verbose=yes"], "unexpected argument for option '--verbose': \"yes\"\nusage: sim "),
        (&["--seed", "1", "--seed", "2"], "one --seed or one --seeds; for several numbers --seeds"),
        (&["--seeds", "1..3", "--verbose"], "--verbose and --trace show one run: give one number"),
    ] {
        let (status, _, said) = sim(words);
        assert!(said.starts_with(&format!("sim: {complaint}")), "{words:?}: {said}");
        assert_eq!(status, 2, "{words:?}");
    }
    let (status, _, said) = sim(&["--seed", "3", "--trace", "/nowhere/at/all"]);
    let right = "sim: --trace takes a file that can be written; /nowhere/at/all: ";
    assert!(said.starts_with(right), "{said}");
    assert_eq!(status, 2);
}

#[test]
fn right_words() {
    let (status, usage, _) = sim(&["--help"]);
    assert_eq!(status, 0);
    for option in ["seed N", "seeds FROM..TO", "policy", "workload", "cpus N", "verbose", "trace"] {
        assert!(usage.contains(&format!("--{option}")), "{option}: {usage}");
    }
    let (status, printed, _) = sim(&["--seed", "3", "--policy", "eevdf", "--cpus", "2"]);
    assert!(printed.starts_with("seed 3: ipc on 2 CPUs under eevdf\n"), "{printed}");
    assert!(status == 0 && printed.ends_with("nothing is broken\n"), "{printed}");
    let (status, printed, _) = sim(&["--seeds", "3..5", "--cpus=1"]);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!((status, lines.len()), (0, 2), "{printed}");
    assert!(lines[0].starts_with("seed 3: ") && lines[1].starts_with("seed 4: "), "{printed}");
}

#[test]
fn the_largest_seed_runs() {
    let options = Options::parse(["--seed", "18446744073709551615"]).unwrap();
    assert_eq!(options.seeds(), u64::MAX..=u64::MAX);
    let options =
        Options::parse(["--seeds", "18446744073709551614..18446744073709551615"]).unwrap();
    assert_eq!(options.seeds(), u64::MAX - 1..=u64::MAX - 1);
    // Numbers at which a sum could go over the end.
    for seed in [u64::MAX, u64::MAX - 1, u64::MAX / 31, u64::MAX / 31 + 1, 1 << 63] {
        let (status, printed, said) = sim(&["--seed", &seed.to_string(), "--cpus", "2"]);
        assert_eq!(status, 0, "{printed}{said}");
    }
}
