//! IPC in one go: a CALL whose server waits, or a RETURN that waits for the next call.
//!
//! What the general path does in steps, for the one case that matters most: the ring holds one SQE,
//! its message is inline on both sides, the peer waits in `cap_enter` and belongs to this CPU. The
//! same core functions decide; everything is looked at before anything is changed, and whatever is not
//! as expected leaves the SQE where it is for the general path. `fastpath=off` on the command line
//! turns it off; a test compares both.
//!
//! The order: the service's lock, the peer's completion lock, the claim of the peer's wait. From the
//! claim on nothing can fail. Then the SQE is consumed, the record changes hands, the message is copied
//! from ring to ring, and the CPU goes from this thread to the peer ([`wait`]).

use crate::enter::{self, Caller};
use crate::object::{FacetOf, Object};
use crate::process::{Party, ProcessKey};
use crate::system::Cpu;
use crate::thread::{Completing, Thread};
use crate::{sched, start, system};
use abi_ring::{Credit, Head, Outcome, Pass, SimpleAnswer, SimpleCall};
use abi_types::{EnterResult, INLINE_BYTES, NEVER, Status};
use core_cap::Cap;
use core_endpoint::CallKey;
use core_thread::{ParkVerdict, RequeueVerdict, ResumeVerdict, Ticket};
use kernel_mm::space::PinnedRing;
use smp_pending::Target;

/// Bytes of an inline message.
const ROOM: u32 = INLINE_BYTES as u32;

/// Carries out the one SQE of a pass if it is such a CALL or RETURN: the peer, whose wait is claimed
/// and who has the message. `None` changes nothing.
#[inline(always)]
pub fn exchange(caller: Caller<'_>, pass: &mut Pass<'_, PinnedRing>) -> Option<&'static Thread> {
    let head = pass.head()?;
    if !pass.is_last() || !start::fast_path_is_on() {
        return None;
    }
    let slots = caller.ring.kernel.slots();
    if let Some(call) = head.simple_call(slots) {
        return send(caller, pass, &head, &call);
    }
    answer_and_wait(caller, pass, &head, &head.simple_answer(slots)?)
}

/// Claims the wait of a party whose completion side is locked, if it waits for exactly one inline
/// message: from here on it runs next on this CPU, whatever happens, and nothing fails any more.
#[inline(always)]
fn claim(
    thread: &'static Thread,
    completions: &mut Completing<'static>,
    party: &Party,
) -> Option<Credit> {
    let (ring, _, waiting) = completions.parts()?;
    let generation = party.thread.generation;
    let cell = ring.shared.cells.get(party.cell)?;
    if party.room != ROOM || waiting.generation != generation || waiting.want != 1 {
        return None;
    }
    if !cell.is_inline() {
        return None;
    }
    thread.state.claim(generation, Ticket::new(waiting.ticket)).ok()?;
    waiting.want = 0;
    Some(Credit::from_bits(cell.user_data()))
}

/// Completes the operation of a claimed party with the message in the sender's inline slot.
#[inline(always)]
fn post(
    completions: &mut Completing<'static>,
    cell: u32,
    credit: Credit,
    outcome: &Outcome,
    from: Caller<'_>,
    slot: u16,
) {
    let Some((ring, cq, _)) = completions.parts() else { return };
    let _ = ring.kernel.post_from_slot(cq, credit, outcome, &from.ring.kernel, slot);
    ring.shared.cells.give_back(cell);
}

#[inline(always)]
fn send(
    caller: Caller<'_>,
    pass: &mut Pass<'_, PinnedRing>,
    head: &Head,
    call: &SimpleCall,
) -> Option<&'static Thread> {
    let Cap { object: Object::Facet(FacetOf { process, endpoint }), badge, grant } =
        caller.ring.shared.process.lookup(call.target).ok()?
    else {
        return None;
    };
    let server = caller.system.processes.get(process.slot as usize)?;
    let mut guard = server.service.lock();
    let service = guard.as_mut()?;
    if server.key() != process || !service.grants.is_live(grant) {
        return None;
    }
    let (to, found) = service.calls.find_receiver(endpoint)?;
    let to_cell = to.cell;
    let thread = caller.system.thread(to.thread.slot)?;
    let mut completions = thread.machine.completions()?;
    let credit = claim(thread, &mut completions, to)?;
    let key = CallKey::of(found.token()).to_bits();
    let ProcessKey { slot, generation } = process;
    let target = Target::Call { process: slot, generation, key };
    let own = keep(caller, pass.take(head), (call.method, call.slot, call.length), target);
    service.calls.deliver_to(found, own);
    let outcome = Outcome {
        status: Status::Ok,
        flags: 0,
        method: call.method,
        length: call.length,
        badge,
        token: found.token().to_bits(),
    };
    post(&mut completions, to_cell, credit, &outcome, caller, call.slot);
    Some(thread)
}

