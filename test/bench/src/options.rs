//! The program's words.

use std::ffi::OsString;
use std::path::PathBuf;

/// All options in a few lines; what the BUILD file gives is not among them.
pub const USAGE: &str = "\
usage: instructions [--json FILE] [--metrics FILE] [--accept | --check]
  --json FILE     writes the figures as JSON lines, too
  --metrics FILE  takes the metrics.jsonl of an earlier run instead of booting
  --accept        makes the figures the accepted ones: test/bench/accepted.json
  --check         fails if a figure is not as accepted or above its bar";

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What boots the benchmark, and the checked-in files: given by the BUILD file.
    pub run: PathBuf,
    /// The accepted counts.
    pub accepted: PathBuf,
    /// The name of the tool chain.
    pub lock: PathBuf,
    /// Where to write the figures.
    pub json: Option<PathBuf>,
    /// The metrics of an earlier run.
    pub metrics: Option<PathBuf>,
    /// Whether to accept the figures.
    pub is_accept: bool,
    /// Whether anything to look at is a failure.
    pub is_check: bool,
    /// Whether only the usage was wanted.
    pub is_help: bool,
}

impl Options {
    /// Reads the words after the program's name. The error says what would be right.
    pub fn parse(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, String> {
        use lexopt::Arg::{Long, Short};
        let mut options = Self::default();
        let mut parser = lexopt::Parser::from_args(words);
        while let Some(word) = parser.next().map_err(|error| format!("{error}\n{USAGE}"))? {
            let name = match word {
                Long(name) => name.to_owned(),
                Short('h') => "help".to_owned(),
                other => return Err(format!("{}\n{USAGE}", other.unexpected())),
            };
            let mut file = |right: &str| match parser.value() {
                Ok(file) if !file.is_empty() => Ok(PathBuf::from(file)),
                _ => Err(format!("--{name} takes {right}; nothing was given")),
            };
            let built = "a file of the build; `./bazelw run //test/bench:instructions` gives it";
            match name.as_str() {
                "run" => options.run = file(built)?,
                "accepted" => options.accepted = file(built)?,
                "lock" => options.lock = file(built)?,
                "json" => {
                    options.json = Some(file("the file to write, as in --json figures.jsonl")?);
                }
                "metrics" => {
                    let right = "the metrics.jsonl of an earlier run, as in --metrics \
                                 bazel-testlogs/test/bench/guest/test.outputs/metrics.jsonl";
                    options.metrics = Some(file(right)?);
                }
                "accept" => options.is_accept = true,
                "check" => options.is_check = true,
                "help" => options.is_help = true,
                _ => return Err(format!("--{name} is not an option\n{USAGE}")),
            }
        }
        if options.is_accept && options.is_check {
            return Err("--accept makes the figures right, --check judges them: give one".into());
        }
        Ok(options)
    }
}
