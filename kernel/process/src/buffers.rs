//! Registered buffers: how one is made and given up. How messages go through them is in `kernel_ops::buffers`.
//!
//! Decided in ADR 361.

use crate::change::Refused;
use crate::machine::{Machine, process_of};
use crate::memory::NotNow;
use crate::process::Process;
use abi_ring::Room;
use core_fallible::try_box;
use core_ledger::RegisteredBuffers;
use core_vm::{PageRange, VmError};
use kernel_dispatch::preemption_point;
use kernel_ops::complete::put_away;
use kernel_ops::machine::{MAX_STEP_PAGES, Space};
use kernel_ops::object::Calling;
use kernel_ops::paid::{NoMemory, pay_for};
use kernel_ops::registered::Registered;
use smp_buffers::Left;
use smp_pending::Target;

/// Registers pages of the caller's, all of which are mapped, as a buffer; its number.
pub fn register<M: Machine>(
    calling: &mut Calling<'_, M>,
    address: u64,
    pages: u64,
    is_written: bool,
) -> Result<u16, Refused> {
    let m = calling.caller.m;
    let process = process_of(m, calling.caller.thread);
    let range = PageRange::new(address, pages)?;
    let ledger = &process.ops.ledger;
    let paid = ledger.reserve(RegisteredBuffers, 1).map_err(NoMemory::Account)?.commit();
    let record = pay_for::<Registered<<M::Space as Space>::Pages>>(ledger, 1)?;
    let pages = M::Space::new_pages(ledger, pages)?;
    process.ops.map.change(
        ledger,
        || preemption_point(m),
        |regions| regions.register(range, is_written),
    )?;
    // From here on the pages stay as they are.
    let mut buffer = Registered { pages, range, is_written, paid, record };
    if let Err(error) = find_pages(m, process, &mut buffer) {
        drop(buffer);
        process.ops.map.unregister(range);
        return Err(error);
    }
    let opened = match try_box(buffer) {
        Ok(buffer) => process.ops.buffers.open(buffer).map_err(drop),
        Err(_) => Err(()),
    };
    opened.map_err(|()| {
        process.ops.map.unregister(range);
        NoMemory::Machine.into()
    })
}

/// Finds the pages of a buffer, a few at a time.
fn find_pages<M: Machine>(
    m: M,
    process: &Process<M>,
    buffer: &mut Registered<<M::Space as Space>::Pages>,
) -> Result<(), Refused> {
    let mut next = buffer.range.first();
    while next < buffer.range.end() {
        let count = (buffer.range.end() - next).min(MAX_STEP_PAGES);
        let part = PageRange::from_page(next, count)?;
        let found = process.ops.space.add_pages(&mut buffer.pages, part);
        found.map_err(|_| Refused::Vm(VmError::NotMapped))?;
        next = part.end();
        preemption_point(m);
    }
    Ok(())
}

/// Gives a buffer of the caller's up; the call completes when no operation uses it any more.
pub fn unregister<M: Machine>(calling: &mut Calling<'_, M>, number: u16) -> Result<(), NotNow> {
    let m = calling.caller.m;
    let process = process_of(m, calling.caller.thread);
    let place = process.ops.buffers.get(number).ok_or(Refused::NoBuffer)?;
    // The closer holds it from here on: it does not end before it is known who waits.
    if !place.begin_close() {
        return Err(Refused::NoBuffer.into());
    }
    // The call has no results, and must not wait for itself if they were to go there.
    calling.room = Room::Inline;
    let Some(party) = calling.keep(Target::Memory) else { m.defect("a call is kept twice") };
    place.set_waiter(party);
    if place.leave() == Left::Used {
        return Err(NotNow::Later);
    }
    if let Some((buffer, _)) = place.take() {
        put_away(&process.ops, *buffer);
        place.free();
    }
    calling.unkeep(party);
    Ok(())
}
