//! `demo`: a service and a client that calls it, entries of the boot manifest.

use super::{Command, Given, Takes, alone};
use crate::shell::Shell;
use crate::system::{ENTRY_BADGE, Start};
use crate::text::Sentence;

pub(super) const COMMAND: Command = Command {
    name: "demo",
    usage: "[&]",
    help: "runs a service and a client that calls it, until a key is pressed",
    example: "demo",
    takes: Takes::Nothing,
    goes_to_background: true,
    run,
};

/// The entries, in the order in which they can be started: a client needs its service.
const SERVER: &str = "counter-server";
const CLIENT: &str = "counter-client";

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    alone(given, COMMAND.name)?;
    let server = shell.start(entry(SERVER))?;
    let client = match shell.start(entry(CLIENT)) {
        Ok(client) => client,
        Err(sentence) => {
            end(shell, server);
            return Err(sentence);
        }
    };
    if given.is_background {
        shell.say(format_args!("[{server}] {SERVER} and [{client}] {CLIENT} run; kill ends them"));
        return Ok(0);
    }
    let code = shell.attend(client)?;
    end(shell, server);
    shell.attend(server)?;
    Ok(code)
}

const fn entry(program: &'static str) -> Start<'static> {
    Start { program, is_entry: true, arguments: &[], badge: ENTRY_BADGE }
}

/// The service does not end by itself.
fn end(shell: &mut Shell<'_>, server: u64) {
    let process = shell.job(server).ok().filter(|job| job.ended.is_none()).map(|job| job.process);
    if let Some(process) = process {
        shell.system.kill(process, 0);
    }
}
