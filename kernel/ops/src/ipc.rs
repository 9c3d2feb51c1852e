//! CALL, RECV and RETURN on endpoints: the general path.
//!
//! The matching is `core_endpoint`'s, under the service's lock; this file keeps the pending
//! operations, moves the messages and completes whoever a verdict names. The walk of a call:
//! [`call`] → `Service::call` → [`carry_out`] → `Message::deliver` → the server's CQE; then [`answer`]
//! → `Service::reply_then_recv` → the caller's CQE.

use crate::along;
use crate::buffers::Uses;
use crate::caller::{Caller, Finish, NOTHING, Refused};
use crate::capability::{FacetOf, Object, ProcessKey};
use crate::complete::{complete, complete_ended, operation_of, retarget, target_of};
use crate::deadlines;
use crate::machine::{Defect, Machine, ProcessPart, Record, Space, service_of};
use crate::message::{Fault, Message, Sender};
use crate::object::{self, Objects};
use crate::party::Party;
use crate::service::Calls;
use crate::transfer::{self, List, laden_bytes};
use abi_ring::{Credit, Outcome, Payload, Recv, Return, Room};
use abi_types::{CapSlot, ReplyToken, Status};
use core_cap::Cap;
use core_endpoint::{
    Call, CallAgain, CallKey, CallVerdict, EndpointKey, RecvAgain, RecvKey, RecvVerdict,
    ReplyThenRecvError, ReplyVerdict,
};
use kernel_dispatch::trace::{NOBODY, point};
use schema::trace_capnp::TraceEvent;
use smp_pending::{Limit, Operation, Target};

/// A call that was matched with a receive.
#[derive(Clone, Copy)]
struct Delivery {
    token: ReplyToken,
    from: Party,
    to: Party,
    badge: u64,
    deadline_ns: u64,
}

/// Whether the call means the interface of what it calls. A tag of zero means none.
fn check_interface<O>(cap: &Cap<O>, call: &abi_ring::Call) -> Result<(), Status> {
    if cap.interface.to_bits() == call.interface() { Ok(()) } else { Err(Status::WrongInterface) }
}

/// CALL.
pub fn call<M: Objects>(caller: Caller<'_, M>, credit: Credit, call: &abi_ring::Call) -> Finish {
    let params = call.params();
    let bytes = laden_bytes(params.length(), call.transfers() as u8);
    let found = caller
        .ring
        .shared
        .process
        .lookup(call.target())
        .and_then(|cap| check_interface(&cap, call).map(|()| cap))
        .and_then(|cap| Ok((cap, Uses::of(caller, params, bytes, call.results())?)));
    match found {
        Err(status) => Finish::Plain(credit, status),
        // What the call names is in use until it is kept, or over.
        Ok((Cap { object: Object::Facet(facet), badge, grant, .. }, _uses)) => {
            call_endpoint(caller, credit, call, facet, badge, grant).into()
        }
        Ok((cap, uses)) if call.transfers() != 0 => along::call(caller, credit, call, &cap, uses),
        Ok((cap, uses)) => object::call(caller, credit, call, &cap, (uses, None)),
    }
}

fn call_endpoint<M: Objects>(
    caller: Caller<'_, M>,
    credit: Credit,
    call: &abi_ring::Call,
    facet: FacetOf,
    badge: u64,
    grant: core_cap::Grant,
) -> Result<Finish, Refused> {
    let (payload, room) = (call.params(), call.results());
    // Both are at most `MAX_TRANSFERS`.
    let (transfers, accepts) = (call.transfers() as u8, call.accepts() as u8);
    let operation = Operation { method: call.method(), transfers, accepts, payload, room };
    let mut party = caller.keep(credit, &operation);
    if call.deadline_ns() != 0 {
        party.room = party.room.bounded();
    }
    let refuse = |status| (status, caller.unkeep(party));
    let now = caller.m.clock();
    let deadline_ns = call.deadline_ns();
    if deadline_ns > now {
        deadlines::bound(caller.m, caller.ring, Limit::Call, party, deadline_ns);
    }
    let placed = place_call(caller, facet, grant, Call { caller: party, badge, deadline_ns }, now);
    if let Ok(verdict) = &placed {
        point(caller.m, TraceEvent::Call, || {
            let to = match verdict {
                CallVerdict::Deliver { to, .. } => to.thread.slot.into(),
                CallVerdict::Queued(_) => NOBODY,
            };
            (to, facet.process.slot.into())
        });
    }
    match placed {
        Ok(CallVerdict::Queued(_)) => {}
        Ok(CallVerdict::Deliver { to, token }) => {
            let delivery = Delivery { token, from: party, to, badge, deadline_ns };
            carry_out(caller.m, facet.process, Some(caller), delivery, true);
        }
        Err(status) => return Err(refuse(status)),
    }
    Ok(Finish::Later)
}

