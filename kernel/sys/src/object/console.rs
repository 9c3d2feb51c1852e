//! The console for programs: text out at once, input when somebody types.
//!
//! The serial port is looked at while a read waits, every [`LOOK_NS`]: there is no interrupt to wait
//! for, because device interrupts come with the interface for them.

use crate::kernel::{Calling, Kernel};
use abi_ring::{INLINE_WORDS, Outcome};
use abi_types::Status;
use kernel_arch::console;
use kernel_object::console::{Host, READ_BYTES};
use kernel_ops::complete::complete_words;
use kernel_ops::deadlines;
use kernel_ops::party::Party;
use schema::console::ReadResults;
use schema_wire::Encode;
use smp_lock::{LockClass, TicketLock};
use smp_pending::Target;
use zerocopy::IntoBytes;

/// How often a waiting read looks.
const LOOK_NS: u64 = 10_000_000;

/// The read that waits, and how much it takes.
static READER: TicketLock<Option<(Party, usize)>> = TicketLock::with_class(LockClass::Global, None);

/// The console, in a call.
pub struct Caller<'c, 'r>(pub &'c mut Calling<'r>);

impl Host for Caller<'_, '_> {
    fn send(&mut self, bytes: &[u8]) {
        console::print_bytes(bytes);
    }

    fn receive(&mut self, into: &mut [u8]) -> usize {
        // Whoever waits was there before.
        if READER.lock().is_some() { 0 } else { receive(into) }
    }

    fn complete_on_input(&mut self, capacity: usize) -> bool {
        // Input is short: an answer always fits the inline slot.
        let mut reader = READER.lock();
        if reader.is_some() || self.0.room != abi_ring::Room::Inline {
            return false;
        }
        let Some(party) = self.0.keep(Target::Read) else { return false };
        *reader = Some((party, capacity));
        drop(reader);
        if deadlines::poll_input_after(Kernel, LOOK_NS) {
            return true;
        }
        let is_ours = give_up(party);
        if is_ours {
            self.0.unkeep(party);
        }
        !is_ours
    }
}

fn receive(into: &mut [u8]) -> usize {
    let mut length = 0;
    for place in into {
        let Some(byte) = console::read_byte() else { break };
        *place = byte;
        length += 1;
    }
    length
}

/// Looks for input, as long as somebody waits.
pub fn look() {
    let mut reader = READER.lock();
    let Some((party, capacity)) = *reader else { return };
    let mut bytes = [0; READ_BYTES];
    let length = receive(bytes.get_mut(..capacity).unwrap_or_default());
    if length == 0 {
        drop(reader);
        // Without a timer the read stays until a later one succeeds or it is cancelled.
        deadlines::poll_input_after(Kernel, LOOK_NS);
        return;
    }
    *reader = None;
    drop(reader);
    let mut words = [0; INLINE_WORDS];
    let results = ReadResults { bytes: bytes.get(..length).unwrap_or_default() };
    let outcome = match results.encode(words.as_mut_bytes()) {
        Ok(bytes) => Outcome { length: bytes as u32, ..Outcome::plain(Status::Ok) },
        Err(_) => Outcome::plain(Status::ResultTooLarge),
    };
    complete_words(Kernel, party, &outcome, &words);
}

/// Claims the waiting read for its cancel or end.
pub fn give_up(party: Party) -> bool {
    let mut reader = READER.lock();
    let is_its = reader.is_some_and(|(of, _)| (of.thread, of.cell) == (party.thread, party.cell));
    if is_its {
        *reader = None;
    }
    is_its
}

/// The record port: a console nobody types at.
pub struct Records;

impl Host for Records {
    fn send(&mut self, bytes: &[u8]) {
        console::send_records(bytes);
    }

    fn receive(&mut self, _into: &mut [u8]) -> usize {
        0
    }

    fn complete_on_input(&mut self, _capacity: usize) -> bool {
        false
    }
}
