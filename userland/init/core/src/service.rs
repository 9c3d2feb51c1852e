//! A line about one service: an argument of init's entry in the manifest.
//!
//! `NAME`, the name of another entry, and after it any of these words:
//!
//! | word | meaning | without it |
//! |---|---|---|
//! | `restarts=N` | how often it is started again after a failure, within the time below | 0 |
//! | `within=SECONDS` | the time | 60 |
//! | `pause=MILLISECONDS` | how long init waits before the first of these, twice as long before each next one | 100 |
//! | `essential` | the system ends with it: with its exit code, or with init's if it was given up | it goes on |

use core::fmt;

/// A service that init starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service<'a> {
    /// The manifest's entry.
    pub name: &'a str,
    /// Restarts after failures, within the window.
    pub restarts: u32,
    /// The window.
    pub within_ns: u64,
    /// The pause before the first restart.
    pub pause_ns: u64,
    /// Whether the system ends with it.
    pub is_essential: bool,
}

/// What is not understood of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclear<'a> {
    /// Nothing in it.
    NoName,
    /// A word that is none of those above.
    Word(&'a str),
    /// A number that is none, or too large.
    Number(&'a str),
}

impl fmt::Display for Unclear<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("a service needs the name of an entry of the manifest"),
            Self::Word(word) => write!(
                f,
                "{word} is not understood: restarts=N, within=SECONDS, pause=MILLISECONDS and essential are"
            ),
            Self::Number(word) => write!(f, "{word} needs a number from 0 to {MOST}"),
        }
    }
}

/// The largest number in a line: with it no time overflows.
const MOST: u32 = 1_000_000;

const NS_PER_SECOND: u64 = 1_000_000_000;
const NS_PER_MILLISECOND: u64 = 1_000_000;

impl<'a> Service<'a> {
    /// What a line says.
    pub fn of(line: &'a str) -> Result<Self, Unclear<'a>> {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().ok_or(Unclear::NoName)?;
        let mut service = Self {
            name,
            restarts: 0,
            within_ns: 60 * NS_PER_SECOND,
            pause_ns: 100 * NS_PER_MILLISECOND,
            is_essential: false,
        };
        for word in words {
            let number = |text: &str| match text.parse() {
                Ok(number @ 0..=MOST) => Ok(number),
                _ => Err(Unclear::Number(word)),
            };
            match word.split_once('=') {
                None if word == "essential" => service.is_essential = true,
                Some(("restarts", text)) => service.restarts = number(text)?,
                Some(("within", text)) => {
                    service.within_ns = u64::from(number(text)?) * NS_PER_SECOND;
                }
                Some(("pause", text)) => {
                    service.pause_ns = u64::from(number(text)?) * NS_PER_MILLISECOND;
                }
                _ => return Err(Unclear::Word(word)),
            }
        }
        Ok(service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use test_property::prelude::*;

    #[test]
    fn a_line_says_what_is_not_as_usual() {
        let usual = Service {
            name: "shell",
            restarts: 0,
            within_ns: 60 * NS_PER_SECOND,
            pause_ns: 100 * NS_PER_MILLISECOND,
            is_essential: false,
        };
        assert_eq!(Service::of("shell"), Ok(usual));
        let all = Service {
            restarts: 3,
            within_ns: NS_PER_SECOND,
            pause_ns: 0,
            is_essential: true,
            ..usual
        };
        assert_eq!(Service::of(" shell  restarts=3 essential within=1 pause=0 "), Ok(all));
    }

    #[test]
    fn what_is_not_understood_is_named_with_what_would_be() {
        for (line, unclear, says) in [
            (" ", Unclear::NoName, "name of an entry"),
            ("a restart=3", Unclear::Word("restart=3"), "restarts=N"),
            ("a Essential", Unclear::Word("Essential"), "essential"),
            ("a restarts=-1", Unclear::Number("restarts=-1"), "from 0 to 1000000"),
            ("a within=1000001", Unclear::Number("within=1000001"), "number"),
            ("a pause=", Unclear::Number("pause="), "number"),
        ] {
            assert_eq!(Service::of(line), Err(unclear));
            assert!(unclear.to_string().contains(says), "{unclear}");
        }
    }

    test_property::proptest! {
        #[test]
        fn any_line_is_a_service_or_a_sentence(line in ".{0,60}") {
            if let Ok(service) = Service::of(&line) {
                prop_assert!(!service.name.is_empty());
            }
        }
    }
}
