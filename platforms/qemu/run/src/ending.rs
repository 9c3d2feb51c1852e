//! How a run on the terminal ended, in one line.

use std::fmt;

use abi_report::Exit;

/// Why QEMU is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The guest ended it, with a verdict.
    Guest(Exit),
    /// Status 0: the person left it, or the machine switched itself off or reset, which ends it as well.
    Left,
    /// A status that is no verdict: QEMU refused its command line, for instance.
    Status(i32),
    /// A signal from outside.
    Signal(i32),
}

impl Ending {
    /// Tells one from QEMU's exit status, which is a code or a signal.
    pub fn of(code: Option<i32>, signal: Option<i32>) -> Ending {
        match (code, signal) {
            (Some(0), _) => Ending::Left,
            (Some(code), _) => {
                Exit::from_qemu_status(code).map_or(Ending::Status(code), Ending::Guest)
            }
            (None, signal) => Ending::Signal(signal.unwrap_or(0)),
        }
    }

    /// Whether nothing went wrong: the system ended as it should, or a person had seen enough.
    pub fn is_good(self) -> bool {
        matches!(self, Ending::Guest(Exit::Pass) | Ending::Left)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("capOS in QEMU: ")?;
        match self {
            Ending::Guest(Exit::Pass) => f.write_str("ended normally, with code 0"),
            Ending::Guest(Exit::Fail) => f.write_str("ended with a code other than 0, said above"),
            Ending::Guest(Exit::Panic) => {
                f.write_str("the kernel or the loader gave up, as reported above")
            }
            Ending::Guest(Exit::GuestTimeout) => {
                f.write_str("the guest's watchdog saw no progress")
            }
            Ending::Guest(Exit::Refused) => {
                f.write_str("the kernel does not run on this machine, for the reason said above")
            }
            Ending::Left => {
                f.write_str("left with Ctrl-A X, or the machine switched itself off or reset")
            }
            Ending::Status(code) => {
                write!(f, "QEMU ended with status {code}, which no guest gives")
            }
            Ending::Signal(signal) => write!(f, "QEMU was ended by signal {signal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_end_has_its_line() {
        let cases = [
            (Some(Exit::Pass.qemu_status()), None, true, "normally, with code 0"),
            (Some(Exit::Fail.qemu_status()), None, false, "code other than 0"),
            (Some(Exit::Panic.qemu_status()), None, false, "gave up"),
            (Some(Exit::GuestTimeout.qemu_status()), None, false, "watchdog"),
            (Some(Exit::Refused.qemu_status()), None, false, "does not run on this machine"),
            (Some(0), None, true, "Ctrl-A X"),
            (Some(1), None, false, "status 1"),
            (None, Some(9), false, "signal 9"),
        ];
        for (code, signal, good, words) in cases {
            let ending = Ending::of(code, signal);
            assert_eq!(ending.is_good(), good, "{ending}");
            assert!(ending.to_string().contains(words), "{ending}");
            assert_eq!(ending.to_string().lines().count(), 1);
        }
    }
}
