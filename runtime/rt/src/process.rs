//! Other processes: starting one, waiting for its end, ending it.
//!
//! ```ignore
//! let processes = Processes::of(&env.caps)?;
//! let child = processes.spawn(&env.io, &Command { arguments: &["-v"], ..Command::new("worker", "worker.elf") })?;
//! let ended = child.wait(&env.io)?;
//! child.release(&env.io)?;
//! ```

use abi_ring::Memory as RingMemory;
use abi_types::{CapSlot, Status};
use schema::manifest::{Argument, ResourceProfile, Variable};
use schema::process_handle::{ExitCodeResults, InfoResults, ProcessUsage, WaitResults};
use schema::process_spawner::SpawnGrant;
use schema::process_spawner_capnp::GrantSource;
use schema::{process_handle, process_spawner};
use schema_wire::{CallError, List, Transfer, TransferIndex};

use crate::capset::{CapSet, NoCap};
use crate::io::Io;
use crate::ring::Enter;

/// What the manifest's defaults are.
pub const DEFAULT_PROFILE: ResourceProfile = ResourceProfile {
    cap_slots: 64,
    threads: 16,
    kernel_stack_pages: 512,
    frames: 4096,
    sleep_waiters: 16,
    ring_entries: 64,
    ring_scratch_limit_bytes: 4096,
    in_flight_call_limit: 32,
    endpoint_queue_limit: 32,
    kernel_bytes: 524_288,
    registered_buffers: 0,
};

/// The largest number of arguments, and of variables, that [`Command`] passes on.
pub const MOST_TEXTS: usize = 16;

/// The authority to start processes.
#[derive(Clone, Copy, Debug)]
pub struct Processes {
    slot: CapSlot,
}

/// What a process is started with.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// What people call it.
    pub name: &'a str,
    /// The boot module of its program.
    pub binary: &'a str,
    /// What its threads weigh, at most as much as this process's.
    pub weight: u16,
    /// What it may use, out of what this process may.
    pub profile: ResourceProfile,
    /// Its capabilities, by name.
    pub grants: &'a [SpawnGrant<'a>],
    /// Its arguments, at most [`MOST_TEXTS`].
    pub arguments: &'a [&'a str],
    /// Its environment, at most [`MOST_TEXTS`] of name and value.
    pub environment: &'a [(&'a str, &'a str)],
}

impl<'a> Command<'a> {
    /// A process without capabilities, arguments and environment, with the defaults of a manifest.
    pub const fn new(name: &'a str, binary: &'a str) -> Self {
        Self {
            name,
            binary,
            weight: 64,
            profile: DEFAULT_PROFILE,
            grants: &[],
            arguments: &[],
            environment: &[],
        }
    }
}

/// The texts of a command, as a message has them.
struct Texts<'a> {
    arguments: [Argument<'a>; MOST_TEXTS],
    environment: [Variable<'a>; MOST_TEXTS],
}

impl<'a> Texts<'a> {
    const NONE: Self = Self {
        arguments: [Argument { text: "" }; MOST_TEXTS],
        environment: [Variable { name: "", value: "" }; MOST_TEXTS],
    };

    /// Arguments and environment of a command that has not too many of either.
    fn of<'t>(
        &'t mut self,
        command: &Command<'a>,
    ) -> Result<(List<'t, Argument<'t>>, List<'t, Variable<'t>>), CallError>
    where
        'a: 't,
    {
        let Command { arguments, environment, .. } = *command;
        for (to, text) in self.arguments.iter_mut().zip(arguments) {
            to.text = text;
        }
        for (to, (name, value)) in self.environment.iter_mut().zip(environment) {
            *to = Variable { name, value };
        }
        let arguments = self.arguments.get(..arguments.len());
        let environment = self.environment.get(..environment.len());
        match (arguments, environment) {
            (Some(arguments), Some(environment)) => {
                Ok((List::of(arguments), List::of(environment)))
            }
            _ => Err(Status::ParamsTooLarge.into()),
        }
    }
}

/// A capability of this process that a child gets, and this one keeps.
pub const fn copied(name: &str, slot: CapSlot) -> SpawnGrant<'_> {
    SpawnGrant {
        name,
        source: GrantSource::Slot,
        slot_index: slot.index() as u16,
        slot_generation: slot.generation(),
        moved: false,
        interface_id: 0,
    }
}

/// A capability of this process that a child gets instead.
pub const fn moved(name: &str, slot: CapSlot) -> SpawnGrant<'_> {
    SpawnGrant { moved: true, ..copied(name, slot) }
}

