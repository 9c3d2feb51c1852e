//! What a run can find.

use std::fmt;

/// What was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A core refused an operation that has to be possible.
    Refused,
    /// An invariant of a core, or between two of them.
    Invariant,
    /// A thread that could run waited longer than it may.
    Starved,
    /// A CPU was idle while a thread it may run waited.
    Idle,
    /// A CPU went to sleep for longer than it may.
    Asleep,
    /// Somebody got too much or too little.
    Unfair,
    /// The workload did not get where it has to.
    Stuck,
}

/// A broken rule, and when.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which.
    pub rule: Rule,
    /// When, in simulated time.
    pub at_ns: u64,
    /// The particulars.
    pub detail: String,
    /// How to see it again, and how to keep it: commands.
    pub replay: String,
}

/// The outcome of a step.
pub type Done<T = ()> = Result<T, Failure>;

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, at_ns, detail, replay } = self;
        write!(out, "{rule:?} at {at_ns} ns: {detail}")?;
        if replay.is_empty() { Ok(()) } else { write!(out, "\n{replay}") }
    }
}
