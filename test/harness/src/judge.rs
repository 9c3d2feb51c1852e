//! The verdict: a pure function of what was expected, how QEMU ended and what was recorded.
//!
//! Green only if all three witnesses say so: the exit code, the records, and the count. Red
//! has two classes: a test failure (the guest did something wrong) and an infrastructure
//! failure (the run itself cannot be trusted: no QEMU, a killed one, an exit code no guest
//! writes, damaged records).
//!
//! Decided in ADR 30.

use crate::ledger::{Broken, Case, Ledger, State};
use crate::transcript::{Count, Event, Told};
use abi_report::{Damage, Exit};
use std::fmt;

/// How a run must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Every planned test passes or is skipped with a reason, and at least one passes.
    Pass,
    /// The last planned test ends in a kernel panic, all others pass.
    Panic,
    /// The last planned test is ended by the guest's own watchdog, all others pass.
    GuestTimeout,
    /// The kernel refuses the machine, before anything is planned.
    Refused,
    /// As `Pass`, on a machine without an exit port: the guest powers the machine off.
    PowerOff,
    /// As `PowerOff`, but that the guest resets the machine.
    Reset,
}

/// How QEMU ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this status.
    Status(i32),
    /// With status 0, and said that the guest had powered the machine off.
    PoweredOff,
    /// With status 0, and said that the guest had reset the machine.
    WasReset,
    /// By a signal the runner did not send.
    Signal(i32),
    /// By the runner, because the wall-clock guard ran out.
    Guard,
    /// By the runner, because the guest wrote without end.
    Flood,
    /// It never began.
    NotStarted(String),
}

/// Whether a run is trusted and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Green,
    /// A test, or the guest, failed.
    Failed,
    /// The run proves nothing.
    Infrastructure,
}

/// Why a run is red.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    NotStarted(String),
    Killed {
        signal: i32,
    },
    /// Status 0: a guest that reset (a triple fault does), or a QEMU that quit.
    StatusZero,
    UnknownStatus {
        status: i32,
    },
    Flood,
    Damaged(Damage),
    Hang {
        running: Option<String>,
    },
    Panicked {
        running: Option<String>,
    },
    TimedOut {
        running: Option<String>,
    },
    NoRecords,
    NoPlan,
    Broken(Broken),
    NotRun {
        ids: Vec<String>,
    },
    NoDone,
    WrongCount {
        said: Count,
        seen: Count,
    },
    TestFailed {
        id: String,
    },
    NothingPassed,
    /// The exit code says one thing, the records another.
    ExitContradicts {
        exit: Exit,
        failed: u32,
    },
    /// A panic or watchdog was expected and did not come, or not in the last test.
    NotAsExpected {
        expect: Expect,
        exit: Exit,
    },
}

/// The judgement of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub class: Class,
    /// Empty exactly when green; the cause first.
    pub reasons: Vec<Reason>,
    /// What the records say, for the report.
    pub ledger: Ledger,
}

/// Judges a run.
pub fn judge(expect: Expect, ending: &Ending, events: &[Event]) -> Verdict {
    let mut ledger = Ledger::new(events);
    let mut reasons = Vec::new();
    reasons.extend(untrusted(ending).filter(|_| !is_as_expected(expect, ending)));
    reasons.extend(ledger.damages.first().copied().map(Reason::Damaged));
    let exit = match ending {
        Ending::Status(status) => Exit::from_qemu_status(*status),
        _ => None,
    };
    let running = open_id(&ledger);
    match (exit, expect) {
        (None, Expect::PowerOff | Expect::Reset) if is_as_expected(expect, ending) => {
            completed(Exit::Pass, &ledger, &mut reasons);
        }
        (Some(Exit::Panic), Expect::Panic) | (Some(Exit::GuestTimeout), Expect::GuestTimeout) => {
            expected_end(expect, exit, &mut ledger, &mut reasons);
        }
        (Some(Exit::Refused), Expect::Refused) if !ledger.any => {}
        (Some(exit @ Exit::Refused), _) => reasons.push(Reason::NotAsExpected { expect, exit }),
        (Some(Exit::Panic), _) => reasons.push(Reason::Panicked { running }),
        (Some(Exit::GuestTimeout), _) => reasons.push(Reason::TimedOut { running }),
        (Some(exit @ (Exit::Pass | Exit::Fail)), _) => {
            completed(exit, &ledger, &mut reasons);
            if expect != Expect::Pass {
                reasons.push(Reason::NotAsExpected { expect, exit });
            }
        }
        (None, _) if *ending == Ending::Guard => reasons.push(Reason::Hang { running }),
        (None, _) => {}
    }
    reasons.extend(ledger.broken.iter().cloned().map(Reason::Broken));
    reasons.extend(failed_ids(&ledger));
    let class = if reasons.is_empty() {
        Class::Green
    } else if reasons.iter().any(Reason::is_infrastructure) {
        Class::Infrastructure
    } else {
        Class::Failed
    };
    Verdict { class, reasons, ledger }
}

