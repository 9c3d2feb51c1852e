//! `mem`: where the memory is, the machine's and each job's.

use super::{Command, Given, Takes, alone};
use crate::jobs::MOST_JOBS;
use crate::shell::Shell;
use crate::text::{Grouped, Sentence};
use arrayvec::ArrayVec;
use schema::process_handle::LineUsage;

pub(super) const COMMAND: Command = Command {
    name: "mem",
    usage: "",
    help: "says how much memory is free, and what each job uses of what it may",
    example: "mem",
    takes: Takes::Nothing,
    goes_to_background: false,
    run,
};

/// Page frames of 4 KiB in a MiB.
const FRAMES_PER_MIB: u64 = 256;

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    alone(given, COMMAND.name)?;
    let machine = shell.system.machine()?;
    shell.say(format_args!(
        "memory: {} of {} frames of 4 KiB are free, {} of {} MiB",
        Grouped(machine.frames_free),
        Grouped(machine.frames_total),
        Grouped(machine.frames_free / FRAMES_PER_MIB),
        Grouped(machine.frames_total / FRAMES_PER_MIB),
    ));
    shell.say(format_args!(
        "the kernel's heap: {} bytes in {} frames",
        Grouped(machine.heap_bytes),
        Grouped(machine.heap_frames),
    ));
    let jobs: ArrayVec<_, MOST_JOBS> = shell
        .jobs
        .iter()
        .filter(|job| job.ended.is_none())
        .map(|job| (job.number, job.name, job.process))
        .collect();
    for (number, name, process) in jobs {
        let usage = shell.system.usage(process)?;
        shell.say(format_args!("[{number}] {name} uses, of what it may use:"));
        for (what, line) in [
            ("frames", usage.frames),
            ("kernel bytes", usage.kernel_bytes),
            ("stack pages", usage.kernel_stack_pages),
            ("threads", usage.threads),
            ("capabilities", usage.cap_slots),
            ("sleeps", usage.sleep_waiters),
        ] {
            let LineUsage { used, lent, limit } = line;
            let used = u64::from(used) + u64::from(lent);
            shell.say(format_args!(
                "  {what:<13} {:>10} of {:>10}",
                Grouped(used),
                Grouped(limit.into())
            ));
        }
    }
    Ok(0)
}
