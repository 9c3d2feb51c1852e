//! `kill`: ends a job by its handle.

use super::{Command, Given, Takes, job_number};
use crate::shell::{INTERRUPTED, Shell};
use crate::text::{Sentence, sentence};

pub(super) const COMMAND: Command = Command {
    name: "kill",
    usage: "JOB",
    help: "ends a job, by the handle that the shell has of it",
    example: "kill 1",
    takes: Takes::Job,
    goes_to_background: false,
    run,
};

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    let number = job_number(given, COMMAND.name)?;
    let job = shell.job(number)?;
    if let Some(ended) = job.ended {
        return Err(sentence(format_args!("job {number} is gone already, it {ended}")));
    }
    let process = job.process;
    shell.system.kill(process, INTERRUPTED);
    Ok(0)
}
