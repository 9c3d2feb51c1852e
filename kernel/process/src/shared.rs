//! Memory objects: how one is made and read, and how it goes. How it is mapped is in `attach.rs`.
//!
//! An object's frames are made before anybody can name it, and freed by whoever takes the last holding of it out
//! (`kernel_ops::shared`): a RELEASE, an unmap, or the reaper at the end of a process. Either is done a few frames at a
//! time, with preemption points between. Decided in ADR 300.

use crate::change::Refused;
use crate::machine::{Machine, process_of};
use crate::process::Process;
use crate::records::Records;
use abi_sync::atomic::Ordering;
use abi_types::CapSlot;
use core_cap::Cap;
use core_fallible::OutOfMemory;
use core_vm::{Ceiling, Over};
use kernel_dispatch::preemption_point;
use kernel_ops::capability::Object;
use kernel_ops::machine::SharedOf;
use kernel_ops::object::Calling;
use kernel_ops::paid::NoMemory;
use kernel_ops::shared::{
    Holding, MemoryFacet, ObjectInfo, ObjectKey, ReadError, Shared, SharedObject, Then,
};

/// Pages that are made between two preemption points: zeroing one takes more than 512 instructions.
const PAGES_MADE: u64 = 8;
/// Frames that are freed between two preemption points.
const FRAMES_FREED: u64 = 12;

impl<M: Machine> Records<M> {
    /// The record at a memory object's position, whichever object is in it.
    pub fn object(&self, slot: u32) -> Option<&'static SharedObject<SharedOf<M>>> {
        self.objects.get(slot as usize)
    }

    /// Takes a free record, a new one if there is none; `None` without memory or places.
    fn take_object(&self, m: M) -> Option<&'static SharedObject<SharedOf<M>>> {
        let mut first = self.free_objects.lock();
        if let Some(object) = self.object(*first) {
            *first = object.next.load(Ordering::Relaxed);
            return Some(object);
        }
        drop(first);
        let _growing = self.growth.lock();
        let slot = self.objects.as_slice().len() as u32;
        if self.objects.is_full() || !m.may_grow() {
            return None;
        }
        self.objects.grow(|_| SharedObject::new(slot, m.new_shared())).ok()
    }

    /// Gives a record back whose frames are free.
    fn give_object(&self, object: &'static SharedObject<SharedOf<M>>) {
        let mut first = self.free_objects.lock();
        object.next.store(*first, Ordering::Relaxed);
        *first = object.slot();
    }

    /// Records of memory objects that are in use.
    pub fn objects_in_use(&self) -> usize {
        self.objects.as_slice().iter().filter(|object| !object.is_free()).count()
    }
}

/// Makes an object of so many pages of zeros; its capability, with every access, in the caller's table.
pub fn create<M: Machine>(calling: &mut Calling<'_, M>, pages: u64) -> Result<CapSlot, Refused> {
    let m = calling.caller.m;
    let process = process_of(m, calling.caller.thread);
    let frames = SharedOf::<M>::frames_for(pages).ok_or(Refused::ObjectTooLarge)?;
    let paid = Holding::<SharedOf<M>>::pay(&process.ops.ledger, frames)?;
    let records = m.records();
    let object = records.take_object(m).ok_or(NoMemory::Machine)?;
    let identity = records.next_identity.fetch_add(1, Ordering::Relaxed);
    let made = fill(m, object, pages).and_then(|()| {
        // A record whose names are used up is nobody's for good.
        object.begin(identity, pages, process.slot()).ok_or(OutOfMemory)
    });
    let name = match made {
        Ok(name) => name,
        Err(error) => {
            free(m, object);
            records.give_object(object);
            return Err(NoMemory::from(error).into());
        }
    };
    let holding = Holding::of_maker(object, identity, paid);
    if let Err((holding, error)) = process.ops.map.hold_made(&process.ops.ledger, holding) {
        end(m, holding);
        return Err(error.into());
    }
    let facet = MemoryFacet { object: name, ceiling: Ceiling::ANY };
    insert(calling, facet).ok_or_else(|| {
        released(m, facet);
        Refused::Slots
    })
}

/// A capability of an object in the caller's table, for one that is counted.
fn insert<M: Machine>(calling: &Calling<'_, M>, facet: MemoryFacet) -> Option<CapSlot> {
    let (object, tag) = M::memory_object(facet);
    let mut caps = calling.caller.ring.shared.process.caps.lock();
    caps.as_mut()?.insert(Cap::new(Object::Other(object), tag)).ok()
}

