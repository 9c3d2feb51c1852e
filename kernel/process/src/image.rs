//! A program is started from a memory object, whose bytes may change while they are read.
//!
//! What is believed of the file was copied first (`core_elf`), so a change gives the child other bytes and nothing else. The
//! object is held while it is read as by one who maps a page of it, and paid for like that: whoever made or maps it may let
//! go of it meanwhile. Decided in ADR 360.

use crate::change::Refused;
use crate::child::{self, ChildError, NewChild};
use crate::machine::{Machine, process_of};
use crate::process::Process;
use crate::shared::{self, end_idle, find};
use abi_sync::atomic::{AtomicU32, Ordering};
use abi_types::CapSlot;
use core_elf::Source;
use core_vm::VmError;
use kernel_dispatch::preemption_point;
use kernel_ops::object::Calling;
use kernel_ops::shared::MemoryFacet;

/// Reads between two preemption points, beside those of who reads: notes are read in pieces of some bytes, and there may be
/// hundreds.
const READS_PER_PREEMPTION_POINT: u32 = 16;

/// The first bytes of a memory object, held for the caller's process.
struct HeldImage<M: Machine> {
    m: M,
    process: &'static Process<M>,
    facet: MemoryFacet,
    identity: u64,
    bytes: u64,
    reads: AtomicU32,
}

impl<M: Machine> HeldImage<M> {
    fn hold(
        m: M,
        process: &'static Process<M>,
        facet: MemoryFacet,
        bytes: u64,
    ) -> Result<Self, Refused> {
        let (object, info) = find(m, facet.object)?;
        if bytes.div_ceil(core_address::PAGE_SIZE) > info.pages {
            return Err(Refused::Vm(VmError::ObjectTooShort));
        }
        process.ops.map.hold(&process.ops.ledger, object, facet.object, 1)?;
        let reads = AtomicU32::new(0);
        Ok(Self { m, process, facet, identity: info.identity, bytes, reads })
    }
}

impl<M: Machine> Source for HeldImage<M> {
    fn length(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed);
        if reads % READS_PER_PREEMPTION_POINT == READS_PER_PREEMPTION_POINT - 1 {
            preemption_point(self.m);
        }
        let end = offset.checked_add(into.len() as u64);
        end.is_some_and(|end| end <= self.bytes)
            && shared::read(self.m, self.facet, offset, into).is_ok()
    }
}

impl<M: Machine> Drop for HeldImage<M> {
    fn drop(&mut self) {
        if self.process.ops.map.unhold(self.identity, 1) {
            end_idle(self.m, self.process);
        }
    }
}

/// Starts the program in the first `bytes` bytes of a memory object as a child of the caller's process; a handle to it in
/// the caller's table.
pub fn spawn_image<M: Machine>(
    calling: &mut Calling<'_, M>,
    facet: MemoryFacet,
    bytes: u64,
    new: &NewChild<'_>,
) -> Result<CapSlot, ChildError> {
    let m = calling.caller.m;
    let parent = process_of(m, calling.caller.thread);
    let image = HeldImage::hold(m, parent, facet, bytes).map_err(ChildError::Image)?;
    child::spawn(calling, &image, new)
}
