//! What a kernel must do exactly, and what a wrong one would get away with elsewhere.
//!
//! Everything runs in the deterministic lane, where a nanosecond is an instruction; with two CPUs the
//! clock counts the instructions of both. The bugs these tests were written against are listed in
//! `docs/book/planted.md`.
//!
//! * [`lateness`]: how late each kind of deadline is. [`slots`]: what a process holds.
//! * [`counters`]: what CPUs count. [`revoked`]: facets, before and after their revocation. [`dead`]: what the dead leave behind.
//! * [`registers`]: vector registers there and back. [`cpus`]: idle CPUs, and a kill on another one.
//! * [`accounts`]: how long the end of a process takes. [`peer`]: what the other processes of the manifest do.
#![no_std]
#![no_main]

mod accounts;
mod counters;
mod cpus;
mod dead;
mod lateness;
mod peer;
mod registers;
mod revoked;
mod slots;

use capos_rt::{Env, Error};
use test_bare::program::{Program, Sibling};
use test_kit::{Suite, Test};

capos_rt::main!(main);

static SIBLINGS: [Sibling; 6] = [const { Sibling::new() }; 6];

const SUITE: Suite<Program> = Suite::new(&[
    Test::new("exact.slots", slots::every_slot_has_a_name),
    Test::new("exact.sleep", lateness::sleep),
    Test::new("exact.sleep_until", lateness::sleep_until),
    Test::new("exact.call_deadline", lateness::call_deadline),
    Test::new("exact.park_timeout", lateness::park_timeout),
    Test::new("exact.enter_timeout", lateness::enter_timeout),
    Test::new("exact.count_of_entries", counters::entries),
    Test::new("exact.count_of_calls", counters::calls),
    Test::new("exact.count_of_sleeps", counters::sleeps),
    Test::new("exact.count_of_slices", counters::slices),
    Test::new("exact.badges", revoked::badges),
    Test::new("exact.revoked_facet", revoked::revoked_facet),
    Test::new("exact.revoked_at_one_endpoint", revoked::revoked_at_one_endpoint),
    Test::new("exact.new_ring_is_zero", dead::new_ring_is_zero),
    Test::new("exact.sleeps_of_the_dead", dead::sleeps_of_the_dead),
    Test::new("exact.answer_to_the_dead", dead::answer_to_the_dead),
    Test::new("exact.thread_made_in_the_end", dead::thread_made_in_the_end),
    Test::new("exact.registers_through_a_call", registers::through_a_call),
    Test::new("exact.registers_through_a_yield", registers::through_a_yield),
    Test::new("exact.idle_cpu_steals", cpus::idle_cpu_steals),
    Test::new("exact.idle_cpu_is_told", cpus::idle_cpu_is_told),
    Test::new("exact.kill_interrupts", cpus::kill_interrupts),
]);

/// Of a boot of its own, which logs nothing: what a person is told of an end takes longer than the end.
const ENDS: Suite<Program> =
    Suite::new(&[Test::new("exact.end_of_a_process", accounts::end_of_a_process)]);

fn main(env: &'static Env) -> Result<(), Error> {
    if let Ok(requests) = env.cap("peer", schema::endpoint::INTERFACE_ID) {
        return peer::serve(env, requests);
    }
    if let Ok(requests) = env.cap("maker", schema::endpoint::INTERFACE_ID) {
        return peer::make_threads(env, requests);
    }
    if let Ok(requests) = env.cap("secret", schema::endpoint::INTERFACE_ID) {
        return peer::keep_a_secret(env, requests);
    }
    if let Ok(requests) = env.cap("crowd", schema::endpoint::INTERFACE_ID) {
        return peer::gather(env, requests);
    }
    if let Ok(requests) = env.cap("spinner", schema::endpoint::INTERFACE_ID) {
        return peer::spin(env, requests);
    }
    let mut program = Program::new(env, &SIBLINGS)?;
    let is_about_ends = env.caps.named("ends").is_some();
    test_user::run_with(env, if is_about_ends { &ENDS } else { &SUITE }, &mut program)
}
