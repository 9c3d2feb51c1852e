//! What the records say about each test, and where they break their own rules.
//!
//! The rules: a plan for each test before the first runs; tests run in the order of the plan,
//! one at a time, each once; each ends with one `ok`, one `skip`, or one or more `fail`; one
//! `done` at the end whose count is that of the outcomes.

use crate::transcript::{Count, Event, Failure, Metric};
use abi_report::Damage;
use std::slice;

/// A test and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub id: String,
    pub state: State,
}

/// What became of a planned test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    NotRun,
    /// It began; nothing says how it ended.
    Open,
    Passed,
    Failed(Vec<Failure>),
    Skipped(String),
}

/// A rule the records break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A plan record that does not continue the plan.
    Plan {
        index: u32,
        total: u32,
        due_index: u32,
        due_total: u32,
    },
    /// A plan record after the first test began.
    LatePlan {
        id: String,
    },
    /// Fewer tests planned than announced.
    ShortPlan {
        planned: u32,
        total: u32,
    },
    DuplicateId {
        id: String,
    },
    Unplanned {
        id: String,
    },
    /// A test runs out of turn, or again.
    OutOfTurn {
        id: String,
        due: Option<String>,
    },
    /// The next test began, or `done` came, while this one had no outcome.
    NoOutcome {
        id: String,
    },
    /// An outcome or metric of a test that is not running.
    NotRunning {
        id: String,
    },
    /// A second outcome that contradicts the first.
    SecondOutcome {
        id: String,
    },
    AfterDone,
}

/// Everything the records say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Tests in the order of the plan.
    pub cases: Vec<Case>,
    /// Figures with the test that measured them.
    pub metrics: Vec<(String, Metric)>,
    /// Bytes that are no records, records that are missing.
    pub damages: Vec<Damage>,
    pub broken: Vec<Broken>,
    /// The guest's own count, once it said `done`.
    pub done: Option<Count>,
    /// Whether there was any record at all.
    pub any: bool,
    total: u32,
    /// How many tests began.
    begun: usize,
}

impl Ledger {
    /// Enters all events.
    pub fn new(events: &[Event]) -> Ledger {
        let mut ledger = Ledger::default();
        for event in events {
            ledger.enter(event);
        }
        let planned = ledger.cases.len() as u32;
        if planned < ledger.total {
            ledger.broken.push(Broken::ShortPlan { planned, total: ledger.total });
        }
        ledger
    }

    /// Outcomes as the records show them, beside the guest's own count.
    pub fn count(&self) -> Count {
        let mut count = Count::default();
        for case in &self.cases {
            match case.state {
                State::Passed => count.passed += 1,
                State::Failed(_) => count.failed += 1,
                State::Skipped(_) => count.skipped += 1,
                State::NotRun | State::Open => {}
            }
        }
        count
    }

    /// The test that began last, if it may still be running.
    pub fn running(&self) -> Option<&Case> {
        let last = self.cases.get(self.begun.checked_sub(1)?)?;
        self.done.is_none().then_some(last)
    }

    fn enter(&mut self, event: &Event) {
        if let Event::Damage(damage) = event {
            self.damages.push(*damage);
            return;
        }
        self.any = true;
        if self.done.is_some() {
            self.break_rule(Broken::AfterDone);
            return;
        }
        match event {
            Event::Damage(_) => {}
            Event::Plan { index, total, id } => self.plan(*index, *total, id),
            Event::Run { id } => self.run(id),
            Event::Ok { id } => self.outcome(id, |state| match state {
                State::Open => Some(State::Passed),
                _ => None,
            }),
            Event::Skip { id, reason } => self.outcome(id, |state| match state {
                State::Open => Some(State::Skipped(reason.clone())),
                _ => None,
            }),
            Event::Fail { id, failure } => self.outcome(id, |state| match state {
                State::Open => Some(State::Failed(vec![failure.clone()])),
                State::Failed(failures) => {
                    Some(State::Failed([failures.as_slice(), slice::from_ref(failure)].concat()))
                }
                _ => None,
            }),
            Event::Metric { id, metric } => {
                self.metrics.push((id.clone(), metric.clone()));
                if self.running().is_none_or(|case| case.id != *id) {
                    self.break_rule(Broken::NotRunning { id: id.clone() });
                }
            }
            Event::Done(count) => {
                self.close_open();
                self.done = Some(*count);
            }
        }
    }

    fn plan(&mut self, index: u32, total: u32, id: &str) {
        if self.begun > 0 {
            self.break_rule(Broken::LatePlan { id: id.into() });
            return;
        }
        let due_index = self.cases.len() as u32;
        let due_total = if due_index == 0 { total } else { self.total };
        if index != due_index || total != due_total || index >= total {
            self.break_rule(Broken::Plan { index, total, due_index, due_total });
        }
        if self.cases.iter().any(|case| case.id == id) {
            self.break_rule(Broken::DuplicateId { id: id.into() });
        }
        self.total = due_total;
        self.cases.push(Case { id: id.into(), state: State::NotRun });
    }

    fn run(&mut self, id: &str) {
        self.close_open();
        let due = self.cases.get_mut(self.begun);
        if let Some(case) = due
            && case.id == id
        {
            case.state = State::Open;
            self.begun += 1;
            return;
        }
        let due = self.cases.get(self.begun).map(|case| case.id.clone());
        if self.cases.iter().any(|case| case.id == id) {
            self.break_rule(Broken::OutOfTurn { id: id.into(), due });
        } else {
            self.break_rule(Broken::Unplanned { id: id.into() });
        }
    }

    fn outcome(&mut self, id: &str, next: impl FnOnce(&State) -> Option<State>) {
        let running = self.begun.checked_sub(1).and_then(|last| self.cases.get_mut(last));
        match running {
            Some(case) if case.id == id => match next(&case.state) {
                Some(state) => case.state = state,
                None => self.break_rule(Broken::SecondOutcome { id: id.into() }),
            },
            _ => self.break_rule(Broken::NotRunning { id: id.into() }),
        }
    }

    fn close_open(&mut self) {
        if let Some(case) = self.running()
            && case.state == State::Open
        {
            let id = case.id.clone();
            self.break_rule(Broken::NoOutcome { id });
        }
    }

    /// Notes a broken rule; one that repeats for the same reason is noted once.
    fn break_rule(&mut self, broken: Broken) {
        if !self.broken.contains(&broken) {
            self.broken.push(broken);
        }
    }
}
