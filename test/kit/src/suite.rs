//! The table of tests and the run through it.

use crate::assert::{Ending, Outcome, SoFar, T};
use crate::last_words::close;
use abi_report::{BadId, Encoder, Exit, Record, Sink, check_id};

/// How a program under test reaches its harness.
pub trait Port: Sink {
    /// Ends the run with a verdict, after everything written is on its way.
    fn exit(&mut self, exit: Exit) -> !;
}

/// A test: its stable id and its function.
pub struct Test<E> {
    id: &'static str,
    run: fn(&mut T<'_, E>) -> Outcome,
}

impl<E> Test<E> {
    /// A test. In a constant, a bad id is a compile error.
    pub const fn new(id: &'static str, run: fn(&mut T<'_, E>) -> Outcome) -> Test<E> {
        match check_id(id) {
            Ok(()) => Test { id, run },
            Err(BadId::Empty) => panic!("a test id has at least one character"),
            Err(BadId::TooLong { .. }) => panic!("a test id has at most 96 bytes"),
            Err(BadId::Character { .. }) => {
                panic!("a test id is made of a-z, 0-9, '_', '-', '.', ':' and '/'")
            }
        }
    }
}

/// The tests one boot runs, in order.
pub struct Suite<E: 'static> {
    tests: &'static [Test<E>],
}

impl<E> Suite<E> {
    /// A suite. In a constant, an empty one or a repeated id is a compile error.
    pub const fn new(tests: &'static [Test<E>]) -> Suite<E> {
        assert!(!tests.is_empty(), "a suite without a test proves nothing");
        let mut i = 0;
        while i < tests.len() {
            let mut j = 0;
            while j < i {
                assert!(!same(tests[i].id, tests[j].id), "two tests of a suite have the same id");
                j += 1;
            }
            i += 1;
        }
        Suite { tests }
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while let ([x, rest_a @ ..], [y, rest_b @ ..]) = (a, b) {
        if *x != *y {
            return false;
        }
        (a, b) = (rest_a, rest_b);
    }
    a.is_empty() && b.is_empty()
}

/// Runs a suite and ends the program with its verdict.
pub fn main<E>(port: &mut dyn Port, suite: &Suite<E>, env: &mut E) -> ! {
    let exit = run(port, suite, env);
    port.exit(exit)
}

/// Runs a suite, reporting to `sink`; returns the verdict the program must leave with.
pub fn run<E>(sink: &mut dyn Sink, suite: &Suite<E>, env: &mut E) -> Exit {
    let mut encoder = Encoder::new();
    let total = suite.tests.len() as u32;
    for (index, test) in (0..).zip(suite.tests) {
        encoder.send(sink, &Record::Plan { index, total, id: test.id });
    }
    let mut so_far = SoFar { to_come: total, ..SoFar::default() };
    for test in suite.tests {
        so_far.to_come -= 1;
        let mut t = T::begin(test.id, &mut encoder, sink, env, so_far);
        // An early end was told to `t`, which knows the outcome.
        let _ = (test.run)(&mut t);
        *match t.end() {
            Ending::Passed => &mut so_far.passed,
            Ending::Failed => &mut so_far.failed,
            Ending::Skipped => &mut so_far.skipped,
        } += 1;
    }
    close(encoder, sink, so_far)
}
