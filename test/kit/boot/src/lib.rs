//! Host tests that boot a machine by themselves, several times or with changed media.
//!
//! For the one boot of a suite there is `capos_qemu_test`, whose runner judges it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use qemu_command::{Machine, QEMU};

/// How long a guest may be silent if nobody says how long the test may take.
const DEFAULT_TIMEOUT_SECONDS: u64 = 300;

/// The status that a machine ended with; `None` if it did not end.
///
/// # Panics
///
/// If there is no such machine, or QEMU cannot be started.
pub fn run(machine: &Machine) -> Option<i32> {
    let mut child = Command::new(Path::new("/usr/bin").join(QEMU))
        .args(machine.arguments().expect("a valid machine"))
        .stdin(Stdio::null())
        .spawn()
        .expect("qemu starts");
    // A guard against a guest that hangs, a little before Bazel's own; nothing is timed.
    let timeout = std::env::var("TEST_TIMEOUT").ok().and_then(|text| text.parse().ok());
    let guard = Duration::from_secs(timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS) * 4 / 5);
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("qemu can be waited for") {
            return status.code();
        }
        if started.elapsed() > guard {
            child.kill().expect("qemu can be ended");
            child.wait().expect("qemu has ended");
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
