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
use crate::system::{Cpu, System};
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
#[inline]
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

/// The thread and the completion side of a party that waits for exactly one message, inline.
#[inline(always)]
fn lock_peer(
    system: &'static System,
    party: &Party,
    length: u32,
) -> Option<(&'static Thread, Completing<'static>)> {
    if party.room != ROOM || length > ROOM {
        return None;
    }
    let thread = system.thread(party.thread.slot)?;
    Some((thread, thread.machine.completions()?))
}

/// Claims the wait of a locked peer, if one completion more ends it; from here on it runs next on
/// this CPU, whatever happens. Its operation's user data.
#[inline(always)]
fn claim(
    thread: &'static Thread,
    completions: &mut Completing<'static>,
    party: &Party,
) -> Option<Credit> {
    let (ring, _, waiting) = completions.parts()?;
    let generation = party.thread.generation;
    let cell = ring.shared.cells.get(party.cell)?;
    if waiting.generation != generation || waiting.want != 1 || !cell.is_inline() {
        return None;
    }
    thread.state.claim(generation, Ticket::new(waiting.ticket)).ok()?;
    waiting.want = 0;
    Some(Credit::from_bits(cell.user_data()))
}

/// Completes the operation of a claimed peer with the message in the sender's inline slot.
#[inline(always)]
fn post(
    mut completions: Completing<'static>,
    party: Party,
    credit: Credit,
    outcome: &Outcome,
    from: Caller<'_>,
    slot: u16,
) {
    let Some((ring, cq, _)) = completions.parts() else { return };
    let _ = ring.kernel.post_from_slot(cq, credit, outcome, &from.ring.kernel, slot);
    ring.shared.cells.give_back(party.cell);
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
    let to = *service.calls.waiting_receiver(endpoint)?;
    let (thread, mut completions) = lock_peer(caller.system, &to, call.length)?;
    let credit = claim(thread, &mut completions, &to)?;
    // From here on nothing fails.
    let party = keep(caller, pass.take(head), call.method, call.slot, call.length);
    let Some((_, token)) = service.calls.try_deliver(endpoint, party, 0, 0) else {
        system::defect("a receiver that waits is not there");
    };
    let ProcessKey { slot, generation } = process;
    let key = CallKey::of(token).to_bits();
    caller.aim(party, Target::Call { process: slot, generation, key });
    let outcome = Outcome {
        status: Status::Ok,
        flags: 0,
        method: call.method,
        length: call.length,
        badge,
        token: token.to_bits(),
    };
    post(completions, to, credit, &outcome, caller, call.slot);
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
    let to = *service.calls.waiting_caller(answer.token, of.endpoint)?;
    let (thread, mut completions) = lock_peer(caller.system, &to, answer.length)?;
    let credit = claim(thread, &mut completions, &to)?;
    // From here on nothing fails.
    let party = keep(caller, pass.take(head), 0, 0, 0);
    let Some((_, _, key)) = service.calls.try_reply_then_wait(answer.token, of.endpoint, party)
    else {
        system::defect("a caller that waits is not there");
    };
    caller.aim(party, Target::Recv { key: key.to_bits() });
    let outcome = Outcome { length: answer.length, ..Outcome::plain(Status::Ok) };
    post(completions, to, credit, &outcome, caller, answer.slot);
    Some(thread)
}

/// Keeps the operation that was just consumed.
#[inline(always)]
fn keep(caller: Caller<'_>, credit: Credit, method: u16, slot: u16, length: u32) -> Party {
    let Ok((cell, place)) = caller.ring.shared.cells.take() else {
        system::defect("more operations are pending than completions are owed");
    };
    place.set_inline(credit.into_bits(), method, slot, length);
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
    sched::before_user(caller.thread);
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
