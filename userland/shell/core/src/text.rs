//! Sentences and numbers for people.

use core::fmt::{self, Display};

use arrayvec::ArrayString;
use schema::process_handle_capnp::ExitReason;

/// A sentence that says what is wrong and what would be right.
pub type Sentence = ArrayString<240>;

/// A sentence out of its parts; what is too long is cut between two parts.
pub fn sentence(parts: fmt::Arguments<'_>) -> Sentence {
    let mut sentence = Sentence::new();
    let _cut = fmt::write(&mut sentence, parts);
    sentence
}

/// A number with a comma after each three digits.
#[derive(Clone, Copy, Debug)]
pub struct Grouped(pub u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = ArrayString::<32>::new();
        let digits = self.0.checked_ilog10().unwrap_or(0);
        for place in (0..=digits).rev() {
            let digit = self.0 / 10u64.pow(place) % 10;
            text.push(char::from(b'0' + digit as u8));
            if place > 0 && place % 3 == 0 {
                text.push(',');
            }
        }
        f.pad(&text)
    }
}

/// A time in the unit that suits it.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub u64);

impl Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        let mut text = ArrayString::<32>::new();
        let written = match ns {
            0..10_000 => fmt::write(&mut text, format_args!("{ns} ns")),
            10_000..10_000_000 => {
                fmt::write(&mut text, format_args!("{}.{} us", ns / 1_000, ns / 100 % 10))
            }
            10_000_000..10_000_000_000 => {
                fmt::write(&mut text, format_args!("{}.{} ms", ns / 1_000_000, ns / 100_000 % 10))
            }
            _ => fmt::write(
                &mut text,
                format_args!("{}.{} s", Grouped(ns / 1_000_000_000), ns / 100_000_000 % 10),
            ),
        };
        written?;
        f.pad(&text)
    }
}

/// How a program ended, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code.
    pub code: i64,
    /// Why it is gone.
    pub reason: ExitReason,
}

/// The exit code of a program that panicked, as `capos_rt` has it.
const PANICKED: i64 = 101;
/// What the kernel's codes for faults begin at: less the exception's number.
const FAULT: i64 = -256;
const STACK_OVERFLOW: i64 = -288;

impl Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code;
        match self.reason {
            ExitReason::Killed => write!(f, "killed, with code {code}"),
            ExitReason::Faulted => {
                let what = match FAULT.saturating_sub(code) {
                    0 => "a division by zero",
                    3 => "a breakpoint",
                    6 => "an invalid instruction",
                    13 => "a general protection fault",
                    14 => "a page fault",
                    _ if code == STACK_OVERFLOW => "a stack overflow",
                    _ => "an exception",
                };
                write!(f, "ended by {what}, with code {code}")
            }
            ExitReason::Exited => match code {
                0 => f.write_str("ended well, with code 0"),
                PANICKED => f.write_str("panicked, with code 101"),
                _ => write!(f, "ended with code {code}"),
            },
        }
    }
}

/// One of something, or several.
pub fn plural(count: u64, one: &'static str, more: &'static str) -> &'static str {
    if count == 1 { one } else { more }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn numbers_are_readable() {
        for (number, text) in
            [(0, "0"), (7, "7"), (999, "999"), (1_000, "1,000"), (10_010_000, "10,010,000")]
        {
            assert_eq!(Grouped(number).to_string(), text);
        }
        assert_eq!(Grouped(u64::MAX).to_string(), "18,446,744,073,709,551,615");
        assert_eq!(std::format!("{:>6}|", Grouped(1_000)), " 1,000|");
        for (ns, text) in [
            (0, "0 ns"),
            (9_999, "9999 ns"),
            (10_250, "10.2 us"),
            (12_345_678, "12.3 ms"),
            (61_500_000_000, "61.5 s"),
        ] {
            assert_eq!(Span(ns).to_string(), text);
        }
    }

    #[test]
    fn each_end_has_its_words() {
        use ExitReason::{Exited, Faulted, Killed};
        for (code, reason, words) in [
            (0, Exited, "ended well, with code 0"),
            (3, Exited, "ended with code 3"),
            (101, Exited, "panicked"),
            (-270, Faulted, "a page fault"),
            (-288, Faulted, "a stack overflow"),
            (i64::MIN, Faulted, "an exception"),
            (130, Killed, "killed, with code 130"),
        ] {
            let ended = Ended { code, reason }.to_string();
            assert!(ended.contains(words), "{ended}");
        }
    }
}
