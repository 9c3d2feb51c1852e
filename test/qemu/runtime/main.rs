//! The runtime on the machine: what host tests cannot reach.
#![no_std]
#![no_main]

mod calls;
mod threads;

use capos_rt::NoCap;
use schema::{console, timer};
use test_kit::{Outcome, Suite, T, Test, check, check_eq};
use test_user::Env;

capos_rt::main!(main);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("rt.entry", entry),
    Test::new("rt.capabilities_by_name", capabilities_by_name),
    Test::new("rt.console", calls::console),
    Test::new("rt.clock", calls::clock),
    Test::new("rt.sleep", calls::sleep),
    Test::new("rt.calls_under_way", calls::under_way),
    Test::new("rt.large_results", calls::large_results),
    Test::new("rt.exception", calls::exception),
    Test::new("rt.no_such_capability", calls::no_such_capability),
    Test::new("rt.service", calls::service),
    Test::new("rt.service_panics", calls::service_panics),
    Test::new("rt.threads", threads::many),
    Test::new("rt.stack_of_one_thread", threads::stack_of_one_thread),
    Test::new("rt.park", threads::park_and_unpark),
    Test::new("rt.park_ends_by_itself", threads::park_ends_by_itself),
    Test::new("rt.nothing_stray", nothing_stray),
]);

fn main(env: Env) {
    test_user::run(env, &SUITE)
}

fn entry(t: &mut T<'_, Env>) -> Outcome {
    check!(t, t.env.pid.0 != 0 || t.env.tid.0 != u32::MAX);
    check_eq!(t, t.env.argument, 0);
    check_eq!(t, t.env.io.with_ring(|ring| ring.sq_entries()), 64);
    Ok(())
}

fn capabilities_by_name(t: &mut T<'_, Env>) -> Outcome {
    check!(t, t.env.cap("timer", timer::INTERFACE_ID).is_ok());
    let other = NoCap::OtherInterface {
        name: "timer",
        expected: console::INTERFACE_ID,
        found: timer::INTERFACE_ID,
    };
    check_eq!(t, t.env.cap("timer", console::INTERFACE_ID), Err(other));
    let absent = NoCap::NotGranted("requests");
    check_eq!(t, t.env.cap("requests", timer::INTERFACE_ID), Err(absent));
    Ok(())
}

/// Last but for nothing: every completion of the whole run went to who asked for it.
fn nothing_stray(t: &mut T<'_, Env>) -> Outcome {
    check_eq!(t, t.env.io.strays(), 0);
    Ok(())
}
