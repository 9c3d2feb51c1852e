//! From the boot manifest to processes.
//!
//! Each entry of the manifest becomes a process with its memory, capabilities and first thread. What
//! cannot be started stops the boot with a sentence that says what is wrong.

use crate::Machine;
use crate::kernel::{Kernel, KernelObject, Object, Process};
use crate::system::RECORDS;
use crate::{section, shutdown};
use abi_types::place::{CAPSET_VADDR, STACK_PAGES, STACK_TOP, TLS_VADDR};
use abi_types::{CAPSET_MAGIC, CAPSET_NAME_BYTES, CapSetEntry, CapSetHeader, InterfaceTag};
use alloc::vec::Vec;
use core::fmt;
use core_address::PAGE_SIZE;
use core_cap::{Cap, Grant};
use core_elf::{Guards, Image, Tls};
use core_endpoint::EndpointKey;
use core_ledger::{ChargeError, Frames};
use core_manifest::{GrantKind, Manifest, Name};
use core_paging::Access;
use core_sched_policy::Weight;
use core_vm::{PageRange, VmError};
use kernel_arch::context::UserStart;
use kernel_arch::log;
use kernel_dispatch::preemption_point;
use kernel_mm::OutOfMemory;
use kernel_mm::fallible::try_push;
use kernel_mm::space::{MAX_PAGES, SpaceError};
use kernel_object::thread_spawner::Refused;
use kernel_ops::capability::FacetOf;
use kernel_ops::map::MapError;
use kernel_ops::paid::NoMemory;
use kernel_process::machine::Worker;
use kernel_process::process::SpawnError;
use kernel_process::spawn::{spawn, spawn_worker};
use kernel_process::{BeginError, NewProcess};
use zerocopy::IntoBytes;

/// The boot module that holds the manifest.
pub const MANIFEST_MODULE: &str = "manifest.bin";

/// Why a process cannot be started.
pub(crate) enum Refusal {
    Manifest(core_manifest::Error),
    Elf(Name, core_elf::Error),
    Module(Name),
    Memory(Name, SpaceError),
    OutOfMemory,
    Begin(Name, BeginError),
    Slots(Name),
    Interface(Name),
    Thread(Name, SpawnError),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest(error) => write!(f, "{MANIFEST_MODULE}: {error}"),
            Self::Elf(name, error) => write!(f, "process {}: {error}", name.as_str()),
            Self::Module(name) => write!(f, "process {}: its boot module is gone", name.as_str()),
            Self::OutOfMemory => f.write_str("not enough memory for the processes"),
            Self::Begin(name, BeginError::Records) => {
                write!(f, "process {}: too many processes", name.as_str())
            }
            Self::Begin(name, BeginError::Memory(NoMemory::Machine)) => {
                write!(f, "process {}: not enough memory for its tables", name.as_str())
            }
            Self::Begin(name, BeginError::Memory(NoMemory::Account(error)))
            | Self::Memory(name, SpaceError::Account(error)) => {
                write!(f, "process {}: {}", name.as_str(), error.message())?;
                describe(f, error)
            }
            Self::Memory(name, error) => {
                write!(f, "process {}: its memory cannot be mapped: {error:?}", name.as_str())
            }
            Self::Slots(name) => write!(f, "process {}: no slot for a grant", name.as_str()),
            Self::Interface(name) => write!(f, "{}: its interface has no tag", name.as_str()),
            Self::Thread(name, error) => {
                let (_, why) = Refused::from(*error).exception();
                write!(f, "process {}: no first thread: {why}", name.as_str())
            }
        }
    }
}

