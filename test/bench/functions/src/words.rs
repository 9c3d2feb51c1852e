//! The program's words.

use crate::MEASUREMENTS;
use std::ffi::OsString;
use std::path::PathBuf;

/// All options in a few lines; what the BUILD file gives is not among them.
pub const USAGE: &str = "\
usage: functions [MEASUREMENT] [--files]
  MEASUREMENT  what to look into; ipc_rt_64 unless it is given
  --files      sums by file instead of by function";

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// What boots the benchmark, its bundle, and the kernel with debug information: given by the
    /// BUILD file.
    pub run: PathBuf,
    /// The bundle.
    pub bundle: PathBuf,
    /// The kernel.
    pub kernel: PathBuf,
    /// The measurement.
    pub name: &'static str,
    /// The function whose loop runs it.
    pub function: &'static str,
    /// Whether files are rows, rather than functions.
    pub is_by_file: bool,
    /// Whether only the usage was wanted.
    pub is_help: bool,
}

impl Words {
    /// Reads the words after the program's name. The error says what would be right.
    pub fn parse(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, String> {
        use lexopt::Arg::{Long, Short, Value};
        let (mut run, mut bundle, mut kernel) = (None, None, None);
        let (mut is_by_file, mut is_help, mut wanted) = (false, false, None);
        let mut parser = lexopt::Parser::from_args(words);
        while let Some(word) = parser.next().map_err(|error| format!("{error}\n{USAGE}"))? {
            let option = match word {
                Long(option) => option.to_owned(),
                Short('h') => "help".to_owned(),
                Value(word) if wanted.is_none() => {
                    wanted = Some(word.to_string_lossy().into_owned());
                    continue;
                }
                Value(_) => return Err("one measurement at a time, as in ipc_rt_64".into()),
                other => return Err(format!("{}\n{USAGE}", other.unexpected())),
            };
            match option.as_str() {
                "run" => run = parser.value().ok(),
                "bundle" => bundle = parser.value().ok(),
                "kernel" => kernel = parser.value().ok(),
                "files" => is_by_file = true,
                "help" => is_help = true,
                _ => return Err(format!("--{option} is not an option\n{USAGE}")),
            }
        }
        let built = |file: Option<OsString>, option: &str| match file {
            Some(file) if !file.is_empty() => Ok(PathBuf::from(file)),
            _ => Err(format!(
                "--{option} takes a file of the build; `./bazelw run //test/bench:functions` gives it"
            )),
        };
        let wanted = wanted.unwrap_or_else(|| "ipc_rt_64".to_owned());
        let known = MEASUREMENTS.iter().find(|(known, _)| *known == wanted);
        let &(name, function) = known.ok_or_else(|| {
            let all = MEASUREMENTS.map(|(name, _)| name).join(", ");
            format!("`{wanted}` is not a measurement; one is {all}")
        })?;
        let (run, bundle) = (built(run, "run")?, built(bundle, "bundle")?);
        let kernel = built(kernel, "kernel")?;
        Ok(Self { run, bundle, kernel, name, function, is_by_file, is_help })
    }
}
