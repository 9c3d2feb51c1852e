//! Starting programs: what each is given, and what comes back of it.

use abi_types::{CapSlot, Status};
use arrayvec::ArrayString;
use capos_rt::Io;
use capos_rt::process::{Child, Command, MOST_TEXTS, copied, moved, own};
use schema::endpoint;
use schema::manifest::ResourceProfile;
use schema::process_handle::WaitParams;
use schema::process_handle::methods::Wait;
use schema::process_spawner_capnp::GrantSource;
use schema_wire::CallError;
use shell_core::jobs::NAME_BYTES;
use shell_core::system::{ENTRY_BADGE, Process, Start};
use shell_core::text::{Sentence, sentence};

use crate::machine::{Kernel, Running};

/// What each program may use: what twelve of them may together is less than the shell itself.
pub(crate) const PROFILE: ResourceProfile = ResourceProfile {
    cap_slots: 32,
    threads: 16,
    kernel_stack_pages: 512,
    frames: 2048,
    sleep_waiters: 16,
    ring_entries: 32,
    ring_scratch_limit_bytes: 4096,
    in_flight_call_limit: 32,
    endpoint_queue_limit: 32,
    kernel_bytes: 524_288,
    registered_buffers: 0,
};

/// Starts a program, and waits for its end from now on.
pub(crate) fn start(kernel: &mut Kernel, start: &Start<'_>) -> Result<Process, Sentence> {
    let free = kernel.running.iter().position(Option::is_none);
    let index = free.ok_or_else(|| sentence(format_args!("too many programs run already")))?;
    let child = if start.is_entry {
        let started = kernel.processes.start_entry(kernel.io, start.program);
        started
            .map_err(|error| sentence(format_args!("{} does not start: {error}", start.program)))?
    } else {
        program(kernel, start)?
    };
    let mut running = Running { child, badge: start.badge, end: None };
    match kernel.io.start::<Wait>(child.slot(), &WaitParams {}) {
        Ok(end) => running.end = Some(end),
        Err(status) => {
            // Nobody could tell when it ends: it is not to run.
            let _killed = child.kill(kernel.io, 0);
            let_go(kernel.io, kernel.terminal, &running);
            return Err(sentence(format_args!("its end could not be waited for: {status:?}")));
        }
    }
    if let Some(place) = kernel.running.get_mut(index) {
        *place = Some(running);
    }
    Ok(Process(index))
}

fn program(kernel: &Kernel, start: &Start<'_>) -> Result<Child, Sentence> {
    if start.arguments.len() > MOST_TEXTS {
        return Err(sentence(format_args!("a program takes at most {MOST_TEXTS} arguments")));
    }
    let mut binary = ArrayString::<NAME_BYTES>::new();
    if binary.try_push_str(start.program).and_then(|()| binary.try_push_str(".elf")).is_err() {
        return Err(sentence(format_args!(
            "a program's name has at most {} bytes",
            NAME_BYTES - 4
        )));
    }
    let minted = endpoint::Client::new(kernel.io.caller(), kernel.terminal)
        .mint_facet(start.badge, 0)
        .map_err(|error| sentence(format_args!("no console for {}: {error}", start.program)))?;
    let console = CapSlot::new(minted.facet_index.into(), minted.facet_generation);
    let grants = [
        moved("console", console),
        copied("timer", kernel.timer),
        copied("info", kernel.info),
        copied("park", kernel.park),
        own("threads", GrantSource::ThreadSpawner),
        own("thread-control", GrantSource::ThreadControl),
        own("memory", GrantSource::VirtualMemory),
    ];
    let command = Command {
        profile: PROFILE,
        grants: &grants,
        arguments: start.arguments,
        ..Command::new(start.program, &binary)
    };
    kernel.processes.spawn(kernel.io, &command).map_err(|error| {
        // A console that was not moved is still the shell's.
        let _released = kernel.io.release(console);
        revoke(kernel.io, kernel.terminal, start.badge);
        match error {
            CallError::Status(Status::ParamsTooLarge) => {
                sentence(format_args!("the arguments are too long together: leave some away"))
            }
            error => sentence(format_args!("{} does not start: {error}", start.program)),
        }
    })
}

/// A process is gone: its handle and its console are given back.
pub(crate) fn let_go(io: &Io, terminal: CapSlot, running: &Running) {
    // A slot that stays taken harms less than a shell that ends.
    let _released = running.child.release(io);
    if running.badge != ENTRY_BADGE {
        revoke(io, terminal, running.badge);
    }
}

/// Badges are counted: one that nobody has any more is given back, with what the program may have passed on.
fn revoke(io: &Io, terminal: CapSlot, badge: u64) {
    let _revoked = endpoint::Client::new(io.caller(), terminal).revoke_facets(badge);
}
