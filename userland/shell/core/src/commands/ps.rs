//! `ps`: the processes of the machine, whoever started them.

use super::{Command, Given, Takes, alone};
use crate::shell::Shell;
use crate::system::ProcessRow;
use crate::text::{Sentence, Span, sentence};
use arrayvec::ArrayString;
use core::fmt::Write;
use schema::process_directory_capnp::ProcessState;

pub(super) const COMMAND: Command = Command {
    name: "ps",
    usage: "",
    help: "lists the processes of the machine, whoever started them",
    example: "ps",
    takes: Takes::Nothing,
    goes_to_background: false,
    run,
};

/// Digits of a process's number at most.
const NUMBER_BYTES: usize = 10;

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    alone(given, COMMAND.name)?;
    shell.say(format_args!(
        "pid  name                state     threads  weight    CPU time  lent by"
    ));
    let mut from = Some(0);
    while let Some(at) = from {
        let page = shell.system.processes(at)?;
        for process in page.rows {
            let mut lender = ArrayString::<NUMBER_BYTES>::new();
            let _fits = match process.parent {
                Some(pid) => write!(lender, "{pid}"),
                None => write!(lender, "manifest"),
            };
            shell.say(format_args!(
                "{:>3}  {:<18}  {:<8}  {:>7}  {:>6}  {:>10}  {lender}",
                process.pid,
                process.name,
                state(process.state),
                process.threads,
                process.weight,
                Span(process.cpu_time_ns),
            ));
        }
        from = page.next;
    }
    Ok(0)
}

const fn state(state: ProcessState) -> &'static str {
    match state {
        ProcessState::Starting => "starting",
        ProcessState::Running => "runs",
        ProcessState::Ending => "ends",
        ProcessState::Gone => "is gone",
    }
}

/// The process that a command is about: the number is its only word.
pub(super) fn process_of(
    shell: &mut Shell<'_>,
    given: &Given<'_>,
    name: &str,
) -> Result<ProcessRow, Sentence> {
    let [word] = given.words else {
        return Err(sentence(format_args!("{name} takes the number of one process: {name} 1")));
    };
    let Ok(pid) = word.parse::<u32>() else {
        return Err(sentence(format_args!(
            "{word:.40} is no number of a process: ps lists those there are"
        )));
    };
    let mut from = Some(pid);
    while let Some(at) = from {
        let page = shell.system.processes(at)?;
        if let Some(first) = page.rows.into_iter().next() {
            if first.pid == pid {
                return Ok(first);
            }
            break;
        }
        from = page.next;
    }
    Err(sentence(format_args!("there is no process {pid}: ps lists those there are")))
}
