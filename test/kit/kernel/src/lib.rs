//! A kernel as a program under test: the suite runs once the machine is up.
//!
//! A test kernel is a `capos_kernel` whose main function calls [`run`] with its suite. Tests get
//! the [`Machine`] as `t.env`. Records go to the second serial port, the verdict to the exit
//! port; both need `exit=debug` on the command line, which `capos_qemu_test()` gives.
#![no_std]

use kernel_arch::console;
use kernel_sys::Machine;
use kernel_sys::fatal::{self, Fatal};
use spin::Once;
use test_kit::{Exit, LastWords, Outcome, Port, Sink, Suite, T};

/// What a kernel's tests share.
pub type Env = &'static Machine;

/// Runs the suite and ends the machine with its verdict.
pub fn run(mut machine: Env, suite: &Suite<Env>) -> ! {
    test_kit::main(&mut Records, suite, &mut machine)
}

/// Looks at a report of a panic or fault and says whether it is the expected one.
pub type Judge = fn(&Fatal<'_>) -> Result<(), &'static str>;

static EXPECTED: Once<(LastWords, Judge)> = Once::new();

/// Runs `trigger`, which must end the machine by a panic or a fault that `judge` accepts.
///
/// For the last test of a suite only: nothing runs after it.
pub fn expect_end(t: &mut T<'_, Env>, judge: Judge, trigger: fn()) -> Outcome {
    let Some(words) = t.last_words() else {
        return t.fail(format_args!("a test that ends the machine must be the suite's last"));
    };
    EXPECTED.call_once(|| (words, judge));
    fatal::expect(speak);
    trigger();
    t.fail(format_args!("the machine went on"))
}

/// Closes the suite from within the report.
fn speak(fatal: &Fatal<'_>) -> Exit {
    match EXPECTED.get() {
        None => Exit::Panic,
        Some((words, judge)) => match judge(fatal) {
            Ok(()) => words.passed(&mut StolenRecords),
            Err(why) => words.failed(&mut StolenRecords, format_args!("{why}")),
        },
    }
}

/// The record port, shared by whoever runs.
struct Records;

impl Sink for Records {
    fn write(&mut self, byte: u8) {
        console::send_records(&[byte]);
    }
}

impl Port for Records {
    fn exit(&mut self, exit: Exit) -> ! {
        fatal::leave(exit)
    }
}

/// The record port during a report: all other CPUs are stopped, its lock may be held.
struct StolenRecords;

impl Sink for StolenRecords {
    fn write(&mut self, byte: u8) {
        console::steal_records(&[byte]);
    }
}
