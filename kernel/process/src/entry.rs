//! A process of the boot manifest starts, with the manifest's own grants: by the kernel, or by a program that asks for
//! it by name, one instance at a time.
//!
//! First the record and the endpoints it serves ([`begin`]), so that clients of it can be given facets; then its
//! capabilities and its program ([`furnish`]). What it may use is the manifest's to say; a program that starts it
//! lends its record and nothing else. Decided in ADR 289.

use crate::child::{
    ChildError, HandlePlace, NO_ENTRY, entry, hold_lender, lend_record, load, take_back,
};
use crate::entries::STARTING;
use crate::load::{LoadError, map_capset, map_start_page};
use crate::machine::{Machine, process_of};
use crate::process::{NewProcess, Process};
use crate::session;
use crate::spawn;
use abi_types::{CapSetEntry, CapSlot, InterfaceTag, START_BYTES};
use core_cap::Cap;
use core_elf::Image;
use core_manifest::{Error, GrantKind, Manifest, Name, limits};
use core_sched_policy::Weight;
use kernel_dispatch::preemption_point;
use kernel_ops::capability::{FacetOf, Object, ProcessKey};
use kernel_ops::machine::service_of;
use kernel_ops::object::Calling;

/// Why an entry was not started. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// There is no manifest.
    NoManifest,
    /// The manifest has no process of that name.
    Unknown,
    /// An instance of it runs, or is not gone yet.
    Runs,
    /// The manifest cannot be read.
    Manifest(Error),
    /// Its boot module is gone.
    Module,
    /// The receiver of this endpoint does not run, or has no facet left.
    Receiver(Name),
    /// An interface without a tag, or one that the machine does not serve.
    Interface(Name),
    /// As any other child.
    Child(ChildError),
}

impl<E: Into<ChildError>> From<E> for EntryError {
    fn from(error: E) -> Self {
        Self::Child(error.into())
    }
}

impl From<Error> for EntryError {
    fn from(error: Error) -> Self {
        Self::Manifest(error)
    }
}

/// Whether the entry of that number can be started; it is being started from here on.
fn claim<M: Machine>(m: M, number: usize) -> Result<(), EntryError> {
    let mut entries = m.records().entries.lock();
    let instance = entries.instances.get_mut(number).ok_or(EntryError::Unknown)?;
    let is_there = |key: ProcessKey| {
        key == STARTING || m.records().process(key.slot).is_some_and(|process| process.ops.is(key))
    };
    if instance.is_some_and(is_there) {
        return Err(EntryError::Runs);
    }
    *instance = Some(STARTING);
    Ok(())
}

/// Makes the record of an entry and the endpoints it serves. A program that starts it gives its own process.
pub fn begin<M: Machine>(
    m: M,
    parent: Option<&'static Process<M>>,
    manifest: &Manifest<'_>,
    number: u32,
    from: &core_manifest::Process<'_>,
) -> Result<&'static Process<M>, EntryError> {
    claim(m, number as usize)?;
    let begun = begin_claimed(m, parent, manifest, number, from);
    let instance = begun.as_ref().ok().map(|process| process.key());
    if let Some(place) = m.records().entries.lock().instances.get_mut(number as usize) {
        *place = instance;
    }
    begun
}

fn begin_claimed<M: Machine>(
    m: M,
    parent: Option<&'static Process<M>>,
    manifest: &Manifest<'_>,
    number: u32,
    from: &core_manifest::Process<'_>,
) -> Result<&'static Process<M>, EntryError> {
    let name = Name::new(from.name);
    let mut serves = [schema::endpoint::INTERFACE_TAG; limits::GRANTS];
    let (mut count, mut begins_session) = (0, false);
    for (line, grant) in from.grants().enumerate() {
        let kind = grant?.kind;
        begins_session |= kind == GrantKind::UserSession;
        if let GrantKind::Endpoint { interface_id, .. } = kind
            && let Some(place) = serves.get_mut(count)
        {
            *place = tag(name, interface_id)?;
            count += 1;
        }
        if line % GRANTS_PER_PREEMPTION_POINT == GRANTS_PER_PREEMPTION_POINT - 1 {
            preemption_point(m);
        }
    }
    preemption_point(m);
    let lent = match parent {
        Some(parent) => Some(lend_record(parent)?),
        None => None,
    };
    let new = NewProcess {
        name,
        profile: from.profile,
        weight: Weight::new(from.weight).unwrap_or(Weight::DEFAULT),
        is_essential: from.is_essential,
        serves: serves.get(..count).unwrap_or_default(),
        handles: u32::from(parent.is_some()),
        lent,
    };
    let begun = m.records().begin_process(m, new).map_err(ChildError::Begin);
    let (process, endpoints) = begun?;
    if begins_session {
        session::begin(process);
    }
    if let Some(parent) = parent {
        hold_lender(m, parent);
        if !begins_session {
            session::inherit(m, process, parent);
        }
    }
    preemption_point(m);
    let first = first_endpoint(m, manifest, number)?;
    let mut entries = m.records().entries.lock();
    for (place, endpoint) in entries.endpoints.iter_mut().skip(first).zip(&endpoints) {
        *place = Some(FacetOf { process: process.key(), endpoint: *endpoint });
    }
    drop(entries);
    Ok(process)
}

