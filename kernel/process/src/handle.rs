//! Handles to processes: waiting for an end, asking for a status, ending one, letting go; and what follows for the
//! record when nothing of the process is left.
//!
//! A handle names a process by position and generation. The record is that process's until it is gone and the last
//! handle is: so its status can be asked for again and again, and what a call in progress holds ([`Held`]) is
//! never another's. While it is held a record is paid for by whoever lent the process its limits; what the
//! process itself has lent to others stays lent with it. Decided in ADRs 287 and 288.

use crate::end;
use crate::machine::Machine;
use crate::process::{Ended, Process, Reason};
use crate::session;
use abi_ring::{INLINE_WORDS, Outcome};
use abi_sync::atomic::Ordering;
use abi_types::Status;
use core_ledger::Profile;
use core_thread::HandlesVerdict;
use kernel_ops::capability::ProcessKey;
use kernel_ops::complete::complete_words;
use kernel_ops::machine::Defect;
use kernel_ops::object::Calling;
use kernel_ops::party::{Fit, Party};
use schema::process_handle::WaitResults;
use schema::process_handle_capnp::ExitReason;
use schema_wire::Encode;
use smp_pending::Target;
use zerocopy::IntoBytes;

/// A process that somebody holds: its record is not another's as long as this lives.
pub struct Held<M: Machine> {
    m: M,
    process: &'static Process<M>,
    key: ProcessKey,
}

/// Holds the process of that name; `None` if nobody can ask for it any more.
pub fn hold<M: Machine>(m: M, key: ProcessKey) -> Option<Held<M>> {
    let process = m.records().process(key.slot)?;
    process.handles.hold(key.generation).then_some(Held { m, process, key })
}

impl<M: Machine> Drop for Held<M> {
    fn drop(&mut self) {
        released(self.m, self.key);
    }
}

/// One more handle to a process; `false` if there is none that it could be copied from.
pub fn retained<M: Machine>(m: M, key: ProcessKey) -> bool {
    m.records().process(key.slot).is_some_and(|process| process.handles.hold(key.generation))
}

/// A handle left its slot, or a call on one is over.
pub fn released<M: Machine>(m: M, key: ProcessKey) {
    let Some(process) = m.records().process(key.slot) else { return };
    if process.handles.release(key.generation) == HandlesVerdict::Free {
        free(m, key.slot, process);
    }
}

/// What waiting for a process comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitVerdict {
    /// It is gone.
    Ended(Ended),
    /// The call completes when it is.
    Pending,
    /// Another call waits.
    SecondWaiter,
}

impl<M: Machine> Held<M> {
    /// The process.
    pub fn process(&self) -> &'static Process<M> {
        self.process
    }

    /// Its name.
    pub fn key(&self) -> ProcessKey {
        self.key
    }

    /// How it ended, if it is gone.
    pub fn ended(&self) -> Option<Ended> {
        self.process.ending.lock().ended
    }

    /// Waits for its end with the call in hand.
    pub fn wait(&self, calling: &mut Calling<'_, M>) -> WaitVerdict {
        if let Some(ended) = self.ended() {
            return WaitVerdict::Ended(ended);
        }
        let Some(party) = calling.keep(Target::End { process: self.key.to_bits() }) else {
            return WaitVerdict::SecondWaiter;
        };
        let verdict = {
            let mut ending = self.process.ending.lock();
            match (ending.ended, ending.waiter) {
                (Some(ended), _) => WaitVerdict::Ended(ended),
                (None, Some(_)) => WaitVerdict::SecondWaiter,
                (None, None) => {
                    ending.waiter = Some(party);
                    WaitVerdict::Pending
                }
            }
        };
        if verdict != WaitVerdict::Pending {
            calling.unkeep(party);
        }
        verdict
    }

    /// Ends it with `code`; what is ending or gone is left alone.
    pub fn kill(&self, code: i64) {
        if self.process.ops.is(self.key) {
            end::close(self.m, self.process, code, Reason::Killed);
        }
    }

    /// When it began, by the monotonic clock.
    pub fn began_ns(&self) -> u64 {
        self.process.began_ns.load(Ordering::Relaxed)
    }
}

