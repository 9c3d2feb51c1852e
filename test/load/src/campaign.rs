//! A campaign: every suite in turn, as often as was asked, each run judged by its own runner.
//!
//! A run is the test's own program, with the words that say where its evidence goes and when it
//! counts as hung. What came of it is read from the verdict it leaves.

use crate::burners::Burners;
use crate::chance::Chance;
use crate::options::{Options, Suite};
use crate::pauser::{Pauser, Tally};
use nix::errno::Errno;
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every test passed.
    Green,
    /// A test or the guest failed, for this reason.
    Red(String),
    /// The guest did not end.
    Hung(String),
    /// The run proves nothing: no emulator, a killed one, damaged records.
    Void(String),
}

/// One run that is over.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Its suite.
    pub suite: &'a Suite,
    /// Which of the suite's runs, from 1.
    pub number: u32,
    pub outcome: Outcome,
    /// What the pauser did to it.
    pub tally: Tally,
    /// Where its evidence is, unless it was green.
    pub evidence: PathBuf,
}

/// Runs them all and tells `each` of every run as it ends.
pub fn run<'a>(
    options: &'a Options,
    seed: u64,
    out: &Path,
    mut each: impl FnMut(&Run<'a>),
) -> io::Result<Vec<Run<'a>>> {
    let _burners = Burners::start(options.burners);
    let mut runs: Vec<Run<'a>> = Vec::new();
    let mut refusal: Option<Errno> = None;
    for number in 1..=options.times {
        for (place, suite) in options.suites.iter().enumerate() {
            let evidence = out.join(name(&suite.label)).join(format!("run-{number}"));
            fs::create_dir_all(&evidence)?;
            let chance = Chance::new(seed, &[place as u64, u64::from(number)]);
            let pauses = !options.longest_pause.is_zero() && refusal.is_none();
            let (outcome, tally) = one(options, suite, &evidence, pauses.then_some(chance))?;
            refusal = refusal.or(tally.refusal);
            if outcome == Outcome::Green {
                fs::remove_dir_all(&evidence)?;
            }
            let run = Run { suite, number, outcome, tally, evidence };
            each(&run);
            runs.push(run);
        }
    }
    Ok(runs)
}

/// A label as a folder: `//test/qemu/park:park_4r` is `test.qemu.park.park_4r`.
fn name(label: &str) -> String {
    label.trim_start_matches(['@', '/']).replace(['/', ':'], ".")
}

fn one(
    options: &Options,
    suite: &Suite,
    evidence: &Path,
    chance: Option<Chance>,
) -> io::Result<(Outcome, Tally)> {
    let log = File::create(evidence.join("runner.log"))?;
    let program = std::path::absolute(&suite.program)?;
    let mut child = Command::new(&program)
        .arg("--out")
        .arg(evidence)
        .arg("--guard-seconds")
        .arg(options.guard.as_secs().to_string())
        .args(options.core.then_some("--core"))
        // The report is the campaign's own.
        .env_remove("XML_OUTPUT_FILE")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", program.display())))?;
    let root = Pid::from_raw(child.id().cast_signed());
    let pauser = chance.map(|chance| Pauser::start(root, options.longest_pause, chance));
    let status = child.wait();
    let tally = pauser.map(Pauser::end).unwrap_or_default();
    let status = status?;
    let verdict = fs::read_to_string(evidence.join("verdict.json"));
    let outcome = match verdict.as_deref() {
        Ok(verdict) => outcome(verdict),
        Err(_) => Outcome::Void(format!("the runner left no verdict and ended with {status}")),
    };
    // A runner that says green and ends otherwise is not believed.
    let outcome = match outcome {
        Outcome::Green if !status.success() => {
            Outcome::Void(format!("the verdict is green, and the runner ended with {status}"))
        }
        outcome => outcome,
    };
    Ok((outcome, tally))
}

/// What a verdict of the runner says.
fn outcome(verdict: &str) -> Outcome {
    let Ok(verdict) = serde_json::from_str::<serde_json::Value>(verdict) else {
        return Outcome::Void("the runner's verdict cannot be read".into());
    };
    let empty = Vec::new();
    let reasons = verdict["reasons"].as_array().unwrap_or(&empty);
    let words = |key: &str| reasons.iter().filter_map(|r| r[key].as_str()).collect::<Vec<_>>();
    let text = words("text").join("; ");
    match verdict["class"].as_str() {
        Some("green") => Outcome::Green,
        Some("failed") if words("code").contains(&"hang") => Outcome::Hung(text),
        Some("failed") => Outcome::Red(text),
        Some("infrastructure") => Outcome::Void(text),
        other => Outcome::Void(format!("the runner's verdict is of an unknown class: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_of_the_runner() {
        let with = |class: &str, code: &str| {
            outcome(&format!(
                r#"{{"class":"{class}","reasons":[{{"code":"{code}","text":"a reason"}}]}}"#
            ))
        };
        let text = || "a reason".to_owned();
        assert_eq!(outcome(r#"{"class":"green","reasons":[]}"#), Outcome::Green);
        assert_eq!(with("failed", "test-failed"), Outcome::Red(text()));
        assert_eq!(with("failed", "hang"), Outcome::Hung(text()));
        assert_eq!(with("infrastructure", "killed"), Outcome::Void(text()));
        for broken in ["", "{}", r#"{"class":"splendid"}"#] {
            assert!(matches!(outcome(broken), Outcome::Void(_)), "{broken}");
        }
    }

    #[test]
    fn a_label_is_a_folder_of_its_own() {
        assert_eq!(name("//test/qemu/park:park_4r"), "test.qemu.park.park_4r");
    }
}
