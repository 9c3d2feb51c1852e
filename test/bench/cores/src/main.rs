//! What an operation of each core costs, without a kernel around it.
//!
//! Prints nanoseconds per operation, the best of several rounds, beside what the operation is; for
//! people, not for a verdict. An argument selects by name. Operations that undo each other are
//! timed together. The ring is measured with its protocol (`//abi/ring:abi_ring_bench`).

mod memory;
mod objects;
mod parsers;
mod resources;
mod scheduler;

use std::hint::black_box;
use std::time::Instant;

/// Rounds of each, of which the best counts: others are disturbed.
const ROUNDS: u32 = 7;
/// Operations in a round.
const OPERATIONS: u32 = 100_000;

/// Times an operation, if it is wanted.
pub struct Bench {
    wanted: Option<String>,
}

impl Bench {
    /// Runs `body` many times and prints what one time costs.
    pub fn run(&self, name: &str, mut body: impl FnMut(u64)) {
        if self.wanted.as_ref().is_some_and(|wanted| !name.contains(wanted.as_str())) {
            return;
        }
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            for operation in 0..u64::from(OPERATIONS) {
                body(black_box(operation));
            }
            best = best.min(began.elapsed().as_secs_f64());
        }
        println!("{:9.1} ns  {name}", best * 1e9 / f64::from(OPERATIONS));
    }
}

fn main() {
    let bench = Bench { wanted: std::env::args().nth(1) };
    scheduler::run(&bench);
    memory::run(&bench);
    resources::run(&bench);
    objects::run(&bench);
    parsers::run(&bench);
}
