//! An honest program beside one that is not: it computes, calls, sleeps, parks and makes threads, and says
//! what went wrong or took too long.
//!
//! Which attacks there are is the manifest's business: a grant with the name of a suite says which. Decided in
//! ADR 225.
//!
//! * [`watch`]: what is looked at. [`held`]: attacks that come to nothing. [`open`]: attacks on what is
//!   known to be open, each in a boot of its own. [`sizes`]: little and much of the same.
#![no_std]
#![no_main]

mod held;
mod open;
mod sizes;
mod watch;

use capos_rt::{Env, Error};
use test_kit::Suite;

use watch::Observer;

capos_rt::main!(main);

fn main(env: &'static Env) -> Result<(), Error> {
    let suites: [(&str, &Suite<Observer>); 11] = [
        ("held", &held::SUITE),
        ("sizes", &sizes::SUITE),
        ("timers", &open::TIMERS),
        ("large", &open::LARGE),
        ("frames", &open::FRAMES),
        ("newlines", &open::NEWLINES),
        ("weight", &open::WEIGHT),
        ("close", &open::CLOSE),
        ("receiver", &open::RECEIVER),
        ("join", &open::JOIN),
        ("queue", &open::QUEUE),
    ];
    let mut observer = Observer::new(env)?;
    for (name, suite) in suites {
        if env.caps.named(name).is_some() {
            test_user::run_with(env, suite, &mut observer);
        }
    }
    Ok(())
}
