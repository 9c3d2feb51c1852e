//! A program starts a program: everything is checked and charged before anything of the child runs, and either all of
//! it happens or nothing.
//!
//! The order: the file is read and judged; a slot for the handle is promised; the capabilities are checked and held; the
//! limits are lent; the child's record, memory and table are made and its program is loaded, in portions; its
//! first thread is made; what is moved leaves the spawner; the handle is in its slot; the thread runs. What fails
//! before the moves is undone here, by the caller itself, so that its account is what it was when the call is
//! answered. Decided in ADR 287.

use crate::change::Refused;
use crate::end;
use crate::handle::{record_bytes, record_profile};
use crate::load::{Load, LoadError, Portion, map_capset, map_start_page};
use crate::machine::{Machine, process_of};
use crate::process::{BeginError, Lent, NewProcess, Process, SpawnError};
use crate::session;
use crate::spawn::{self, Made};
use abi_types::{CAPSET_NAME_BYTES, CapSetEntry, CapSlot, InterfaceTag, START_BYTES};
use core_cap::{Cap, Request, Reservation};
use core_elf::{Image, Source};
use core_ledger::{LendError, Profile};
use core_manifest::{GrantKind, Name};
use core_sched_policy::Weight;
use kernel_dispatch::preemption_point;
use kernel_ops::capability::Object;
use kernel_ops::inherit::{InheritError, Inheritance, MAX_INHERITED};
use kernel_ops::object::Calling;
use kernel_ops::paid::NoMemory;

/// A capability that a child starts with.
#[derive(Clone, Copy, Debug)]
pub struct ChildGrant {
    /// What the child calls it.
    pub name: Name,
    /// The id of its interface as the child is told, or 0 for one of this system's.
    pub interface_id: u64,
    /// Where it comes from.
    pub source: GrantFrom,
}

/// Where a child's capability comes from.
#[derive(Clone, Copy, Debug)]
pub enum GrantFrom {
    /// A slot of the spawner's.
    Slot(Request),
    /// The child's own threads, address space or calling thread.
    Own(GrantKind<'static>),
}

/// What a child is made of.
#[derive(Clone, Copy)]
pub struct NewChild<'a> {
    /// What it is called.
    pub name: Name,
    /// What its threads weigh.
    pub weight: Weight,
    /// What it may use, out of what the spawner may.
    pub profile: Profile,
    /// What it starts with, at most [`MAX_INHERITED`].
    pub grants: &'a [ChildGrant],
    /// Its start page, of which so many bytes say something.
    pub start_page: (&'a [u8; START_BYTES], usize),
}

/// Why there is no child. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildError {
    /// The spawner is ending.
    Ending,
    /// The weight is more than the spawner's.
    Weight,
    /// The spawner's table has no slot for the handle.
    HandleSlot,
    /// The limits cannot be lent.
    Lend(LendError),
    /// There is no record or no memory for its tables.
    Begin(BeginError),
    /// A capability of the list cannot be inherited.
    Inherit(InheritError),
    /// The grant with this number is not of the interface that the list says, or of one that has no name here.
    Interface(usize),
    /// The memory object that it is in cannot be read.
    Image(Refused),
    /// The program cannot be loaded.
    Load(LoadError),
    /// There is no first thread.
    Thread(SpawnError),
}

impl From<InheritError> for ChildError {
    fn from(error: InheritError) -> Self {
        Self::Inherit(error)
    }
}

impl<E: Into<LoadError>> From<E> for ChildError {
    fn from(error: E) -> Self {
        Self::Load(error.into())
    }
}

/// The promise of a slot for a handle in the caller's table, which is taken back if it is not filled.
pub(crate) struct HandlePlace<M: Machine> {
    parent: &'static Process<M>,
    place: Option<Reservation>,
}

impl<M: Machine> HandlePlace<M> {
    pub(crate) fn promise(parent: &'static Process<M>) -> Result<Self, ChildError> {
        let mut caps = parent.ops.caps.lock();
        let table = caps.as_mut().ok_or(ChildError::Ending)?;
        let place = table.reserve(1).map_err(|_| ChildError::HandleSlot)?;
        Ok(Self { parent, place: Some(place) })
    }

    /// Puts a handle to the child there; its name, or nothing if the caller is ending.
    pub(crate) fn fill(mut self, child: &'static Process<M>) -> Option<CapSlot> {
        let (handle, interface) = M::process_handle(child.key());
        let mut caps = self.parent.ops.caps.lock();
        let table = caps.as_mut()?;
        table.fill(self.place.take()?, Cap::new(Object::Other(handle), interface))
    }
}

