//! From the boot manifest to processes: those that the kernel starts, and where the others' programs are.
//!
//! Each entry becomes a process as `kernel_process::entry` makes it, which is also how a program starts one later. What
//! cannot be started stops the boot with a sentence that says what is wrong.

use crate::Machine;
use crate::kernel::{Kernel, KernelObject, Process};
use crate::{lines, section, shutdown};
use alloc::vec::Vec;
use core::fmt;
use core_interrupt::Trigger;
use core_ledger::ChargeError;
use core_manifest::{GrantKind, Manifest, Name};
use kernel_arch::irq::NotDelegated;
use kernel_arch::log;
use kernel_dispatch::preemption_point;
use kernel_mm::OutOfMemory;
use kernel_mm::fallible::try_push;
use kernel_object::thread_spawner::Refused;
use kernel_ops::interrupt;
use kernel_ops::lines::Wiring;
use kernel_ops::paid::NoMemory;
use kernel_process::BeginError;
use kernel_process::child::{ChildError, no_memory};
use kernel_process::entry::{self, EntryError};
use kernel_process::load::LoadError;
use kernel_process::machine::Worker;
use kernel_process::process::SpawnError;
use kernel_process::spawn::{spawn, spawn_worker};
use spin::Once;

/// The boot module that holds the manifest.
pub const MANIFEST_MODULE: &str = "manifest.bin";

/// The machine whose boot modules there are.
static MACHINE: Once<&'static Machine> = Once::new();

/// The boot module of that name, once processes are started.
pub(crate) fn boot_module(name: &str) -> Option<&'static [u8]> {
    MACHINE.get()?.module(name).map(|module| module.data)
}

/// What the clock chip showed at boot, in seconds since 1970, and what the clock then read.
pub(crate) fn wall_clock() -> Option<(u64, u64)> {
    MACHINE.get()?.wall_clock
}

/// The object that a grant is, of those that the kernel serves by calls alone.
pub(crate) fn granted(kind: GrantKind<'_>) -> Option<KernelObject> {
    Some(match kind {
        GrantKind::Console => KernelObject::Console,
        GrantKind::Records => KernelObject::Records,
        GrantKind::Timer => KernelObject::Timer,
        GrantKind::Trace => KernelObject::Trace,
        GrantKind::Interrupt { .. } => {
            return wiring_of(kind)
                .and_then(|wiring| interrupt::grant(Kernel, wiring))
                .map(KernelObject::Interrupt);
        }
        GrantKind::SystemInfo => KernelObject::SystemInfo,
        GrantKind::ThreadSpawner => KernelObject::ThreadSpawner,
        GrantKind::ThreadControl => KernelObject::ThreadControl,
        GrantKind::VirtualMemory => KernelObject::VirtualMemory,
        GrantKind::ProcessSpawner => KernelObject::ProcessSpawner,
        GrantKind::FrameAllocator => KernelObject::FrameAllocator,
        GrantKind::SchedulingPolicy { ceiling } => KernelObject::SchedulingPolicy(ceiling),
        GrantKind::SchedulerControl => KernelObject::SchedulerControl,
        GrantKind::ProcessDirectory => KernelObject::ProcessDirectory,
        GrantKind::Entropy => KernelObject::Entropy,
        // One is made with a process, by `Machine::user_session`.
        GrantKind::UserSession
        | GrantKind::ParkSpace
        | GrantKind::Endpoint { .. }
        | GrantKind::Client { .. } => return None,
    })
}

/// The line of a grant, and how it is wired.
fn wiring_of(kind: GrantKind<'_>) -> Option<Wiring> {
    let GrantKind::Interrupt { line, is_level, is_active_low } = kind else { return None };
    let trigger = if is_level { Trigger::Level } else { Trigger::Edge };
    Some(Wiring { line, trigger, is_active_low })
}

/// Whether every interrupt line of the manifest can be given: not one of the kernel's, and wired in one way. Nothing is
/// given yet.
#[allow(clippy::result_large_err, reason = "once, and an error of it ends the boot")]
fn check_lines(manifest: &Manifest<'_>) -> Result<(), Refusal> {
    let mut seen: Vec<Wiring> = Vec::new();
    for process in manifest.processes()? {
        let process = process?;
        for grant in process.grants() {
            let grant = grant?;
            let Some(wiring) = wiring_of(grant.kind) else { continue };
            let refuse = |why| Refusal::Line(Name::new(process.name), Name::new(grant.name), why);
            match seen.iter().find(|one| one.line == wiring.line) {
                Some(one) if *one != wiring => return Err(refuse(BadLine::WiredTwice)),
                Some(_) => {}
                None => {
                    lines::try_line(wiring).map_err(|why| refuse(BadLine::NotDelegated(why)))?;
                    try_push(&mut seen, wiring)?;
                }
            }
        }
    }
    Ok(())
}

/// Why a line of the manifest is not given.
pub(crate) enum BadLine {
    NotDelegated(NotDelegated),
    WiredTwice,
}

