//! Calls on objects of the kernel's.
//!
//! What a method answers is the machine's ([`Objects::serve_call`]). A call is decoded from a copy of the
//! parameters and its results are made in a buffer of the kernel's; both are then moved like any message.

use crate::buffers::{self, Uses};
use crate::caller::{Caller, Finish};
use crate::capability::{FacetOf, Object};
use crate::complete::complete_ended;
use crate::deadlines;
use crate::machine::{Defect, MAX_COPY_BYTES, Machine, ProcessPart, Space, service_of};
use crate::message::{self, Fault};
use crate::paid::{NoMemory, pay_for};
use crate::party::Party;
use abi_ring::{Credit, INLINE_WORDS, Outcome, Payload, Room};
use abi_types::{CapSlot, CqeFlags, INLINE_BYTES, InterfaceTag, Status};
use alloc::boxed::Box;
use core_cap::{Cap, Parcel, Released};
use core_endpoint::{DrainVerdict, Load};
use core_ledger::{Charge, KernelBytes};
use kernel_dispatch::preemption_point;
use schema_wire::{Exception, ExceptionKind, Served, TransferIndex};
use smp_pending::{Limit, Target};
use zerocopy::IntoBytes;

/// A machine that serves objects of its own.
pub trait Objects: Machine {
    /// Serves a call on an object of the kernel's.
    fn serve_call(
        self,
        calling: &mut Calling<'_, Self>,
        object: Object<Self::Other>,
        method: u16,
        params: &[u8],
        results: &mut [u8],
    ) -> Result<Served, Status>;
    /// How many capabilities a method of such an object takes.
    fn takes(self, interface: InterfaceTag, method: u16) -> u16;
    /// Whether a capability to such an object may go to another process, as its interface says.
    fn is_transferable(self, object: Self::Other) -> bool;
    /// There is one capability more to such an object, if it is there still: under the lock of the table that one is
    /// copied from, where there is one.
    fn retained(self, object: Self::Other) -> bool;
    /// A capability to such an object left a slot of `process`: the object's own rule.
    fn released(self, process: &'static ProcessPart<Self>, object: Self::Other);
    /// The current thread ends with `code`.
    fn exit_thread(self, thread: &'static Self::Thread, code: i64) -> !;
}

/// Pages of parameters between two preemption points: as for messages between threads.
const PAGES_PER_PREEMPTION_POINT: usize = 3;

/// A call in progress, as a host sees it.
pub struct Calling<'r, M: Objects> {
    /// Who calls.
    pub caller: Caller<'r, M>,
    /// What the completion will cost, until a host keeps it.
    credit: Option<Credit>,
    /// Where results go.
    pub room: Room,
    /// The caller ends when its pass does.
    pub ends_with: Option<i64>,
    /// Capabilities that it brought along, which are held meanwhile.
    brought: Option<Parcel<Object<M::Other>>>,
}

impl<M: Objects> Calling<'_, M> {
    /// The capability that a field of the parameters refers to.
    pub fn brought(&self, field: TransferIndex) -> Option<Cap<Object<M::Other>>> {
        self.brought.as_ref()?.items().nth(field.0.into()).map(|item| item.cap)
    }

    /// Leaves the call pending, for a completion by whoever `target` says.
    pub fn keep(&mut self, target: Target) -> Option<Party> {
        let credit = self.credit.take()?;
        let party = self.caller.keep_for(credit, self.room);
        self.caller.aim(party, target);
        Some(party)
    }

    /// Takes a kept call back.
    pub fn unkeep(&mut self, party: Party) {
        self.credit = Some(self.caller.unkeep(party));
    }
}

/// A sleep is not accepted: the process has as many pending as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepQuota;

/// Why there is no facet. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFacet {
    /// The endpoint is gone.
    Gone,
    /// The service has facets of as many badges as it may.
    Badges,
    /// The caller's table has no slot for it.
    Slots,
}

impl<M: Objects> Calling<'_, M> {
    /// Completes the call once the clock reads `deadline_ns`.
    pub fn complete_at(&mut self, deadline_ns: u64) -> Result<(), SleepQuota> {
        let Caller { m, ring, .. } = self.caller;
        let process = ring.shared.process;
        if !process.sleep_began() {
            return Err(SleepQuota);
        }
        match self.keep(Target::Sleep) {
            Some(party) => deadlines::bound(m, ring, Limit::Sleep, party, deadline_ns),
            // The call was kept before: its host answers twice.
            None => m.defect("a sleep without a call"),
        }
        Ok(())
    }

    /// A facet of an endpoint with `badge`, in the caller's table. It is of `interface`, or of the one that the endpoint
    /// serves.
    pub fn mint(
        &mut self,
        of: FacetOf,
        badge: u64,
        interface: Option<InterfaceTag>,
    ) -> Result<CapSlot, NoFacet> {
        let Caller { m, ring, .. } = self.caller;
        let (grant, serves) = {
            let mut guard = service_of(m, of.process).map_err(|_| NoFacet::Gone)?;
            let service = guard.as_mut().ok_or(NoFacet::Gone)?;
            let serves = service.interface_of(of.endpoint).ok_or(NoFacet::Gone)?;
            (service.mint(of.endpoint, badge).ok_or(NoFacet::Badges)?, serves)
        };
        let interface = interface.unwrap_or(serves);
        let facet = Cap { object: Object::Facet(of), interface, badge, grant };
        let slot =
            ring.shared.process.caps.lock().as_mut().and_then(|table| table.insert(facet).ok());
        if slot.is_none()
            && let Ok(mut guard) = service_of(m, of.process)
            && let Some(service) = guard.as_mut()
        {
            service.unmint(of.endpoint, badge);
        }
        slot.ok_or(NoFacet::Slots)
    }

    /// Makes every facet of an endpoint with `badge` stale; how many were made.
    pub fn revoke(&mut self, of: FacetOf, badge: u64) -> u32 {
        let Ok(mut guard) = service_of(self.caller.m, of.process) else { return 0 };
        guard.as_mut().map_or(0, |service| service.revoke(of.endpoint, badge))
    }

    /// How full an endpoint is.
    pub fn load(&self, of: FacetOf) -> Option<Load> {
        let guard = service_of(self.caller.m, of.process).ok()?;
        guard.as_ref()?.calls.load(of.endpoint)
    }
}

