//! `caps`: what a process may do.

use super::{Command, Given, Takes, ps};
use crate::shell::Shell;
use crate::system::CapabilityRow;
use crate::text::{Sentence, sentence};
use schema::process_directory_capnp::CapabilityKind;

pub(super) const COMMAND: Command = Command {
    name: "caps",
    usage: "PID",
    help: "lists the capabilities of a process, by name and interface",
    example: "caps 0",
    takes: Takes::Nothing,
    goes_to_background: false,
    run,
};

fn run(shell: &mut Shell<'_>, given: &Given<'_>) -> Result<i64, Sentence> {
    let process = ps::process_of(shell, given, COMMAND.name)?;
    shell.say(format_args!("slot  name                interface"));
    let mut from = Some(0);
    while let Some(at) = from {
        let page = shell.system.capabilities((process.pid, process.generation), at)?;
        for capability in &page.rows {
            let name = if capability.name.is_empty() { "-" } else { &capability.name };
            shell.say(format_args!(
                "{:>4}  {name:<18}  {}",
                capability.slot,
                interface(capability)
            ));
        }
        from = page.next;
    }
    Ok(0)
}

/// The interface in words.
fn interface(capability: &CapabilityRow) -> Sentence {
    let id = capability.interface_id;
    let name = schema::INTERFACES.iter().find(|known| known.id == id).map(|known| known.name);
    let side = match capability.kind {
        CapabilityKind::Object => "",
        CapabilityKind::Endpoint => ", the side that serves it",
        CapabilityKind::Client => ", served by a program",
    };
    match name {
        Some(name) => sentence(format_args!("{name}{side}")),
        None if id == 0 => sentence(format_args!("unknown{side}")),
        None => sentence(format_args!("{id:#018x}{side}")),
    }
}
