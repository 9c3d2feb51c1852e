//! PARK and UNPARK as a program sees them.
//!
//! * [`one`]: what one thread can see. [`several`]: order, counts, cancel, another process.
//! * [`mutex`]: a lock built on it, under contention.
#![no_std]
#![no_main]

mod mutex;
mod one;
mod several;

use capos_rt::{Env, Error};
use test_bare::program::{Program, Sibling};
use test_kit::{Suite, Test};

capos_rt::main!(main);

static SIBLINGS: [Sibling; 8] = [const { Sibling::new() }; 8];

const SUITE: Suite<Program> = Suite::new(&[
    Test::new("park.mismatch", one::mismatch),
    Test::new("park.timeout_never_early", one::timeout_never_early),
    Test::new("park.timeout_zero", one::timeout_zero),
    Test::new("park.timeout_unlinks", one::timeout_unlinks),
    Test::new("park.wake_wins_over_timeout", one::wake_wins_over_timeout),
    Test::new("park.bad_addresses", one::bad_addresses),
    Test::new("park.bad_spaces", one::bad_spaces),
    Test::new("park.one_wait_at_a_time", one::one_wait_at_a_time),
    Test::new("park.cancel", one::cancel),
    Test::new("park.only_its_own_thread", one::only_its_own_thread),
    Test::new("park.order_and_counts", several::order_and_counts),
    Test::new("park.unpark_of_zero", several::unpark_of_zero),
    Test::new("park.other_word", several::other_word),
    Test::new("park.other_process", several::other_process),
    Test::new("park.no_lost_wake", several::no_lost_wake),
    Test::new("park.mutex", mutex::mutex),
    Test::new("park.nothing_allocated", mutex::nothing_allocated),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    if env.caps.find("stranger", plain_schema::plain::INTERFACE_ID).is_ok() {
        return several::stranger(env);
    }
    let mut program = Program::new(env, &SIBLINGS)?;
    test_user::run_with(env, &SUITE, &mut program)
}
