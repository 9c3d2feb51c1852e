//! What a running test holds: its assertions, metrics and environment.

use crate::last_words::LastWords;
use crate::text::Text;
use abi_report::{Encoder, Record, Sink};
use core::fmt;
use core::panic::Location;

/// The proof that a test told why it ends early; only the kit makes one.
#[derive(Debug)]
pub struct Ended(());

/// What a test function returns: `Ok(())` at its end, `Err` when it ended early.
pub type Outcome = Result<(), Ended>;

/// A running test.
pub struct T<'a, E> {
    /// What the program gives to all its tests.
    pub env: &'a mut E,
    id: &'static str,
    encoder: &'a mut Encoder,
    sink: &'a mut dyn Sink,
    failures: u32,
    skipped: bool,
    so_far: SoFar,
}

/// How the tests before this one ended, and how many come after it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SoFar {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
    pub(crate) to_come: u32,
}

/// How a test ended, for the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Passed,
    Failed,
    Skipped,
}

impl<'a, E> T<'a, E> {
    /// Announces the test and hands it out.
    pub(crate) fn begin(
        id: &'static str,
        encoder: &'a mut Encoder,
        sink: &'a mut dyn Sink,
        env: &'a mut E,
        so_far: SoFar,
    ) -> T<'a, E> {
        encoder.send(sink, &Record::Run { id });
        T { env, id, encoder, sink, failures: 0, skipped: false, so_far }
    }

    /// Closes the test after its function returned.
    pub(crate) fn end(self) -> Ending {
        if self.failures > 0 {
            return Ending::Failed;
        }
        if self.skipped {
            return Ending::Skipped;
        }
        self.encoder.send(self.sink, &Record::Ok { id: self.id });
        Ending::Passed
    }

    /// Records that something is not as it must be; the test goes on.
    #[track_caller]
    pub fn note_failure(&mut self, message: fmt::Arguments<'_>) {
        let place = Location::caller();
        let message = Text::new(message);
        self.failures = self.failures.saturating_add(1);
        // A skip already went out as this test's outcome; the failure after it shows as the
        // contradiction it is.
        let (id, file, line) = (self.id, place.file(), place.line());
        let message = message.as_str();
        self.encoder.send(self.sink, &Record::Fail { id, line, file, message });
    }

    /// Records a failure and ends the test: `return t.fail(format_args!("…"))`.
    #[track_caller]
    #[must_use = "a failed test ends: return this"]
    pub fn fail(&mut self, message: fmt::Arguments<'_>) -> Outcome {
        self.note_failure(message);
        Err(Ended(()))
    }

    /// Ends the test as one that cannot run here: `return t.skip("needs two CPUs")`.
    ///
    /// After a failure the test stays failed.
    #[must_use = "a skipped test ends: return this"]
    pub fn skip(&mut self, reason: &str) -> Outcome {
        if self.failures == 0 && !self.skipped {
            self.skipped = true;
            self.encoder.send(self.sink, &Record::Skip { id: self.id, reason });
        }
        Err(Ended(()))
    }

    /// What code that never returns to this test needs to close it and the suite, if it is the
    /// suite's last and nothing failed in it yet.
    pub fn last_words(&self) -> Option<LastWords> {
        let sequence = self.encoder.sequence();
        (self.so_far.to_come == 0 && self.failures == 0 && !self.skipped).then_some(LastWords {
            id: self.id,
            sequence,
            so_far: self.so_far,
        })
    }

    /// Records a figure this test measured; `unit` such as `ns` or `instructions`.
    pub fn metric(&mut self, name: &str, value: u64, unit: &str) {
        self.encoder.send(self.sink, &Record::Metric { id: self.id, name, value, unit });
    }
}

/// Records a failure if a condition does not hold, and goes on.
#[macro_export]
macro_rules! check {
    ($t:expr, $condition:expr $(,)?) => {
        if !$condition {
            $t.note_failure(::core::format_args!("{} does not hold", ::core::stringify!($condition)));
        }
    };
    ($t:expr, $condition:expr, $($message:tt)+) => {
        if !$condition {
            $t.note_failure(::core::format_args!(
                "{} does not hold: {}",
                ::core::stringify!($condition),
                ::core::format_args!($($message)+),
            ));
        }
    };
}

/// Records a failure with both values if they differ, and goes on.
#[macro_export]
macro_rules! check_eq {
    ($t:expr, $found:expr, $expected:expr $(,)?) => {
        match (&$found, &$expected) {
            (found, expected) => {
                if *found != *expected {
                    $t.note_failure(::core::format_args!(
                        "{} is {:?}, expected {:?}",
                        ::core::stringify!($found),
                        found,
                        expected,
                    ));
                }
            }
        }
    };
}

/// Records a failure and ends the test if a condition does not hold.
#[macro_export]
macro_rules! require {
    ($t:expr, $condition:expr $(,)?) => {
        if !$condition {
            return $t.fail(::core::format_args!("{} does not hold", ::core::stringify!($condition)));
        }
    };
    ($t:expr, $condition:expr, $($message:tt)+) => {
        if !$condition {
            return $t.fail(::core::format_args!(
                "{} does not hold: {}",
                ::core::stringify!($condition),
                ::core::format_args!($($message)+),
            ));
        }
    };
}

/// Records a failure with both values and ends the test if they differ.
#[macro_export]
macro_rules! require_eq {
    ($t:expr, $found:expr, $expected:expr $(,)?) => {
        match (&$found, &$expected) {
            (found, expected) => {
                if *found != *expected {
                    return $t.fail(::core::format_args!(
                        "{} is {:?}, expected {:?}",
                        ::core::stringify!($found),
                        found,
                        expected,
                    ));
                }
            }
        }
    };
}

/// Evaluates to the value inside `Ok`, or records the error and ends the test.
#[macro_export]
macro_rules! require_ok {
    ($t:expr, $result:expr $(,)?) => {
        match $result {
            Ok(value) => value,
            Err(error) => {
                return $t.fail(::core::format_args!(
                    "{} is Err({:?})",
                    ::core::stringify!($result),
                    error,
                ));
            }
        }
    };
}

/// Evaluates to the value inside `Some`, or records its absence and ends the test.
#[macro_export]
macro_rules! require_some {
    ($t:expr, $option:expr $(,)?) => {
        match $option {
            Some(value) => value,
            None => {
                return $t.fail(::core::format_args!("{} is None", ::core::stringify!($option)));
            }
        }
    };
}
