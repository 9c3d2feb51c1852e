//! `bench`: what a few operations cost, here and now.

use super::{Command, Given, Takes, alone};
use crate::shell::Shell;
use crate::text::{Grouped, Sentence};

pub(super) const COMMAND: Command = Command {
    name: "bench",
    usage: "",
    help: "measures a few operations of the kernel",
    example: "bench",
    takes: Takes::Nothing,
    goes_to_background: false,
    run,
};

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    alone(given, COMMAND.name)?;
    shell.say(format_args!(
        "Measured in the guest, on its clock. In QEMU this is an emulation: compare the rows with each other only."
    ));
    for index in 0.. {
        let Some(measured) = shell.system.measure(index) else { break };
        let measured = measured?;
        shell.say(format_args!(
            "  {:<42} {:>12} ns  ({} times)",
            measured.what,
            Grouped(measured.ns / measured.times.max(1)),
            Grouped(measured.times),
        ));
    }
    Ok(0)
}
