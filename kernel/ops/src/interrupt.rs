//! Interrupt lines in the hands of programs: who has one, who waits, and what its controller is told.
//!
//! What is counted and when a line is open is `core_interrupt`'s. A line is a program's from the first capability of it
//! to the last; several processes may hold one, which is then one line with one wait. Interrupts come in by
//! [`raised`], with interrupts off. Decided in ADR 351.

use crate::caller::Caller;
use crate::complete::{complete, complete_words};
use crate::deadlines;
use crate::lines::{Held, Slots, Wiring, held};
use crate::machine::Machine;
use crate::object::{Calling, Objects};
use crate::party::Party;
use abi_ring::{INLINE_WORDS, Outcome, Room};
use abi_types::Status;
use core_interrupt::{Info, Line, Occupied, Raised, Tell, Waiting};
use schema::interrupt::WaitResults;
use schema_wire::Encode;
use smp_lock::Guard;
use smp_pending::{Limit, Target};
use zerocopy::IntoBytes;

/// Why a wait is refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotWaiting {
    /// Another call waits.
    Occupied,
    /// The count is to go elsewhere than the inline slot, which the interrupt cannot reach.
    Room,
    /// The line is nobody's any more.
    Gone,
}

fn lock<M: Machine>(m: M) -> Guard<'static, Slots> {
    m.tables().lines.0.lock()
}

/// Tells the controller. Under the lines' lock: who comes next tells it after this.
fn obey<M: Machine>(m: M, line: u32, tell: Tell) {
    if let Some(open) = tell.open {
        m.set_line_open(line, open);
    }
    if tell.acknowledge {
        m.acknowledge_line(line);
    }
}

/// One capability of the line more: the place it has; `None` if the machine does not give it, or it is held with another
/// wiring.
pub fn grant<M: Machine>(m: M, wiring: Wiring) -> Option<u32> {
    let mut lines = lock(m);
    let is_it = |held: &Held| held.wiring.line == wiring.line;
    let known = lines.iter().position(|place| place.as_ref().is_some_and(is_it));
    let is_free = |place: &Option<Held>| place.as_ref().is_none_or(|held| held.holders == 0);
    let at = known.or_else(|| lines.iter().position(is_free))?;
    let place = lines.get_mut(at)?;
    let number = u32::try_from(at).ok()?;
    if let Some(held) = place.as_mut().filter(|held| held.holders > 0) {
        if held.wiring != wiring {
            return None;
        }
        held.holders = held.holders.checked_add(1)?;
        return Some(number);
    }
    if !m.take_line(number, wiring) {
        return None;
    }
    // What it has counted before stays, since boot.
    let total = place.as_ref().filter(|held| is_it(held)).map_or(0, |held| held.line.info().total);
    *place = Some(Held { wiring, holders: 1, line: Line::new(wiring.trigger, total) });
    Some(number)
}

/// One capability more of the line at that place; whether it can be counted.
pub fn retained<M: Machine>(m: M, place: u32) -> bool {
    let mut lines = lock(m);
    let Some(held) = held(&mut lines, place) else { return false };
    let Some(holders) = held.holders.checked_add(1) else { return false };
    held.holders = holders;
    true
}

/// One capability less. With the last the line is masked and nobody's.
pub fn released<M: Machine>(m: M, place: u32) {
    let mut lines = lock(m);
    let Some(held) = held(&mut lines, place) else { return };
    held.holders = held.holders.saturating_sub(1);
    if held.holders > 0 {
        return;
    }
    m.give_line_back(held.wiring.line);
    let waiter = held.line.end();
    drop(lines);
    if let Some(party) = waiter {
        complete(m, party, &Outcome::plain(Status::Disconnected));
    }
}

/// The line at that place has interrupted. In the interrupt.
pub fn raised<M: Machine>(m: M, place: u32) {
    let mut lines = lock(m);
    // An interrupt that was on its way when the line was given back is nobody's.
    let Some(held) = held(&mut lines, place) else { return };
    let Raised { complete, tell } = held.line.raised(m.clock());
    obey(m, held.wiring.line, tell);
    drop(lines);
    if let Some((party, count)) = complete {
        tell_count(m, party, count);
    }
}

/// Completes a wait.
fn tell_count<M: Machine>(m: M, party: Party, count: u64) {
    let mut words = [0; INLINE_WORDS];
    let outcome = match (WaitResults { count }).encode(words.as_mut_bytes()) {
        Ok(bytes) => Outcome { length: bytes as u32, ..Outcome::plain(Status::Ok) },
        Err(_) => Outcome::plain(Status::ResultTooLarge),
    };
    complete_words(m, party, &outcome, &words);
}

/// Waits for interrupts that nobody has been told of: how many there are already; `None` if the call completes later.
pub fn wait<M: Objects>(
    calling: &mut Calling<'_, M>,
    place: u32,
) -> Result<Option<u64>, NotWaiting> {
    if calling.room != Room::Inline {
        return Err(NotWaiting::Room);
    }
    let Caller { m, ring, .. } = calling.caller;
    let mut lines = lock(m);
    let held = held(&mut lines, place).ok_or(NotWaiting::Gone)?;
    let party = calling.keep(Target::Interrupt { place }).ok_or(NotWaiting::Gone)?;
    let waiting = held.line.wait(party, m.clock());
    let line = held.wiring.line;
    match waiting {
        Err(Occupied) => {
            calling.unkeep(party);
            Err(NotWaiting::Occupied)
        }
        Ok((Waiting::Now(count), tell)) => {
            obey(m, line, tell);
            calling.unkeep(party);
            Ok(Some(count))
        }
        Ok((Waiting::Later(reopens_at), tell)) => {
            if let Some(at_ns) = reopens_at {
                // Before the interrupt that ends the wait can come.
                deadlines::bound(m, ring, Limit::Line, party, at_ns);
            }
            obey(m, line, tell);
            Ok(None)
        }
    }
}

/// Claims a wait for its cancel or end.
pub fn give_up<M: Machine>(m: M, place: u32, party: Party) -> bool {
    let mut lines = lock(m);
    let is_it = |waits: &Party| (waits.thread, waits.cell) == (party.thread, party.cell);
    held(&mut lines, place).is_some_and(|held| held.line.give_up(is_it))
}

/// A line that was masked because it interrupted too often may be heard again.
pub fn reopen<M: Machine>(m: M, place: u32) {
    change(m, place, |line, now_ns| line.reopen(now_ns));
}

/// The device is served.
pub fn acknowledge<M: Machine>(m: M, place: u32) {
    change(m, place, Line::acknowledge);
}

/// Masks the line, or unmasks it.
pub fn set_enabled<M: Machine>(m: M, place: u32, is_enabled: bool) {
    change(m, place, |line, now_ns| line.set_enabled(is_enabled, now_ns));
}

fn change<M: Machine>(m: M, place: u32, change: impl FnOnce(&mut Line<Party>, u64) -> Tell) {
    let mut lines = lock(m);
    if let Some(held) = held(&mut lines, place) {
        let tell = change(&mut held.line, m.clock());
        obey(m, held.wiring.line, tell);
    }
}

/// The line's number, and what it is.
pub fn info<M: Machine>(m: M, place: u32) -> Option<(u32, Info)> {
    let mut lines = lock(m);
    held(&mut lines, place).map(|held| (held.wiring.line, held.line.info()))
}

/// Capabilities of lines that there are, for tests.
pub fn holders<M: Machine>(m: M) -> u32 {
    lock(m).iter().flatten().map(|held| held.holders).sum()
}
