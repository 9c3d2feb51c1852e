//! The kernel command line: words separated by spaces, most of them `key=value`.
//!
//! A word given twice counts as it was given last, so that text appended by hand overrides what
//! an image carries. Words the kernel does not know are left to others (test kernels, init); a
//! known word with a value that makes no sense is reported and its default stays.
#![no_std]

use core::fmt;

/// The text, split when asked.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine<'a>(pub &'a str);

/// What the kernel itself reads from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// `exit=debug`: the kernel may end the machine through the debug exit port.
    pub exit_debug: bool,
    /// `log=…`: console text goes to the first serial port.
    pub log_serial: bool,
    /// `log=…`: console text goes to the screen.
    pub log_screen: bool,
    /// `run=summary`: leave after the summary of the machine.
    pub run_summary: bool,
    /// `fastpath=on`: calls may take the short way through the kernel.
    pub fast_path: bool,
    /// `sched=eevdf`: threads are ordered by eligible deadline, not by virtual finish.
    pub eevdf: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            exit_debug: false,
            log_serial: true,
            log_screen: true,
            run_summary: false,
            fast_path: true,
            eevdf: false,
        }
    }
}

/// A word with a value that is not one of those it can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadWord<'a> {
    /// Its key.
    pub key: &'a str,
    /// The value given.
    pub value: &'a str,
    /// What can be given.
    pub expected: &'static str,
}

impl fmt::Display for BadWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} is not understood; {}", self.key, self.value, self.expected)
    }
}

impl<'a> CommandLine<'a> {
    /// The words in order; a word without `=` has no value.
    pub fn words(self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        self.0.split_ascii_whitespace().map(|word| match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        })
    }

    /// The last value given to `key`.
    pub fn value(self, key: &str) -> Option<&'a str> {
        self.words().filter(|(k, _)| *k == key).filter_map(|(_, v)| v).last()
    }

    /// Whether the word stands there by itself.
    pub fn has(self, word: &str) -> bool {
        self.words().any(|(k, v)| k == word && v.is_none())
    }

    /// The kernel's own options; `bad` hears of every word that makes no sense.
    pub fn options(self, mut bad: impl FnMut(BadWord<'a>)) -> Options {
        let mut options = Options::default();
        let mut refuse = |key, value, expected| bad(BadWord { key, value, expected });
        match self.value("exit") {
            Some("debug") => options.exit_debug = true,
            Some("halt") | None => {}
            Some(other) => refuse("exit", other, "exit=debug or exit=halt"),
        }
        match self.value("run") {
            Some("summary") => options.run_summary = true,
            Some("idle") | None => {}
            Some(other) => refuse("run", other, "run=summary or run=idle"),
        }
        match self.value("fastpath") {
            Some("off") => options.fast_path = false,
            Some("on") | None => {}
            Some(other) => refuse("fastpath", other, "fastpath=on or fastpath=off"),
        }
        match self.value("sched") {
            Some("eevdf") => options.eevdf = true,
            Some("wfq") | None => {}
            Some(other) => refuse("sched", other, "sched=wfq or sched=eevdf"),
        }
        if let Some(list) = self.value("log") {
            let (mut serial, mut screen, mut understood) = (false, false, true);
            for name in list.split(',') {
                match name {
                    "serial" => serial = true,
                    "screen" => screen = true,
                    "none" => {}
                    _ => understood = false,
                }
            }
            if understood {
                (options.log_serial, options.log_screen) = (serial, screen);
            } else {
                refuse("log", list, "log= takes serial, screen or none, separated by commas");
            }
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;
    use std::vec::Vec;

    fn options(text: &str) -> (Options, Vec<std::string::String>) {
        let mut bad = Vec::new();
        let options = CommandLine(text).options(|b| bad.push(b.to_string()));
        (options, bad)
    }

    #[test]
    fn an_empty_line_is_the_default() {
        assert_eq!(options(""), (Options::default(), Vec::new()));
        assert_eq!(options("  quiet x=1 \t "), (Options::default(), Vec::new()));
    }

    #[test]
    fn the_last_word_counts() {
        assert!(options("exit=debug").0.exit_debug);
        assert!(!options("exit=debug exit=halt").0.exit_debug);
        assert_eq!(CommandLine("a=1 b=2 a=3").value("a"), Some("3"));
        assert_eq!(CommandLine("a=1 b=2 a=3").value("c"), None);
        assert_eq!(CommandLine("a= b=x=y").value("a"), Some(""));
        assert_eq!(CommandLine("a= b=x=y").value("b"), Some("x=y"));
    }

    #[test]
    fn the_scheduler_and_the_fast_path_are_chosen_by_name() {
        let at = |text| (options(text).0.fast_path, options(text).0.eevdf);
        assert_eq!(at(""), (true, false));
        assert_eq!(at("fastpath=off sched=eevdf"), (false, true));
        assert_eq!(at("fastpath=off fastpath=on sched=eevdf sched=wfq"), (true, false));
    }

    #[test]
    fn logs_are_chosen_by_name() {
        let at = |text| (options(text).0.log_serial, options(text).0.log_screen);
        assert_eq!(at(""), (true, true));
        assert_eq!(at("log=serial"), (true, false));
        assert_eq!(at("log=screen,serial"), (true, true));
        assert_eq!(at("log=none"), (false, false));
        assert_eq!(at("log=printer"), (true, true));
    }

    #[test]
    fn nonsense_is_reported_with_what_would_be_right() {
        let (parsed, bad) = options("exit=now run=away log=serial,printer fastpath=2 sched=cfs");
        assert_eq!(parsed, Options::default());
        assert_eq!(bad.len(), 5);
        assert_eq!(bad[0], "exit=now is not understood; exit=debug or exit=halt");
    }

    #[test]
    fn flags_stand_alone() {
        assert!(CommandLine("a flag b").has("flag"));
        assert!(!CommandLine("flag=1").has("flag"));
    }
}
