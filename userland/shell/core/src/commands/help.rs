//! `help`: what can be typed.

use super::{COMMANDS, Command, Given, Takes, find};
use crate::shell::Shell;
use crate::text::{Sentence, sentence};

pub(super) const COMMAND: Command = Command {
    name: "help",
    usage: "[COMMAND]",
    help: "says what can be typed, or how one command is used",
    example: "help run",
    takes: Takes::Command,
    goes_to_background: false,
    run,
};

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    match given.words {
        [] => all(shell),
        [name] => one(shell, name)?,
        _ => return Err(sentence(format_args!("help takes one command: help run"))),
    }
    Ok(0)
}

fn all(shell: &mut Shell<'_>) {
    for command in COMMANDS {
        shell.say(format_args!("  {:<9} {}", command.name, command.help));
    }
    shell.say(format_args!("Programs, for run or by their names alone:"));
    for program in shell.programs {
        shell.say(format_args!("  {:<9} {}", program.name, program.about));
    }
}

fn one(shell: &mut Shell<'_>, name: &str) -> Result<(), Sentence> {
    if let Some(command) = find(name) {
        shell.say(format_args!("{} {}: {}", command.name, command.usage, command.help));
        shell.say(format_args!("  for instance: {}", command.example));
        return Ok(());
    }
    match shell.programs.iter().find(|program| program.name == name) {
        Some(program) => {
            shell.say(format_args!("{} is a program: {}", program.name, program.about));
            Ok(())
        }
        None => Err(sentence(format_args!(
            "no command is called {name:.40}: help alone lists those there are"
        ))),
    }
}
