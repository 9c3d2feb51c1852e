//! The emulator as a process: start it, wait for its end, within bounds.

use crate::judge::Ending;
use crate::monitor::Monitor;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often a running guest is looked at: short beside the 70 ms of the shortest boot.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A process to run.
pub struct Start<'a> {
    pub qemu: &'a Path,
    pub arguments: &'a [OsString],
    /// Takes what QEMU itself says.
    pub log: &'a Path,
    /// Files the guest writes, which must not grow without end.
    pub outputs: &'a [PathBuf],
    /// Bound on each of them.
    pub output_max_bytes: u64,
    /// Wall-clock bound.
    pub guard: Option<Duration>,
    /// Whether standard input and output are the guest's console, and not the emulator's monitor.
    pub terminal: bool,
    /// Whether the emulator is asked to say how the guest ended it.
    pub tells_ending: bool,
    /// Called before a guest is ended that does not end by itself.
    pub on_stuck: &'a dyn Fn(&mut Monitor),
}

/// Runs the emulator to its end, whatever end that is.
pub fn run(start: &Start<'_>) -> Ending {
    match spawn(start) {
        Ok(mut child) => {
            let ends = child.stdin.take().zip(child.stdout.take());
            let monitor = ends.map(|(ask, answers)| Monitor::new(ask, answers));
            wait(&mut child, monitor, start)
        }
        Err(error) => Ending::NotStarted(error),
    }
}

fn spawn(start: &Start<'_>) -> Result<Child, String> {
    let log = File::create(start.log).map_err(|e| format!("{}: {e}", start.log.display()))?;
    let stdio = || if start.terminal { Stdio::inherit() } else { Stdio::piped() };
    Command::new(start.qemu)
        .args(start.arguments)
        .stdin(stdio())
        .stdout(stdio())
        .stderr(log)
        .spawn()
        .map_err(|e| format!("{}: {e}", start.qemu.display()))
}

fn wait(child: &mut Child, mut monitor: Option<Monitor>, start: &Start<'_>) -> Ending {
    if start.tells_ending
        && let Some(Err(error)) = monitor.as_mut().map(Monitor::open)
    {
        stop(child);
        return Ending::NotStarted(error);
    }
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return ended(status, monitor.filter(|_| start.tells_ending)),
            Ok(None) => {}
            Err(error) => {
                stop(child);
                return Ending::NotStarted(format!("cannot wait for QEMU: {error}"));
            }
        }
        if start.guard.is_some_and(|guard| began.elapsed() >= guard) {
            return stopped(child, monitor.as_mut(), start, Ending::Guard);
        }
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
        if start.outputs.iter().any(|path| size(path) > start.output_max_bytes) {
            return stopped(child, monitor.as_mut(), start, Ending::Flood);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Ends a child that is over its bound, after a look at it; one that ended by itself just before keeps
/// its ending.
fn stopped(
    child: &mut Child,
    monitor: Option<&mut Monitor>,
    start: &Start<'_>,
    why: Ending,
) -> Ending {
    if let Ok(Some(status)) = child.try_wait() {
        return ended(status, None);
    }
    if let Some(monitor) = monitor {
        (start.on_stuck)(monitor);
    }
    stop(child);
    why
}

fn stop(child: &mut Child) {
    // Both fail only if the child is gone already.
    let _ = child.kill();
    let _ = child.wait();
}

fn ended(status: ExitStatus, monitor: Option<Monitor>) -> Ending {
    match (status.code(), status.signal()) {
        (Some(0), _) => match monitor.and_then(Monitor::shutdown_reason).as_deref() {
            Some("guest-shutdown") => Ending::PoweredOff,
            Some("guest-reset") => Ending::WasReset,
            _ => Ending::Status(0),
        },
        (Some(code), _) => Ending::Status(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::NotStarted(format!("QEMU ended in an unknown way: {status}")),
    }
}
