//! Console output of processes: a write goes into the ring of its process, or pends until there is room.
//!
//! What fits and who waits decides `core_output`, over the rings of `outlets.rs`. Here a write is kept, made known,
//! given up and answered; what takes it out again is a thread (`kernel_process::drain`).
//! Decided in ADR 257.

use crate::buffers;
use crate::complete::{complete, complete_words, operation_of};
use crate::machine::{Machine, ProcessPart, Record, Space};
use crate::object::{Calling, Objects};
use crate::outlets::{Bytes, OUTPUT_BYTES};
use crate::paid::{NoMemory, pay_for};
use crate::party::Party;
use abi_ring::{INLINE_WORDS, Outcome, Room};
use abi_types::{CqeFlags, Status};
use core_output::{Outlet, RING_BYTES, Written};
use smp_pending::Target;
use zerocopy::IntoBytes;

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a write that was taken has to be drained, and one that was not to be refused"]
pub enum Sent {
    /// It is in the ring.
    Taken,
    /// It pends.
    Later,
    /// There is no memory for the ring of the process, or it may not have as much.
    NoMemory(NoMemory),
    /// As many writes of the process wait as may.
    TooMany,
}

/// Makes the ring of a process, with its first write: what the process pays for its output is charged here and
/// nowhere else, and given back with the ring ([`Outputs::leave`](crate::outlets::Outputs::leave)).
fn open<M: Machine>(m: M, process: &'static ProcessPart<M>) -> Result<(), NoMemory> {
    let paid = pay_for::<u8>(&process.ledger, OUTPUT_BYTES)?;
    let bytes = Bytes { words: m.zeroed_words(RING_BYTES / size_of::<u64>())?, paid };
    let ring = Outlet::new(bytes)?;
    // Another thread of the process may have been faster: then its ring is the process's.
    let unused = m.tables().outputs.rings().open(process.slot() as usize, ring);
    drop(unused);
    Ok(())
}

/// Writes bytes of the calling process, at most [`core_output::WRITE_BYTES`].
pub fn write<M: Objects>(calling: &mut Calling<'_, M>, bytes: &[u8]) -> Sent {
    let m = calling.caller.m;
    let of = calling.caller.ring.shared.process;
    let process = of.slot();
    let outputs = &m.tables().outputs;
    if !outputs.is_open(process)
        && let Err(error) = open(m, of)
    {
        return Sent::NoMemory(error);
    }
    match outputs.rings().write(process as usize, None, bytes) {
        Written::Taken => return Sent::Taken,
        Written::Full | Written::Waits => {}
        Written::TooMany => return Sent::TooMany,
        Written::NotOpen => m.defect("the ring of a process with threads is gone"),
    }
    // First the operation is kept, then it is tried once more: what was drained meanwhile has told nobody.
    let Some(party) = calling.keep(Target::Write) else { return Sent::TooMany };
    let written = outputs.rings().write(process as usize, Some(party), bytes);
    let sent = match written {
        Written::Waits => return Sent::Later,
        Written::Taken => Sent::Taken,
        Written::Full | Written::TooMany | Written::NotOpen => Sent::TooMany,
    };
    calling.unkeep(party);
    sent
}

/// Claims a write that waits for its cancel or end.
pub fn give_up<M: Machine>(m: M, process: u32, party: Party) -> bool {
    let is_it = |of: &Party| (of.thread, of.cell) == (party.thread, party.cell);
    m.tables().outputs.rings().give_up(process as usize, is_it)
}

/// Completes a write that was let in, with its encoded answer of `length` bytes, where its caller wants it.
pub fn answer<M: Machine>(m: M, party: Party, words: &[u64; INLINE_WORDS], length: usize) {
    let mut outcome = Outcome { length: length as u32, ..Outcome::plain(Status::Ok) };
    match operation_of(m, party).map(|operation| operation.room) {
        // The thread is gone.
        None => {}
        Some(Room::Inline) => complete_words(m, party, &outcome, words),
        Some(Room::Address { capacity, .. } | Room::Registered { capacity, .. })
            if length > capacity as usize =>
        {
            complete(m, party, &Outcome::plain(Status::ResultTooLarge));
        }
        Some(room) => {
            outcome.flags |= CqeFlags::BY_ADDRESS;
            let said = words.as_bytes().get(..length).unwrap_or_default();
            let Some(thread) = m.thread(party.thread.slot) else { return };
            // With the lock of its ring held, the thread's process cannot go away; nor as long as somebody looks.
            let Some(held) = thread.ops().completions_of(party.thread.generation) else { return };
            let process = held.ring().shared.process;
            let is_copied = match room {
                Room::Registered { buffer, offset, .. } => {
                    let using = buffers::look(m, process, buffer);
                    drop(held);
                    using.and_then(|using| using.write(offset, said)).is_some()
                }
                Room::Inline => false,
                Room::Address { address, .. } => {
                    let copied = process.space.copy_out(address, said);
                    drop(held);
                    copied.is_ok()
                }
            };
            if !is_copied {
                outcome = Outcome::plain(Status::BadAddress);
            }
            complete(m, party, &outcome);
        }
    }
}