/// Why a process cannot be started.
pub(crate) enum Refusal {
    Manifest(core_manifest::Error),
    OutOfMemory,
    Entry(Name, EntryError),
    Thread(Name, SpawnError),
    Line(Name, Name, BadLine),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest(error) => write!(f, "{MANIFEST_MODULE}: {error}"),
            Self::OutOfMemory => f.write_str("not enough memory for the processes"),
            Self::Entry(name, error) => {
                write!(f, "process {}: ", name.as_str())?;
                describe_entry(f, error)
            }
            Self::Line(process, grant, why) => {
                write!(f, "process {}: its grant {}: ", process.as_str(), grant.as_str())?;
                match why {
                    BadLine::NotDelegated(why) => why.fmt(f),
                    BadLine::WiredTwice => {
                        f.write_str("another grant of the manifest wires this line in another way")
                    }
                }
            }
            Self::Thread(name, error) => {
                let (_, why) = Refused::from(*error).exception();
                write!(f, "process {}: no first thread: {why}", name.as_str())
            }
        }
    }
}

fn describe_entry(f: &mut fmt::Formatter<'_>, error: &EntryError) -> fmt::Result {
    match error {
        EntryError::Manifest(error) => write!(f, "{error}"),
        EntryError::Module => f.write_str("its boot module is gone"),
        EntryError::Receiver(name) => write!(f, "no facet of its endpoint {name}"),
        EntryError::Interface(name) => write!(f, "its grant {name} is of an unknown interface"),
        EntryError::Child(ChildError::Begin(BeginError::Records)) => {
            f.write_str("too many processes")
        }
        EntryError::Child(ChildError::Load(LoadError::Elf(error))) => write!(f, "{error}"),
        EntryError::Child(error) => match no_memory(error) {
            Some(NoMemory::Machine) => f.write_str("not enough memory for it"),
            Some(NoMemory::Account(error)) => {
                f.write_str(error.message())?;
                describe_line(f, error)
            }
            None => write!(f, "it cannot be made: {error:?}"),
        },
        EntryError::NoManifest | EntryError::Unknown | EntryError::Runs => {
            write!(f, "it cannot be started: {error:?}")
        }
    }
}

/// How much of a line was wanted, and how much there is.
fn describe_line(f: &mut fmt::Formatter<'_>, error: &ChargeError) -> fmt::Result {
    match error {
        ChargeError::Closed => Ok(()),
        ChargeError::Exhausted { wanted, reading, .. } => {
            write!(f, " ({wanted} wanted, {} of {} used)", reading.used, reading.limit)
        }
    }
}

impl From<OutOfMemory> for Refusal {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<core_manifest::Error> for Refusal {
    fn from(error: core_manifest::Error) -> Self {
        Self::Manifest(error)
    }
}

/// Starts the processes of the manifest that are the kernel's to start.
#[allow(clippy::result_large_err, reason = "once, and an error of it ends the boot")]
pub(crate) fn start_all(machine: &'static Machine, bytes: &'static [u8]) -> Result<(), Refusal> {
    MACHINE.call_once(|| machine);
    let is_module = |name: &str| machine.module(name).is_some();
    let manifest = Manifest::check(bytes, is_module)?;
    check_lines(&manifest)?;
    let only_marked = manifest.has_boot_marks()?;
    // The check of the whole manifest does not count: there is no thread yet that it could keep from running.
    section::begin();
    let mut begun: Vec<(u32, &'static Process)> = Vec::new();
    // All processes and endpoints first: a client may stand before its server.
    for (number, from) in (0..).zip(manifest.processes()?) {
        let from = from?;
        if only_marked && !from.is_boot {
            continue;
        }
        let made = entry::begin(Kernel, None, &manifest, number, &from);
        let process = made.map_err(|error| Refusal::Entry(Name::new(from.name), error))?;
        try_push(&mut begun, (number, process))?;
    }
    let mut starts = Vec::new();
    for (number, process) in &begun {
        let Some(from) = manifest.process(*number)? else { continue };
        let start = entry::furnish(Kernel, None, &manifest, *number, &from, process);
        let start = start.map_err(|error| Refusal::Entry(Name::new(from.name), error))?;
        try_push(&mut starts, start)?;
    }
    shutdown::expect(begun.len() as u32);
    for worker in [Worker::Reaper, Worker::Drain] {
        preemption_point(Kernel);
        spawn_worker(Kernel, worker)?;
    }
    preemption_point(Kernel);
    for ((_, process), start) in begun.iter().zip(starts) {
        let name = process.members.lock().name;
        let spawned = spawn(Kernel, process, start, process.weight(), false);
        spawned.map_err(|error| Refusal::Thread(name, error))?;
        preemption_point(Kernel);
        log!("start", "process {} \"{}\"", process.slot(), name.as_str());
        // What a person is told does not count.
        section::begin();
    }
    Ok(())
}
