//! IPC in one go: a CALL whose server waits, or a RETURN that waits for the next call.
//!
//! What the general path does in steps, for the one case that matters most: the ring holds one SQE,
//! its message is inline on both sides, and the peer waits in `cap_enter`. A peer that belongs to another
//! CPU is brought to this one. The same core functions decide; everything is looked at before anything
//! is changed, and whatever is not as expected leaves the SQE where it is for the general path.
//! `fastpath=off` on the command line lets rings find no such SQE; a test compares both.
//!
//! The order: the service's lock, the claim of the peer's wait. From the claim on nothing can fail. Then
//! the SQE is consumed, the record changes hands, the message is copied from ring to ring under the
//! peer's completion lock, and the CPU goes from this thread to the peer ([`wait`]).

use crate::caller::Caller;
use crate::capability::{FacetOf, Object, ProcessKey};
use crate::machine::{Defect, Machine, OwnRing, Record, end};
use crate::party::{Fit, Party};
use crate::wait;
use abi_ring::{Credit, Outcome, SimpleCall, Sole};
use abi_types::{EnterResult, NEVER, Status};
use core_cap::Cap;
use core_endpoint::CallKey;
use core_thread::{ResumeVerdict, ThreadKey, WaitVerdict};
use kernel_dispatch::trace::point;
use kernel_dispatch::{self as dispatch, Here, Record as _};
use schema::trace_capnp::TraceEvent;
use smp_pending::Target;

/// Carries out a ring's only SQE if it is such a CALL: the server, whose wait is claimed and who has
/// the message. `None` changes nothing.
#[inline(always)]
pub fn send<M: Machine>(
    caller: Caller<'_, M>,
    sole: Sole<'_, M::RingMemory>,
) -> Option<&'static M::Thread> {
    let call = sole.simple_call()?;
    let any = caller.m.plants(Defect::AnyInterface);
    let found = caller.ring.shared.process.look(call.target, |cap| match *cap {
        Cap { object: Object::Facet(of), interface, badge, grant }
            if call.means(interface) || any =>
        {
            Some((of, badge, grant))
        }
        _ => None,
    });
    let (FacetOf { process, endpoint }, badge, grant) = found.ok()??;
    let server = caller.m.process(process.slot)?;
    let mut guard = server.service.lock();
    let service = guard.as_mut()?;
    let is_live = service.grants.is_live(grant) || caller.m.plants(Defect::RevokedFacet);
    if !server.is(process) || !is_live {
        return None;
    }
    let (to, token, found) = service.calls.find_receiver(endpoint)?;
    let thread = claim(caller, to)?;
    let SimpleCall { method, slot, length, user_data, .. } = call;
    let ProcessKey { slot: of, generation } = process;
    let target = Target::Call { process: of, generation, key: CallKey::of(token).to_bits() };
    found.deliver(keep(caller, sole.take(user_data), (method, slot, length), target));
    let outcome =
        Outcome { status: Status::Ok, flags: 0, method, length, badge, token: token.to_bits() };
    post(thread, to.cell, &outcome, caller, slot);
    point(caller.m, TraceEvent::Call, || {
        (thread.ops().slot().into(), thread.ops().process_slot().into())
    });
    Some(thread)
}

/// Carries out a ring's only SQE if it is such a RETURN: the caller, whose wait is claimed and who
/// has the answer. `None` changes nothing.
#[inline(always)]
pub fn answer_and_wait<M: Machine>(
    caller: Caller<'_, M>,
    sole: Sole<'_, M::RingMemory>,
) -> Option<&'static M::Thread> {
    let answer = sole.simple_answer()?;
    let process = caller.ring.shared.process;
    let Cap { object: Object::Endpoint(of), .. } = process.lookup(answer.endpoint).ok()? else {
        return None;
    };
    if !process.is(of.process) {
        return None;
    }
    let mut guard = process.service.lock();
    let service = guard.as_mut()?;
    let (to, key, found) = service.calls.find_caller(answer.token, of.endpoint)?;
    let thread = claim(caller, to)?;
    let target = Target::Recv { key: key.to_bits() };
    found.answer_then_wait(keep(caller, sole.take(answer.user_data), (0, 0, 0), target));
    let outcome = Outcome { length: answer.length, ..Outcome::plain(Status::Ok) };
    post(thread, to.cell, &outcome, caller, answer.slot);
    point(caller.m, TraceEvent::Answer, || (thread.ops().slot().into(), 1));
    Some(thread)
}

