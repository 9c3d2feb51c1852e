//! Runs a model and says how far it looked.

use core::cell::Cell;
use core::time::Duration;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

std::thread_local! {
    /// Numbers drawn in the execution that runs. Of the thread that runs the model: all of its
    /// threads are on this one.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// A number for code that chooses at random: the least and the greatest in turn, in the order in
/// which the threads of an execution ask. What each of them gets is so a matter of the schedule.
pub fn random() -> u64 {
    let drawn = DRAWN.replace(DRAWN.get() + 1);
    if drawn.is_multiple_of(2) { 0 } else { u64::MAX }
}

/// As [`explore`], under the name of the running test.
pub fn model(f: impl Fn() + Sync + Send + 'static) {
    let test = std::thread::current();
    explore(test.name().unwrap_or("model"), f);
}

/// Explores every execution of `f` within the bounds that the environment sets, and prints how
/// many there were. A model that ran into its time limit is called bounded: it looked at that
/// many executions and no more.
///
/// Fails if there was only one: then nothing met. Loom looks for another order of two accesses
/// where the later one finds the earlier as the *latest* access to that atomic; a thread that
/// looks at an atomic before it stores to it hides others that looked before. Letting the thread
/// that stores run first, as the model's own, avoids that.
pub fn explore(name: &str, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // Loom looks at the clock once per interval.
    builder.checkpoint_interval = 100;
    let preemptions = builder.preemption_bound;
    let limit = builder.max_duration.unwrap_or(Duration::MAX);
    let count = std::sync::Arc::new(AtomicU64::new(0));
    let counter = count.clone();
    let began = Instant::now();
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        DRAWN.set(0);
        f();
    });
    let verdict = if began.elapsed() < limit { "all of them" } else { "bounded by time" };
    let bound = preemptions.map_or("any number of".into(), |n| format!("at most {n}"));
    let count = count.load(Ordering::Relaxed);
    // Not by println, which a passing test swallows.
    let line = format!("{name}: {count} executions with {bound} preemptions: {verdict}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    assert!(count > 1, "{name}: a model with one execution shows nothing");
}