/// Words that parameters or results have, in place for small messages.
enum Buffer {
    Small([u64; INLINE_WORDS]),
    /// With what pays for it.
    Large(Box<[u64]>, Charge<'static, KernelBytes>),
}

impl Buffer {
    fn of_bytes<M: Machine>(caller: Caller<'_, M>, bytes: usize) -> Result<Self, NoMemory> {
        if bytes <= INLINE_BYTES {
            return Ok(Self::Small([0; INLINE_WORDS]));
        }
        let words = bytes.div_ceil(8);
        let paid = pay_for::<u64>(&caller.ring.shared.process.ledger, words)?;
        Ok(Self::Large(caller.m.zeroed_words(words)?, paid))
    }

    fn words(&mut self) -> &mut [u64] {
        match self {
            Self::Small(words) => words,
            Self::Large(words, _) => words,
        }
    }
}

/// What a call on an object of the kernel's is answered.
enum Answer {
    /// The completion says it all.
    Outcome(Outcome),
    /// The completion and its inline payload.
    Words(Outcome, [u64; INLINE_WORDS]),
    /// A host has kept the call.
    Later,
}

/// What a call has beside its parameters: the buffers that it names, and the capabilities that it brought along.
type With<M> = (Uses<M>, Option<Parcel<Object<<M as Machine>::Other>>>);

/// A call on an object of the kernel's.
pub fn call<M: Objects>(
    caller: Caller<'_, M>,
    credit: Credit,
    call: &abi_ring::Call,
    cap: &Cap<Object<M::Other>>,
    (uses, brought): With<M>,
) -> Finish {
    let mut calling =
        Calling { caller, credit: Some(credit), room: call.results(), ends_with: None, brought };
    let served = serve(&mut calling, call, cap);
    // What the call names is let go of before it is answered, also by a thread that ends here.
    drop(uses);
    if let Some(code) = calling.ends_with {
        caller.m.exit_thread(caller.thread, code);
    }
    let Some(credit) = calling.credit.take() else { return Finish::Later };
    match served {
        Ok(Answer::Outcome(outcome)) => Finish::Now(credit, outcome),
        Ok(Answer::Words(outcome, words)) => Finish::Words(credit, outcome, words),
        // Not reached: a host that answers later has the credit.
        Ok(Answer::Later) => Finish::Plain(credit, Status::Unimplemented),
        Err(status) => Finish::Plain(credit, status),
    }
}

fn serve<M: Objects>(
    calling: &mut Calling<'_, M>,
    call: &abi_ring::Call,
    cap: &Cap<Object<M::Other>>,
) -> Result<Answer, Status> {
    let length = call.params().length() as usize;
    let mut params = match Buffer::of_bytes(calling.caller, length) {
        Ok(params) => params,
        Err(error) => return no_memory(calling, error),
    };
    if length > MAX_COPY_BYTES {
        preemption_point(calling.caller.m);
    }
    read_params(calling.caller, call.params(), params.words())?;
    let capacity = match call.results() {
        Room::Inline => INLINE_BYTES,
        Room::Address { capacity, .. } | Room::Registered { capacity, .. } => {
            (capacity as usize).min(MAX_COPY_BYTES)
        }
    };
    let mut results = match Buffer::of_bytes(calling.caller, capacity) {
        Ok(results) => results,
        Err(error) => return no_memory(calling, error),
    };
    if length > MAX_COPY_BYTES {
        preemption_point(calling.caller.m);
    }
    let served = {
        let params = params.words().as_bytes().get(..length).unwrap_or_default();
        let results = results.words().as_mut_bytes().get_mut(..capacity).unwrap_or_default();
        let m = calling.caller.m;
        m.serve_call(calling, cap.object, call.method(), params, results)?
    };
    if calling.caller.m.plants(Defect::MessageChargeKept)
        && let Buffer::Large(_, paid) = params
    {
        core::mem::forget(paid);
    }
    match served {
        Served::Results(bytes) => {
            let outcome = Outcome { length: bytes as u32, ..Outcome::plain(Status::Ok) };
            answer(calling, outcome, &mut results)
        }
        Served::Exception(bytes) => {
            let said = results.words().as_bytes().get(..bytes).unwrap_or_default();
            let kind = Exception::decode(said).map_or(0, |exception| exception.kind() as u16);
            let length = bytes as u32;
            let outcome = Outcome { method: kind, length, ..Outcome::plain(Status::Exception) };
            answer(calling, outcome, &mut results)
        }
        Served::Later => Ok(Answer::Later),
    }
}

/// The answer to a call that the kernel has no memory for: the sentence of the line that is used up.
#[cold]
fn no_memory<M: Objects>(calling: &Calling<'_, M>, error: NoMemory) -> Result<Answer, Status> {
    let NoMemory::Account(error) = error else { return Err(Status::OutOfMemory) };
    let mut words = [0; INLINE_WORDS];
    let exception = Exception::new(ExceptionKind::Overloaded, error.message());
    let room = match calling.room {
        Room::Inline => INLINE_BYTES,
        Room::Address { capacity, .. } | Room::Registered { capacity, .. } => capacity as usize,
    };
    let into = words.as_mut_bytes().get_mut(..room.min(INLINE_BYTES)).unwrap_or_default();
    let bytes = exception.encode(into).map_err(|_| Status::Overloaded)?;
    let outcome = Outcome {
        method: exception.kind() as u16,
        length: bytes as u32,
        ..Outcome::plain(Status::Exception)
    };
    answer(calling, outcome, &mut Buffer::Small(words))
}

/// Copies the parameters into the kernel, once.
fn read_params<M: Machine>(
    caller: Caller<'_, M>,
    payload: Payload,
    into: &mut [u64],
) -> Result<(), Status> {
    let length = payload.length() as usize;
    let bytes = into.as_mut_bytes().get_mut(..length).unwrap_or_default();
    for (number, part) in bytes.chunks_mut(MAX_COPY_BYTES).enumerate() {
        if number % PAGES_PER_PREEMPTION_POINT == PAGES_PER_PREEMPTION_POINT - 1 {
            preemption_point(caller.m);
        }
        let offset = number * MAX_COPY_BYTES;
        message::fetch(caller, payload, offset, part).map_err(Fault::status)?;
    }
    Ok(())
}

/// The answer that is in the buffer, put where the caller wants it.
fn answer<M: Objects>(
    calling: &Calling<'_, M>,
    mut outcome: Outcome,
    results: &mut Buffer,
) -> Result<Answer, Status> {
    if let (Room::Inline, Buffer::Small(words)) = (calling.room, &*results) {
        return Ok(Answer::Words(outcome, *words));
    }
    let process = calling.caller.ring.shared.process;
    let bytes = results.words().as_bytes();
    let said = bytes.get(..outcome.length as usize).unwrap_or_default();
    let written = match calling.room {
        // What is answered inline is in a small buffer, above.
        Room::Inline => return Ok(Answer::Outcome(outcome)),
        Room::Address { address, .. } => {
            said.is_empty() || process.space.copy_out(address, said).is_ok()
        }
        Room::Registered { buffer, offset, .. } => {
            let using = buffers::look(calling.caller.m, process, buffer);
            using.and_then(|using| using.write(offset, said)).is_some()
        }
    };
    if !written {
        return Err(Status::BadAddress);
    }
    outcome.flags |= CqeFlags::BY_ADDRESS;
    Ok(Answer::Outcome(outcome))
}

/// A capability left a slot of `process`: the object's own rule.
pub fn released<M: Objects>(
    m: M,
    process: &'static ProcessPart<M>,
    Released(cap): Released<Object<M::Other>>,
) {
    match cap.object {
        // Whichever table it was moved to: there is one such slot.
        Object::Endpoint(of) => close(m, of),
        Object::Other(object) => m.released(process, object),
        Object::Facet(_) | Object::ParkSpace => {}
    }
}

/// Parties of a closed endpoint that are told between two preemption points: as many as fit a section of kernel
/// code (`section`), each with a completion and a wake.
const ENDS_PER_PREEMPTION_POINT: u32 = 8;

/// The receiving side of an endpoint was released: what waits at it ends.
fn close<M: Machine>(m: M, of: FacetOf) {
    let begun = service_of(m, of.process).and_then(|mut guard| {
        let service = guard.as_mut().ok_or(Status::Disconnected)?;
        service.calls.begin_close(of.endpoint).map_err(|_| Status::NotFound)
    });
    // Not found: it was closed before, by whoever is at it.
    let Ok(closed) = begun else { return };
    loop {
        let Ok(mut guard) = service_of(m, of.process) else { return };
        let Some(service) = guard.as_mut() else { return };
        let ended = |ended| complete_ended(m, ended);
        let verdict = service.calls.end_waiting(&closed, ENDS_PER_PREEMPTION_POINT, ended);
        drop(guard);
        if verdict == DrainVerdict::Done {
            return;
        }
        preemption_point(m);
    }
}