#[inline(always)]
fn answer_and_wait(
    caller: Caller<'_>,
    pass: &mut Pass<'_, PinnedRing>,
    head: &Head,
    answer: &SimpleAnswer,
) -> Option<&'static Thread> {
    let process = caller.ring.shared.process;
    let Cap { object: Object::Endpoint(of), .. } = process.lookup(answer.endpoint).ok()? else {
        return None;
    };
    if of.process != process.key() {
        return None;
    }
    let mut guard = process.service.lock();
    let service = guard.as_mut()?;
    let (to, found) = service.calls.find_caller(answer.token, of.endpoint)?;
    let to_cell = to.cell;
    let thread = caller.system.thread(to.thread.slot)?;
    let mut completions = thread.machine.completions()?;
    let credit = claim(thread, &mut completions, to)?;
    let target = Target::Recv { key: found.receive().to_bits() };
    let own = keep(caller, pass.take(head), (0, 0, 0), target);
    service.calls.answer_to(found, own);
    let outcome = Outcome { length: answer.length, ..Outcome::plain(Status::Ok) };
    post(&mut completions, to_cell, credit, &outcome, caller, answer.slot);
    Some(thread)
}

/// Keeps the operation that was just consumed: method, inline slot and length of its message.
#[inline(always)]
fn keep(caller: Caller<'_>, credit: Credit, what: (u16, u16, u32), target: Target) -> Party {
    let Ok((cell, place)) = caller.ring.shared.cells.take() else {
        system::defect("more operations are pending than completions are owed");
    };
    let (method, slot, length) = what;
    place.set_inline(credit.into_bits(), method, slot, length);
    place.set_target(target);
    Party { thread: caller.thread.key(), cell, room: ROOM }
}

/// The caller waits for one completion, and `next`, whose wait was claimed, runs.
#[inline]
pub fn wait(caller: Caller<'_>, me: &'static Cpu, next: &'static Thread) -> EnterResult {
    let thread = caller.thread;
    match thread.state.begin_park() {
        Ok(ParkVerdict::Parking(ticket)) => {
            if enter::announce(caller, 1, ticket.number()) >= 1 {
                return stay(caller, next);
            }
        }
        Ok(ParkVerdict::Die) => {
            release(next);
            sched::end(thread);
        }
        Err(_) => system::defect("a thread that runs does not run"),
    }
    if !sched::hand_over(caller.system, me, thread, next) {
        release(next);
        sched::block(thread);
    }
    let count = caller.ring.kernel.count();
    if count >= 1 {
        return EnterResult::new(count, 0);
    }
    // Woken for another reason: the general path knows them all.
    EnterResult::new(enter::wait(caller, 1, NEVER), 0)
}

/// A completion was there already: the caller goes on, and `next` is queued.
#[cold]
fn stay(caller: Caller<'_>, next: &'static Thread) -> EnterResult {
    enter::withdraw(caller);
    release(next);
    match caller.thread.state.cancel_park() {
        Ok(ResumeVerdict::Resume) => {}
        Ok(ResumeVerdict::Die) => sched::end(caller.thread),
        Err(_) => system::defect("a thread that was about to wait is not"),
    }
    sched::before_user(system::here(), caller.thread);
    EnterResult::new(caller.ring.kernel.count(), 0)
}

/// A thread whose wait was claimed cannot run here and now: it is queued like any other.
#[cold]
fn release(thread: &'static Thread) {
    match thread.state.requeue() {
        Ok(RequeueVerdict::Enqueue) => sched::enqueue_woken(thread),
        Ok(RequeueVerdict::Finalise) => sched::end_claimed(thread),
        Err(_) => system::defect("a claimed thread is not the claimer's"),
    }
}