impl<M: Machine> Drop for HandlePlace<M> {
    fn drop(&mut self) {
        if let (Some(place), Some(table)) =
            (self.place.take(), self.parent.ops.caps.lock().as_mut())
        {
            table.abort(place);
        }
    }
}

/// A preemption point in the reading of what is asked for.
pub fn pause<M: Machine>(calling: &Calling<'_, M>) {
    preemption_point(calling.caller.m);
}

/// Starts the program in `source` as a child of the caller's process; a handle to it in the caller's table.
pub fn spawn<M: Machine>(
    calling: &mut Calling<'_, M>,
    source: &(impl Source + ?Sized),
    new: &NewChild<'_>,
) -> Result<CapSlot, ChildError> {
    let m = calling.caller.m;
    let parent = process_of(m, calling.caller.thread);
    // The list was read before.
    preemption_point(m);
    let image = Image::parse(source)?;
    image.check_abi()?;
    if new.weight > parent.weight() {
        return Err(ChildError::Weight);
    }
    preemption_point(m);
    let place = HandlePlace::promise(parent)?;
    let nothing = Request { slot: CapSlot::NONE, mode: core_cap::Mode::Copy };
    let mut requests = [nothing; MAX_INHERITED];
    let mut count = 0;
    for grant in new.grants {
        if let (GrantFrom::Slot(request), Some(place)) = (grant.source, requests.get_mut(count)) {
            *place = request;
            count += 1;
        }
    }
    let requests = requests.get(..count).unwrap_or_default();
    let mut inherited = Inheritance::prepare(m, &parent.ops, requests)?;
    preemption_point(m);
    let lent = lend(parent, &new.profile)?;
    let child = begin(m, parent, new, lent)?;
    let made = match furnish(m, parent, child, source, &image, new, &mut inherited) {
        Ok(made) => made,
        Err(error) => {
            // What is held of the spawner's goes back first: the child's table has only promises.
            drop(inherited);
            take_back(m, child);
            return Err(error);
        }
    };
    let departed = inherited.depart();
    let filled = departed
        .map_err(ChildError::from)
        .and_then(|()| place.fill(child).ok_or(ChildError::Ending));
    match filled {
        Ok(slot) => {
            inherited.arrive(&child.ops);
            m.child_began();
            made.start();
            Ok(slot)
        }
        Err(error) => {
            drop(inherited);
            made.undo();
            take_back(m, child);
            Err(error)
        }
    }
}

/// Lends the limits of a child and what its record costs.
fn lend<M: Machine>(parent: &'static Process<M>, child: &Profile) -> Result<Lent, ChildError> {
    let own = parent.members.lock().profile;
    let with_record = child.kernel_bytes.saturating_add(record_bytes::<M>());
    let lent = Profile { kernel_bytes: with_record, ..*child };
    let loan = parent.ops.ledger.lend(&own, &lent).map_err(ChildError::Lend)?;
    Ok(Lent { loan, lender: parent.key() })
}

/// Lends what the record of a process costs whose limits are the manifest's.
pub(crate) fn lend_record<M: Machine>(parent: &'static Process<M>) -> Result<Lent, ChildError> {
    let own = parent.members.lock().profile;
    let loan = parent.ops.ledger.lend(&own, &record_profile::<M>()).map_err(ChildError::Lend)?;
    Ok(Lent { loan, lender: parent.key() })
}

fn begin<M: Machine>(
    m: M,
    parent: &'static Process<M>,
    new: &NewChild<'_>,
    lent: Lent,
) -> Result<&'static Process<M>, ChildError> {
    let NewChild { name, profile, weight, .. } = *new;
    let new = NewProcess {
        name,
        profile,
        weight,
        is_essential: false,
        serves: &[],
        handles: 1,
        lent: Some(lent),
    };
    let (child, _) = m.records().begin_process(m, new).map_err(ChildError::Begin)?;
    hold_lender(m, parent);
    session::inherit(m, child, parent);
    preemption_point(m);
    Ok(child)
}

/// A child has begun: its lender is held from now on.
pub(crate) fn hold_lender<M: Machine>(m: M, parent: &'static Process<M>) {
    if !parent.handles.hold_living(parent.key().generation) {
        m.defect("a process starts another and is gone");
    }
}

/// Takes a child apart that never ran.
pub(crate) fn take_back<M: Machine>(m: M, child: &'static Process<M>) {
    let key = child.key();
    end::take_back(m, child);
    // Nobody was given the handle that it began with.
    crate::handle::released(m, key);
}