/// Whether a machine without an exit port ended in the way that is expected of it.
fn is_as_expected(expect: Expect, ending: &Ending) -> bool {
    matches!(
        (expect, ending),
        (Expect::PowerOff, Ending::PoweredOff) | (Expect::Reset, Ending::WasReset)
    )
}

/// Endings that no guest asks for.
fn untrusted(ending: &Ending) -> Option<Reason> {
    match ending {
        Ending::NotStarted(error) => Some(Reason::NotStarted(error.clone())),
        Ending::Signal(signal) => Some(Reason::Killed { signal: *signal }),
        Ending::Flood => Some(Reason::Flood),
        Ending::Guard => None,
        Ending::Status(0) | Ending::PoweredOff | Ending::WasReset => Some(Reason::StatusZero),
        Ending::Status(status) if Exit::from_qemu_status(*status).is_none() => {
            Some(Reason::UnknownStatus { status: *status })
        }
        Ending::Status(_) => None,
    }
}

/// The guest says that it ran to its end: records and count must bear that out.
fn completed(exit: Exit, ledger: &Ledger, reasons: &mut Vec<Reason>) {
    if !ledger.any {
        reasons.push(Reason::NoRecords);
        return;
    }
    if ledger.cases.is_empty() {
        reasons.push(Reason::NoPlan);
    }
    let seen = ledger.count();
    if (exit == Exit::Pass) != (seen.failed == 0) {
        reasons.push(Reason::ExitContradicts { exit, failed: seen.failed });
    }
    not_run(ledger, reasons);
    if let Some(case) = ledger.running()
        && case.state == State::Open
    {
        reasons.push(Reason::Broken(Broken::NoOutcome { id: case.id.clone() }));
    }
    match ledger.done {
        None => reasons.push(Reason::NoDone),
        Some(said) if said != seen => reasons.push(Reason::WrongCount { said, seen }),
        Some(_) => {}
    }
    if seen.passed == 0 && seen.failed == 0 {
        reasons.push(Reason::NothingPassed);
    }
}

/// The guest ended in the way its last test was written to bring about.
fn expected_end(
    expect: Expect,
    exit: Option<Exit>,
    ledger: &mut Ledger,
    reasons: &mut Vec<Reason>,
) {
    if !ledger.any {
        reasons.push(Reason::NoRecords);
        return;
    }
    not_run(ledger, reasons);
    match ledger.cases.last_mut() {
        Some(case) if case.state == State::Open && ledger.done.is_none() => {
            case.state = State::Passed;
        }
        _ => reasons.extend(exit.map(|exit| Reason::NotAsExpected { expect, exit })),
    }
}

fn not_run(ledger: &Ledger, reasons: &mut Vec<Reason>) {
    let ids: Vec<String> = ids_in(ledger, |state| *state == State::NotRun).collect();
    if !ids.is_empty() {
        reasons.push(Reason::NotRun { ids });
    }
}

fn failed_ids(ledger: &Ledger) -> Vec<Reason> {
    let failed = |state: &State| matches!(state, State::Failed(_));
    ids_in(ledger, failed).map(|id| Reason::TestFailed { id }).collect()
}

fn ids_in(ledger: &Ledger, wanted: impl Fn(&State) -> bool) -> impl Iterator<Item = String> {
    ledger.cases.iter().filter(move |case| wanted(&case.state)).map(|case| case.id.clone())
}

fn open_id(ledger: &Ledger) -> Option<String> {
    let is_open = |case: &&Case| case.state == State::Open;
    ledger.running().filter(is_open).map(|case| case.id.clone())
}

impl Reason {
    /// Whether it says that the run proves nothing, rather than that the guest is wrong.
    pub fn is_infrastructure(&self) -> bool {
        use Reason::*;
        matches!(
            self,
            NotStarted(_) | Killed { .. } | StatusZero | UnknownStatus { .. } | Damaged(_)
        )
    }