/// Puts the call to the service, and notes in the caller's cell what it waits for.
fn place_call<M: Machine>(
    caller: Caller<'_, M>,
    facet: FacetOf,
    grant: core_cap::Grant,
    call: Call<Party>,
    now: u64,
) -> Result<CallVerdict<Party>, Status> {
    let mut guard = service_of(caller.m, facet.process)?;
    let service = guard.as_mut().ok_or(Status::Disconnected)?;
    if !service.grants.is_live(grant) {
        return Err(Status::Disconnected);
    }
    let party = call.caller;
    let verdict =
        service.calls.call(facet.endpoint, call, now).map_err(core_endpoint::CallError::status)?;
    let key = match verdict {
        CallVerdict::Deliver { token, .. } => CallKey::of(token),
        CallVerdict::Queued(key) => key,
    };
    let ProcessKey { slot, generation } = facet.process;
    // Before the lock is given up: from then on others may end the call, and the cell with it.
    caller.aim(party, Target::Call { process: slot, generation, key: key.to_bits() });
    Ok(verdict)
}

/// Moves the message of a matched call. Whoever is at fault if that fails drops out, and the other
/// one is matched again.
fn carry_out<M: Objects>(
    m: M,
    server: ProcessKey,
    own: Option<Caller<'_, M>>,
    mut delivery: Delivery,
    directly: bool,
) {
    loop {
        let fault = match deliver(m, server, own, &delivery, directly) {
            Ok(()) => return,
            Err(fault) => fault,
        };
        let key = CallKey::of(delivery.token);
        let Ok(mut guard) = service_of(m, server) else { return };
        let Some(service) = guard.as_mut() else { return };
        match fault {
            Fault::Source(status) => {
                let Ok(rejected) =
                    service.calls.reject_call(key, m.clock(), |ended| complete_ended(m, ended))
                else {
                    return;
                };
                let renamed = match &rejected.again {
                    RecvAgain::Recv(RecvVerdict::Waiting(key)) => Some(*key),
                    RecvAgain::Recv(RecvVerdict::Deliver { token, .. }) => {
                        Some(RecvKey::of(*token))
                    }
                    RecvAgain::Disconnected(_) | RecvAgain::GivenUp(_) => None,
                };
                // Before the lock is given up: from then on another call may take the receive, and its
                // thread use the cell for the next.
                let mut guard = Some(guard);
                if m.plants(Defect::LateRetarget) {
                    guard = None;
                    m.linger();
                }
                if let Some(key) = renamed {
                    retarget(m, rejected.receiver, Target::Recv { key: key.to_bits() });
                }
                drop(guard);
                if let Some((caller, _)) = rejected.call {
                    complete(m, caller, &Outcome::plain(status));
                }
                match rejected.again {
                    RecvAgain::Recv(RecvVerdict::Waiting(_)) => return,
                    RecvAgain::Recv(RecvVerdict::Deliver { caller, badge, deadline_ns, token }) => {
                        let (from, to) = (caller, rejected.receiver);
                        delivery = Delivery { token, from, to, badge, deadline_ns };
                    }
                    RecvAgain::Disconnected(receiver) => {
                        return complete(m, receiver, &Outcome::plain(Status::Disconnected));
                    }
                    RecvAgain::GivenUp(receiver) => {
                        return complete(m, receiver, &Outcome::plain(Status::Cancelled));
                    }
                }
            }
            Fault::Target(status) => {
                let rejected = service.calls.reject_recv(key, delivery.badge, delivery.deadline_ns);
                let Ok(rejected) = rejected else { return };
                drop(guard);
                complete(m, rejected.receiver, &Outcome::plain(status));
                match rejected.again {
                    CallAgain::Call(CallVerdict::Deliver { to, token }) => {
                        delivery = Delivery { to, token, ..delivery };
                    }
                    CallAgain::Call(CallVerdict::Queued(_)) | CallAgain::Abandoned => return,
                    CallAgain::Disconnected(caller) => {
                        return complete(m, caller, &Outcome::plain(Status::Disconnected));
                    }
                    CallAgain::Overloaded(caller) => {
                        return complete(m, caller, &Outcome::plain(Status::Overloaded));
                    }
                }
            }
        }
    }
}

