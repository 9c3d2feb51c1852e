//! The pauser: stops one CPU of a running emulator at a time, for as long as chance says.
//!
//! A pause is PTRACE_SEIZE, PTRACE_INTERRUPT and, later, PTRACE_DETACH, so outside of its pauses a
//! thread has no tracer and takes its signals as ever. A signal that arrives instead of the stop is
//! handed back with the detach. Whoever stops a thread must let it go from the same thread: to the
//! kernel a tracer is a thread, not a process.

use crate::chance::Chance;
use crate::threads::{cpu_threads, state};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long to wait for an emulator that has not come up, or is just ending.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A thread of another process that stands still until this is dropped.
#[derive(Debug)]
pub struct Stopped {
    tid: Pid,
    /// What was on its way to the thread when it stopped.
    signal: Option<Signal>,
}

impl Stopped {
    /// Stops a thread. None: it has ended.
    pub fn stop(tid: Pid) -> Result<Option<Stopped>, Errno> {
        match ptrace::seize(tid, ptrace::Options::empty()) {
            Ok(()) => {}
            Err(Errno::ESRCH) => return Ok(None),
            // What a thread on its way out answers, too (kernel/ptrace.c, ptrace_attach).
            Err(Errno::EPERM) if matches!(state(tid), None | Some('Z' | 'X')) => return Ok(None),
            Err(error) => return Err(error),
        }
        // From here on the thread may be gone at any time, and then has to be waited for.
        let stopped = ptrace::interrupt(tid).and_then(|()| waitpid(tid, Some(WaitPidFlag::__WALL)));
        match stopped {
            Ok(WaitStatus::PtraceEvent(..)) => Ok(Some(Stopped { tid, signal: None })),
            Ok(WaitStatus::Stopped(_, signal)) => Ok(Some(Stopped { tid, signal: Some(signal) })),
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => Ok(None),
            Ok(_) => Ok(Some(Stopped { tid, signal: None })),
            Err(Errno::ESRCH | Errno::ECHILD) => {
                reap(tid);
                Ok(None)
            }
            Err(error) => {
                let _ = ptrace::detach(tid, None);
                Err(error)
            }
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if ptrace::detach(self.tid, self.signal).is_err() {
            reap(self.tid);
        }
    }
}

/// Waits for the end of a thread that is dying with this tracer: its process does not end before.
/// One that is no longer traced is not waited for.
fn reap(tid: Pid) {
    let _ = waitpid(tid, Some(WaitPidFlag::__WALL));
}

/// What a pauser did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often a CPU was stopped.
    pub pauses: u64,
    /// Why there were no more, if the host does not let it.
    pub refusal: Option<Errno>,
}

/// A thread that stops CPUs of an emulator until it is told to end.
pub struct Pauser {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Tally>,
}

impl Pauser {
    /// Stops CPUs of the emulator that is `root` or below it, for up to `longest` each.
    pub fn start(root: Pid, longest: Duration, chance: Chance) -> Pauser {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = thread::spawn(move || pause(root, longest, chance, &seen));
        Pauser { is_over, thread }
    }

    /// Whether it has ended by itself: only a refusal makes it.
    pub fn has_given_up(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it; every CPU runs again.
    pub fn end(self) -> Tally {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("a pauser panics on nothing")
    }
}

fn pause(root: Pid, longest: Duration, mut chance: Chance, is_over: &AtomicBool) -> Tally {
    let mut tally = Tally::default();
    let mut cpus: Vec<Pid> = Vec::new();
    let longest_us = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX).max(1);
    while !is_over.load(Ordering::Relaxed) {
        // CPUs of a machine that is still coming up appear one after the other.
        if cpus.is_empty() || tally.pauses % 16 == 0 {
            cpus = cpu_threads(root);
        }
        if cpus.is_empty() {
            thread::sleep(LOOK_EVERY);
            continue;
        }
        let cpu = cpus[chance.below(cpus.len() as u64) as usize];
        let stop_us = 1 + chance.below(longest_us);
        let run_us = chance.below(longest_us);
        match Stopped::stop(cpu) {
            Ok(Some(stopped)) => {
                tally.pauses += 1;
                thread::sleep(Duration::from_micros(stop_us));
                drop(stopped);
                thread::sleep(Duration::from_micros(run_us));
            }
            Ok(None) => {
                cpus.clear();
                thread::sleep(LOOK_EVERY);
            }
            Err(refusal) => {
                tally.refusal = Some(refusal);
                return tally;
            }
        }
    }
    tally
}
