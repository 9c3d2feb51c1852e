//! Kernel objects: what a capability names, and calls that the kernel serves itself.
//!
//! What a method answers is in `kernel/object`, one file per interface; the hosts here give it
//! access to the kernel. A call is decoded from a copy of the parameters and its results are made in a
//! buffer of the kernel's; both are then moved like any message.
//!
//! * [`console`], [`threads`], [`services`], [`info`]: the hosts.

pub mod console;
mod info;
mod services;
pub mod threads;

use crate::caller::{Caller, Finish};
use crate::deadlines::{self, Purpose};
use crate::message::{self, Fault};
use crate::party::Party;
use crate::process::{Process, ProcessKey};
use crate::sched::{self, preemption_point};
use abi_ring::{Credit, INLINE_WORDS, Outcome, Payload, Room};
use abi_types::{CqeFlags, INLINE_BYTES, Status};
use alloc::boxed::Box;
use core_cap::{Cap, Released};
use core_endpoint::EndpointKey;
use core_thread::ThreadKey;
use kernel_mm::fallible::try_zeroed_words;
use kernel_mm::space::MAX_COPY_BYTES;
use kernel_object::timer::Refused;
use schema_wire::{Exception, Served};
use smp_pending::Target;
use zerocopy::IntoBytes;

/// An endpoint of some process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FacetOf {
    /// The process that serves it.
    pub process: ProcessKey,
    /// The endpoint there.
    pub endpoint: EndpointKey,
}

/// What a capability names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// The console.
    Console,
    /// The record port.
    Records,
    /// The clock.
    Timer,
    /// The machine's counters.
    SystemInfo,
    /// Threads of the process.
    ThreadSpawner,
    /// The calling thread itself.
    ThreadControl,
    /// The right to park and to wake.
    ParkSpace,
    /// One thread of the process.
    ThreadHandle(ThreadKey),
    /// The receiving side of an endpoint.
    Endpoint(FacetOf),
    /// A client's side of an endpoint.
    Facet(FacetOf),
}

/// Pages of parameters between two preemption points: as for messages between threads.
const PAGES_PER_PREEMPTION_POINT: usize = 4;

/// A call in progress, as a host sees it.
pub struct Calling<'r> {
    /// Who calls.
    pub caller: Caller<'r>,
    /// What the completion will cost, until a host keeps it.
    credit: Option<Credit>,
    /// Where results go.
    room: Room,
    /// The caller ends when its pass does.
    ends_with: Option<i64>,
}

impl Calling<'_> {
    /// Leaves the call pending, for a completion by whoever `target` says.
    fn keep(&mut self, target: Target) -> Option<Party> {
        let credit = self.credit.take()?;
        let party = self.caller.keep_for(credit, self.room);
        self.caller.aim(party, target);
        Some(party)
    }

    /// Takes a kept call back.
    fn unkeep(&mut self, party: Party) {
        self.credit = Some(self.caller.unkeep(party));
    }
}

impl kernel_object::timer::Host for Calling<'_> {
    fn now_ns(&self) -> u64 {
        sched::clock()
    }

    fn complete_at(&mut self, deadline_ns: u64) -> Result<(), Refused> {
        let process = self.caller.thread.process();
        if !process.sleep_began() {
            return Err(Refused::Quota);
        }
        let Some(party) = self.keep(Target::Sleep) else { return Err(Refused::System) };
        let cell = self.caller.ring.shared.cells.get(party.cell);
        if cell.is_some_and(|cell| deadlines::bound(Purpose::Sleep, party, cell, deadline_ns)) {
            return Ok(());
        }
        self.unkeep(party);
        process.sleep_ended();
        Err(Refused::System)
    }
}

/// Words that parameters or results have, in place for small messages.
enum Buffer {
    Small([u64; INLINE_WORDS]),
    Large(Box<[u64]>),
}

impl Buffer {
    fn of_bytes(bytes: usize) -> Result<Self, Status> {
        if bytes <= INLINE_BYTES {
            return Ok(Self::Small([0; INLINE_WORDS]));
        }
        try_zeroed_words(bytes.div_ceil(8)).map(Self::Large).map_err(|_| Status::OutOfMemory)
    }