fn deliver<M: Objects>(
    m: M,
    server: ProcessKey,
    own: Option<Caller<'_, M>>,
    delivery: &Delivery,
    directly: bool,
) -> Result<(), Fault> {
    let Delivery { token, from, to, badge, deadline_ns } = *delivery;
    let is_own = |caller: &Caller<'_, M>| caller.thread.ops().slot() == from.thread.slot;
    let (sender, operation) = match own.filter(is_own) {
        Some(caller) => {
            let operation =
                caller.ring.shared.cells.get(from.cell).map(smp_pending::Cell::operation);
            (Sender::Own(caller), operation)
        }
        None => (Sender::Waiting { from, server, token }, operation_of(m, from)),
    };
    let operation = operation.ok_or(Fault::Source(Status::Cancelled))?;
    let outcome = Outcome {
        status: Status::Ok,
        flags: 0,
        method: operation.method,
        length: operation.payload.length(),
        badge,
        token: token.to_bits(),
    };
    let (from, payload) = (sender, operation.payload);
    let message = Message { m, from, payload, to, outcome, deadline_ns, directly };
    match operation.transfers {
        0 => message.deliver(),
        transfers => transfer::deliver(&message, transfers),
    }
}

/// The receiving side in a slot of the process, which must be its own.
fn own_endpoint<M: Machine>(
    process: &ProcessPart<M>,
    slot: CapSlot,
) -> Result<EndpointKey, Status> {
    match process.lookup(slot)?.object {
        // Only the process that serves an endpoint receives from it.
        Object::Endpoint(of) if process.is(of.process) => Ok(of.endpoint),
        Object::Endpoint(_) => Err(Status::Disconnected),
        _ => Err(Status::Unimplemented),
    }
}

/// RECV.
pub fn recv<M: Objects>(caller: Caller<'_, M>, credit: Credit, recv: &Recv) -> Finish {
    let process = caller.ring.shared.process;
    let found = Uses::of(caller, NOTHING, 0, recv.room())
        .and_then(|uses| Ok((own_endpoint(process, recv.endpoint())?, uses)));
    let (endpoint, _uses) = match found {
        Ok(found) => found,
        Err(status) => return Finish::Plain(credit, status),
    };
    let party = caller.keep(credit, &Operation::receiving(recv.room(), recv.accepts() as u8));
    let received = service_of(caller.m, process.key()).and_then(|mut guard| {
        let service = guard.as_mut().ok_or(Status::Disconnected)?;
        let verdict = service
            .calls
            .recv(endpoint, party, caller.m.clock(), |ended| complete_ended(caller.m, ended))
            .map_err(core_endpoint::RecvError::status)?;
        note_waiting(caller, party, &verdict);
        Ok(verdict)
    });
    match received {
        Ok(verdict) => {
            point(caller.m, TraceEvent::Receive, || {
                let from = match &verdict {
                    RecvVerdict::Deliver { caller, .. } => caller.thread.slot.into(),
                    RecvVerdict::Waiting(_) => NOBODY,
                };
                (from, 0)
            });
            received_now(caller, party, verdict);
            Finish::Later
        }
        Err(status) => Finish::Plain(caller.unkeep(party), status),
    }
}

/// Notes in the receiver's cell what it waits for; under the service's lock, as for a call.
fn note_waiting<M: Machine>(caller: Caller<'_, M>, party: Party, verdict: &RecvVerdict<Party>) {
    if let RecvVerdict::Waiting(key) = verdict {
        caller.aim(party, Target::Recv { key: key.to_bits() });
    }
}

