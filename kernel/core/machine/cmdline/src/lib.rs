//! The kernel command line: words separated by spaces, most of them `key=value`.
//!
//! A word given twice counts as it was given last, so that text appended by hand overrides what
//! an image carries. Words the kernel does not know are left to others (test kernels, init); a
//! known word with a value that makes no sense is reported and its default stays.
#![no_std]

use core::fmt;
use core_sched_policy::PolicyKind;
use core_speculation::{Mitigations, Words};

/// The text, split when asked.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine<'a>(pub &'a str);

/// What the kernel itself reads from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// `exit=debug`: the kernel may end the machine through the debug exit port.
    pub exit_debug: bool,
    /// `exit=…`: what becomes of the machine when the system has ended.
    pub at_end: AtEnd,
    /// `log=…`: console text goes to the first serial port.
    pub log_serial: bool,
    /// `log=…`: console text goes to the screen.
    pub log_screen: bool,
    /// `run=summary`: leave after the summary of the machine.
    pub run_summary: bool,
    /// `fastpath=on`: calls may take the short way through the kernel.
    pub fast_path: bool,
    /// `sched=…`: how threads are ordered.
    pub policy: PolicyKind,
    /// `section=N`: more ticks than this in the kernel without a preemption point stop a checked image.
    pub section_ticks: Option<u64>,
    /// `cpus=N`: the kernel uses at most so many CPUs.
    pub max_cpus: Option<usize>,
    /// `tsc_skew=NS`: a checked image pretends that the CPUs' time-stamp counters disagree.
    pub tsc_skew: Option<TscSkew>,
    /// `irq=pic`: the 8259s handle interrupt lines, although there are I/O APICs.
    pub wants_pic: bool,
    /// `timer=pit`: the interval timer is the one-shot timer, and the boot CPU runs alone.
    pub wants_pit: bool,
    /// `mitigations=off`: nothing is done against speculation, and no CPU refused for it.
    pub mitigations: Mitigations,
    /// `cpuid=…`: a checked image decides as on a CPU that answers so.
    pub planted_cpu: Option<Words>,
}

/// What becomes of the machine when the system has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum AtEnd {
    /// `exit=off`, `exit=debug` without such a port: it is switched off.
    #[default]
    PowerOff,
    /// `exit=halt`: it stays on, with what was printed.
    Halt,
    /// `exit=reboot`: it is reset.
    Reboot,
}

/// How the time-stamp counters of a checked image disagree: those of CPUs with an odd number are ahead
/// of the boot CPU's, those with an even one behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TscSkew {
    /// By how much.
    pub ns: u64,
    /// What else is wrong with them.
    pub fault: SkewFault,
}

/// What a counter that is skewed on purpose does beside being off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SkewFault {
    /// Nothing: it can be set.
    #[default]
    None,
    /// `fixed`: setting it has no effect.
    Fixed,
    /// `drift`: it runs at another rate.
    Drift,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            exit_debug: false,
            at_end: AtEnd::PowerOff,
            log_serial: true,
            log_screen: true,
            run_summary: false,
            fast_path: true,
            policy: PolicyKind::Wfq,
            section_ticks: None,
            max_cpus: None,
            tsc_skew: None,
            wants_pic: false,
            wants_pit: false,
            mitigations: Mitigations::Auto,
            planted_cpu: None,
        }
    }
}