/// A capability that acts on the child itself.
pub const fn own(name: &str, source: GrantSource) -> SpawnGrant<'_> {
    let (slot_index, slot_generation) = (0, 0);
    SpawnGrant { name, source, slot_index, slot_generation, moved: false, interface_id: 0 }
}

/// A process that was started: a handle to it, which it does not depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a handle takes a slot until it is released"]
pub struct Child {
    handle: CapSlot,
}

impl Processes {
    /// What the process was granted.
    pub fn of(caps: &CapSet) -> Result<Self, NoCap> {
        Ok(Self { slot: caps.first(process_spawner::INTERFACE_ID)? })
    }

    /// Starts a process.
    pub fn spawn<M: RingMemory, K: Enter>(
        self,
        io: &Io<M, K>,
        command: &Command<'_>,
    ) -> Result<Child, CallError> {
        let mut texts = Texts::NONE;
        let (arguments, environment) = texts.of(command)?;
        let mut client = process_spawner::Client::new(io.large(), self.slot);
        let made = client.spawn(
            command.name,
            command.binary,
            command.weight,
            command.profile,
            List::of(command.grants),
            arguments,
            environment,
        )?;
        Ok(Child::of(made.handle_index, made.handle_generation))
    }

    /// Starts the program that the first `bytes` of a memory object are, which stays this process's; the command's
    /// `binary` does not count.
    pub fn spawn_image<M: RingMemory, K: Enter>(
        self,
        io: &Io<M, K>,
        command: &Command<'_>,
        image: CapSlot,
        bytes: u64,
    ) -> Result<Child, CallError> {
        let mut texts = Texts::NONE;
        let (arguments, environment) = texts.of(command)?;
        let mut client = process_spawner::Client::new(io.large(), self.slot);
        let made = client.spawn_image(
            command.name,
            Some(TransferIndex(0)),
            bytes,
            command.weight,
            command.profile,
            List::of(command.grants),
            arguments,
            environment,
            &[Transfer { slot: image, is_move: false }],
        )?;
        Ok(Child::of(made.handle_index, made.handle_generation))
    }

    /// Starts the boot manifest's process of that name.
    pub fn start_entry<M: RingMemory, K: Enter>(
        self,
        io: &Io<M, K>,
        name: &str,
    ) -> Result<Child, CallError> {
        let made = process_spawner::Client::new(io.caller(), self.slot).spawn_entry(name)?;
        Ok(Child::of(made.handle_index, made.handle_generation))
    }
}

impl Child {
    const fn of(index: u16, generation: u32) -> Self {
        Self { handle: CapSlot::new(index as u32, generation) }
    }

    /// The process that a slot with a ProcessHandle names.
    pub const fn from_slot(handle: CapSlot) -> Self {
        Self { handle }
    }

    /// The slot of the handle.
    pub const fn slot(self) -> CapSlot {
        self.handle
    }

    /// Waits until nothing of it is left; how it ended.
    pub fn wait<M: RingMemory, K: Enter>(self, io: &Io<M, K>) -> Result<WaitResults, CallError> {
        process_handle::Client::new(io.caller(), self.handle).wait()
    }

    /// Whether it is gone, and how it ended.
    pub fn exit_code<M: RingMemory, K: Enter>(
        self,
        io: &Io<M, K>,
    ) -> Result<ExitCodeResults, CallError> {
        process_handle::Client::new(io.caller(), self.handle).exit_code()
    }

    /// Ends it with that code.
    pub fn kill<M: RingMemory, K: Enter>(self, io: &Io<M, K>, code: i64) -> Result<(), CallError> {
        process_handle::Client::new(io.caller(), self.handle).kill(code).map(|_| ())
    }

    /// Its number, its threads, and when it started.
    pub fn info<M: RingMemory, K: Enter>(self, io: &Io<M, K>) -> Result<InfoResults, CallError> {
        process_handle::Client::new(io.caller(), self.handle).info()
    }

    /// Its account.
    pub fn usage<M: RingMemory, K: Enter>(self, io: &Io<M, K>) -> Result<ProcessUsage, CallError> {
        process_handle::Client::new(io.large(), self.handle).usage().map(|results| results.usage)
    }

    /// Lets the handle go; the process goes on.
    pub fn release<M: RingMemory, K: Enter>(self, io: &Io<M, K>) -> Result<(), Status> {
        io.release(self.handle)
    }
}
