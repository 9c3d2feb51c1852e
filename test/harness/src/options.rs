//! The description of a run: command line words of the runner.
//!
//! A test target hands over a file with one word per line (`@file`); words after it, given by
//! a person who replays, win over the file's.

use crate::judge::Expect;
use lexopt::prelude::*;
use qemu_command::{FIRMWARE, Gdb, Lane, Machine, Media, QEMU, Serial};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// One run.
#[derive(Debug)]
pub struct Run {
    /// The test target, for reports and the replay command.
    pub label: String,
    /// How the image was built, for reports.
    pub profile: String,
    /// The machine, without its serial ports.
    pub machine: Machine,
    pub expect: Expect,
    /// Wall-clock time after which a silent guest counts as hung.
    pub guard: Option<Duration>,
    /// Bound on what the guest writes to either port.
    pub output_max_bytes: u64,
    /// The emulator.
    pub qemu: PathBuf,
    /// The kernel with its symbols, for names in what is kept of a guest that does not end.
    pub symbols: Option<PathBuf>,
    /// Whether the memory of such a guest is kept, too.
    pub core: bool,
    /// Where console, records, command line and verdict are kept.
    pub out: Option<PathBuf>,
    /// Whether a person sits at the console.
    pub terminal: bool,
}

/// More than any test has to say; a guest in a printing loop passes it within a minute.
const OUTPUT_MAX_MIB: u64 = 16;

/// What the runner takes.
pub const USAGE: &str = "\
usage: runner [@FILE] OPTION...
  boots a guest in QEMU and judges its tests
  --boot direct|cd|usb|program   what to boot (program: a PVH file without a loader)
  --stub FILE --bundle FILE      for direct
  --iso FILE [--firmware FILE]   for cd and usb
  --program FILE                 for program
  --lane deterministic|racing    default deterministic
  --cpus N  --memory MIB         default 1 and 256
  --cpu MODEL                    default max
  --append WORDS                 added to the kernel's command line (direct only)
  --expect pass|panic|guest-timeout|refused|power-off|reset
  --guard-seconds N              default: four fifths of the test's time limit, else 60
  --output-mib N                 how much the guest may write to a port, default 16
  --label LABEL --profile NAME   for the report
  --symbols FILE                 the kernel, to name functions of a guest that does not end
  --core                         keep the memory of such a guest, for gdb
  --qemu PATH                    the emulator
  --qemu-arg WORD                one more word for it, repeatable
  --out DIR                      where to keep outputs
  --terminal                     console on this terminal, no guard; Ctrl-A X leaves
  --gdb PORT                     wait for a debugger; no guard";

/// Reads the words after the program's name.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Run, lexopt::Error> {
    let mut boot = String::from("direct");
    let (mut stub, mut bundle, mut iso, mut program) = (None, None, None, None);
    let mut firmware = PathBuf::from(FIRMWARE);
    // The media are known only once all words are read.
    let mut machine = Machine::new(Media::Program { elf: PathBuf::new() });
    machine.lane = Lane::Deterministic;
    machine.exit_port = true;
    let mut run = Run {
        label: "guest".into(),
        profile: String::new(),
        machine,
        expect: Expect::Pass,
        guard: None,
        output_max_bytes: OUTPUT_MAX_MIB << 20,
        qemu: QEMU.into(),
        symbols: None,
        core: false,
        out: None,
        terminal: false,
    };
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            Long("boot") => boot = parser.value()?.string()?,
            Long("stub") => stub = Some(PathBuf::from(parser.value()?)),
            Long("bundle") => bundle = Some(PathBuf::from(parser.value()?)),
            Long("iso") => iso = Some(PathBuf::from(parser.value()?)),
            Long("program") => program = Some(PathBuf::from(parser.value()?)),
            Long("firmware") => firmware = parser.value()?.into(),
            Long("lane") => run.machine.lane = parser.value()?.parse_with(lane)?,
            Long("cpus") => run.machine.cpus = parser.value()?.parse()?,
            Long("memory") => run.machine.memory_mib = parser.value()?.parse()?,
            Long("cpu") => run.machine.cpu = parser.value()?.string()?,
            Long("append") => run.machine.append = parser.value()?.string()?,
            Long("expect") => run.expect = parser.value()?.parse_with(expect)?,
            Long("guard-seconds") => {
                run.guard = Some(Duration::from_secs(parser.value()?.parse()?));
            }
            Long("output-mib") => run.output_max_bytes = parser.value()?.parse::<u64>()? << 20,
            Long("label") => run.label = parser.value()?.string()?,
            Long("profile") => run.profile = parser.value()?.string()?,
            Long("symbols") => run.symbols = Some(parser.value()?.into()),
            Long("core") => run.core = true,
            Long("qemu") => run.qemu = parser.value()?.into(),
            Long("qemu-arg") => run.machine.extra.push(parser.value()?.string()?),
            Long("out") => run.out = Some(parser.value()?.into()),
            Long("terminal") => run.terminal = true,
            Long("gdb") => {
                run.machine.gdb = Some(Gdb { port: parser.value()?.parse()?, wait: true });
            }
            other => return Err(other.unexpected()),
        }
    }
    let need = |file: Option<PathBuf>, name: &str| {
        file.ok_or_else(|| lexopt::Error::from(format!("--boot {boot} needs --{name} FILE")))
    };
    let media = match boot.as_str() {
        "direct" => Media::Direct { stub: need(stub, "stub")?, bundle: need(bundle, "bundle")? },
        "cd" => Media::Cd { iso: need(iso, "iso")?, firmware },
        "usb" => Media::Usb { iso: need(iso, "iso")?, firmware },
        "program" => {
            let elf = need(program, "program")?;
            run.symbols.get_or_insert_with(|| elf.clone());
            Media::Program { elf }
        }
        _ => return Err(format!("--boot is direct, cd, usb or program, not {boot:?}").into()),
    };
    // A machine that ends by itself must: with the port there were two ways out.
    run.machine.exit_port = !run.tells_ending();
    let defaults = Machine::new(media);
    run.machine.media = defaults.media;
    run.machine.display = defaults.display;
    Ok(run)
}

