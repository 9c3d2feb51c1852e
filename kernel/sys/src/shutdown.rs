//! The end of processes and of the system: who is told, and what the run's verdict is.
//!
//! A process ends in three stages: it is closed, and its threads killed (`kernel_process::end`); its last
//! thread has left, and the reaper takes apart what is left (`kernel_process::reaper`); nothing is left
//! but its record ([`process_reaped`]). The system ends with its last process, or with an essential one.

use crate::kernel::{Kernel, Process};
use crate::system::{self, RECORDS};
use crate::{fatal, section};
use abi_report::Exit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use kernel_arch::{log, println, stop};
use kernel_mm::stack;
use kernel_process::drain;
use smp_lock::LockClass;
use spin::Once;

/// Processes that have not ended.
static LIVE: AtomicU32 = AtomicU32::new(0);
/// The exit code of the first process that failed, as bits.
static FIRST_FAILURE: AtomicU64 = AtomicU64::new(0);

/// How long the end of the system waits for what processes wrote: as long as somebody at a screen would.
const OUTPUT_NS: u64 = 1_000_000_000;

/// Accounts of processes of which nothing is left.
static ACCOUNTS_CLOSED: AtomicU64 = AtomicU64::new(0);
/// Those of them that did not read zero.
static ACCOUNTS_NOT_ZERO: AtomicU64 = AtomicU64::new(0);

/// Accounts that were closed, and those of them that did not read zero.
pub(crate) fn accounts() -> (u64, u64) {
    (ACCOUNTS_CLOSED.load(Ordering::Relaxed), ACCOUNTS_NOT_ZERO.load(Ordering::Relaxed))
}

/// Something that a process paid for was lost. Its record is not used again until it is back.
#[cold]
fn account_is_not_zero() {
    if cfg!(checked) {
        system::defect("the account of a process that is gone does not read zero");
    }
    ACCOUNTS_NOT_ZERO.fetch_add(1, Ordering::Relaxed);
}

/// What a test kernel does when a process has ended: its name and exit code.
pub type Watcher = fn(&str, i64);

static WATCHER: Once<Watcher> = Once::new();

/// Says who is told of each process's end, once. For test kernels, whose processes are the tests.
pub fn watch(watcher: Watcher) {
    WATCHER.call_once(|| watcher);
}

/// Says how many processes there are; the system ends after as many have.
pub(crate) fn expect(processes: u32) {
    LIVE.store(processes, Ordering::Relaxed);
}

/// The processes that live, for reports.
pub(crate) fn live() -> u32 {
    LIVE.load(Ordering::Relaxed)
}

/// Nothing of a process is left but its record.
pub(crate) fn process_reaped(process: &'static Process) {
    let code = process.exit_code();
    let (name, is_essential) = {
        let members = process.members.lock();
        (members.name, members.is_essential)
    };
    let cpu_time_us = process.cpu_time_ns() / 1_000;
    ACCOUNTS_CLOSED.fetch_add(1, Ordering::Relaxed);
    if !RECORDS.vacate(process) {
        account_is_not_zero();
    }
    if let Some(watcher) = WATCHER.get() {
        watcher(name.as_str(), code);
    }
    // Every end is told, also a good one: a process that is missing from the log is still there.
    log!("process", "\"{}\" ended with {code}; {cpu_time_us} us of CPU time", name.as_str());
    // What a person is told does not count.
    section::begin();
    if code != 0 {
        // Not the first: the first one's code stays.
        FIRST_FAILURE
            .compare_exchange(0, code.cast_unsigned(), Ordering::Relaxed, Ordering::Relaxed)
            .unwrap_or_else(|first| first);
    }
    let left = LIVE.fetch_sub(1, Ordering::Relaxed) - 1;
    if is_essential {
        end_system(code);
    }
    if left == 0 {
        end_system(FIRST_FAILURE.load(Ordering::Relaxed).cast_signed());
    }
}

/// Waits until what processes wrote is with the console, for a second at most. In the reaper, at the end of the
/// system.
pub fn finish_output() {
    if let Some(reaper) = RECORDS.reaper() {
        drain::finish(Kernel, reaper, OUTPUT_NS);
    }
}

/// Ends the system.
fn end_system(code: i64) -> ! {
    finish_output();
    stop::claim();
    stop::stop_others();
    if let Some(ticks) = section::longest() {
        println!("The longest time in the kernel without a preemption point: {ticks} ticks.");
    }
    if let Some(reaper) = RECORDS.reaper() {
        println!("The reaper has had {} us of CPU time.", reaper.ran_ns() / 1_000);
    }
    if let Some(drain) = RECORDS.drain() {
        println!("The drain has had {} us of CPU time.", drain.ran_ns() / 1_000);
    }
    print_locks();
    let code = if has_room_on_stacks() { code } else { STACKS_TOO_SMALL };
    println!("The system has ended with {code}.");
    fatal::leave(if code == 0 { Exit::Pass } else { Exit::Fail })
}

/// What an image that measures ends with if kernel stacks are too small.
const STACKS_TOO_SMALL: i64 = -1;

/// Whether kernel stacks are at least twice as large as was used of any, in images that measure it.
fn has_room_on_stacks() -> bool {
    if !cfg!(measure) {
        return true;
    }
    let (used, size) = (stack::most_used(), stack::STACK_PAGES * 4096);
    println!("Kernel stacks: at most {used} of {size} bytes were used.");
    used * 2 <= size
}

/// The locks that were taken, class by class, in images that count them for people.
fn print_locks() {
    if !cfg!(measure) {
        return;
    }
    println!("Locks                taken      waited  held ticks");
    for class in LockClass::ORDERED {
        let Some(tally) = smp_lock::tally(class) else { continue };
        println!("  {class:<13?} {:>12} {:>11} {:>11}", tally.taken, tally.waited, tally.longest);
    }
}