/// How much of a line was wanted, and how much there is.
fn describe(f: &mut fmt::Formatter<'_>, error: &ChargeError) -> fmt::Result {
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

/// Starts every process of the manifest.
pub(crate) fn start_all(machine: &'static Machine, bytes: &'static [u8]) -> Result<(), Refusal> {
    let is_module = |name: &str| machine.module(name).is_some();
    let manifest = Manifest::check(bytes, is_module).map_err(Refusal::Manifest)?;
    let mut started = Vec::new();
    // All processes and endpoints first: a client may stand before its server.
    for process in manifest.processes().map_err(Refusal::Manifest)? {
        let process = process.map_err(Refusal::Manifest)?;
        let made = make(&process)?;
        try_push(&mut started, made)?;
    }
    let processes = manifest.processes().map_err(Refusal::Manifest)?;
    let mut starts = Vec::new();
    for (process, made) in processes.zip(&started) {
        let process = process.map_err(Refusal::Manifest)?;
        grant(&manifest, &process, made, &started)?;
        let module =
            machine.module(process.binary).ok_or(Refusal::Module(Name::new(process.name)))?;
        let start = load(made.process, process.name, module.data)?;
        try_push(&mut starts, start)?;
    }
    shutdown::expect(started.len() as u32);
    spawn_worker(Kernel, Worker::Reaper)?;
    spawn_worker(Kernel, Worker::Drain)?;
    for (made, start) in started.iter().zip(starts) {
        let name = made.process.members.lock().name;
        let spawned = spawn(Kernel, made.process, start, made.process.weight(), false);
        spawned.map_err(|error| Refusal::Thread(name, error))?;
        preemption_point(Kernel);
        log!("start", "process {} \"{}\"", made.process.slot(), name.as_str());
        // What a person is told does not count.
        section::begin();
    }
    Ok(())
}

/// A process before its memory, and the endpoints it serves, by the order of its grants.
struct Made {
    process: &'static Process,
    endpoints: Vec<EndpointKey>,
}

fn make(from: &core_manifest::Process<'_>) -> Result<Made, Refusal> {
    let name = Name::new(from.name);
    let mut serves = Vec::new();
    for grant in from.grants() {
        if let GrantKind::Endpoint { interface_id, .. } = grant.map_err(Refusal::Manifest)?.kind {
            try_push(&mut serves, tag(name, interface_id)?)?;
        }
    }
    let new = NewProcess {
        name,
        profile: from.profile,
        weight: Weight::new(from.weight).unwrap_or(Weight::DEFAULT),
        is_essential: from.is_essential,
        serves: &serves,
    };
    let begun = RECORDS.begin_process(Kernel, new);
    let (process, endpoints) = begun.map_err(|error| Refusal::Begin(name, error))?;
    process.ops.space.create(&process.ops.ledger).map_err(|error| Refusal::Memory(name, error))?;
    Ok(Made { process, endpoints })
}

/// Fills the process's table and its CapSet page.
fn grant(
    manifest: &Manifest<'_>,
    from: &core_manifest::Process<'_>,
    made: &Made,
    all: &[Made],
) -> Result<(), Refusal> {
    let name = Name::new(from.name);
    let mut own = made.endpoints.iter();
    let mut entries: Vec<CapSetEntry> = Vec::new();
    for grant in from.grants() {
        let grant = grant.map_err(Refusal::Manifest)?;
        let object = match grant.kind {
            GrantKind::Console => Ok(Object::Other(KernelObject::Console)),
            GrantKind::Records => Ok(Object::Other(KernelObject::Records)),
            GrantKind::Timer => Ok(Object::Other(KernelObject::Timer)),
            GrantKind::SystemInfo => Ok(Object::Other(KernelObject::SystemInfo)),
            GrantKind::ThreadSpawner => Ok(Object::Other(KernelObject::ThreadSpawner)),
            GrantKind::ThreadControl => Ok(Object::Other(KernelObject::ThreadControl)),
            GrantKind::ParkSpace => Ok(Object::ParkSpace),
            GrantKind::FrameAllocator => Ok(Object::Other(KernelObject::FrameAllocator)),
            GrantKind::VirtualMemory => Ok(Object::Other(KernelObject::VirtualMemory)),
            GrantKind::Endpoint { .. } => {
                let endpoint = *own.next().ok_or(Refusal::Slots(name))?;
                Ok(Object::Endpoint(FacetOf { process: made.process.key(), endpoint }))
            }
            GrantKind::Client { endpoint, badge } => Err((endpoint, badge)),
        };
        let (cap, interface) = match object {
            Ok(object) => {
                let interface = grant.kind.interface_id().unwrap_or(0);
                (Cap::new(object, tag(name, interface)?), interface)
            }
            Err((endpoint, badge)) => facet(manifest, endpoint, badge, all)?,
        };
        let slot = made.process.ops.caps.lock().as_mut().and_then(|table| table.insert(cap).ok());
        let slot = slot.ok_or(Refusal::Slots(name))?;
        try_push(&mut entries, entry(grant.name, slot.to_bits(), interface))?;
    }
    if entries.is_empty() {
        return Ok(());
    }
    let wrong = |error| Refusal::Memory(name, error);
    made.process.ops.space.map_new(CAPSET_VADDR, 1, Access::Read).map_err(wrong)?;
    let header =
        CapSetHeader { magic: CAPSET_MAGIC, count: entries.len() as u32, reserved: 0, pad: [0; 6] };
    let absent = |_| Refusal::Memory(name, SpaceError::Absent);
    made.process.ops.space.fill(CAPSET_VADDR, header.as_bytes()).map_err(absent)?;
    let first = CAPSET_VADDR + size_of::<CapSetHeader>() as u64;
    made.process.ops.space.fill(first, entries.as_slice().as_bytes()).map_err(absent)?;
    made.process.has_capset();
    Ok(())
}

fn entry(name: &str, slot: u64, interface: u64) -> CapSetEntry {
    let mut bytes = [0; CAPSET_NAME_BYTES];
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    CapSetEntry { slot, interface, name_length: name.len() as u32, name: bytes }
}

/// The client's side of an endpoint, and its interface.
fn facet(
    manifest: &Manifest<'_>,
    endpoint: &str,
    badge: u64,
    all: &[Made],
) -> Result<(Cap<Object>, u64), Refusal> {
    let missing = Refusal::Slots(Name::new(endpoint));
    let Some(found) = manifest.endpoint(endpoint).map_err(Refusal::Manifest)? else {
        return Err(missing);
    };
    let Some(server) = all.get(found.receiver as usize) else { return Err(missing) };
    // The manifest numbers endpoints through all processes.
    let before: usize = all.iter().take(found.receiver as usize).map(|m| m.endpoints.len()).sum();
    let own = (found.index as usize).checked_sub(before);
    let Some(key) = own.and_then(|own| server.endpoints.get(own)) else { return Err(missing) };
    let of = FacetOf { process: server.process.key(), endpoint: *key };
    let grant: Option<Grant> =
        server.process.ops.service.lock().as_mut().and_then(|service| service.mint(*key, badge));
    let grant = grant.ok_or(missing)?;
    let interface = tag(Name::new(endpoint), found.interface_id)?;
    Ok((Cap { object: Object::Facet(of), interface, badge, grant }, found.interface_id))
}

/// The tag of an interface; every grant of a manifest that was checked has one.
fn tag(name: Name, interface_id: u64) -> Result<InterfaceTag, Refusal> {
    InterfaceTag::of(interface_id).ok_or(Refusal::Interface(name))
}

/// Maps the program, but for its guards, and its stack; how its first thread starts.
fn load(process: &'static Process, name: &str, file: &[u8]) -> Result<UserStart, Refusal> {
    let name = Name::new(name);
    let image = Image::parse(file).map_err(|error| Refusal::Elf(name, error))?;
    let wrong = |error| Refusal::Memory(name, error);
    let absent = |_| Refusal::Memory(name, SpaceError::Absent);
    // All of it at once: what does not fit the profile is refused before anything is mapped.
    let pages = image.parts().fold(STACK_PAGES, |sum, part| sum.saturating_add(part.pages));
    let fits = process.ops.ledger.reserve(Frames, u32::try_from(pages).unwrap_or(u32::MAX));
    fits.map(drop).map_err(|error| wrong(error.into()))?;
    for part in image.parts() {
        map(process, part.start, part.pages, part.access).map_err(wrong)?;
        for page in 0..part.pages {
            let (zeros, bytes) = part.page(page);
            let at = part.start + page * PAGE_SIZE + zeros as u64;
            process.ops.space.fill(at, bytes).map_err(absent)?;
        }
    }
    reserve_guards(process, image.guards()).map_err(wrong)?;
    process.members.lock().guards = image.guards().clone();
    map(process, STACK_TOP - STACK_PAGES * PAGE_SIZE, STACK_PAGES, Access::Write).map_err(wrong)?;
    process.ops.space.map_time_page().map_err(wrong)?;
    let fs_base = match image.tls() {
        None => 0,
        Some(tls) => load_tls(process, &tls).map_err(wrong)?,
    };
    UserStart::new(image.entry(), STACK_TOP, fs_base)
        .map_err(|_| Refusal::Memory(name, SpaceError::BadRange))
}

/// Keeps the pages of the guards, the first thread's among them, so that nothing is ever mapped there.
fn reserve_guards(process: &'static Process, guards: &Guards) -> Result<(), SpaceError> {
    for address in guards.addresses() {
        let range = PageRange::new(address, 1).map_err(|_| SpaceError::BadRange)?;
        process
            .ops
            .map
            .change(&process.ops.ledger, || {}, |regions| regions.reserve(range))
            .map_err(in_map)?;
    }
    Ok(())
}

fn in_map(error: MapError) -> SpaceError {
    match error {
        MapError::Memory(NoMemory::Account(error)) => SpaceError::Account(error),
        MapError::Memory(NoMemory::Machine) | MapError::Vm(VmError::Full) => {
            SpaceError::OutOfMemory
        }
        MapError::Vm(_) => SpaceError::Occupied,
    }
}

fn map(
    process: &'static Process,
    start: u64,
    pages: u64,
    access: Access,
) -> Result<(), SpaceError> {
    let range = PageRange::new(start, pages).map_err(|_| SpaceError::BadRange)?;
    let begun = process.ops.map.change(
        &process.ops.ledger,
        || {},
        |regions| regions.map_own(range, access).map(|_| ()),
    );
    begun.map_err(in_map)?;
    let mut done = 0;
    while done < pages {
        let part = (pages - done).min(MAX_PAGES);
        process.ops.space.map_new(start + done * PAGE_SIZE, part, access)?;
        done += part;
    }
    // Memory of its own: no object is held for it.
    let holds_nothing = !process.ops.map.settle(range);
    debug_assert!(holds_nothing, "an object is held for a program's own pages");
    Ok(())
}

/// The first thread's copy of the thread-local data; its thread pointer.
fn load_tls(process: &'static Process, tls: &Tls<'_>) -> Result<u64, SpaceError> {
    let layout = tls.layout();
    map(process, TLS_VADDR, layout.size.div_ceil(PAGE_SIZE), Access::Write)?;
    let pointer = TLS_VADDR + layout.thread_pointer;
    let fill = |at, bytes: &[u8]| process.ops.space.fill(at, bytes).map_err(|_| SpaceError::Absent);
    fill(TLS_VADDR + layout.image, tls.image)?;
    fill(pointer, pointer.as_bytes())?;
    Ok(pointer)
}
