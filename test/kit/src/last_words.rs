//! The end of a suite, spoken by someone else.
//!
//! A test of a panic or a fatal fault does not come back: the handler is the last code that
//! runs. It takes these words, says whether what happened is what the test was written for,
//! and leaves with the verdict, so that such a run too has all its records and its count.

use crate::assert::SoFar;
use crate::text::Text;
use abi_report::{Encoder, Exit, Record, Sink};
use core::fmt;
use core::panic::Location;

/// What is needed to close the last test of a suite. Plain data, to be kept in a static.
///
/// Nothing may be reported through the test after it was taken.
#[derive(Clone, Copy, Debug)]
pub struct LastWords {
    pub(crate) id: &'static str,
    pub(crate) sequence: u32,
    pub(crate) so_far: SoFar,
}

impl LastWords {
    /// The machine ended as the test means it to. Leave with what is returned.
    #[must_use = "leave with this verdict"]
    pub fn passed(self, sink: &mut dyn Sink) -> Exit {
        let mut encoder = Encoder::resume(self.sequence);
        encoder.send(sink, &Record::Ok { id: self.id });
        let SoFar { passed, failed, skipped, .. } = self.so_far;
        close(encoder, sink, SoFar { passed: passed + 1, failed, skipped, to_come: 0 })
    }

    /// The machine ended in another way than the test means it to. Leave with what is returned.
    #[track_caller]
    #[must_use = "leave with this verdict"]
    pub fn failed(self, sink: &mut dyn Sink, message: fmt::Arguments<'_>) -> Exit {
        let place = Location::caller();
        let message = Text::new(message);
        let (id, line, file) = (self.id, place.line(), place.file());
        let mut encoder = Encoder::resume(self.sequence);
        encoder.send(sink, &Record::Fail { id, line, file, message: message.as_str() });
        let SoFar { passed, failed, skipped, .. } = self.so_far;
        close(encoder, sink, SoFar { passed, failed: failed + 1, skipped, to_come: 0 })
    }
}

/// Says that the suite is done.
pub(crate) fn close(mut encoder: Encoder, sink: &mut dyn Sink, count: SoFar) -> Exit {
    let SoFar { passed, failed, skipped, .. } = count;
    encoder.send(sink, &Record::Done { passed, failed, skipped });
    if failed == 0 { Exit::Pass } else { Exit::Fail }
}
