//! Runs a model under one random schedule after the other; each has a number.
//!
//! Decided in ADR 159.

use shuttle::rand::{RngCore, thread_rng};
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::io::Write;
use std::ops::Range;

/// Steps after which a schedule is taken to be stuck: far more than any model needs.
const MOST_STEPS: usize = 200_000;

/// What a failing schedule's line begins with, so that a test can look for it.
const NAMED: &str = "MODEL_SEEDS";

/// The seeds to try: those the environment asks for, or `usual`.
fn seeds(usual: u64) -> Range<u64> {
    let Ok(text) = std::env::var(NAMED) else { return 0..usual };
    let number = |text: &str| text.parse::<u64>().ok();
    let range = match text.split_once("..") {
        Some((from, to)) => number(from).zip(number(to)),
        None => number(&text).and_then(|seed| Some((seed, seed.checked_add(1)?))),
    };
    match range {
        Some((from, to)) if from < to => from..to,
        _ => {
            panic!("{NAMED} is a number or two, as in {NAMED}=17 or {NAMED}=0..100000; not {text}")
        }
    }
}

/// Says which schedule failed, however it did.
struct Running<'n> {
    name: &'n str,
    seed: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { name, seed } = self;
            eprintln!(
                "{name}: schedule {seed} failed. Again: ./bazelw test --test_env={NAMED}={seed} with \
                 this target. Keep: add {seed} to the kept schedules of the model"
            );
        }
    }
}

fn run(name: &str, seed: u64, f: fn()) {
    let running = Running { name, seed };
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(MOST_STEPS);
    // The seed says it all.
    config.failure_persistence = FailurePersistence::None;
    // Relaxed accesses are taken for sequential ones: orders are loom's part.
    config.silence_warnings = true;
    Runner::new(RandomScheduler::new_from_seed(running.seed, 1), config).run(f);
}

/// A number for code that chooses at random: part of the schedule, so that its seed says it too.
pub fn random() -> u64 {
    thread_rng().next_u64()
}

/// Runs `f` under the `kept` schedules, which failed once, then under `count` others, and prints
/// how many there were. `MODEL_SEEDS=17` or `MODEL_SEEDS=0..100000` in the environment asks for
/// these instead.
///
/// An execution in which every thread waits is a failure, and so is one that goes on and on.
pub fn explore(name: &str, kept: &[u64], count: u64, f: fn()) {
    kept.iter().for_each(|seed| run(name, *seed, f));
    let seeds = seeds(count);
    let count = seeds.end - seeds.start;
    seeds.for_each(|seed| run(name, seed, f));
    // Not by println, which a passing test swallows.
    let line = format!("{name}: {count} random schedules, {} kept ones\n", kept.len());
    let _ = std::io::stderr().write_all(line.as_bytes());
}
