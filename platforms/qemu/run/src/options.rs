//! The words a person gives after `--`, and those the build puts before them.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;
use qemu_command::Lane;

/// What `--help` prints.
pub const HELP: &str = "\
Boots capOS in QEMU on this terminal until the system ends; the last line says how it did.
Ctrl-A X leaves before that, Ctrl-A C is QEMU's monitor. What is piped in is typed a line at a time, as
the shell asks for it; its end is the shell's Ctrl-D, and 0 is the status if the last command's was.

  --smp N          CPUs (default 2)
  --mem MIB        memory (default 256)
  --gui            a screen, shown on a socket for a VNC viewer
  --cd, --usb      boot the ISO under UEFI, as a CD or as a USB disk, not directly
  --deterministic  guest time is the instruction count
  --append WORDS   words for the kernel's command line (direct boot only), such as exit=halt,
                   which keeps the machine on when the system has ended
  --print          print the QEMU command instead of running it
";

/// What `--help` adds for the debug target.
pub const DEBUG_HELP: &str = "
Debugging: QEMU waits for gdb, and gdb starts here with the kernel's symbols; the console
goes to a file whose name is printed.

  --serve          do not start gdb; print the command that would
  --ex COMMAND     a gdb command to run first (may be repeated)
  --batch          let gdb end after those commands
";

/// Which of the two targets this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The machine on the terminal.
    #[default]
    Run,
    /// gdb on the terminal, the machine behind it.
    Debug,
}

/// How the system gets into the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boot {
    /// Stub and bundle.
    #[default]
    Direct,
    /// The image in a CD drive.
    Cd,
    /// The image as a USB disk.
    Usb,
}

/// Everything asked for.
#[derive(Debug, Default)]
pub struct Options {
    pub mode: Mode,
    pub stub: PathBuf,
    pub bundle: PathBuf,
    pub iso: PathBuf,
    pub kernel: PathBuf,
    pub smp: Option<u32>,
    pub mem: Option<u32>,
    pub gui: bool,
    pub boot: Boot,
    pub lane: Option<Lane>,
    pub append: String,
    pub print: bool,
    pub serve: bool,
    pub batch: bool,
    pub gdb_commands: Vec<String>,
    pub help: bool,
}

impl Options {
    /// Reads the words; the error is a sentence for the person who typed them.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Options, String> {
        let mut o = Options::default();
        let mut parser = lexopt::Parser::from_args(words);
        while o.take_one(&mut parser).map_err(|e| format!("{e}; see -- --help"))? {}
        Ok(o)
    }

    /// Takes the next option with its value; `false` at the end.
    fn take_one(&mut self, parser: &mut lexopt::Parser) -> Result<bool, lexopt::Error> {
        let word = match parser.next()? {
            None => return Ok(false),
            Some(Long(name)) => name.to_owned(),
            Some(Short('h')) => "help".to_owned(),
            Some(other) => return Err(other.unexpected()),
        };
        match word.as_str() {
            "mode" => {
                self.mode = match parser.value()?.string()?.as_str() {
                    "debug" => Mode::Debug,
                    _ => Mode::Run,
                }
            }
            "stub" => self.stub = parser.value()?.into(),
            "bundle" => self.bundle = parser.value()?.into(),
            "iso" => self.iso = parser.value()?.into(),
            "kernel" => self.kernel = parser.value()?.into(),
            "smp" => self.smp = Some(number(parser, "--smp", 1, 255)?),
            "mem" => self.mem = Some(number(parser, "--mem", 64, 1 << 20)?),
            "gui" => self.gui = true,
            "cd" => self.boot = Boot::Cd,
            "usb" => self.boot = Boot::Usb,
            "deterministic" => self.lane = Some(Lane::Deterministic),
            "append" => self.append = parser.value()?.string()?,
            "print" => self.print = true,
            "serve" if self.mode == Mode::Debug => self.serve = true,
            "batch" if self.mode == Mode::Debug => self.batch = true,
            "ex" if self.mode == Mode::Debug => self.gdb_commands.push(parser.value()?.string()?),
            "help" => self.help = true,
            _ => return Err(lexopt::Error::UnexpectedOption(format!("--{word}"))),
        }
        Ok(true)
    }
}

/// The number after `option`, within its bounds.
fn number(
    parser: &mut lexopt::Parser,
    option: &str,
    least: u32,
    most: u32,
) -> Result<u32, lexopt::Error> {
    let text = parser.value()?.string()?;
    match text.parse::<u32>() {
        Ok(n) if (least..=most).contains(&n) => Ok(n),
        _ => Err(lexopt::Error::Custom(
            format!("{option} takes a whole number from {least} to {most}, not '{text}'").into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        let o = parse("--smp 4 --mem 512 --usb --gui --deterministic --append a=b").unwrap();
        assert_eq!((o.smp, o.mem, o.boot, o.gui), (Some(4), Some(512), Boot::Usb, true));
        assert_eq!((o.lane, o.append.as_str()), (Some(Lane::Deterministic), "a=b"));
    }

    #[test]
    fn wrong_words_get_a_sentence() {
        for (line, says) in [
            ("--smp none", "--smp takes a whole number from 1 to 255, not 'none'"),
            ("--smp 0", "from 1 to 255"),
            ("--mem 1", "from 64 to"),
            ("--smpp 4", "--smpp"),
            ("stray", "stray"),
            ("--append", "missing"),
            ("--batch", "--batch"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
            assert!(error.contains("--help"), "{line}: {error}");
        }
    }

    #[test]
    fn gdb_words_belong_to_debugging() {
        let o = parse("--mode debug --batch --ex bt --ex quit").unwrap();
        assert_eq!(o.gdb_commands, ["bt", "quit"]);
        assert!(o.batch);
    }
}