impl TscSkew {
    fn parse(text: &str) -> Option<TscSkew> {
        let (ns, fault) = match text.split_once(',') {
            None => (text, SkewFault::None),
            Some((ns, "fixed")) => (ns, SkewFault::Fixed),
            Some((ns, "drift")) => (ns, SkewFault::Drift),
            Some(_) => return None,
        };
        Some(TscSkew { ns: ns.parse().ok()?, fault })
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

    /// The kernel's own options; `bad` is called with every word whose value makes no sense.
    pub fn options(self, mut bad: impl FnMut(BadWord<'a>)) -> Options {
        let mut options = Options::default();
        let mut refuse = |key, value, expected| bad(BadWord { key, value, expected });
        match self.value("exit") {
            Some("debug") => options.exit_debug = true,
            Some("halt") => options.at_end = AtEnd::Halt,
            Some("reboot") => options.at_end = AtEnd::Reboot,
            Some("off") | None => {}
            Some(other) => refuse("exit", other, "exit=off, exit=halt, exit=reboot or exit=debug"),
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
        if let Some(name) = self.value("sched") {
            match PolicyKind::named(name) {
                Some(policy) => options.policy = policy,
                None => refuse("sched", name, "sched=wfq or sched=eevdf"),
            }
        }
        if let Some(ticks) = self.value("section") {
            match ticks.parse() {
                Ok(ticks) if ticks > 0 => options.section_ticks = Some(ticks),
                _ => refuse("section", ticks, "section= takes a number of ticks, such as 20000"),
            }
        }
        match self.value("irq") {
            Some("pic") => options.wants_pic = true,
            Some("auto") | None => {}
            Some(other) => refuse("irq", other, "irq=auto or irq=pic"),
        }
        match self.value("timer") {
            Some("pit") => options.wants_pit = true,
            Some("auto") | None => {}
            Some(other) => refuse("timer", other, "timer=auto or timer=pit"),
        }
        match self.value("mitigations") {
            Some("off") => options.mitigations = Mitigations::Off,
            Some("auto") | None => {}
            Some(other) => refuse("mitigations", other, "mitigations=auto or mitigations=off"),
        }
        if let Some(words) = self.value("cpuid") {
            match Words::parse(words) {
                Ok(words) => options.planted_cpu = Some(words),
                Err(_) => {
                    refuse("cpuid", words, "cpuid= takes key:value parts, see docs/book/boot.md")
                }
            }
        }
        if let Some(count) = self.value("cpus") {
            match count.parse() {
                Ok(count) if count > 0 => options.max_cpus = Some(count),
                _ => refuse("cpus", count, "cpus= takes a number of CPUs, such as 4"),
            }
        }
        if let Some(skew) = self.value("tsc_skew") {
            options.tsc_skew = TscSkew::parse(skew);
            if options.tsc_skew.is_none() {
                let expected =
                    "tsc_skew= takes nanoseconds, with ,fixed or ,drift behind or without";
                refuse("tsc_skew", skew, expected);
            }
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
    fn the_end_is_chosen_by_name() {
        let at = |text| (options(text).0.exit_debug, options(text).0.at_end);
        assert_eq!(at(""), (false, AtEnd::PowerOff));
        assert_eq!(at("exit=debug"), (true, AtEnd::PowerOff));
        assert_eq!(at("exit=halt"), (false, AtEnd::Halt));
        assert_eq!(at("exit=debug exit=reboot"), (false, AtEnd::Reboot));
        assert_eq!(at("exit=reboot exit=off"), (false, AtEnd::PowerOff));
    }

    #[test]
    fn the_scheduler_and_the_fast_path_are_chosen_by_name() {
        let at = |text| (options(text).0.fast_path, options(text).0.policy);
        assert_eq!(at(""), (true, PolicyKind::Wfq));
        assert_eq!(at("fastpath=off sched=eevdf"), (false, PolicyKind::Eevdf));
        assert_eq!(at("fastpath=off fastpath=on sched=eevdf sched=wfq"), (true, PolicyKind::Wfq));
    }

    #[test]
    fn every_policy_is_asked_for_by_its_name() {
        for policy in PolicyKind::ALL {
            let (found, bad) = options(&std::format!("sched={}", policy.name()));
            assert_eq!((found.policy, bad), (policy, Vec::new()));
        }
        // What is said to be right is understood.
        let (_, bad) = options("sched=?");
        for policy in PolicyKind::ALL {
            assert!(bad[0].contains(&std::format!("sched={}", policy.name())), "{bad:?}");
        }
    }

    #[test]
    fn a_section_is_bounded_by_a_number() {
        assert_eq!(options("section=20000").0.section_ticks, Some(20_000));
        for wrong in ["section=", "section=0", "section=-1", "section=1e5", "section=twenty"] {
            let (parsed, bad) = options(wrong);
            assert_eq!((parsed, bad.len()), (Options::default(), 1), "{wrong}");
        }
    }

    #[test]
    fn cpus_are_limited_by_a_number() {
        assert_eq!(options("cpus=4").0.max_cpus, Some(4));
        for wrong in ["cpus=", "cpus=0", "cpus=-1", "cpus=all"] {
            let (parsed, bad) = options(wrong);
            assert_eq!((parsed, bad.len()), (Options::default(), 1), "{wrong}");
        }
    }

    #[test]
    fn counters_are_skewed_by_a_number_and_a_word() {
        let at = |text| options(text).0.tsc_skew.map(|skew| (skew.ns, skew.fault));
        assert_eq!(at("tsc_skew=1000000"), Some((1_000_000, SkewFault::None)));
        assert_eq!(at("tsc_skew=5,fixed"), Some((5, SkewFault::Fixed)));
        assert_eq!(at("tsc_skew=0,drift"), Some((0, SkewFault::Drift)));
        for wrong in ["tsc_skew=", "tsc_skew=-1", "tsc_skew=1,", "tsc_skew=1,odd", "tsc_skew=drift"]
        {
            let (parsed, bad) = options(wrong);
            assert_eq!((parsed, bad.len()), (Options::default(), 1), "{wrong}");
        }
    }

    #[test]
    fn legacy_hardware_is_asked_for_by_name() {
        let at = |text| (options(text).0.wants_pic, options(text).0.wants_pit);
        assert_eq!(at(""), (false, false));
        assert_eq!(at("irq=pic"), (true, false));
        assert_eq!(at("timer=pit irq=pic irq=auto"), (false, true));
        assert_eq!(options("irq=apic timer=hpet").1.len(), 2);
    }

    #[test]
    fn mitigations_are_switched_off_by_name_and_a_cpu_is_planted_by_its_words() {
        assert_eq!(options("mitigations=off").0.mitigations, Mitigations::Off);
        assert_eq!(options("mitigations=off mitigations=auto").0.mitigations, Mitigations::Auto);
        let planted = options("cpuid=vendor:GenuineIntel,signature:506e3").0.planted_cpu;
        assert_eq!(
            planted.map(|words| (words.vendor, words.signature)),
            Some((*b"GenuineIntel", 0x506e3))
        );
        for wrong in ["mitigations=", "mitigations=none", "cpuid=", "cpuid=family:6"] {
            let (parsed, bad) = options(wrong);
            assert_eq!((parsed, bad.len()), (Options::default(), 1), "{wrong}");
        }
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
        let (parsed, bad) =
            options("exit=now run=away log=serial,printer fastpath=2 sched=cfs section=x");
        assert_eq!(parsed, Options::default());
        assert_eq!(bad.len(), 6);
        assert_eq!(
            bad[0],
            "exit=now is not understood; exit=off, exit=halt, exit=reboot or exit=debug"
        );
    }

    #[test]
    fn flags_stand_alone() {
        assert!(CommandLine("a flag b").has("flag"));
        assert!(!CommandLine("flag=1").has("flag"));
    }
}