/// A call that waited is there already.
fn received_now<M: Objects>(caller: Caller<'_, M>, party: Party, verdict: RecvVerdict<Party>) {
    if let RecvVerdict::Deliver { caller: from, badge, deadline_ns, token } = verdict {
        let delivery = Delivery { token, from, to: party, badge, deadline_ns };
        carry_out(caller.m, caller.ring.shared.process.key(), Some(caller), delivery, false);
    }
}

/// RETURN, with or without a receive.
pub fn answer<M: Objects>(caller: Caller<'_, M>, credit: Credit, answer: &Return) -> Finish {
    match check_answer(caller, answer) {
        Err(status) => Finish::Plain(credit, status),
        Ok(_uses) if answer.transfers() != 0 => answer_laden(caller, credit, answer),
        Ok(_uses) => give(caller, credit, answer, None),
    }
}

/// A RETURN that capabilities go with: their list is read before the call is taken from the server.
#[inline(never)]
fn answer_laden<M: Objects>(caller: Caller<'_, M>, credit: Credit, answer: &Return) -> Finish {
    match transfer::read_own(caller, answer.results(), answer.transfers()) {
        Ok(list) => give(caller, credit, answer, Some(&list)),
        Err(status) => Finish::Plain(credit, status),
    }
}

fn give<M: Objects>(
    caller: Caller<'_, M>,
    credit: Credit,
    answer: &Return,
    list: Option<&List>,
) -> Finish {
    match answer.then() {
        None => answer_only(caller, credit, answer, list),
        Some(recv) => answer_then_recv(caller, credit, answer, list, &recv),
    }
}

/// Whether the answer is where it says, and the next call can go where it says.
fn check_answer<M: Machine>(caller: Caller<'_, M>, answer: &Return) -> Result<Uses<M>, Status> {
    let payload = answer.results();
    let bytes = laden_bytes(payload.length(), answer.transfers() as u8);
    let room = answer.then().map_or(Room::Inline, |recv| recv.room());
    let uses = Uses::of(caller, payload, bytes, room)?;
    if let Payload::Address { address, length } = payload
        && !caller.ring.shared.process.space.is_readable(address, u64::from(length))
    {
        return Err(Status::BadAddress);
    }
    Ok(uses)
}

/// A RETURN by itself: it is done once the caller has its answer.
fn answer_only<M: Objects>(
    caller: Caller<'_, M>,
    credit: Credit,
    answer: &Return,
    list: Option<&List>,
) -> Finish {
    let replied = service_of(caller.m, caller.ring.shared.process.key()).and_then(|mut guard| {
        let service = guard.as_mut().ok_or(Status::Disconnected)?;
        check_length(caller.m, &service.calls, answer, list)?;
        service.calls.reply(answer.token()).map_err(|_| Status::NotFound)
    });
    match replied {
        Ok(reply) => {
            point(caller.m, TraceEvent::Answer, || (asker(&reply), 0));
            give_answer(caller, answer, list, reply, false);
            Finish::Plain(credit, Status::Ok)
        }
        Err(status) => Finish::Plain(credit, status),
    }
}

/// A RETURN that receives the next call, with which it completes. Both halves or none.
fn answer_then_recv<M: Objects>(
    caller: Caller<'_, M>,
    credit: Credit,
    answer: &Return,
    list: Option<&List>,
    recv: &Recv,
) -> Finish {
    let process = caller.ring.shared.process;
    let endpoint = match own_endpoint(process, recv.endpoint()) {
        Ok(endpoint) => endpoint,
        Err(status) => return Finish::Plain(credit, status),
    };
    let party = caller.keep(credit, &Operation::receiving(recv.room(), recv.accepts() as u8));
    let replied = service_of(caller.m, process.key()).and_then(|mut guard| {
        let service = guard.as_mut().ok_or(Status::Disconnected)?;
        check_length(caller.m, &service.calls, answer, list)?;
        let (reply, received) = service
            .calls
            .reply_then_recv(answer.token(), endpoint, party, caller.m.clock(), |ended| {
                complete_ended(caller.m, ended)
            })
            .map_err(|error| match error {
                ReplyThenRecvError::StaleToken => Status::NotFound,
                ReplyThenRecvError::Recv(error) => error.status(),
            })?;
        note_waiting(caller, party, &received);
        Ok((reply, received))
    });
    match replied {
        Ok((reply, received)) => {
            point(caller.m, TraceEvent::Answer, || (asker(&reply), 1));
            give_answer(caller, answer, list, reply, true);
            received_now(caller, party, received);
            Finish::Later
        }
        Err(status) => Finish::Plain(caller.unkeep(party), status),
    }
}

