//! Weights and classes as capabilities: what a thread may say of itself, what a scheduler's holder may say of all, and
//! what comes of it.
//!
//! Times are asserted with one or two CPUs in the deterministic lane, where a nanosecond is an instruction.
//!
//! * [`bench`]: what the tests share: siblings that compute, and their accounts. [`own`]: SchedulingPolicyCap.
//! * [`all`]: SchedulerControl. [`shares`]: who gets how much, and how soon. [`places`]: on which CPU.
//! * [`counts`]: what CPUs count of it. [`attacks`]: holders who want more than their share.
//! * [`guest`]: what the other process of the manifest does.
#![no_std]
#![no_main]

mod all;
mod attacks;
mod bench;
mod counts;
mod guest;
mod own;
mod places;
mod shares;

use bench::Bench;
use capos_rt::{Env, Error};
use test_kit::{Suite, Test};

capos_rt::main!(main);

const SUITE: Suite<Bench> = Suite::new(&[
    Test::new("policy.every_weight", own::every_weight),
    Test::new("policy.classes", own::classes),
    Test::new("policy.accounts_add_up", own::accounts_add_up),
    Test::new("policy.in_effect_when_next_queued", own::in_effect_when_next_queued),
    Test::new("policy.inherited_ceiling", guest::inherited_ceiling),
    Test::new("policy.any_thread", all::any_thread),
    Test::new("policy.stale_names", all::stale_names),
    Test::new("policy.pages", all::pages),
    Test::new("policy.loads", all::loads),
    Test::new("policy.without_contexts", all::without_contexts),
    Test::new("policy.weights_while_they_run", all::weights_while_they_run),
    Test::new("policy.weight_change", shares::weight_change),
    Test::new("policy.equal_and_double", shares::equal_and_double),
    Test::new("policy.hog_and_light_worker", shares::hog_and_light_worker),
    Test::new("policy.classes_by_latency", shares::classes_by_latency),
    Test::new("policy.new_threads", places::new_threads),
    Test::new("policy.nobody_is_pinned", places::nobody_is_pinned),
    Test::new("policy.counts_of_requests", counts::requests),
    Test::new("policy.counts_of_idleness", counts::idleness),
    Test::new("policy.counts_of_flushes", counts::flushes),
    Test::new("policy.attack_flips", attacks::flips),
    Test::new("policy.attack_banked_lag", attacks::banked_lag),
    Test::new("policy.attack_held_down", attacks::held_down),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    if let Some(requests) = env.caps.named("guest") {
        return guest::serve(env, requests);
    }
    let mut bench = Bench::new(env)?;
    test_user::run_with(env, &SUITE, &mut bench)
}
