//! A line becomes words.
//!
//! Blanks separate words. Within `'…'` everything stands for itself, within `"…"` all but `\` and the quote; a `\`
//! takes away the meaning of the character after it. A `&` of its own at the end asks for the background. Other
//! characters that shells give a meaning have none here, and say so rather than go unnoticed.

use core::fmt;

use arrayvec::{ArrayString, ArrayVec};
use shell_edit::LINE_BYTES;

/// Words of a line at most: `run`, a program, and as many arguments as a program takes.
pub const MOST_WORDS: usize = 18;

/// The words of one line.
#[derive(Clone, Debug, Default)]
pub struct Words {
    text: ArrayString<LINE_BYTES>,
    /// Where each word ends in the text; it begins where the one before ends.
    ends: ArrayVec<usize, MOST_WORDS>,
    /// Whether the line ends with `&`.
    pub is_background: bool,
}

/// A list of words that borrows them.
pub type List<'w> = ArrayVec<&'w str, MOST_WORDS>;

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A quote without its other half.
    Open(char),
    /// A backslash with nothing after it.
    NothingEscaped,
    /// Too many words.
    TooMany,
    /// A `&` elsewhere than at the end, or alone.
    Ampersand,
    /// A character that has a meaning in other shells.
    Meaningless(char),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(quote) => {
                write!(f, "a {quote} is never closed: put another {quote} where the text ends")
            }
            Self::NothingEscaped => {
                f.write_str("the \\ at the end has nothing after it: write \\\\ for a \\ itself")
            }
            Self::TooMany => {
                write!(
                    f,
                    "a line has at most {MOST_WORDS} words: put '…' around those that belong together"
                )
            }
            Self::Ampersand => {
                f.write_str("a & belongs at the end, after a command: run PROGRAM &")
            }
            Self::Meaningless(character) => {
                write!(f, "{character} means nothing here: write '{character}' to pass it on")
            }
        }
    }
}

impl Words {
    /// The words of a line; an empty line has none.
    pub fn of(line: &str) -> Result<Self, Wrong> {
        let mut words = Self::default();
        let mut rest = line.chars();
        // Whether a word was begun, which may be an empty one in quotes.
        let mut is_begun = false;
        while let Some(character) = rest.next() {
            match character {
                ' ' | '\t' => {
                    words.end_word(&mut is_begun)?;
                    continue;
                }
                '&' if !is_begun => {
                    let is_last = rest.as_str().trim_matches([' ', '\t']).is_empty();
                    if !is_last || words.ends.is_empty() {
                        return Err(Wrong::Ampersand);
                    }
                    words.is_background = true;
                    return Ok(words);
                }
                '&' => return Err(Wrong::Ampersand),
                '\'' | '"' => words.quoted(character, &mut rest)?,
                '\\' => words.push(rest.next().ok_or(Wrong::NothingEscaped)?),
                '|' | '<' | '>' | ';' | '$' | '`' | '*' => {
                    return Err(Wrong::Meaningless(character));
                }
                _ => words.push(character),
            }
            is_begun = true;
        }
        words.end_word(&mut is_begun)?;
        Ok(words)
    }

    /// What is between a quote and its other half.
    fn quoted(&mut self, quote: char, rest: &mut core::str::Chars<'_>) -> Result<(), Wrong> {
        loop {
            match rest.next().ok_or(Wrong::Open(quote))? {
                '\\' if quote == '"' => self.push(rest.next().ok_or(Wrong::Open(quote))?),
                character if character == quote => return Ok(()),
                character => self.push(character),
            }
        }
    }

    fn push(&mut self, character: char) {
        // Words are never longer than their line; one that is longer than any line is cut.
        let _cut = self.text.try_push(character);
    }

    fn end_word(&mut self, is_begun: &mut bool) -> Result<(), Wrong> {
        if core::mem::take(is_begun) {
            self.ends.try_push(self.text.len()).map_err(|_| Wrong::TooMany)?;
        }
        Ok(())
    }

    /// The words in order.
    pub fn list(&self) -> List<'_> {
        let mut from = 0;
        self.ends
            .iter()
            .map(|end| self.text.get(core::mem::replace(&mut from, *end)..*end).unwrap_or_default())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};
    use std::vec::Vec;
    use test_property::prelude::*;

    fn words(line: &str) -> Vec<String> {
        let words = Words::of(line).unwrap_or_else(|wrong| panic!("{line}: {wrong}"));
        words.list().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn blanks_separate_and_quotes_join() {
        assert_eq!(words("  run  primes\t4 "), ["run", "primes", "4"]);
        assert_eq!(
            words("echo 'a  b' \"c '\\\" d\" e\\ f \"\""),
            ["echo", "a  b", "c '\" d", "e f", ""]
        );
        assert_eq!(words("a'b'\"c\"d"), ["abcd"]);
        assert_eq!(words("").len(), 0);
        assert_eq!(words("echo '|' \\& \"$x\""), ["echo", "|", "&", "$x"]);
    }

    #[test]
    fn an_ampersand_at_the_end_asks_for_the_background() {
        for line in ["run spin &", "run spin  & ", "run 'spin' &"] {
            let words = Words::of(line).unwrap();
            assert!(words.is_background);
            assert_eq!(words.list()[..], ["run", "spin"]);
        }
        assert!(!Words::of("run spin '&'").unwrap().is_background);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        let many = "x ".repeat(MOST_WORDS + 1);
        for (line, wrong, says) in [
            ("echo 'a", Wrong::Open('\''), "another '"),
            ("echo \"a\\", Wrong::Open('"'), "another \""),
            ("echo \\", Wrong::NothingEscaped, "write \\\\"),
            ("&", Wrong::Ampersand, "at the end"),
            ("run a & b", Wrong::Ampersand, "at the end"),
            ("run a&", Wrong::Ampersand, "at the end"),
            ("a | b", Wrong::Meaningless('|'), "'|'"),
            (&many, Wrong::TooMany, "at most 18 words"),
        ] {
            let refused = Words::of(line).unwrap_err();
            assert_eq!(refused, wrong, "{line}");
            assert!(refused.to_string().contains(says), "{refused}");
        }
    }

    test_property::proptest! {
        #[test]
        fn any_words_survive_in_quotes(given in test_property::inner::collection::vec("[^\u{0}]{0,20}", 1..8)) {
            let line: Vec<String> =
                given.iter().map(|word| std::format!("'{}'", word.replace('\'', "'\\''"))).collect();
            let given: Vec<&str> = given.iter().map(String::as_str).collect();
            // As a line of the editor, which is bounded.
            if line.join(" ").len() <= LINE_BYTES {
                let words = Words::of(&line.join(" ")).unwrap();
                let list = words.list();
                prop_assert_eq!(list.as_slice(), &given[..]);
            }
        }

        #[test]
        fn any_line_has_words_or_a_sentence(line in ".{0,200}") {
            match Words::of(&line) {
                Ok(words) => prop_assert!(words.list().iter().all(|word| line.len() >= word.len())),
                Err(wrong) => prop_assert!(wrong.to_string().contains(' ')),
            }
        }
    }
}
