//! The scheduler as programs see it: turns, shares, wakes, idleness.
//!
//! Runs with one or two CPUs in the deterministic lane, where a nanosecond is an instruction and
//! times are asserted, and with more in the racing lane, where they are not.
//!
//! * [`hog`]: a thread that only computes, and measures for how long it had a CPU.
//! * [`shares`]: who gets how much. [`wakes`]: how soon. [`idle`]: what waiting costs.
//! * [`calls`]: calls between CPUs. [`passes`]: what was submitted without entering.
#![no_std]
#![no_main]

mod calls;
mod hog;
mod idle;
mod passes;
mod shares;
mod wakes;

use capos_rt::{Env, Error};
use test_bare::program::{Program, Sibling};
use test_kit::{Suite, Test};

capos_rt::main!(main);

static SIBLINGS: [Sibling; 10] = [const { Sibling::new() }; 10];

const SUITE: Suite<Program> = Suite::new(&[
    Test::new("sched.yield_takes_turns", shares::yield_takes_turns),
    Test::new("sched.equal_siblings", shares::equal_siblings),
    Test::new("sched.equal_processes", shares::equal_processes),
    Test::new("sched.weights", shares::weights),
    Test::new("sched.every_cpu_works", shares::every_cpu_works),
    Test::new("sched.more_hogs_than_cpus", shares::more_hogs_than_cpus),
    Test::new("sched.wake_against_a_hog", wakes::wake_against_a_hog),
    Test::new("sched.sleep_beside_hogs", wakes::sleep_beside_hogs),
    Test::new("sched.many_sleeps", wakes::many_sleeps),
    Test::new("sched.idle_cpu_wakes", wakes::idle_cpu_wakes),
    Test::new("sched.yields_in_a_pass", passes::yields_in_a_pass),
    Test::new(
        "sched.a_waiting_caller_brings_its_server",
        calls::a_waiting_caller_brings_its_server,
    ),
    Test::new("sched.sleepers_cost_nothing", idle::sleepers_cost_nothing),
    Test::new("sched.looks_around", idle::looks_around),
    Test::new("sched.idle_time", idle::idle_time),
    Test::new("sched.alone_no_timer", idle::alone_no_timer),
]);

/// Whether times may be asserted.
fn is_deterministic(program: &Program) -> bool {
    program.cpus() <= 2
}

fn main(env: &'static Env) -> Result<(), Error> {
    if let Ok(requests) = env.cap("hog", schema::endpoint::INTERFACE_ID) {
        return hog::serve(env, requests);
    }
    let mut program = Program::new(env, &SIBLINGS)?;
    hog::GIVES_WAY.store(program.cpus() > 1, core::sync::atomic::Ordering::Relaxed);
    test_user::run_with(env, &SUITE, &mut program)
}
