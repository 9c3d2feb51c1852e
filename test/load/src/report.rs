//! What is said of a campaign: a line for each run that is not green, and a table at the end.

use crate::campaign::{Outcome, Run};
use crate::options::Options;
use std::fmt::Write;
use std::path::Path;

/// What a campaign is, said before its first run.
pub fn begin(options: &Options, seed: u64) -> String {
    let pauses = match options.longest_pause.as_millis() {
        0 => "no CPU stopped".into(),
        longest_ms => format!("one CPU stopped at a time for up to {longest_ms} ms"),
    };
    format!(
        "seed {seed}: {} suites, {} runs each, beside {} burners, {pauses}\n",
        options.suites.len(),
        options.times,
        options.burners,
    )
}

/// One run; of a green one there is nothing to say.
pub fn one(run: &Run<'_>, shown: impl Fn(&Path) -> String) -> String {
    let mut text = String::new();
    if let Some(refusal) = run.tally.refusal {
        let _ = writeln!(
            text,
            "this machine refuses to have threads stopped by ptrace ({refusal}), so from here on the \
             suites run beside the burners only; with CAP_SYS_PTRACE, or outside of the sandbox \
             that forbids it, they are stopped"
        );
    }
    let (word, reason) = match &run.outcome {
        Outcome::Green => return text,
        Outcome::Red(reason) => ("RED", reason),
        Outcome::Hung(reason) => ("HUNG", reason),
        Outcome::Void(reason) => ("VOID", reason),
    };
    let _ = writeln!(text, "{} run {}: {word}: {reason}", run.suite.label, run.number);
    let _ = writeln!(text, "  console: {}", shown(&run.evidence.join("console.log")));
    let cpus = run.evidence.join("cpus.txt");
    if cpus.exists() {
        let _ = writeln!(text, "  CPUs:    {}", shown(&cpus));
    }
    text
}

/// Runs of one suite, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub green: u32,
    pub red: u32,
    pub hung: u32,
    pub void: u32,
    pub pauses: u64,
}

/// Counts the runs of `label`.
pub fn count(runs: &[Run<'_>], label: &str) -> Count {
    let mut count = Count::default();
    for run in runs.iter().filter(|run| run.suite.label == label) {
        match run.outcome {
            Outcome::Green => count.green += 1,
            Outcome::Red(_) => count.red += 1,
            Outcome::Hung(_) => count.hung += 1,
            Outcome::Void(_) => count.void += 1,
        }
        count.pauses += run.tally.pauses;
    }
    count
}

/// The table at the end.
pub fn end(options: &Options, runs: &[Run<'_>], seed: u64) -> String {
    let widest = options.suites.iter().map(|suite| suite.label.len()).max().unwrap_or(0);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:widest$} {:>6} {:>6} {:>6} {:>6} {:>8}",
        "suite", "green", "red", "hung", "void", "pauses"
    );
    for suite in &options.suites {
        let Count { green, red, hung, void, pauses } = count(runs, &suite.label);
        let _ = writeln!(
            text,
            "{:widest$} {green:>6} {red:>6} {hung:>6} {void:>6} {pauses:>8}",
            suite.label
        );
    }
    let not_green = runs.iter().filter(|run| run.outcome != Outcome::Green).count();
    let _ = writeln!(text, "{not_green} of {} runs were not green", runs.len());
    if not_green > 0 {
        let _ = writeln!(text, "again with the same pauses: --seed {seed}");
    }
    text
}
