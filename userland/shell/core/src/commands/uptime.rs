//! `uptime`: how long the system runs.

use super::{Command, Given, Takes, alone};
use crate::shell::Shell;
use crate::text::{Sentence, plural};

pub(super) const COMMAND: Command = Command {
    name: "uptime",
    usage: "",
    help: "says how long the system has been running",
    example: "uptime",
    takes: Takes::Nothing,
    goes_to_background: false,
    run,
};

const NS_PER_SECOND: u64 = 1_000_000_000;

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    alone(given, COMMAND.name)?;
    let machine = shell.system.machine()?;
    let tenths = machine.uptime_ns / (NS_PER_SECOND / 10);
    let (hours, minutes) = (tenths / 36_000, tenths / 600 % 60);
    let cpus = u64::from(machine.cpus);
    shell.say(format_args!(
        "up for {hours}:{minutes:02}:{:02}.{}, on {cpus} {}",
        tenths / 10 % 60,
        tenths % 10,
        plural(cpus, "CPU", "CPUs"),
    ));
    Ok(0)
}
