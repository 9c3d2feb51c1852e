//! Runs a model and says how far it went.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Explores `model` within the bounds the build rule sets (`LOOM_MAX_PREEMPTIONS`,
/// `LOOM_MAX_DURATION`), and prints the bounds and the number of executions.
pub fn explore(name: &str, model: impl Fn() + Sync + Send + 'static) {
    let builder = loom::model::Builder::new();
    let (preemptions, limit) = (builder.preemption_bound, builder.max_duration);
    let executions = Arc::new(AtomicU64::new(0));
    let counter = executions.clone();
    let begin = Instant::now();
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let end = match limit {
        Some(limit) if begin.elapsed() >= limit => "stopped by its time limit",
        _ => "complete",
    };
    let executions = executions.load(Ordering::Relaxed);
    // Past the test harness, which keeps what a passing test prints to itself.
    let report =
        format!("{name}: {executions} executions, preemption bound {preemptions:?}, {end}");
    writeln!(std::io::stderr(), "{report}").ok();
}
