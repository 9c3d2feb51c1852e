//! `wait`: gives a job the foreground until it ends.

use super::{Command, Given, Takes, job_number};
use crate::shell::Shell;
use crate::text::Sentence;

pub(super) const COMMAND: Command = Command {
    name: "wait",
    usage: "JOB",
    help: "gives a job the foreground until it ends; Ctrl-C ends it",
    example: "wait 1",
    takes: Takes::Job,
    goes_to_background: false,
    run,
};

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    let number = job_number(given, COMMAND.name)?;
    shell.attend(number)
}
