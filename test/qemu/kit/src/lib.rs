//! What a test kernel needs beside the kernel's crates: its way to the harness.
//!
//! A test kernel is a main function that hands a suite to [`run`]; the environment of its tests
//! is the [`Machine`].
#![no_std]

use abi_report::{Exit, Sink};
use kernel_arch::console;
use kernel_sys::{Machine, fatal};
pub use test_kit::{Outcome, Suite, T, Test};

/// What every test gets.
pub type Env = &'static Machine;

/// Bytes gathered before they are sent: a port takes as many at once.
const GATHER: usize = 16;

/// The second serial port and the exit port.
struct Harness {
    bytes: [u8; GATHER],
    count: usize,
}

impl Harness {
    fn flush(&mut self) {
        console::send_records(&self.bytes[..self.count]);
        self.count = 0;
    }
}

impl Sink for Harness {
    fn write(&mut self, byte: u8) {
        self.bytes[self.count] = byte;
        self.count += 1;
        // A zero ends a frame: what is complete must not wait for what comes.
        if self.count == GATHER || byte == 0 {
            self.flush();
        }
    }
}

impl test_kit::Port for Harness {
    fn exit(&mut self, exit: Exit) -> ! {
        self.flush();
        fatal::leave(exit)
    }
}

/// Runs a suite and ends the machine with its verdict.
pub fn run(suite: &Suite<Env>, machine: &'static Machine) -> ! {
    let mut env = machine;
    test_kit::main(&mut Harness { bytes: [0; GATHER], count: 0 }, suite, &mut env)
}
