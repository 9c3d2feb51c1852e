//! `threads`: what the threads of a process do.

use super::{Command, Given, Takes, ps};
use crate::shell::Shell;
use crate::text::{Sentence, Span};
use schema::process_directory::ThreadEntry;
use schema::process_directory_capnp::{ThreadState, WaitsFor};
use schema::scheduling_policy_capnp::LatencyClass;

pub(super) const COMMAND: Command = Command {
    name: "threads",
    usage: "PID",
    help: "lists the threads of a process, and what each waits for",
    example: "threads 0",
    takes: Takes::Nothing,
    goes_to_background: false,
    run,
};

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    let process = ps::process_of(shell, given, COMMAND.name)?;
    shell.say(format_args!(
        "tid  cpu  does                         ran  weight  class         blocks  preempted"
    ));
    let mut from = Some(0);
    while let Some(at) = from {
        let page = shell.system.threads((process.pid, process.generation), at)?;
        for thread in &page.rows {
            shell.say(format_args!(
                "{:>3}  {:>3}  {:<21}  {:>10}  {:>6}  {:<11}  {:>7}  {:>9}",
                thread.tid,
                thread.cpu,
                does(thread),
                Span(thread.runtime_ns),
                thread.weight,
                class(thread.class),
                thread.voluntary_blocks,
                thread.preemptions,
            ));
        }
        from = page.next;
    }
    Ok(0)
}

const fn does(thread: &ThreadEntry) -> &'static str {
    match (thread.state, thread.waits_for) {
        (ThreadState::Runnable, _) => "waits for a CPU",
        (ThreadState::Running, _) => "runs",
        (ThreadState::Ended, _) => "has ended",
        (ThreadState::Waiting, WaitsFor::NotWaiting) => "waits",
        (ThreadState::Waiting, WaitsFor::Time) => "waits for time",
        (ThreadState::Waiting, WaitsFor::Call) => "waits for an answer",
        (ThreadState::Waiting, WaitsFor::Receive) => "waits for a call",
        (ThreadState::Waiting, WaitsFor::Sleep) => "sleeps",
        (ThreadState::Waiting, WaitsFor::Join) => "joins a thread",
        (ThreadState::Waiting, WaitsFor::Park) => "is parked",
        (ThreadState::Waiting, WaitsFor::Input) => "reads the console",
        (ThreadState::Waiting, WaitsFor::Output) => "writes",
        (ThreadState::Waiting, WaitsFor::Memory) => "changes its memory",
        (ThreadState::Waiting, WaitsFor::ProcessEnd) => "waits for a process",
        (ThreadState::Waiting, WaitsFor::Several) => "waits for several",
        (ThreadState::Waiting, WaitsFor::Interrupt) => "waits for interrupts",
    }
}

const fn class(class: LatencyClass) -> &'static str {
    match class {
        LatencyClass::Interactive => "interactive",
        LatencyClass::Normal => "normal",
        LatencyClass::Batch => "batch",
        LatencyClass::IpcServer => "server",
    }
}
