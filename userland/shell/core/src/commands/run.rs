//! `run`: starts a program.

use super::{Command, Given, Takes};
use crate::shell::Shell;
use crate::system::Start;
use crate::text::{Sentence, sentence};

pub(super) const COMMAND: Command = Command {
    name: "run",
    usage: "PROGRAM [ARGUMENT…] [&]",
    help: "runs a program until it ends or Ctrl-C ends it; with & it goes on by itself",
    example: "run primes 4 &",
    takes: Takes::Program,
    goes_to_background: true,
    run: program,
};

/// Runs the program that the first word names.
pub(crate) fn program(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    let Some((name, arguments)) = given.words.split_first() else {
        return Err(sentence(format_args!("run takes a program: run hello")));
    };
    if !shell.programs.iter().any(|program| program.name == *name) {
        return Err(sentence(format_args!(
            "no program is called {name:.40}: help lists those there are"
        )));
    }
    let badge = shell.next_badge();
    let number = shell.start(Start { program: name, is_entry: false, arguments, badge })?;
    if given.is_background {
        shell.say(format_args!("[{number}] {name} runs; wait {number} waits for its end"));
        return Ok(0);
    }
    shell.attend(number)
}
