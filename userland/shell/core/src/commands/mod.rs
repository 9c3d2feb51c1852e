//! The table of commands: a name, a sentence, an example, what it takes. One file each; a new one is a file and a line.

mod bench;
mod caps;
mod clear;
mod cpus;
mod demo;
mod help;
mod jobs;
mod kill;
mod leave;
mod mem;
mod ps;
pub(crate) mod run;
mod threads;
mod time;
mod uptime;
mod wait;

use crate::shell::Shell;
use crate::text::{Sentence, sentence};

/// The first screen.
pub const WELCOME: &str = "\n\
    This is capOS: each program has the capabilities it was given, and nothing else.\n\
    \x20 help           says what can be typed; Tab completes, cursor keys edit and go back\n\
    \x20 run primes 4   computes with four threads; Ctrl-C ends a program, & lets it go on\n\
    \x20 demo           runs a service and a client that calls it, until a key is pressed\n\
    To leave, type poweroff; Ctrl-A X leaves QEMU as it is.";

/// What the words after a command are, for completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// None, or nothing that can be completed.
    Nothing,
    /// A command.
    Command,
    /// A program and its arguments.
    Program,
    /// The number of a job.
    Job,
    /// A line like any other.
    Line,
}

/// What a command is given.
#[derive(Clone, Copy, Debug)]
pub struct Given<'g> {
    /// The words after its name.
    pub words: &'g [&'g str],
    /// Whether a `&` is at the end.
    pub is_background: bool,
}

/// A command.
#[derive(Debug)]
pub struct Command {
    /// What is typed.
    pub name: &'static str,
    /// What follows it, as a person would write that.
    pub usage: &'static str,
    /// What it does, in a sentence.
    pub help: &'static str,
    /// A line to try.
    pub example: &'static str,
    /// What its words are.
    pub takes: Takes,
    /// Whether a `&` means something.
    pub goes_to_background: bool,
    /// Carries it out; an exit code, or what would have been right.
    pub run: fn(&mut Shell<'_>, &Given<'_>) -> Result<i64, Sentence>,
}

/// Every command, in the order of `help`.
pub const COMMANDS: &[&Command] = &[
    &help::COMMAND,
    &run::COMMAND,
    &jobs::COMMAND,
    &wait::COMMAND,
    &kill::COMMAND,
    &ps::COMMAND,
    &threads::COMMAND,
    &caps::COMMAND,
    &mem::COMMAND,
    &cpus::COMMAND,
    &uptime::COMMAND,
    &time::COMMAND,
    &bench::COMMAND,
    &demo::COMMAND,
    &clear::COMMAND,
    &leave::LOGOUT,
    &leave::EXIT,
    &leave::POWEROFF,
];

/// The command with a name.
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().copied().find(|command| command.name == name)
}

/// Nothing may follow the command.
fn alone(given: &Given<'_>, name: &str) -> Result<(), Sentence> {
    match given.words.first() {
        None => Ok(()),
        Some(word) => Err(sentence(format_args!("{name} takes nothing: leave {word:.40} away"))),
    }
}

/// The one word that follows the command: the number of a job.
fn job_number(given: &Given<'_>, name: &str) -> Result<u64, Sentence> {
    match given.words {
        [word] => word.parse().map_err(|_| {
            sentence(format_args!("{word:.40} is no number of a job: jobs lists those there are"))
        }),
        _ => Err(sentence(format_args!("{name} takes the number of one job: {name} 1"))),
    }
}