fn lane(word: &str) -> Result<Lane, &'static str> {
    match word {
        "deterministic" => Ok(Lane::Deterministic),
        "racing" => Ok(Lane::Racing),
        _ => Err("a lane is deterministic or racing"),
    }
}

fn expect(word: &str) -> Result<Expect, &'static str> {
    match word {
        "pass" => Ok(Expect::Pass),
        "panic" => Ok(Expect::Panic),
        "guest-timeout" => Ok(Expect::GuestTimeout),
        "refused" => Ok(Expect::Refused),
        "power-off" => Ok(Expect::PowerOff),
        "reset" => Ok(Expect::Reset),
        _ => Err("a run is expected to be pass, panic, guest-timeout, refused, power-off or reset"),
    }
}

impl Run {
    /// Whether the emulator has to say how the guest ended it: no code of the exit port does.
    pub fn tells_ending(&self) -> bool {
        matches!(self.expect, Expect::PowerOff | Expect::Reset)
    }

    /// The machine with its serial ports led into `out`, and its monitor to the runner.
    pub fn wired(&self, console: PathBuf, records: PathBuf) -> Machine {
        let serial = if self.terminal {
            Serial::TerminalAndFile { records }
        } else {
            Serial::Files { console, records }
        };
        Machine { serial, qmp: !self.terminal, ..self.machine.clone() }
    }

    /// How long a guest may take: what was asked for, else most of what Bazel allows the
    /// test (so that the report is written before Bazel ends the runner), else a minute.
    /// A person at the terminal or in a debugger has all the time.
    pub fn guard(&self, test_timeout: Option<&str>) -> Option<Duration> {
        if self.terminal || self.machine.gdb.is_some() {
            return None;
        }
        let of_bazel = || Some(Duration::from_secs(test_timeout?.parse::<u64>().ok()? * 4 / 5));
        Some(self.guard.or_else(of_bazel).unwrap_or(Duration::from_secs(60)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Run, lexopt::Error> {
        parse(text.split_whitespace().map(OsString::from))
    }

    #[test]
    fn a_full_description() {
        let run = words(
            "--boot direct --stub s --bundle b --lane racing --cpus 4 --memory 512 \
             --append exit=debug --expect panic --guard-seconds 7 --label //a:b \
             --qemu-arg -device --qemu-arg edu",
        )
        .unwrap();
        let media = Media::Direct { stub: "s".into(), bundle: "b".into() };
        assert_eq!(run.machine.media, media);
        assert_eq!((run.machine.cpus, run.machine.memory_mib), (4, 512));
        assert_eq!(run.machine.lane, Lane::Racing);
        assert_eq!(run.machine.extra, ["-device", "edu"]);
        assert_eq!(run.expect, Expect::Panic);
        assert!(run.machine.exit_port);
        assert_eq!(run.guard(Some("60")), Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_machine_that_ends_by_itself_has_no_exit_port() {
        for (end, has_port) in [("pass", true), ("power-off", false), ("reset", false)] {
            let run = words(&format!("--boot program --program p --expect {end}")).unwrap();
            assert_eq!((run.machine.exit_port, run.tells_ending()), (has_port, !has_port), "{end}");
        }
    }

    #[test]
    fn the_guard_ends_before_bazels_own_limit() {
        let run = words("--boot program --program p").unwrap();
        assert_eq!(run.guard(Some("300")), Some(Duration::from_secs(240)));
        assert_eq!(run.guard(Some("nonsense")), Some(Duration::from_secs(60)));
        assert_eq!(run.guard(None), Some(Duration::from_secs(60)));
        assert_eq!(words("--boot program --program p --gdb 1").unwrap().guard(None), None);
    }

    #[test]
    fn a_later_word_wins() {
        let run = words("--boot cd --iso a --cpus 1 --cpus 8").unwrap();
        assert_eq!(run.machine.cpus, 8);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, part) in [
            ("--boot floppy", "direct, cd, usb or program"),
            ("--boot direct --stub s", "--boot direct needs --bundle FILE"),
            ("--boot cd", "needs --iso"),
            ("--lane fast", "deterministic or racing"),
            ("--expect red", "pass, panic, guest-timeout, refused, power-off or reset"),
            ("--kvm", "--kvm"),
        ] {
            let error = words(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
