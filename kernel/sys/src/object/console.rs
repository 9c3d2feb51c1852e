//! The console for programs: text out by way of the drain, input when somebody types.
//!
//! A read that finds nothing waits for the interrupt of a device ([`input_has_arrived`]); the drain waits for that of
//! the port ([`room_has_come`]).

use crate::kernel::{Calling, Kernel};
use abi_ring::{INLINE_WORDS, Outcome};
use abi_types::Status;
use kernel_arch::console;
use kernel_object::console::{Host, READ_BYTES, send};
use kernel_ops::complete::complete_words;
use kernel_ops::output::Sent;
use kernel_ops::party::Party;
use kernel_process::drain;
use schema::console::ReadResults;
use schema_wire::Encode;
use smp_lock::{LockClass, TicketLock};
use smp_pending::Target;
use zerocopy::IntoBytes;

/// The read that waits, and how much it takes.
static READER: TicketLock<Option<(Party, usize)>> = TicketLock::with_class(LockClass::Global, None);

/// The console, in a call.
pub struct Caller<'c, 'r>(pub &'c mut Calling<'r>);

impl Host for Caller<'_, '_> {
    fn send(&mut self, bytes: &[u8]) -> Sent {
        send(self.0, bytes)
    }

    fn receive(&mut self, into: &mut [u8]) -> usize {
        // Whoever waits was there before.
        if READER.lock().is_some() { 0 } else { console::receive(into) }
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
        // What was typed before the read was there has told nobody.
        input_has_arrived();
        true
    }
}

/// Lets the drain go on: the port has sent enough. In its interrupt.
pub fn room_has_come() {
    drain::wake(Kernel);
}

/// Completes the read that waits with what was typed, if there is one and something was. In the interrupt of a
/// device, or in a read.
pub fn input_has_arrived() {
    let mut reader = READER.lock();
    let Some((party, capacity)) = *reader else { return };
    let mut bytes = [0; READ_BYTES];
    let length = console::receive(bytes.get_mut(..capacity).unwrap_or_default());
    if length == 0 {
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
    fn send(&mut self, bytes: &[u8]) -> Sent {
        console::send_records(bytes);
        Sent::Taken
    }

    fn receive(&mut self, _into: &mut [u8]) -> usize {
        0
    }

    fn complete_on_input(&mut self, _capacity: usize) -> bool {
        false
    }
}
