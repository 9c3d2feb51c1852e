//! `clear`: an empty screen.

use super::{Command, Given, Takes, alone};
use crate::shell::Shell;
use crate::text::Sentence;

pub(super) const COMMAND: Command = Command {
    name: "clear",
    usage: "",
    help: "clears the screen; so does Ctrl-L",
    example: "clear",
    takes: Takes::Nothing,
    goes_to_background: false,
    run,
};

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    alone(given, COMMAND.name)?;
    shell.clear();
    Ok(0)
}
