//! What differs between a run and what was accepted, in sentences.

use std::fmt;

use crate::bars::BARS;
use crate::{Accepted, Figure};

/// A count may move by this many percent, in either direction, before somebody has to look.
pub const TOLERANCE_PERCENT: u64 = 3;

/// How a change is accepted.
pub const HOW_TO_ACCEPT: &str = "\
If the change is meant: ./bazelw run //test/bench:instructions -- --accept
and commit test/bench/accepted.json by itself, with the reason in the message.";

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// There are no counts for this tool chain.
    UnknownToolchain {
        /// Its lock.
        lock: String,
    },
    /// A count moved by more than the tolerance.
    Moved {
        /// Of which measurement.
        name: String,
        /// `min` or `median`.
        which: &'static str,
        /// What was accepted.
        accepted: u64,
        /// What the run found.
        found: u64,
    },
    /// A measurement that has no accepted count.
    New {
        /// Its name.
        name: String,
        /// Its median.
        found: u64,
    },
    /// An accepted count that the run did not measure.
    Gone {
        /// Its name.
        name: String,
    },
    /// A measurement above its bar.
    AboveBar {
        /// Its name.
        name: String,
        /// What it may take.
        most: u64,
        /// Its median.
        found: u64,
    },
}

/// How the name of a tool chain begins that is no lock's: whatever a machine has installed. It has
/// no accepted counts; only bars hold for it.
const INSTALLED: &str = "installed:";

/// Everything to look at in a run.
pub fn compare(figures: &[Figure], accepted: &Accepted, lock: &str) -> Vec<Finding> {
    let mut findings = above_bars(figures);
    let Some(counts) = accepted.of(lock) else {
        if !lock.starts_with(INSTALLED) {
            findings.push(Finding::UnknownToolchain { lock: lock.to_owned() });
        }
        return findings;
    };
    for figure in figures {
        let name = figure.name.clone();
        let Some(count) = counts.get(&name) else {
            findings.push(Finding::New { name, found: figure.median });
            continue;
        };
        let pairs = [("min", count.min, figure.min), ("median", count.median, figure.median)];
        for (which, accepted, found) in pairs {
            if has_moved(accepted, found) {
                findings.push(Finding::Moved { name: name.clone(), which, accepted, found });
            }
        }
    }
    let is_measured = |name: &String| figures.iter().any(|figure| figure.name == *name);
    let gone = counts.keys().filter(|name| !is_measured(name));
    findings.extend(gone.map(|name| Finding::Gone { name: name.clone() }));
    findings
}

fn above_bars(figures: &[Figure]) -> Vec<Finding> {
    let of = |figure: &Figure| {
        let bar = BARS.iter().find(|bar| bar.name == figure.name)?;
        let most = bar.most?;
        let (name, found) = (figure.name.clone(), figure.median);
        (found > most).then_some(Finding::AboveBar { name, most, found })
    };
    figures.iter().filter_map(of).collect()
}

fn has_moved(accepted: u64, found: u64) -> bool {
    accepted.abs_diff(found) * 100 > accepted * TOLERANCE_PERCENT
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownToolchain { lock } => {
                write!(f, "no counts were accepted for the tool chain {lock}")
            }
            Self::Moved { name, which, accepted, found } => {
                let percent = found.abs_diff(*accepted) as f64 * 100.0 / (*accepted).max(1) as f64;
                let direction = if found > accepted { "more" } else { "fewer" };
                write!(
                    f,
                    "{name}: {which} is {found} instructions, {percent:.1} % {direction} than the accepted {accepted}"
                )
            }
            Self::New { name, found } => {
                write!(f, "{name}: {found} instructions, and no count was accepted for it")
            }
            Self::Gone { name } => write!(f, "{name}: has an accepted count and was not measured"),
            Self::AboveBar { name, most, found } => {
                write!(f, "{name}: {found} instructions; it may take {most}")
            }
        }
    }
}
