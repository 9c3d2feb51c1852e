//! `jobs`: what was started.

use super::{Command, Given, Takes, alone};
use crate::jobs::MOST_JOBS;
use crate::shell::Shell;
use crate::text::{Sentence, Span};
use arrayvec::ArrayVec;

pub(super) const COMMAND: Command = Command {
    name: "jobs",
    usage: "",
    help: "lists the programs that were started here",
    example: "jobs",
    takes: Takes::Nothing,
    goes_to_background: false,
    run,
};

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    alone(given, COMMAND.name)?;
    let jobs: ArrayVec<_, MOST_JOBS> =
        shell.jobs.iter().map(|job| (job.number, job.name, job.process, job.ended)).collect();
    if jobs.is_empty() {
        shell.say(format_args!("none: run PROGRAM & starts one"));
    }
    for (number, name, process, ended) in jobs {
        if let Some(ended) = ended {
            shell.say(format_args!("[{number}] {name}: {ended}"));
            continue;
        }
        let info = shell.system.info(process)?;
        let for_ns = shell.system.now_ns().saturating_sub(info.started_ns);
        shell.say(format_args!(
            "[{number}] {name}: runs for {}, process {} with {} {}",
            Span(for_ns),
            info.pid,
            info.live_threads,
            crate::text::plural(info.live_threads.into(), "thread", "threads"),
        ));
    }
    Ok(0)
}