/// Claims the wait of a party that waits for exactly one inline message: from here on its thread runs
/// next on this CPU, whatever happens, and nothing fails any more.
#[inline(always)]
fn claim<M: Machine>(caller: Caller<'_, M>, party: Party) -> Option<&'static M::Thread> {
    if party.room != Fit::SIMPLE_INLINE {
        return None;
    }
    let thread = caller.m.thread(party.thread.slot)?;
    thread.ops().want.claim_one(thread.state(), party.thread.generation).ok()?;
    Some(thread)
}

/// Keeps the operation that was just consumed: method, inline slot and length of its message.
#[inline(always)]
fn keep<M: Machine>(
    caller: Caller<'_, M>,
    credit: Credit,
    what: (u16, u16, u32),
    target: Target,
) -> Party {
    let (method, slot, length) = what;
    let kept = caller.ring.shared.cells.keep_inline(credit, method, slot, length);
    let Ok((cell, place)) = kept else {
        caller.m.defect("more operations are pending than completions are owed");
    };
    place.set_target(target);
    let thread =
        ThreadKey { slot: caller.thread.ops().slot(), generation: caller.ring.shared.generation };
    Party { thread, cell, room: Fit::SIMPLE_INLINE }
}

/// Completes the operation of a claimed party with the message in the sender's inline slot.
#[inline(always)]
fn post<M: Machine>(
    thread: &'static M::Thread,
    cell: u32,
    outcome: &Outcome,
    from: Caller<'_, M>,
    slot: u16,
) {
    let Some(mut completions) = thread.ops().home.completions() else { return };
    let Some((ring, cq)) = completions.parts() else { return };
    let Some(credit) = ring.shared.cells.finish(cell) else { return };
    ring.kernel.post_from_slot_unawaited(cq, credit, outcome, &from.ring.kernel, slot);
}

/// The caller waits for one completion, and `next`, whose wait was claimed, runs.
#[inline(never)]
pub fn wait<M: Machine>(
    m: M,
    thread: &'static M::Thread,
    ring: &OwnRing<M>,
    here: Here<M>,
    next: &'static M::Thread,
) -> EnterResult {
    thread.ops().want.announce(1);
    match thread.state().begin_wait() {
        Ok(WaitVerdict::AboutToWait(_)) => {
            if ring.kernel.has_completions() {
                return stay(m, thread, ring, next);
            }
        }
        Ok(WaitVerdict::Die) => {
            dispatch::give_back(m, next);
            end(m, thread)
        }
        Err(_) => m.defect("a thread that runs does not run"),
    }
    dispatch::hand_over(m, here, thread, next);
    let count = ring.kernel.count();
    if count >= 1 {
        return EnterResult::new(count, 0);
    }
    // Woken for another reason: the general path knows them all.
    EnterResult::new(wait::wait(m, thread, ring, 1, NEVER), 0)
}

/// A completion was there already: the caller goes on, and `next` is queued.
#[cold]
fn stay<M: Machine>(
    m: M,
    thread: &'static M::Thread,
    ring: &OwnRing<M>,
    next: &'static M::Thread,
) -> EnterResult {
    dispatch::give_back(m, next);
    match thread.state().cancel_wait() {
        Ok(ResumeVerdict::Resume) => {}
        Ok(ResumeVerdict::Die) => end(m, thread),
        Err(_) => m.defect("a thread that was about to wait is not"),
    }
    dispatch::before_user(m, Here::now(m), thread);
    EnterResult::new(ring.kernel.count(), 0)
}
