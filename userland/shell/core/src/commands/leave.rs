//! `logout`, `exit` and `poweroff`: the end of the shell, and of the system with it.

use super::{Command, Given, Takes, alone};
use crate::shell::{MOST_CODE, Shell};
use crate::text::{Sentence, sentence};

pub(super) const LOGOUT: Command = Command {
    name: "logout",
    usage: "",
    help: "ends the shell with the last command's exit code, as Ctrl-D does",
    example: "logout",
    takes: Takes::Nothing,
    goes_to_background: false,
    run: logout,
};

pub(super) const EXIT: Command = Command {
    name: "exit",
    usage: "[CODE]",
    help: "ends the shell with an exit code, or the last command's",
    example: "exit 3",
    takes: Takes::Nothing,
    goes_to_background: false,
    run: exit,
};

pub(super) const POWEROFF: Command = Command {
    name: "poweroff",
    usage: "",
    help: "ends the system",
    example: "poweroff",
    takes: Takes::Nothing,
    goes_to_background: false,
    run: poweroff,
};

fn logout(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    alone(given, LOGOUT.name)?;
    shell.end(shell.last_code());
    Ok(0)
}

fn exit(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    let code = match given.words {
        [] => shell.last_code(),
        [word] => {
            word.parse().ok().filter(|code| (0..=MOST_CODE).contains(code)).ok_or_else(|| {
                sentence(format_args!("exit takes a number from 0 to {MOST_CODE}, not {word:.40}"))
            })?
        }
        _ => return Err(sentence(format_args!("exit takes one number: exit 3"))),
    };
    shell.end(code);
    Ok(code)
}

fn poweroff(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    alone(given, POWEROFF.name)?;
    shell.end(0);
    Ok(0)
}