/// Gives a child its memory, its names of capabilities, its program and its first thread.
fn furnish<M: Machine>(
    m: M,
    parent: &'static Process<M>,
    child: &'static Process<M>,
    source: &(impl Source + ?Sized),
    image: &Image,
    new: &NewChild<'_>,
    inherited: &mut Inheritance<M>,
) -> Result<Made<M>, ChildError> {
    m.create_space(&child.ops.space, &child.ops.ledger)?;
    preemption_point(m);
    let mut entries = [NO_ENTRY; MAX_INHERITED];
    name_all(child, new.grants, inherited, &mut entries)?;
    preemption_point(m);
    map_capset(m, child, entries.get(..new.grants.len()).unwrap_or(&entries))?;
    preemption_point(m);
    let (page, length) = new.start_page;
    let argument = map_start_page(m, child, page, length)?;
    preemption_point(m);
    let start = load(m, Some(parent), child, source, image, argument)?;
    spawn::make(m, child, start, new.weight, false).map_err(|(error, _)| ChildError::Thread(error))
}

/// Loads a program with a preemption point after each portion; how its first thread starts. A `parent` that ends
/// meanwhile ends the load.
pub(crate) fn load<M: Machine>(
    m: M,
    parent: Option<&'static Process<M>>,
    child: &'static Process<M>,
    source: &(impl Source + ?Sized),
    image: &Image,
    argument: u64,
) -> Result<M::UserStart, ChildError> {
    let mut load = Load::new(m, child, source, image)?;
    loop {
        let portion = load.step()?;
        preemption_point(m);
        if let Portion::Done(mut start) = portion {
            start.argument = argument;
            return m.user_start(start).map_err(|_| ChildError::Load(LoadError::Start));
        }
        if parent.is_some_and(Process::is_closed) {
            return Err(ChildError::Ending);
        }
    }
}

/// An entry of a CapSet page without a capability.
pub(crate) const NO_ENTRY: CapSetEntry =
    CapSetEntry { slot: 0, interface: 0, name_length: 0, name: [0; CAPSET_NAME_BYTES] };

/// An entry of a CapSet page.
pub(crate) fn entry(name: &str, slot: CapSlot, interface: u64) -> CapSetEntry {
    let mut bytes = [0; CAPSET_NAME_BYTES];
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    CapSetEntry { slot: slot.to_bits(), interface, name_length: name.len() as u32, name: bytes }
}

/// The id of an interface of this system by its tag.
pub(crate) fn id_of(tag: InterfaceTag) -> Option<u64> {
    let ids = schema::INTERFACES.iter().map(|interface| interface.id);
    ids.into_iter().find(|id| InterfaceTag::of(*id) == Some(tag))
}

/// Names a child's capabilities: those of its own are put into its table, slots are promised for the others.
fn name_all<M: Machine>(
    child: &'static Process<M>,
    grants: &[ChildGrant],
    inherited: &mut Inheritance<M>,
    entries: &mut [CapSetEntry; MAX_INHERITED],
) -> Result<(), ChildError> {
    let is_slot = |grant: &ChildGrant| matches!(grant.source, GrantFrom::Slot(_));
    let from_slots = grants.iter().enumerate().filter(|(_, grant)| is_slot(grant));
    for ((number, grant), tag) in from_slots.clone().zip(inherited.interfaces()) {
        let id = match grant.interface_id {
            0 => id_of(tag),
            id => (InterfaceTag::of(id) == Some(tag)).then_some(id),
        };
        let id = id.ok_or(ChildError::Interface(number))?;
        if let Some(place) = entries.get_mut(number) {
            *place = entry(grant.name.as_str(), CapSlot::NONE, id);
        }
    }
    for (number, grant) in grants.iter().enumerate() {
        let GrantFrom::Own(kind) = grant.source else { continue };
        let id = kind.interface_id().ok_or(ChildError::Interface(number))?;
        let tag = InterfaceTag::of(id).ok_or(ChildError::Interface(number))?;
        let object = M::granted(kind).ok_or(ChildError::Interface(number))?;
        let cap = Cap::new(Object::Other(object), tag);
        let slot = child.ops.caps.lock().as_mut().and_then(|table| table.insert(cap).ok());
        let slot = slot.ok_or(ChildError::Inherit(InheritError::Slots))?;
        if let Some(place) = entries.get_mut(number) {
            *place = entry(grant.name.as_str(), slot, id);
        }
    }
    let mut numbers = from_slots.map(|(number, _)| number);
    inherited.promise(&child.ops, |slot| {
        if let Some(place) = numbers.next().and_then(|number| entries.get_mut(number)) {
            place.slot = slot.to_bits();
        }
    })?;
    Ok(())
}

/// Whether a failure is for want of what the spawner or the machine has, and not for what was asked.
pub const fn no_memory(error: &ChildError) -> Option<&NoMemory> {
    match error {
        ChildError::Begin(BeginError::Memory(error))
        | ChildError::Load(LoadError::Memory(error)) => Some(error),
        _ => None,
    }
}
