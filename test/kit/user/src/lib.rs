//! A user program as a program under test.
//!
//! Its main function calls [`run`] with its suite; tests get the program's [`Env`] as `t.env`.
//! Records go through the Console-typed capability called `records`, a frame a call; the verdict
//! is the exit code: 0 for a pass, 1 for anything else. The manifest grants `records` and makes the
//! process essential, so that the machine ends with its code.
//!
//! ```ignore
//! capos_rt::main!(main);
//!
//! const SUITE: Suite<Env> = Suite::new(&[Test::new("clock.runs", clock_runs)]);
//!
//! fn main(env: &'static capos_rt::Env) {
//!     test_user::run(env, &SUITE)
//! }
//! ```
#![no_std]

use abi_sync::BlockMemory;
use capos_rt::out::Out;
use capos_rt::ring::Kernel;
use capos_rt::{exit, println};
use test_kit::{Exit, Port, Sink, Suite};

/// What a program's tests share.
pub type Env = &'static capos_rt::Env;

/// Runs the suite and ends the process with its verdict.
pub fn run(env: Env, suite: &Suite<Env>) -> ! {
    let mut shared = env;
    run_with(env, suite, &mut shared)
}

/// As [`run`], for tests that share something of their own.
pub fn run_with<E>(env: Env, suite: &Suite<E>, shared: &mut E) -> ! {
    match env.cap("records", schema::console::INTERFACE_ID) {
        Ok(slot) => {
            let mut records = Records { out: Out::new(&env.io, slot), is_inside: false };
            test_kit::main(&mut records, suite, shared)
        }
        Err(missing) => {
            println!(env, "{missing}");
            exit(1)
        }
    }
}

/// The record port, through the program's ring.
struct Records {
    out: Out<'static, BlockMemory, Kernel>,
    /// Whether a frame was begun.
    is_inside: bool,
}

impl Sink for Records {
    fn write(&mut self, byte: u8) {
        // A port that takes nothing shows as missing records at the reader.
        let _ = self.out.push(&[byte]);
        // A frame is between two zeros and has none inside.
        if byte == 0 {
            if self.is_inside {
                let _ = self.out.flush();
            }
            self.is_inside = !self.is_inside;
        }
    }
}

impl Port for Records {
    fn exit(&mut self, verdict: Exit) -> ! {
        let _ = self.out.flush();
        exit(if verdict == Exit::Pass { 0 } else { 1 })
    }
}
