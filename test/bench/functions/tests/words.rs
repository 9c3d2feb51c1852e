//! What the program says to words that are wrong: what would be right, with an example.
use bench_functions::words::{USAGE, Words};
use std::path::Path;

/// What the BUILD file says before any word of a person's.
const BUILT: [&str; 6] = ["--run", "r", "--bundle", "b", "--kernel", "k"];

fn parse(words: &[&'static str]) -> Result<Words, String> {
    Words::parse(BUILT.iter().chain(words).copied())
}

#[test]
fn wrong_words() {
    let usage = |error: &str| format!("{error}\n{USAGE}");
    for (words, error) in [
        (
            &["ipc"][..],
            "`ipc` is not a measurement; one is null_entry, ring_nop_1, ring_nop_8, ring_nop_64, \
             ipc_rt_0, ipc_rt_64, unpark_none, park_mismatch, park_rt, yield_thread, yield_process, \
             map_touch_unmap"
                .into(),
        ),
        (&["ipc_rt_0", "ipc_rt_64"], "one measurement at a time, as in ipc_rt_64".into()),
        (&["--file"], usage("--file is not an option")),
        (&["-f"], usage("invalid option '-f'")),
        (&["--files=all"], usage("unexpected argument for option '--files': \"all\"")),
    ] {
        assert_eq!(parse(words), Err(error), "{words:?}");
    }
    for missing in ["--run", "--bundle", "--kernel"] {
        let error = Words::parse(BUILT.iter().take_while(|word| **word != missing)).unwrap_err();
        let right = "takes a file of the build; `./bazelw run //test/bench:functions` gives it";
        assert_eq!(error, format!("{missing} {right}"));
    }
}

#[test]
fn right_words() {
    let words = parse(&[]).unwrap();
    assert_eq!((words.name, words.function), ("ipc_rt_64", "client::ipc::round_trip<8>"));
    assert!(!words.is_by_file && !words.is_help);
    assert_eq!((words.run.as_path(), words.kernel.as_path()), (Path::new("r"), Path::new("k")));
    let words = parse(&["park_rt", "--files"]).unwrap();
    assert_eq!((words.name, words.is_by_file), ("park_rt", true));
    assert!(parse(&["--help"]).unwrap().is_help);
}
