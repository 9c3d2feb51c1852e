//! The machine can be switched off and reset, and its tables say how. That it ends so is seen by the harness:
//! there is no exit port.
#![no_std]
#![no_main]

use kernel_sys::Machine;
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require_ok};

kernel_sys::kernel_main!(main);

const SUITE: Suite<Env> = Suite::new(&[Test::new("power.from-the-tables", from_the_tables)]);

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

/// What the emulator's chip set (ICH9) has: PM1a at 0x604, sleep type 0, reset by 0xcf9.
fn from_the_tables(t: &mut T<'_, Env>) -> Outcome {
    let power = require_ok!(t, t.env.firmware.power.ok_or("no tables"));
    let off = require_ok!(t, power.off);
    check_eq!(t, (off.pm1a, off.pm1b), (0x604, None));
    check_eq!(t, (off.types.first, off.types.second), (0, 0));
    check!(t, power.reset.is_some_and(|reset| reset.port == 0xcf9), "{:?}", power.reset);
    Ok(())
}