/// Grants of the manifest that are read between two preemption points.
const GRANTS_PER_PREEMPTION_POINT: usize = 8;

/// Shows the endpoints of the first `processes` processes, by number; a preemption point after each process.
fn each_endpoint<M: Machine>(
    m: M,
    manifest: &Manifest<'_>,
    processes: u32,
    mut visit: impl FnMut(usize, &str, u64),
) -> Result<usize, Error> {
    let mut count = 0;
    for number in 0..processes {
        let Some(process) = manifest.process(number)? else { break };
        preemption_point(m);
        for (line, grant) in process.grants().enumerate() {
            if let GrantKind::Endpoint { name, interface_id } = grant?.kind {
                visit(count, name, interface_id);
                count += 1;
            }
            if line % GRANTS_PER_PREEMPTION_POINT == GRANTS_PER_PREEMPTION_POINT - 1 {
                preemption_point(m);
            }
        }
    }
    Ok(count)
}

/// The number of an entry's first endpoint among all.
fn first_endpoint<M: Machine>(m: M, manifest: &Manifest<'_>, number: u32) -> Result<usize, Error> {
    each_endpoint(m, manifest, number, |_, _, _| {})
}

/// The number of the process of that name; a preemption point after each.
fn number_of<M: Machine>(m: M, manifest: &Manifest<'_>, name: &str) -> Result<Option<u32>, Error> {
    for number in 0..manifest.process_count() {
        if manifest.process(number)?.is_some_and(|process| process.name == name) {
            return Ok(Some(number));
        }
        preemption_point(m);
    }
    Ok(None)
}

/// The tag of an interface; every grant of a manifest that was checked has one.
fn tag(name: Name, interface_id: u64) -> Result<InterfaceTag, EntryError> {
    InterfaceTag::of(interface_id).ok_or(EntryError::Interface(name))
}

/// Gives an entry its memory, its capabilities and its program; how its first thread starts.
pub fn furnish<M: Machine>(
    m: M,
    parent: Option<&'static Process<M>>,
    manifest: &Manifest<'_>,
    number: u32,
    from: &core_manifest::Process<'_>,
    process: &'static Process<M>,
) -> Result<M::UserStart, EntryError> {
    let module = m.boot_module(from.binary).ok_or(EntryError::Module)?;
    let image = Image::parse(module).map_err(LoadError::from)?;
    image.check_abi().map_err(LoadError::from)?;
    preemption_point(m);
    m.create_space(&process.ops.space, &process.ops.ledger).map_err(LoadError::from)?;
    preemption_point(m);
    let mut entries = [NO_ENTRY; limits::GRANTS];
    let mut own = first_endpoint(m, manifest, number)?;
    for (grant, place) in from.grants().zip(&mut entries) {
        let grant = grant?;
        *place = give(m, manifest, process, &grant, &mut own)?;
        preemption_point(m);
    }
    let count = from.grant_count() as usize;
    map_capset(m, process, entries.get(..count).unwrap_or(&entries))?;
    preemption_point(m);
    let mut page = [0; START_BYTES];
    let length = if from.has_start_page() { from.write_start_page(&mut page)? } else { 0 };
    let argument = map_start_page(m, process, &page, length)?;
    preemption_point(m);
    Ok(load(m, parent, process, module, &image, argument)?)
}

