//! The records: what a guest can say about its tests.

/// Longest test id in bytes.
pub const ID_MAX: usize = 96;
/// Longest metric name or unit in bytes.
pub const NAME_MAX: usize = 48;
/// Longest source path in bytes; a longer one loses its beginning.
pub const PATH_MAX: usize = 120;
/// Longest message or reason in bytes; a longer one loses its end.
pub const TEXT_MAX: usize = 240;

/// One thing a guest says about its tests.
///
/// A boot sends a `Plan` for each test, then for each test in that order a `Run` and its
/// outcome (one `Ok`, one `Skip`, or one or more `Fail`), then `Done`. A `Metric` belongs to
/// the test that runs. What breaks this order is for the judge to see; the codec carries any
/// sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// Test `index` of `total` will run; sent for each one before the first runs.
    Plan {
        /// Place in the order of running, from 0.
        index: u32,
        /// How many tests this boot runs.
        total: u32,
        /// Stable id of the test.
        id: &'a str,
    },
    /// The test begins.
    Run {
        /// Stable id of the test.
        id: &'a str,
    },
    /// The test ended and every assertion held.
    Ok {
        /// Stable id of the test.
        id: &'a str,
    },
    /// An assertion did not hold; the test may go on and fail again.
    Fail {
        /// Stable id of the test.
        id: &'a str,
        /// Line of the assertion.
        line: u32,
        /// Source file of the assertion.
        file: &'a str,
        /// What was expected and what was found.
        message: &'a str,
    },
    /// The test cannot run here.
    Skip {
        /// Stable id of the test.
        id: &'a str,
        /// What is missing.
        reason: &'a str,
    },
    /// A figure the test measured.
    Metric {
        /// Stable id of the test that measured it.
        id: &'a str,
        /// What was measured.
        name: &'a str,
        /// The figure, in `unit`.
        value: u64,
        /// Unit, such as `ns` or `instructions`.
        unit: &'a str,
    },
    /// No more tests; the guest's own count of outcomes.
    Done {
        /// Tests with outcome `Ok`.
        passed: u32,
        /// Tests with at least one `Fail`.
        failed: u32,
        /// Tests with outcome `Skip`.
        skipped: u32,
    },
}

/// Why a text is no test id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadId {
    /// An id has at least one character.
    Empty,
    /// An id has at most [`ID_MAX`] bytes.
    TooLong {
        /// Bytes found.
        len: usize,
    },
    /// An id is made of `a-z`, `0-9`, `_`, `-` and, between parts, `.`, `:` and `/`.
    Character {
        /// Where the other byte stands.
        at: usize,
    },
}

/// Whether `id` can name a test: the same everywhere, safe in a file name and in XML.
pub const fn check_id(id: &str) -> Result<(), BadId> {
    let mut rest = id.as_bytes();
    if rest.is_empty() {
        return Err(BadId::Empty);
    }
    if rest.len() > ID_MAX {
        return Err(BadId::TooLong { len: rest.len() });
    }
    while let [first, tail @ ..] = rest {
        if !matches!(first, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b':' | b'/') {
            return Err(BadId::Character { at: id.len() - rest.len() });
        }
        rest = tail;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        assert_eq!(check_id("sched.wfq/2-cpus:share_3"), Ok(()));
        assert_eq!(check_id(""), Err(BadId::Empty));
        assert_eq!(check_id("two words"), Err(BadId::Character { at: 3 }));
        assert_eq!(check_id("Upper"), Err(BadId::Character { at: 0 }));
        assert_eq!(check_id("é"), Err(BadId::Character { at: 0 }));
        let long = [b'a'; ID_MAX + 1];
        let long = core::str::from_utf8(&long).unwrap();
        assert_eq!(check_id(long), Err(BadId::TooLong { len: ID_MAX + 1 }));
        assert_eq!(check_id(&long[1..]), Ok(()));
    }
}
