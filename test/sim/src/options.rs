//! What can be said on the command line, and in the file of kept runs.

use crate::{Config, Workload, of_seed};
use core_sched::MAX_CPUS;
use core_sched_policy::PolicyKind;
use lexopt::prelude::*;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

/// All options in a few lines.
pub const USAGE: &str = "\
usage: sim [--seed N | --seeds FROM..TO] [--policy wfq|eevdf] [--workload NAME] [--cpus N]
           [--verbose] [--trace FILE]
  --seed N          the run of this number, 0 to 18446744073709551615; 0 unless it is given
  --seeds FROM..TO  each of them, TO not included, until one fails
  --policy NAME     wfq (the usual one) or eevdf
  --workload NAME   other threads than the seed's
  --cpus N          1 to 128 CPUs instead of the seed's
  --verbose         prints who ran when and where
  --trace FILE      writes that as a timeline for a trace viewer";

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The seeds to run; none for the default one.
    pub seeds: Option<RangeInclusive<u64>>,
    /// The policy.
    pub kind: PolicyKind,
    /// The threads, if not those of the seed.
    pub workload: Option<Workload>,
    /// CPUs, if not those of the seed.
    pub cpus: Option<usize>,
    /// Whether to print the timeline.
    pub is_verbose: bool,
    /// Where to write the timeline.
    pub trace: Option<PathBuf>,
    /// Whether only the usage was wanted.
    pub is_help: bool,
}

/// The value of an option, or what it should have been.
fn value<T: FromStr>(
    parser: &mut lexopt::Parser,
    option: &str,
    right: &str,
    is_right: impl FnOnce(&T) -> bool,
) -> Result<T, String> {
    let wanted = format!("--{option} takes {right}");
    let word = parser.value().map_err(|_| format!("{wanted}; nothing was given"))?;
    let parsed = word.to_str().and_then(|text| text.parse().ok()).filter(is_right);
    parsed.ok_or_else(|| format!("{wanted}; not `{}`", word.to_string_lossy()))
}

/// `FROM..TO`.
struct Seeds(RangeInclusive<u64>);

impl FromStr for Seeds {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (from, to) = text.split_once("..").ok_or(())?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| ());
        Ok(Self(number(from)?..=number(to)?.checked_sub(1).ok_or(())?))
    }
}

/// A name among several.
struct Name(String);

impl FromStr for Name {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(Self(text.to_owned()))
    }
}

impl Options {
    /// Reads the words after the program's name. The error says what would be right.
    pub fn parse(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut parser = lexopt::Parser::from_args(words);
        while let Some(word) = parser.next().map_err(|error| format!("{error}\n{USAGE}"))? {
            let option = match word {
                Long(option) => option.to_owned(),
                Short('h') => "help".to_owned(),
                other => return Err(format!("{}\n{USAGE}", other.unexpected())),
            };
            match option.as_str() {
                "seed" => {
                    let right = "a number from 0 to 18446744073709551615, as in --seed 17";
                    let seed: u64 = value(&mut parser, &option, right, |_| true)?;
                    options.add(seed..=seed)?;
                }
                "seeds" => {
                    let right = "two numbers, the first below the second, as in --seeds 200..1000";
                    let is_right = |seeds: &Seeds| !seeds.0.is_empty();
                    let Seeds(seeds) = value(&mut parser, &option, right, is_right)?;
                    options.add(seeds)?;
                }
                "cpus" => {
                    let right = format!("a number from 1 to {MAX_CPUS}, as in --cpus 4");
                    let is_right = |cpus: &usize| (1..=MAX_CPUS).contains(cpus);
                    options.cpus = Some(value(&mut parser, &option, &right, is_right)?);
                }
                "policy" => {
                    let right = "wfq or eevdf, as in --policy eevdf";
                    let is_right = |name: &Name| PolicyKind::named(&name.0).is_some();
                    let Name(name) = value(&mut parser, &option, right, is_right)?;
                    options.kind = PolicyKind::named(&name).unwrap_or_default();
                }
                "workload" => {
                    let names = Workload::ALL.map(Workload::name).join(", ");
                    let right = format!("one of {names}, as in --workload mix");
                    let is_right = |name: &Name| Workload::named(&name.0).is_some();
                    let Name(name) = value(&mut parser, &option, &right, is_right)?;
                    options.workload = Workload::named(&name);
                }
                "trace" => {
                    let right = "the file to write, as in --trace /tmp/timeline.json";
                    let is_right = |file: &PathBuf| !file.as_os_str().is_empty();
                    options.trace = Some(value(&mut parser, &option, right, is_right)?);
                }
                "verbose" => options.is_verbose = true,
                "help" => options.is_help = true,
                _ => return Err(format!("--{option} is not an option\n{USAGE}")),
            }
        }
        let seeds = options.seeds();
        if seeds.start() != seeds.end() && (options.is_verbose || options.trace.is_some()) {
            return Err("--verbose and --trace show one run: give one number with --seed".into());
        }
        Ok(options)
    }

    fn add(&mut self, seeds: RangeInclusive<u64>) -> Result<(), String> {
        if self.seeds.is_some() {
            return Err("one --seed or one --seeds; for several numbers --seeds FROM..TO".into());
        }
        self.seeds = Some(seeds);
        Ok(())
    }

    /// The seeds to run.
    pub fn seeds(&self) -> RangeInclusive<u64> {
        self.seeds.clone().unwrap_or(0..=0)
    }

    /// The machine and the threads of one of them.
    pub fn of(&self, seed: u64) -> (Config, Workload) {
        let (mut config, usual) = of_seed(seed);
        config.cpus = self.cpus.unwrap_or(config.cpus);
        config.traces = self.is_verbose || self.trace.is_some();
        (config, self.workload.unwrap_or(usual))
    }
}
