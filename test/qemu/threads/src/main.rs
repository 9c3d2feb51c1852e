//! Threads as a program sees them: their life, their limits, their registers, their races.
//!
//! * [`life`]: create, exit, join, detach.
//! * [`limits`]: what a process may have, and that a refusal changes nothing.
//! * [`state`]: FS base, vector registers, entry registers of each thread.
//! * [`cpus`]: siblings on several CPUs. [`race`]: exit, join and detach against each other.
#![no_std]
#![no_main]

mod cpus;
mod life;
mod limits;
mod race;
mod state;

use capos_rt::{Env, Error};
use test_bare::program::{Program, Sibling};
use test_kit::{Suite, Test};

capos_rt::main!(main);

static SIBLINGS: [Sibling; 12] = [const { Sibling::new() }; 12];

const SUITE: Suite<Program> = Suite::new(&[
    Test::new("threads.create_and_join", life::create_and_join),
    Test::new("threads.retained_status", life::retained_status),
    Test::new("threads.live_target_blocks", life::live_target_blocks),
    Test::new("threads.self_join", life::self_join),
    Test::new("threads.second_waiter", life::second_waiter),
    Test::new("threads.join_after_join", life::join_after_join),
    Test::new("threads.release_detaches", life::release_detaches),
    Test::new("threads.release_drops_status", life::release_drops_status),
    Test::new("threads.cancelled_join", life::cancelled_join),
    Test::new("threads.exit_posts_nothing", life::exit_posts_nothing),
    Test::new("threads.exit_with_pending_operations", life::exit_with_pending_operations),
    Test::new("threads.bad_starts", limits::bad_starts),
    Test::new("threads.records_run_out", limits::records_run_out),
    Test::new("threads.slots_run_out", limits::slots_run_out),
    Test::new("threads.entry_registers", state::entry_registers),
    Test::new("threads.fs_base", state::fs_base),
    Test::new("threads.fs_base_of_siblings", state::fs_base_of_siblings),
    Test::new("threads.segments_of_siblings", state::segments_of_siblings),
    Test::new("threads.vectors_survive_switches", state::vectors),
    Test::new("threads.siblings_run_at_once", cpus::siblings_run_at_once),
    Test::new("threads.nowhere_twice", cpus::nowhere_twice),
    Test::new("threads.race", race::race),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    let mut program = Program::new(env, &SIBLINGS)?;
    test_user::run_with(env, &SUITE, &mut program)
}