/// Puts one capability of the manifest's into a process's table; its entry of the CapSet. `own` is the number of the
/// next endpoint that the process serves.
fn give<M: Machine>(
    m: M,
    manifest: &Manifest<'_>,
    process: &'static Process<M>,
    grant: &core_manifest::Grant<'_>,
    own: &mut usize,
) -> Result<CapSetEntry, EntryError> {
    let name = Name::new(grant.name);
    let (cap, id) = match grant.kind {
        GrantKind::Client { endpoint, badge } => facet(m, manifest, endpoint, badge)?,
        kind => {
            let id = kind.interface_id().unwrap_or(0);
            let object = match kind {
                GrantKind::ParkSpace => Object::ParkSpace,
                GrantKind::Endpoint { .. } => {
                    let entries = m.records().entries.lock();
                    let of = entries.endpoints.get(*own).copied().flatten();
                    *own += 1;
                    Object::Endpoint(of.ok_or(EntryError::Receiver(name))?)
                }
                GrantKind::UserSession => {
                    let object =
                        M::user_session(process.key()).ok_or(EntryError::Interface(name))?;
                    session::hold_for_capability(m, process);
                    Object::Other(object)
                }
                kind => Object::Other(M::granted(kind).ok_or(EntryError::Interface(name))?),
            };
            (Cap::new(object, tag(name, id)?), id)
        }
    };
    let slot = process.ops.caps.lock().as_mut().and_then(|table| table.insert(cap).ok());
    if slot.is_none()
        && let Object::Other(object) = cap.object
    {
        // Objects that count their capabilities have counted it.
        m.released(&process.ops, object);
    }
    let slot: CapSlot =
        slot.ok_or(ChildError::Inherit(kernel_ops::inherit::InheritError::Slots))?;
    Ok(entry(grant.name, slot, id))
}

/// A capability, and the interface it is of.
type Granted<M> = (Cap<Object<<M as kernel_ops::Machine>::Other>>, u64);

/// The client's side of an endpoint, and its interface.
fn facet<M: Machine>(
    m: M,
    manifest: &Manifest<'_>,
    endpoint: &str,
    badge: u64,
) -> Result<Granted<M>, EntryError> {
    let name = Name::new(endpoint);
    let missing = EntryError::Receiver(name);
    let mut found = None;
    each_endpoint(m, manifest, manifest.process_count(), |index, called, interface_id| {
        if called == endpoint {
            found = Some((index, interface_id));
        }
    })?;
    let Some((index, interface_id)) = found else { return Err(missing) };
    let of = m.records().entries.lock().endpoints.get(index).copied().flatten();
    let Some(of) = of else { return Err(missing) };
    let minted = service_of(m, of.process)
        .ok()
        .and_then(|mut service| service.as_mut().and_then(|s| s.mint(of.endpoint, badge)));
    let Some(grant) = minted else { return Err(missing) };
    let interface = tag(name, interface_id)?;
    Ok((Cap { object: Object::Facet(of), interface, badge, grant }, interface_id))
}

/// Starts the entry of that name as a child of the caller's process; a handle to it in the caller's table.
pub fn spawn_entry<M: Machine>(
    calling: &mut Calling<'_, M>,
    name: &str,
) -> Result<CapSlot, EntryError> {
    let m = calling.caller.m;
    let parent = process_of(m, calling.caller.thread);
    let manifest = Manifest::checked_before(m.manifest().ok_or(EntryError::NoManifest)?);
    let number = number_of(m, &manifest, name)?.ok_or(EntryError::Unknown)?;
    let from = manifest.process(number)?.ok_or(EntryError::Unknown)?;
    preemption_point(m);
    let place = HandlePlace::promise(parent)?;
    let process = begin(m, Some(parent), &manifest, number, &from)?;
    preemption_point(m);
    let started = furnish(m, Some(parent), &manifest, number, &from, process).and_then(|start| {
        let weight = process.weight();
        let made = spawn::make(m, process, start, weight, false);
        made.map_err(|(error, _)| ChildError::Thread(error).into())
    });
    let error = match started {
        Ok(made) => match place.fill(process) {
            Some(slot) => {
                m.child_began();
                made.start();
                return Ok(slot);
            }
            None => {
                made.undo();
                EntryError::Child(ChildError::Ending)
            }
        },
        Err(error) => error,
    };
    take_back(m, process);
    Err(error)
}