/// Claims a pending wait for its cancel or end.
pub fn give_up<M: Machine>(m: M, process: u64, party: Party) -> bool {
    let Some(held) = hold_waited_for(m, ProcessKey::from_bits(process)) else { return false };
    let mut ending = held.ending.lock();
    let is_its = |waiter: &Party| waiter.thread == party.thread && waiter.cell == party.cell;
    ending.waiter.take_if(|waiter| is_its(waiter)).is_some()
}

/// The record of a process that a call waits for. A wait does not hold it: the party decides whether it is this one's.
fn hold_waited_for<M: Machine>(m: M, key: ProcessKey) -> Option<&'static Process<M>> {
    m.records().process(key.slot).filter(|process| process.ops.is(key))
}

/// Nothing is left of the process but its record: who waits is told, and what was lent for more than the record comes
/// back.
pub(crate) fn gone<M: Machine>(m: M, process: &'static Process<M>, key: ProcessKey) {
    let ended = Ended { code: process.exit_code(), reason: process.members.lock().reason };
    if let Some(first) = session::leave(m, process, key) {
        released(m, first);
    }
    settle(m, process);
    let waiter = {
        let mut ending = process.ending.lock();
        ending.ended = Some(ended);
        ending.waiter.take()
    };
    if process.handles.leave(key.generation) == HandlesVerdict::Free {
        free(m, key.slot, process);
    }
    if let Some(waiter) = waiter
        && !m.plants(Defect::EndNotTold)
    {
        complete(m, waiter, ended);
    }
}

/// What a record costs whoever has it kept, in bytes of the kernel's heap.
pub const fn record_bytes<M: Machine>() -> u32 {
    size_of::<Process<M>>() as u32
}

/// Gives back what a process that is gone does not need any more of its limits: what it has lent itself, and its record, it
/// does. If its lender is gone as well, that needs less now, and so on.
fn settle<M: Machine>(m: M, process: &'static Process<M>) {
    let mut at = process;
    while at.key().generation.is_multiple_of(2) && !m.plants(Defect::LoanKept) {
        let lender = {
            let mut members = at.members.lock();
            let Some(lent) = &mut members.lent else { return };
            let mut kept = at.ops.ledger.lent();
            kept.kernel_bytes = kept.kernel_bytes.saturating_add(record_bytes::<M>());
            lent.loan.keep(&kept);
            lent.lender
        };
        match m.records().process(lender.slot) {
            Some(lender) => at = lender,
            None => return,
        }
    }
}

/// A record is nobody's: what paid for it comes back, and it is free. Its lender's record may be nobody's with that.
fn free<M: Machine>(m: M, slot: u32, process: &'static Process<M>) {
    let (mut slot, mut process) = (slot, process);
    loop {
        let lent = process.members.lock().lent.take();
        let lender = lent.map(|lent| {
            let lender = lent.lender;
            if m.plants(Defect::LoanKept) {
                core::mem::forget(lent.loan);
            } else {
                lent.loan.give_back();
            }
            lender
        });
        m.records().give_process(slot, process);
        let Some(key) = lender else { return };
        let Some(lender) = m.records().process(key.slot) else { return };
        settle(m, lender);
        if lender.handles.release(key.generation) != HandlesVerdict::Free {
            return;
        }
        (slot, process) = (key.slot, lender);
    }
}

/// The reason as the interface names it.
pub const fn exit_reason(reason: Reason) -> ExitReason {
    match reason {
        Reason::Exited => ExitReason::Exited,
        Reason::Faulted => ExitReason::Faulted,
        Reason::Killed => ExitReason::Killed,
    }
}

/// A wait is over.
fn complete<M: Machine>(m: M, waiter: Party, ended: Ended) {
    let party = Party { room: Fit::NONE, ..waiter };
    let mut words = [0; INLINE_WORDS];
    let results = WaitResults { exit_code: ended.code, reason: exit_reason(ended.reason) };
    let outcome = match results.encode(words.as_mut_bytes()) {
        Ok(bytes) => Outcome { length: bytes as u32, ..Outcome::plain(Status::Ok) },
        Err(_) => Outcome::plain(Status::ResultTooLarge),
    };
    complete_words(m, party, &outcome, &words);
}

/// Whether the profile is nothing at all but for so many bytes: what a record costs.
pub(crate) const fn record_profile<M: Machine>() -> Profile {
    Profile { kernel_bytes: record_bytes::<M>(), ..Profile::NONE }
}