    fn words(&mut self) -> &mut [u64] {
        match self {
            Self::Small(words) => words,
            Self::Large(words) => words,
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

/// A call on an object of the kernel's.
pub fn call(
    caller: Caller<'_>,
    credit: Credit,
    call: &abi_ring::Call,
    cap: &Cap<Object>,
) -> Finish {
    let mut calling =
        Calling { caller, credit: Some(credit), room: call.results(), ends_with: None };
    let served = serve(&mut calling, call, cap);
    if let Some(code) = calling.ends_with {
        threads::exit_current(caller.thread, code);
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

fn serve(
    calling: &mut Calling<'_>,
    call: &abi_ring::Call,
    cap: &Cap<Object>,
) -> Result<Answer, Status> {
    if call.transfers() != 0 {
        return Err(Status::InvalidArgument);
    }
    let length = call.params().length() as usize;
    let mut params = Buffer::of_bytes(length)?;
    if length > MAX_COPY_BYTES {
        preemption_point();
    }
    read_params(calling.caller, call.params(), params.words())?;
    let capacity = match call.results() {
        Room::Inline => INLINE_BYTES,
        Room::Address { capacity, .. } | Room::Registered { capacity, .. } => {
            (capacity as usize).min(MAX_COPY_BYTES)
        }
    };
    let mut results = Buffer::of_bytes(capacity)?;
    if length > MAX_COPY_BYTES {
        preemption_point();
    }
    let served = {
        let params = params.words().as_bytes().get(..length).unwrap_or_default();
        let results = results.words().as_mut_bytes().get_mut(..capacity).unwrap_or_default();
        dispatch(calling, cap, call.method(), params, results)?
    };
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

fn dispatch(
    calling: &mut Calling<'_>,
    cap: &Cap<Object>,
    method: u16,
    params: &[u8],
    results: &mut [u8],
) -> Result<Served, Status> {
    use kernel_object as served;
    match cap.object {
        Object::Console => {
            let mut server = served::console::Console::new(calling);
            schema::console::dispatch(&mut server, method, params, results)
        }
        Object::Records => {
            let mut host = console::Records;
            let mut server = served::console::Console::new(&mut host);
            schema::console::dispatch(&mut server, method, params, results)
        }
        Object::Timer => {
            schema::timer::dispatch(&mut served::timer::Timer(calling), method, params, results)
        }
        Object::SystemInfo => {
            let mut server = served::system_info::SystemInfo(&info::Counted);
            schema::system_info::dispatch(&mut server, method, params, results)
        }
        Object::ThreadSpawner => {
            let mut server = served::thread_spawner::ThreadSpawner(calling);
            schema::thread_spawner::dispatch(&mut server, method, params, results)
        }
        Object::ThreadControl => {
            let mut server = served::thread_control::ThreadControl(calling);
            schema::thread_control::dispatch(&mut server, method, params, results)
        }
        Object::ThreadHandle(thread) => {
            let mut host = threads::Handle { calling, thread };
            let mut server = served::thread_handle::ThreadHandle(&mut host);
            schema::thread_handle::dispatch(&mut server, method, params, results)
        }
        Object::Endpoint(of) => {
            let mut host = services::Owner { calling, of };
            let mut server = served::endpoint::Endpoint(&mut host);
            schema::endpoint::dispatch(&mut server, method, params, results)
        }
        // Their operations are the ring's own; calls on facets do not come here.
        Object::ParkSpace | Object::Facet(_) => Err(Status::Unimplemented),
    }
}

/// Copies the parameters into the kernel, once.
fn read_params(caller: Caller<'_>, payload: Payload, into: &mut [u64]) -> Result<(), Status> {
    let length = payload.length() as usize;
    let bytes = into.as_mut_bytes().get_mut(..length).unwrap_or_default();
    let space = &caller.thread.process().space;
    for (number, part) in bytes.chunks_mut(MAX_COPY_BYTES).enumerate() {
        if number % PAGES_PER_PREEMPTION_POINT == PAGES_PER_PREEMPTION_POINT - 1 {
            preemption_point();
        }
        let offset = number * MAX_COPY_BYTES;
        message::fetch(payload, offset, part, space, &caller.ring.kernel).map_err(|fault| {
            match fault {
                Fault::Source(status) | Fault::Target(status) => status,
            }
        })?;
    }
    Ok(())
}

/// The answer that is in the buffer, put where the caller wants it.
fn answer(
    calling: &Calling<'_>,
    mut outcome: Outcome,
    results: &mut Buffer,
) -> Result<Answer, Status> {
    if let (Room::Inline, Buffer::Small(words)) = (calling.room, &*results) {
        return Ok(Answer::Words(outcome, *words));
    }
    if let Room::Address { address, .. } = calling.room {
        let bytes = results.words().as_bytes();
        let said = bytes.get(..outcome.length as usize).unwrap_or_default();
        if !said.is_empty() {
            let space = &calling.caller.thread.process().space;
            space.copy_out(address, said).map_err(|_| Status::BadAddress)?;
        }
        outcome.flags |= CqeFlags::BY_ADDRESS;
    }
    Ok(Answer::Outcome(outcome))
}

/// A capability left a slot of `process`: the object's own rule.
pub fn released(process: &'static Process, Released(cap): Released<Object>) {
    match cap.object {
        Object::ThreadHandle(thread) => threads::handle_released(thread),
        Object::Endpoint(of) if of.process == process.key() => services::close(of),
        _ => {}
    }
}