/// Makes an object's frames.
fn fill<M: Machine>(
    m: M,
    object: &'static SharedObject<SharedOf<M>>,
    pages: u64,
) -> Result<(), OutOfMemory> {
    object.memory.begin(pages)?;
    let mut left = pages;
    while left > 0 {
        let part = left.min(PAGES_MADE);
        object.memory.fill(part)?;
        left -= part;
        preemption_point(m);
    }
    Ok(())
}

/// Frees an object's frames.
fn free<M: Machine>(m: M, object: &'static SharedObject<SharedOf<M>>) {
    while !object.memory.free(FRAMES_FREED) {
        preemption_point(m);
    }
}

/// The record of an object, and what it is.
pub(crate) fn find<M: Machine>(
    m: M,
    name: ObjectKey,
) -> Result<(&'static SharedObject<SharedOf<M>>, ObjectInfo), Refused> {
    let object = m.records().object(name.slot).ok_or(Over)?;
    Ok((object, object.info(name)?))
}

/// What an object is.
pub fn info<M: Machine>(m: M, facet: MemoryFacet) -> Result<ObjectInfo, Refused> {
    Ok(find(m, facet.object)?.1)
}

/// A facet that allows less, in the caller's table.
pub fn restrict<M: Machine>(
    calling: &mut Calling<'_, M>,
    facet: MemoryFacet,
    ceiling: Ceiling,
) -> Result<CapSlot, Refused> {
    let m = calling.caller.m;
    find(m, facet.object)?.0.retain(facet.object)?;
    let narrower = MemoryFacet { ceiling, ..facet };
    insert(calling, narrower).ok_or_else(|| {
        released(m, narrower);
        Refused::Slots
    })
}

/// Copies bytes of an object, at most [`MAX_COPY_BYTES`](kernel_ops::machine::MAX_COPY_BYTES): what its mappers write
/// meanwhile is in the copy or not.
pub fn read<M: Machine>(
    m: M,
    facet: MemoryFacet,
    offset: u64,
    to: &mut [u8],
) -> Result<(), ReadError> {
    let object = m.records().object(facet.object.slot).ok_or(ReadError::Gone)?;
    object.read(facet.object, offset, to)
}

/// There is one capability of an object more.
pub fn retained<M: Machine>(m: M, facet: MemoryFacet) -> bool {
    if let Some(object) = m.records().object(facet.object.slot) {
        match object.retain(facet.object) {
            // Of one that is over neither this is counted nor what is released.
            Ok(()) | Err(Over) => {}
        }
    }
    true
}

/// A capability of an object left a slot. May have preemption points.
pub fn released<M: Machine>(m: M, facet: MemoryFacet) {
    let Some(object) = m.records().object(facet.object.slot) else { return };
    if let Then::MakerLeaves { maker, identity } = object.release(facet.object) {
        end_of_maker(m, maker, identity);
    }
}

/// Ends the holding that an object's maker has, if it has it still.
fn end_of_maker<M: Machine>(m: M, maker: u32, identity: u64) {
    if let Some(holding) = m.process(maker).and_then(|maker| maker.map.take_holding(identity)) {
        end(m, holding);
    }
}

/// A process pays for an object no more; who was the last to pay frees it.
fn end<M: Machine>(m: M, mut holding: Holding<SharedOf<M>>) {
    match holding.leave() {
        Then::Nothing => {}
        Then::MakerLeaves { maker, identity } => {
            drop(holding);
            end_of_maker(m, maker, identity);
        }
        Then::Free => {
            let object = holding.object;
            // What came before has a section of its own.
            preemption_point(m);
            free(m, object);
            // After what it pays for.
            drop(holding);
            m.records().give_object(object);
        }
    }
}

/// Ends the holdings of a process that have nothing more to pay for.
pub(crate) fn end_idle<M: Machine>(m: M, process: &'static Process<M>) {
    while let Some(holding) = process.ops.map.take_idle() {
        end(m, holding);
        preemption_point(m);
    }
}

/// Ends every holding of a process without memory.
pub(crate) fn end_all<M: Machine>(m: M, process: &'static Process<M>) {
    while let Some(holding) = process.ops.map.take_any() {
        end(m, holding);
        preemption_point(m);
    }
}
