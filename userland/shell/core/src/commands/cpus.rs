//! `cpus`: what each CPU did so far.

use super::{Command, Given, Takes, alone};
use crate::shell::Shell;
use crate::text::{Grouped, Sentence};

pub(super) const COMMAND: Command = Command {
    name: "cpus",
    usage: "",
    help: "says what each CPU did since the boot",
    example: "cpus",
    takes: Takes::Nothing,
    goes_to_background: false,
    run,
};

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    alone(given, COMMAND.name)?;
    let machine = shell.system.machine()?;
    shell.say(format_args!(
        "cpu  idle  waiting      switches   preemptions    steals     hand-offs      syscalls"
    ));
    for cpu in 0..machine.cpus {
        let counters = shell.system.cpu(cpu)?;
        let idle = percent(counters.idle_ns, machine.uptime_ns);
        shell.say(format_args!(
            "{cpu:>3} {idle:>4}% {:>8} {:>13} {:>13} {:>9} {:>13} {:>13}",
            counters.runnable,
            Grouped(counters.switches),
            Grouped(counters.preemptions),
            Grouped(counters.steals),
            Grouped(counters.handoffs_taken),
            Grouped(counters.syscalls),
        ));
    }
    Ok(0)
}

/// What part `part` is of `whole`, at most all of it.
fn percent(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 100 / u128::from(whole.max(1))).unwrap_or(100).min(100)
}
