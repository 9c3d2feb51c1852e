//! Registered buffers: memory that a process names once, and that messages go through without a walk of its tables.
//!
//! The pages of a buffer stay where they are: the list of regions refuses to unmap or protect them (`core_vm`), and who
//! copies reaches them by what was found when the buffer was registered. A buffer is used by the operations that name
//! it, from their acceptance to their completion, and by whoever copies, for one section at a time; both are counted in
//! its place (`smp_buffers`), without a lock. One that is given up ends at once if nobody uses it, else with the last use,
//! by whoever that is (`complete.rs`). Decided in ADR 361.

use crate::caller::Caller;
use crate::complete::{end_buffer, end_buffers, leave_buffers};
use crate::machine::{Machine, ProcessPart, Space};
use crate::party::Party;
use crate::registered::{Pages, Registered};
use abi_ring::{Payload, Room};
use abi_types::Status;
use alloc::boxed::Box;
use smp_buffers::{Left, Look};
use smp_pending::Buffers;

/// The pages behind a buffer of a machine's.
type PagesOf<M> = <<M as Machine>::Space as Space>::Pages;

/// A look at a buffer, for one section: by whoever holds no lock of a completion queue when it ends.
pub struct Using<'p, M: Machine> {
    m: M,
    process: &'static ProcessPart<M>,
    number: u16,
    look: Option<Look<'p, Box<Registered<PagesOf<M>>>, Party>>,
}

impl<M: Machine> Using<'_, M> {
    fn buffer(&self) -> Option<&Registered<PagesOf<M>>> {
        Some(self.look.as_ref()?.buffer()?)
    }

    /// The buffer, if so many bytes from `offset` on are inside, and for writing if that is meant.
    fn part(&self, offset: u64, bytes: usize, is_written: bool) -> Option<&PagesOf<M>> {
        let buffer = self.buffer()?;
        let is_good = buffer.holds(offset, bytes as u64) && (buffer.is_written || !is_written);
        is_good.then_some(&buffer.pages)
    }

    /// Copies bytes out; `None` if they are not all there.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Option<()> {
        self.part(offset, to.len(), false)?.read(offset, to);
        Some(())
    }

    /// Copies bytes in; `None` if they do not all fit, or may not.
    pub fn write(&self, offset: u64, from: &[u8]) -> Option<()> {
        self.part(offset, from.len(), true)?.write(offset, from);
        Some(())
    }
}

impl<M: Machine> Drop for Using<'_, M> {
    fn drop(&mut self) {
        if let Some(look) = self.look.take()
            && look.leave() == Left::Last
        {
            end_buffer(self.m, self.process, self.number);
        }
    }
}

/// Looks at a buffer of a process that is there.
#[inline]
pub fn look<M: Machine>(
    m: M,
    process: &'static ProcessPart<M>,
    number: u16,
) -> Option<Using<'static, M>> {
    let look = process.buffers.get(number)?.look()?;
    Some(Using { m, process, number, look: Some(look) })
}

/// Copies bytes from a part of one buffer to a part of another; `None` if they are not all inside.
pub fn copy<M: Machine>(
    from: &Using<'_, M>,
    offset: u64,
    to: &Using<'_, M>,
    to_offset: u64,
    bytes: usize,
) -> Option<()> {
    let source = from.part(offset, bytes, false)?;
    source.copy_to(offset, to.part(to_offset, bytes, true)?, to_offset, bytes);
    Some(())
}

/// The buffers that an operation of the caller's names, for as long as the value exists.
pub struct Uses<M: Machine> {
    m: M,
    process: &'static ProcessPart<M>,
    buffers: Buffers,
}

impl<M: Machine> Uses<M> {
    /// Checks that what an operation names is there, as far as it names buffers: its payload, of so many bytes with all
    /// that follows it, and its room.
    #[inline(always)]
    pub fn of(
        caller: Caller<'_, M>,
        payload: Payload,
        bytes: u32,
        room: Room,
    ) -> Result<Self, Status> {
        let (m, process) = (caller.m, caller.ring.shared.process);
        let mut uses = Self { m, process, buffers: Buffers::NONE };
        if let Payload::Registered { .. } = payload {
            uses.buffers.payload = uses.hold_payload(payload, bytes)?;
        }
        if let Room::Registered { .. } = room {
            uses.buffers.room = uses.hold_room(room)?;
        }
        Ok(uses)
    }

    #[inline(never)]
    fn hold_payload(&self, payload: Payload, bytes: u32) -> Result<Option<u16>, Status> {
        let Payload::Registered { buffer, offset, .. } = payload else { return Ok(None) };
        self.hold(buffer, |found| found.holds(offset, bytes.into()))
    }

    #[inline(never)]
    fn hold_room(&self, room: Room) -> Result<Option<u16>, Status> {
        let Room::Registered { buffer, offset, capacity } = room else { return Ok(None) };
        self.hold(buffer, |found| found.is_written && found.holds(offset, capacity.into()))
    }

    fn hold(
        &self,
        number: u16,
        is_good: impl Fn(&Registered<PagesOf<M>>) -> bool,
    ) -> Result<Option<u16>, Status> {
        let place = self.process.buffers.get(number).ok_or(Status::InvalidArgument)?;
        let look = place.hold().ok_or(Status::InvalidArgument)?;
        if look.buffer().is_some_and(|buffer| is_good(buffer)) {
            // Left by its number.
            look.stay();
            return Ok(Some(number));
        }
        if place.leave() == Left::Last {
            end_buffer(self.m, self.process, number);
        }
        Err(Status::BadAddress)
    }
}

impl<M: Machine> Drop for Uses<M> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.buffers != Buffers::NONE {
            let closed = leave_buffers(self.process, self.buffers);
            end_buffers(self.m, self.process, closed);
        }
    }
}