    /// A short stable name, for programs that read a verdict.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::NotStarted(_) => "not-started",
            Reason::Killed { .. } => "killed",
            Reason::StatusZero => "status-zero",
            Reason::UnknownStatus { .. } => "unknown-status",
            Reason::Flood => "flood",
            Reason::Damaged(Damage::Garbage { .. }) => "garbage",
            Reason::Damaged(Damage::Truncated { .. }) => "truncated",
            Reason::Damaged(Damage::OutOfSequence { .. }) => "out-of-sequence",
            Reason::Hang { .. } => "hang",
            Reason::Panicked { .. } => "panicked",
            Reason::TimedOut { .. } => "guest-timeout",
            Reason::NoRecords => "no-records",
            Reason::NoPlan => "no-plan",
            Reason::Broken(Broken::Plan { .. }) => "wrong-plan",
            Reason::Broken(Broken::LatePlan { .. }) => "late-plan",
            Reason::Broken(Broken::ShortPlan { .. }) => "short-plan",
            Reason::Broken(Broken::DuplicateId { .. }) => "duplicate-id",
            Reason::Broken(Broken::Unplanned { .. }) => "unplanned",
            Reason::Broken(Broken::OutOfTurn { .. }) => "out-of-turn",
            Reason::Broken(Broken::NoOutcome { .. }) => "no-outcome",
            Reason::Broken(Broken::NotRunning { .. }) => "not-running",
            Reason::Broken(Broken::SecondOutcome { .. }) => "second-outcome",
            Reason::Broken(Broken::AfterDone) => "after-done",
            Reason::NotRun { .. } => "not-run",
            Reason::NoDone => "no-done",
            Reason::WrongCount { .. } => "wrong-count",
            Reason::TestFailed { .. } => "test-failed",
            Reason::NothingPassed => "nothing-passed",
            Reason::ExitContradicts { .. } => "exit-contradicts",
            Reason::NotAsExpected { .. } => "not-as-expected",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let while_running = |running: &Option<String>| match running {
            Some(id) => format!("while {id} ran"),
            None => "while no test ran".to_owned(),
        };
        match self {
            Reason::NotStarted(error) => write!(f, "QEMU could not be started: {error}"),
            Reason::Killed { signal } => write!(f, "QEMU was killed by signal {signal}"),
            Reason::StatusZero => f.write_str(
                "QEMU ended with status 0, which no guest asks for: the guest reset \
                 (a triple fault does that) or QEMU quit",
            ),
            Reason::UnknownStatus { status } => {
                write!(f, "QEMU ended with status {status}, which is no code a guest writes")
            }
            Reason::Flood => f.write_str("the guest wrote without end and was stopped"),
            Reason::Damaged(damage) => write!(f, "the records are damaged: {}", Told(damage)),
            Reason::Hang { running } => {
                write!(
                    f,
                    "no verdict before the wall-clock guard ran out, {}",
                    while_running(running)
                )
            }
            Reason::Panicked { running } => {
                write!(f, "the kernel panicked {}", while_running(running))
            }
            Reason::TimedOut { running } => {
                write!(f, "the guest's watchdog ended the run {}", while_running(running))
            }
            Reason::NoRecords => f.write_str("the guest gave an exit code but no record"),
            Reason::NoPlan => f.write_str("the guest sent records but no plan"),
            Reason::Broken(broken) => write!(f, "{broken}"),
            Reason::NotRun { ids } => write!(f, "planned but never run: {}", ids.join(", ")),
            Reason::NoDone => f.write_str("the guest did not say that it was done"),
            Reason::WrongCount { said, seen } => {
                write!(f, "the guest counted {said}; its records show {seen}")
            }
            Reason::TestFailed { id } => write!(f, "{id} failed"),
            Reason::NothingPassed => f.write_str("no test passed: a run of skips proves nothing"),
            Reason::ExitContradicts { exit, failed } => {
                write!(f, "the exit code says {exit:?}, the records show {failed} failed")
            }
            Reason::NotAsExpected { expect, exit } => {
                write!(
                    f,
                    "expected {expect:?} in the last planned test; the guest ended with {exit:?}"
                )
            }
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Plan { index, total, due_index, due_total } => {
                write!(
                    f,
                    "plan record {index} of {total} came where {due_index} of {due_total} was due"
                )
            }
            Broken::LatePlan { id } => write!(f, "{id} was planned after tests began"),
            Broken::ShortPlan { planned, total } => {
                write!(f, "{total} tests announced, {planned} planned")
            }
            Broken::DuplicateId { id } => write!(f, "two tests have the id {id}"),
            Broken::Unplanned { id } => write!(f, "{id} ran but was not planned"),
            Broken::OutOfTurn { id, due: Some(due) } => write!(f, "{id} ran where {due} was due"),
            Broken::OutOfTurn { id, due: None } => write!(f, "{id} ran again after the last test"),
            Broken::NoOutcome { id } => write!(f, "{id} ran without an outcome"),
            Broken::NotRunning { id } => {
                write!(f, "a record belongs to {id}, which was not running")
            }
            Broken::SecondOutcome { id } => write!(f, "{id} has two outcomes that contradict"),
            Broken::AfterDone => f.write_str("records came after the guest said that it was done"),
        }
    }
}