/// The thread that an answer is for, as an event's value.
fn asker(reply: &ReplyVerdict<Party>) -> u64 {
    match reply {
        ReplyVerdict::Complete { caller, .. } => caller.thread.slot.into(),
        _ => NOBODY,
    }
}

/// Whether the answer fits the room of the caller that waits for it.
fn check_length<M: Machine>(
    m: M,
    calls: &Calls,
    answer: &Return,
    list: Option<&List>,
) -> Result<(), Status> {
    let waiting = calls.caller_of(answer.token()).map_err(|_| Status::NotFound)?;
    match waiting {
        Some(party) if answer.results().length() > party.room.bytes() => {
            Err(Status::ResultTooLarge)
        }
        Some(party) => match list {
            None => Ok(()),
            Some(list) => transfer::check_answer(m, *party, answer.results().length(), list),
        },
        None => Ok(()),
    }
}

/// Completes the call that was answered, if somebody waits for it.
fn give_answer<M: Objects>(
    caller: Caller<'_, M>,
    answer: &Return,
    list: Option<&List>,
    reply: ReplyVerdict<Party>,
    directly: bool,
) {
    let ReplyVerdict::Complete { caller: to, .. } = reply else { return };
    let (status, method) = match answer.exception() {
        None => (Status::Ok, 0),
        Some(kind) => (Status::Exception, kind as u16),
    };
    let payload = answer.results();
    let length = payload.length();
    let outcome = Outcome { status, flags: 0, method, length, badge: 0, token: 0 };
    let from = Sender::Own(caller);
    let m = caller.m;
    let message = Message { m, from, payload, to, outcome, deadline_ns: 0, directly };
    let delivered = match list {
        None => message.deliver(),
        Some(list) => transfer::deliver_list(&message, list),
    };
    match delivered {
        Ok(()) => {}
        Err(Fault::Target(status)) => complete(m, to, &Outcome::plain(status)),
        // The caller's table is full, although it said that it takes some.
        Err(Fault::Source(Status::Overloaded)) => {
            complete(m, to, &Outcome::plain(Status::Overloaded));
        }
        // The server unmapped its answer while it gave it, or let a capability of its go.
        Err(Fault::Source(_)) => complete(m, to, &Outcome::plain(Status::Cancelled)),
    }
}

/// The deadline of a call that may still wait has come.
pub fn deadline<M: Machine>(m: M, call: Target, now_ns: u64) {
    let Target::Call { process, generation, key } = call else { return };
    let Ok(mut guard) = service_of(m, ProcessKey { slot: process, generation }) else { return };
    let Some(service) = guard.as_mut() else { return };
    let expired = service.calls.expire_call(CallKey::from_bits(key), now_ns);
    drop(guard);
    if let Ok(end) = expired {
        complete(m, end.caller, &Outcome::plain(Status::DeadlineExpired));
    }
}

/// Claims a pending call for its caller, who gives it up or is gone.
pub fn give_up_call<M: Machine>(m: M, service: ProcessKey, key: u64) -> bool {
    let Ok(mut guard) = service_of(m, service) else { return false };
    let Some(service) = guard.as_mut() else { return false };
    service.calls.cancel_call(CallKey::from_bits(key)).is_ok()
}

/// Claims a pending receive for its thread. If a message is on its way to it, the message ends it; if
/// that fails, the receive is not put back.
pub fn give_up_recv<M: Machine>(m: M, process: &ProcessPart<M>, party: Party) -> bool {
    let Ok(mut guard) = service_of(m, process.key()) else { return false };
    let Some(service) = guard.as_mut() else { return false };
    // Under the lock: a delivery that fails renames the receive.
    let Some(Target::Recv { key }) = target_of(m, party) else { return false };
    let key = RecvKey::from_bits(key);
    let is_ours = service.calls.cancel_recv(key).is_ok();
    if !is_ours {
        // Not found: it has ended meanwhile, and there is nobody to tell.
        service.calls.give_up_delivery(key);
    }
    is_ours
}
