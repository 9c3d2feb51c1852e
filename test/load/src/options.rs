//! The words a campaign is described with, and the suites it is about.

use lexopt::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What a person reads who gives a wrong word.
pub const USAGE: &str = "\
usage: ./bazelw run //test/load -- OPTION... [TARGET...]
       ./bazelw run //test/qemu/AREA:NAME.load -- OPTION... [TARGET...]
  runs guest suites of the racing lane many times under load, and counts
  --times N          runs of each suite, default 20
  --pause-ms N       how long a CPU of the guest is stopped at most, default 30; 0 stops none
  --burners N        host threads that take CPU time beside it, default 2
  --seed N           the seed of a campaign seen before; default another each time
  --guard-seconds N  when a guest that says nothing counts as hung, default 300
  --core             keep the memory of guests that hang, for gdb
  --out DIR          where evidence is kept
  TARGET             a suite, or a part of its name; default all";

/// One suite: a guest test target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// Its label.
    pub label: String,
    /// The program that runs it once, and takes further words for the runner.
    pub program: PathBuf,
}

/// A campaign: which suites, how often, beside what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The suites, in order.
    pub suites: Vec<Suite>,
    /// Runs of each.
    pub times: u32,
    /// Bound on the time that a CPU stands still; zero: none is stopped.
    pub longest_pause: Duration,
    /// Host threads that burn.
    pub burners: usize,
    /// The seed, if one was given.
    pub seed: Option<u64>,
    /// When a silent guest counts as hung.
    pub guard: Duration,
    /// Whether the memory of guests that hang is kept.
    pub core: bool,
    /// Where evidence is kept, if that was said.
    pub out: Option<PathBuf>,
}

/// Reads the list of suites (a label, a tab, a path on each line) and the words after it.
pub fn parse(
    list: &str,
    words: impl IntoIterator<Item = OsString>,
) -> Result<Options, lexopt::Error> {
    let mut options = Options {
        suites: suites(list)?,
        times: 20,
        longest_pause: Duration::from_millis(30),
        burners: 2,
        seed: None,
        guard: Duration::from_secs(300),
        core: false,
        out: None,
    };
    let mut wanted: Vec<String> = Vec::new();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            Long("times") => options.times = parser.value()?.parse()?,
            Long("pause-ms") => {
                options.longest_pause = Duration::from_millis(parser.value()?.parse()?);
            }
            Long("burners") => options.burners = parser.value()?.parse()?,
            Long("seed") => options.seed = Some(parser.value()?.parse()?),
            Long("guard-seconds") => {
                options.guard = Duration::from_secs(parser.value()?.parse()?);
            }
            Long("core") => options.core = true,
            Long("out") => options.out = Some(parser.value()?.into()),
            Value(target) => wanted.push(target.string()?),
            other => return Err(other.unexpected()),
        }
    }
    if options.times == 0 {
        return Err("--times is at least 1: no run shows nothing".into());
    }
    if options.guard.is_zero() {
        return Err("--guard-seconds is at least 1: every guest would count as hung".into());
    }
    if !wanted.is_empty() {
        choose(&mut options.suites, &wanted)?;
    }
    Ok(options)
}

fn suites(list: &str) -> Result<Vec<Suite>, lexopt::Error> {
    let suite = |line: &str| {
        let (label, program) = line.split_once('\t').ok_or_else(|| {
            format!("{line:?} is no suite: a line is a label, a tab and the path of its program")
        })?;
        Ok(Suite { label: label.into(), program: program.into() })
    };
    list.lines().map(suite).collect()
}

/// Keeps what was asked for; each word must mean something.
fn choose(suites: &mut Vec<Suite>, wanted: &[String]) -> Result<(), lexopt::Error> {
    for word in wanted {
        if !suites.iter().any(|suite| is_meant(word, &suite.label)) {
            let known: Vec<&str> = suites.iter().map(|suite| suite.label.as_str()).collect();
            let known = known.join("\n  ");
            return Err(format!("{word:?} means no suite here; there are\n  {known}").into());
        }
    }
    suites.retain(|suite| wanted.iter().any(|word| is_meant(word, &suite.label)));
    Ok(())
}

/// A whole label means that suite, not those whose names go on behind it; a folder (`//a/b:`) and
/// any other part of a name mean all that have it.
fn is_meant(word: &str, label: &str) -> bool {
    let is_whole = word.starts_with("//") && !word.ends_with([':', '/']);
    if is_whole { label == word } else { label.contains(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "//a:one_2r\tone.sh\n//a:one_2r_b\tb.sh\n//c:two_4r\ttwo.sh\n";

    fn words(text: &str) -> Result<Options, lexopt::Error> {
        parse(LIST, text.split_whitespace().map(OsString::from))
    }

    fn labels(text: &str) -> Vec<String> {
        words(text).unwrap().suites.into_iter().map(|suite| suite.label).collect()
    }

    #[test]
    fn without_words_everything_runs() {
        let options = words("").unwrap();
        assert_eq!((options.times, options.burners, options.seed), (20, 2, None));
        assert_eq!(options.longest_pause, Duration::from_millis(30));
        assert_eq!(options.suites.len(), 3);
        assert_eq!(options.suites[2].program, PathBuf::from("two.sh"));
    }

    #[test]
    fn a_label_means_one_suite_and_a_part_of_a_name_all_that_have_it() {
        assert_eq!(labels("//a:one_2r"), ["//a:one_2r"]);
        assert_eq!(labels("_4r"), ["//c:two_4r"]);
        assert_eq!(labels("one --times 3"), ["//a:one_2r", "//a:one_2r_b"]);
        assert_eq!(labels("//a: //c:two_4r"), ["//a:one_2r", "//a:one_2r_b", "//c:two_4r"]);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, part) in [
            ("three", "\"three\" means no suite here; there are\n  //a:one_2r\n"),
            ("//a:one", "\"//a:one\" means no suite here"),
            ("--times 0", "at least 1"),
            ("--guard-seconds 0", "at least 1"),
            ("--often", "--often"),
        ] {
            let error = words(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let error = parse("a b", []).unwrap_err().to_string();
        assert!(error.contains("a label, a tab and the path"), "{error}");
    }
}
