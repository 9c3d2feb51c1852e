//! `time`: how long a command takes.

use super::{Command, Given, Takes};
use crate::shell::Shell;
use crate::text::{Sentence, Span, sentence};

pub(super) const COMMAND: Command = Command {
    name: "time",
    usage: "COMMAND…",
    help: "carries out a command and says how long that took",
    example: "time run primes 2",
    takes: Takes::Line,
    goes_to_background: false,
    run,
};

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    if given.words.is_empty() {
        return Err(sentence(format_args!("time takes a command: time run hello")));
    }
    let began_ns = shell.system.now_ns();
    let code = shell.command(given.words, false)?;
    let took_ns = shell.system.now_ns().saturating_sub(began_ns);
    shell.say(format_args!("that took {}", Span(took_ns)));
    Ok(code)
}
