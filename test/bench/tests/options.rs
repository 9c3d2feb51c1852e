//! What the program says to words that are wrong: what would be right, with an example.
use bench::options::{Options, USAGE};
use std::path::Path;

#[test]
fn wrong_words() {
    const JSON: &str = "--json takes the file to write, as in --json figures.jsonl; ";
    const METRICS: &str = "--metrics takes the metrics.jsonl of an earlier run, as in --metrics \
                           bazel-testlogs/test/bench/guest/test.outputs/metrics.jsonl; ";
    const BUILT: &str =
        "takes a file of the build; `./bazelw run //test/bench:instructions` gives it";
    let usage = |error: &str| format!("{error}\n{USAGE}");
    for (words, error) in [
        (&["--json"][..], format!("{JSON}nothing was given")),
        (&["--json", ""], format!("{JSON}nothing was given")),
        (&["--metrics"], format!("{METRICS}nothing was given")),
        (&["--run"], format!("--run {BUILT}; nothing was given")),
        (&["--accepted"], format!("--accepted {BUILT}; nothing was given")),
        (&["--lock"], format!("--lock {BUILT}; nothing was given")),
        (&["--acept"], usage("--acept is not an option")),
        (&["ipc_rt_64"], usage("unexpected argument \"ipc_rt_64\"")),
        (&["-j"], usage("invalid option '-j'")),
        (&["--check=no"], usage("unexpected argument for option '--check': \"no\"")),
        (
            &["--accept", "--check"],
            "--accept makes the figures right, --check judges them: give one".into(),
        ),
    ] {
        assert_eq!(Options::parse(words.iter().copied()), Err(error), "{words:?}");
    }
}

#[test]
fn right_words() {
    let options = Options::parse(["--run", "r", "--json=j", "--metrics", "m", "--check"]).unwrap();
    assert_eq!(options.run, Path::new("r"));
    assert_eq!(options.json.as_deref(), Some(Path::new("j")));
    assert_eq!(options.metrics.as_deref(), Some(Path::new("m")));
    assert!(options.is_check && !options.is_accept && !options.is_help);
    assert!(Options::parse(["--help"]).unwrap().is_help);
    for option in ["--json", "--metrics", "--accept", "--check"] {
        assert!(USAGE.contains(option), "{option}");
    }
}
