//! Pages of a memory object come into an address space.
//!
//! They leave as any other pages do (`memory.rs`). Decided in ADR 300.

use crate::change::Refused;
use crate::machine::{Machine, process_of};
use crate::memory::{NotNow, Place, begin, enter};
use crate::shared::{end_idle, find, info};
use core_vm::{Access, Backing, VmError};
use kernel_ops::machine::{MAX_STEP_PAGES, Space};
use kernel_ops::object::Calling;
use kernel_ops::shared::{MemoryFacet, ObjectInfo};

/// Pages that come in between two preemption points: none has to be made.
const PAGES_IN: u64 = MAX_STEP_PAGES;

/// Maps pages of an object from number `first_page` on; the address of the first.
pub fn map<M: Machine>(
    calling: &mut Calling<'_, M>,
    facet: MemoryFacet,
    place: Place,
    first_page: u64,
    pages: u64,
    access: Access,
) -> Result<u64, NotNow> {
    let m = calling.caller.m;
    let process = process_of(m, calling.caller.thread);
    let (object, ObjectInfo { pages: length, identity, .. }) = find(m, facet.object)?;
    if first_page.checked_add(pages).is_none_or(|end| end > length) {
        return Err(Refused::Vm(VmError::ObjectTooShort).into());
    }
    // Before the list has pages of it: from there on it stays.
    process.ops.map.hold(&process.ops.ledger, object, facet.object, pages)?;
    let backing = Backing::Object { id: identity, first_page };
    let begun = begin(m, process, place, pages, |regions, range| {
        regions.map(range, access, facet.ceiling, backing, length).map(|_| ())
    });
    let range = match begun {
        Ok(range) => range,
        Err(refused) => {
            if process.ops.map.unhold(identity, pages) {
                end_idle(m, process);
            }
            return Err(refused.into());
        }
    };
    enter(calling, process, range, PAGES_IN, |part| {
        let first = first_page + (part.first() - range.first());
        process.ops.space.map_shared(part, access, &object.memory, first)
    })
}

/// Names an object's pages in lists of regions.
pub fn identity_of<M: Machine>(m: M, facet: MemoryFacet) -> Result<u64, Refused> {
    Ok(info(m, facet)?.identity)
}
