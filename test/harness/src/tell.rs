//! The verdict in words and in JSON.

use crate::judge::{Class, Verdict};
use crate::ledger::State;
use crate::options::Run;
use crate::transcript::Event;
use qemu_command::Lane;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// How many of the console's last lines a failure shows.
const TAIL_LINES: usize = 40;

/// The runner's own exit status: 0 green, 1 a test failed, 2 the run proves nothing.
pub fn status(class: Class) -> u8 {
    match class {
        Class::Green => 0,
        Class::Failed => 1,
        Class::Infrastructure => 2,
    }
}

/// The last lines of a console, as text whatever the guest wrote.
pub fn tail(console: &[u8]) -> String {
    let text = without_controls(&String::from_utf8_lossy(console));
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// Text that does nothing to the terminal it is shown on: firmware clears and resizes the
/// screen by control sequences (ECMA-48, 5.4), which are left out with all other controls.
fn without_controls(text: &str) -> String {
    let mut shown = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\u{1b}' && characters.next_if_eq(&'[').is_some() {
            while characters.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
        } else if !c.is_control() || c == '\n' || c == '\t' {
            shown.push(c);
        }
    }
    shown
}

/// A test's output folder as a person finds it: the sandbox it was written in is gone by then.
pub fn as_seen_from_the_workspace(out: &Path) -> String {
    let out = out.display().to_string();
    match out.split_once("/testlogs/") {
        Some((_, rest)) => format!("bazel-testlogs/{rest}"),
        None => out,
    }
}

/// All events, one a line.
pub fn records(events: &[Event]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

/// What a person reads at the end of a run.
pub fn summary(
    run: &Run,
    verdict: &Verdict,
    wall: Duration,
    command: &str,
    console_tail: &str,
    qemu_log: &str,
) -> String {
    let mut text = String::new();
    for case in &verdict.ledger.cases {
        let line = match &case.state {
            State::Passed => format!("ok      {}", case.id),
            State::Skipped(reason) => format!("skip    {}: {reason}", case.id),
            State::Open => format!("OPEN    {} began and never ended", case.id),
            State::NotRun => format!("NOT RUN {}", case.id),
            State::Failed(failures) => {
                failures.iter().map(|f| format!("FAIL    {}: {f}\n", case.id)).collect()
            }
        };
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for (id, metric) in &verdict.ledger.metrics {
        let _ = writeln!(text, "metric  {id} {} = {} {}", metric.name, metric.value, metric.unit);
    }
    let (count, seconds) = (verdict.ledger.count(), wall.as_secs_f64());
    let class = match verdict.class {
        Class::Green => {
            let _ = writeln!(text, "{}: green: {count} ({seconds:.2} s)", run.label);
            return text;
        }
        Class::Failed => "RED",
        Class::Infrastructure => "INFRASTRUCTURE FAILURE",
    };
    if !qemu_log.trim().is_empty() {
        let _ = writeln!(text, "--- what QEMU said\n{}", qemu_log.trim_end());
    }
    let _ = writeln!(text, "--- last lines of the console\n{console_tail}\n---");
    let _ = writeln!(text, "{}: {class}: {count} ({seconds:.2} s)", run.label);
    for reason in &verdict.reasons {
        let _ = writeln!(text, "  because {reason} [{}]", reason.code());
    }
    let _ = writeln!(text, "command: {command}");
    let label = &run.label;
    let _ = writeln!(text, "replay:  ./bazelw test --nocache_test_results {label}");
    let _ = writeln!(text, "watch:   ./bazelw run {label} -- --terminal");
    let _ = writeln!(text, "debug:   ./bazelw run {label} -- --gdb 1234");
    text
}

/// The verdict for programs.
pub fn verdict_json(run: &Run, verdict: &Verdict, wall: Duration) -> String {
    let class = match verdict.class {
        Class::Green => "green",
        Class::Failed => "failed",
        Class::Infrastructure => "infrastructure",
    };
    let reasons: Vec<_> = verdict
        .reasons
        .iter()
        .map(|reason| json!({"code": reason.code(), "text": reason.to_string()}))
        .collect();
    let count = verdict.ledger.count();
    let value = json!({
        "target": run.label,
        "class": class,
        "reasons": reasons,
        "passed": count.passed,
        "failed": count.failed,
        "skipped": count.skipped,
        "wall_ms": wall.as_millis() as u64,
    });
    format!("{value}\n")
}

/// Every figure the tests measured, one JSON object a line, each complete in itself.
pub fn metrics_json_lines(run: &Run, verdict: &Verdict) -> String {
    let lane = match run.machine.lane {
        Lane::Deterministic => "deterministic",
        Lane::Racing => "racing",
    };
    let line = |(id, metric): &(String, crate::transcript::Metric)| {
        let value = json!({
            "target": run.label,
            "profile": run.profile,
            "lane": lane,
            "cpus": run.machine.cpus,
            "test": id,
            "name": metric.name,
            "value": metric.value,
            "unit": metric.unit,
        });
        format!("{value}\n")
    };
    verdict.ledger.metrics.iter().map(line).collect()
}
