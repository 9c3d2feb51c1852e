//! The date is the clock chip's. The word `unix=` says what it shows, to the second.
#![no_std]
#![no_main]

use kernel_sys::Machine;
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require_ok};

kernel_sys::kernel_main!(main);

const SUITE: Suite<Env> = Suite::new(&[Test::new("rtc.date", date)]);

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

fn date(t: &mut T<'_, Env>) -> Outcome {
    let (unix_s, at_ns) = require_ok!(t, t.env.wall_clock.ok_or("no date"));
    check_eq!(t, Some(unix_s), t.env.words().value("unix").and_then(|text| text.parse().ok()));
    // Read early, on a clock that runs.
    check!(t, at_ns > 0 && at_ns < 900_000_000, "{at_ns} ns");
    Ok(())
}
