//! Capabilities that travel with a message: all of its list, or none, and no message without them.
//!
//! The steps are `core_cap`'s (`transfer.rs` there); this file takes the two tables' locks, one at a time, and
//! puts the steps around the copy of the bytes. The list is read once, when the message is delivered, and judged
//! from the copy. What the receiver has said it takes (`result_transfers`) bounds what it gets.
//!
//! The arrival and the receiver's completion are one step, under the lock of the receiver's table: whoever sees
//! the completion finds the slots it names, and a receiver that is gone leaves its table as it was. The sender's
//! moved slots are nobody's for that moment; they are freed after it, or the sender's again.
//!
//! Decided in ADR 278.

use crate::caller::Caller;
use crate::capability::{CapTable, Object, ProcessKey};
use crate::complete::{Due, operation_of, post_with};
use crate::machine::{Defect, Machine, ProcessPart, Record, service_of};
use crate::message::{DEADLINE_WORD, Fault, Message, Sender, fetch};
use crate::object::{self, Objects};
use crate::party::Party;
use abi_ring::{INLINE_WORDS, Outcome, Payload, Room};
use abi_types::limits::MAX_TRANSFERS;
use abi_types::{CapSlot, CqeFlags, INLINE_BYTES, Status, Transfer, TransferMode};
use core_cap::{
    Cap, InsertError, Mode, Parcel, Released, Request, Reservation, ReserveError, TransferError,
};
use core_ledger::{CapSlots, ChargeError};
use zerocopy::{FromBytes, IntoBytes};

const MOST: usize = MAX_TRANSFERS as usize;
/// Words of a descriptor.
const DESCRIPTOR_WORDS: usize = size_of::<Transfer>() / 8;

/// The transfer list of a message, copied and well formed.
#[derive(Clone, Copy, Debug)]
pub struct List {
    requests: [Request; MOST],
    count: usize,
}

impl List {
    /// Reads the descriptors in `words`, which are as many as the message has.
    fn decode(words: &[u64]) -> Result<Self, Status> {
        let nothing = Request { slot: CapSlot::NONE, mode: Mode::Copy };
        let mut list = Self { requests: [nothing; MOST], count: words.len() / DESCRIPTOR_WORDS };
        for (place, words) in list.requests.iter_mut().zip(words.chunks_exact(DESCRIPTOR_WORDS)) {
            let one = Transfer::read_from_bytes(words.as_bytes());
            let one = one.map_err(|_| Status::InvalidArgument)?;
            let mode = match TransferMode::from_number(one.mode) {
                Some(TransferMode::Copy) => Mode::Copy,
                Some(TransferMode::Move) => Mode::Move,
                None => return Err(Status::InvalidArgument),
            };
            if one.reserved != 0 {
                return Err(Status::InvalidArgument);
            }
            *place = Request { slot: one.cap_slot(), mode };
        }
        Ok(list)
    }

    pub(crate) fn lines(&self) -> &[Request] {
        self.requests.get(..self.count).unwrap_or(&self.requests)
    }

    /// How many capabilities it names.
    pub fn count(&self) -> u8 {
        self.count as u8
    }
}

/// Bytes of a message with `count` capabilities after `length` bytes of payload.
pub const fn laden_bytes(length: u32, count: u8) -> u32 {
    if count == 0 {
        return length;
    }
    length.next_multiple_of(8) + count as u32 * size_of::<Transfer>() as u32
}

/// The process of a thread that is there, and which one it is.
fn process_of<M: Machine>(m: M, party: Party) -> Option<Home<M>> {
    let thread = m.thread(party.thread.slot)?;
    // With the lock held the thread has its process.
    let _held = thread.ops().completions_of(party.thread.generation)?;
    let process = thread.ops().process(m);
    Some(Home { process, key: process.key() })
}

/// A process by name: its record may be another's later.
pub(crate) struct Home<M: Machine> {
    process: &'static ProcessPart<M>,
    key: ProcessKey,
}

impl<M: Machine> Home<M> {
    /// Whether its account is closed.
    fn is_ending(&self) -> bool {
        matches!(self.process.ledger.reserve(CapSlots, 0), Err(ChargeError::Closed))
    }

    /// Does something with its table, under the lock; `None` if the process is gone.
    fn with_table<R>(&self, f: impl FnOnce(&mut CapTable<M::Other>) -> R) -> Option<R> {
        let mut caps = self.process.caps.lock();
        // Under the lock: the table is taken out before the record has another name.
        if !self.process.is(self.key) {
            return None;
        }
        caps.as_mut().map(f)
    }
}

/// The process of a thread that runs.
pub(crate) fn home_of<M: Machine>(process: &'static ProcessPart<M>) -> Home<M> {
    Home { process, key: process.key() }
}

/// Whether a capability may go to another table in this way.
pub(crate) fn may_pass<M: Objects>(m: M, cap: &Cap<Object<M::Other>>, mode: Mode) -> bool {
    match cap.object {
        Object::Facet(_) | Object::ParkSpace => true,
        // One slot is the receiving side: what closes with it would otherwise close under another holder.
        Object::Endpoint(_) => mode == Mode::Move,
        Object::Other(object) => m.is_transferable(object),
    }
}

/// Whether a capability is of use to that process: the receiving side of an endpoint is to its own process alone, whose
/// tables have its calls (ADR 343).
pub(crate) fn may_serve<O>(object: Object<O>, process: ProcessKey) -> bool {
    !matches!(object, Object::Endpoint(of) if of.process != process)
}

/// The status that a list is refused with.
const fn status_of(error: TransferError) -> Status {
    match error {
        TransferError::Unusable { .. } => Status::Disconnected,
        TransferError::NotTransferable { .. } => Status::NotTransferable,
        TransferError::TooMany | TransferError::MovedTwice { .. } => Status::InvalidArgument,
    }
}

/// The sender's half that changes nothing: every line is good, and no facet is revoked. `retain` is shown the parcel
/// under the table's lock.
pub(crate) fn prepare<M: Objects>(
    m: M,
    sender: &Home<M>,
    list: &List,
    retain: impl FnOnce(&Parcel<Object<M::Other>>),
) -> Result<Parcel<Object<M::Other>>, Status> {
    let pass = |cap: &Cap<_>, mode| may_pass(m, cap, mode);
    // Grants are their services', whose locks come before a table's: asked below.
    let prepared = sender.with_table(|table| {
        let parcel = table.prepare(list.lines(), |_| true, pass);
        parcel.inspect(retain)
    });
    prepared.ok_or(Status::Disconnected)?.map_err(status_of)
}

/// Whether no facet of a parcel is revoked.
pub(crate) fn check_grants<M: Objects>(
    m: M,
    parcel: &Parcel<Object<M::Other>>,
) -> Result<(), Status> {
    for item in parcel.items() {
        if let Object::Facet(of) = item.cap.object {
            let service = service_of(m, of.process)?;
            if !service.as_ref().is_some_and(|service| service.grants.is_live(item.cap.grant)) {
                return Err(Status::Disconnected);
            }
        }
    }
    Ok(())
}

/// Objects of the machine's that a parcel has copies of: each has one capability more while it is on its way.
pub(crate) fn copies<M: Objects>(
    parcel: &Parcel<Object<M::Other>>,
) -> impl Iterator<Item = M::Other> {
    parcel.copies().filter_map(|item| match item.cap.object {
        Object::Other(object) => Some(object),
        _ => None,
    })
}

/// Reads the list that follows a payload of the caller's own.
pub(crate) fn fetch_own<M: Machine>(
    caller: Caller<'_, M>,
    payload: Payload,
    transfers: u16,
) -> Result<List, Status> {
    let mut words = [0; MOST * DESCRIPTOR_WORDS];
    let count = usize::from(transfers).min(MOST);
    let into = words.get_mut(..count * DESCRIPTOR_WORDS).unwrap_or_default();
    let from = payload.length().next_multiple_of(8);
    let whole = payload.with_length(laden_bytes(payload.length(), count as u8));
    fetch(caller, whole, from as usize, into.as_mut_bytes()).map_err(Fault::status)?;
    List::decode(into)
}

/// The same, and what it would be refused with.
pub fn read_own<M: Objects>(
    caller: Caller<'_, M>,
    payload: Payload,
    transfers: u16,
) -> Result<List, Status> {
    let list = fetch_own(caller, payload, transfers)?;
    let home = home_of(caller.ring.shared.process);
    let parcel = prepare(caller.m, &home, &list, |_| {})?;
    check_grants(caller.m, &parcel)?;
    debug_assert!(parcel.count() as usize == list.count, "a parcel has every line of its list");
    Ok(list)
}

/// Delivers a message that so many capabilities travel with.
#[inline(never)]
pub fn deliver<M: Objects>(message: &Message<'_, M>, transfers: u8) -> Result<(), Fault> {
    // Before the list is read: what a receiver does not take is nobody's business.
    let receiving = check_room(message, transfers)?;
    let list = fetch_list(message, transfers)?;
    deliver_to(message, &list, receiving)
}

/// Delivers a message whose list was read already.
#[inline(never)]
pub fn deliver_list<M: Objects>(message: &Message<'_, M>, list: &List) -> Result<(), Fault> {
    let receiving = check_room(message, list.count())?;
    deliver_to(message, list, receiving)
}

/// Whether the receiver takes so many capabilities, and payload and list fit; where they go.
fn check_room<M: Machine>(message: &Message<'_, M>, transfers: u8) -> Result<Room, Fault> {
    let receiving = operation_of(message.m, message.to).ok_or(Fault::Target(Status::Cancelled))?;
    if receiving.accepts < transfers && !message.m.plants(Defect::TransferForced) {
        return Err(Fault::Source(Status::TransferRefused));
    }
    let fits = match receiving.room {
        Room::Inline if message.deadline_ns != 0 => INLINE_BYTES as u32 - 8,
        Room::Inline => INLINE_BYTES as u32,
        Room::Address { capacity, .. } | Room::Registered { capacity, .. } => capacity,
    };
    if laden_bytes(message.payload.length(), transfers) > fits {
        return Err(Fault::Source(Status::ParamsTooLarge));
    }
    Ok(receiving.room)
}

/// Copies the descriptors that follow the payload, once.
fn fetch_list<M: Machine>(message: &Message<'_, M>, transfers: u8) -> Result<List, Fault> {
    let mut words = [0; MOST * DESCRIPTOR_WORDS];
    let count = usize::from(transfers).min(MOST);
    let into = words.get_mut(..count * DESCRIPTOR_WORDS).unwrap_or_default();
    let length = message.payload.length();
    let whole = message.payload.with_length(laden_bytes(length, transfers));
    let bytes = size_of_val(into);
    message.fetch_of(whole, length.next_multiple_of(8) as usize, into.as_mut_bytes(), bytes)?;
    List::decode(into).map_err(Fault::Source)
}

fn deliver_to<M: Objects>(message: &Message<'_, M>, list: &List, room: Room) -> Result<(), Fault> {
    let m = message.m;
    let sender = match &message.from {
        Sender::Own(caller) => home_of(caller.ring.shared.process),
        Sender::Waiting { from, .. } => {
            process_of(m, *from).ok_or(Fault::Source(Status::Cancelled))?
        }
    };
    let receiver = process_of(m, message.to).ok_or(Fault::Target(Status::Cancelled))?;
    let mut held = 0;
    // Under the table's lock: what a capability is copied from holds the object meanwhile.
    let hold = |parcel: &Parcel<_>| {
        held = copies::<M>(parcel).take_while(|object| m.retained(*object)).count();
    };
    let parcel = prepare(m, &sender, list, hold).map_err(Fault::Source)?;
    let delivered = if parcel.items().any(|item| !may_serve(item.cap.object, receiver.key)) {
        Err(Fault::Source(Status::NotTransferable))
    } else if held == copies::<M>(&parcel).count() {
        check_grants(m, &parcel)
            .map_err(Fault::Source)
            .and_then(|()| reserve(&receiver, &parcel))
            .and_then(|slots| Laden { message, room, parcel }.deliver(&sender, &receiver, slots))
    } else {
        Err(Fault::Source(Status::Disconnected))
    };
    if delivered.is_err() {
        copies::<M>(&parcel).take(held).for_each(|object| m.released(sender.process, object));
    }
    delivered
}

/// A message and the capabilities that travel with it.
struct Laden<'a, 'r, M: Objects> {
    message: &'a Message<'r, M>,
    room: Room,
    parcel: Parcel<Object<M::Other>>,
}

impl<M: Objects> Laden<'_, '_, M> {
    /// The part that is taken back if it fails: slots are promised from here on.
    fn deliver(
        &self,
        sender: &Home<M>,
        receiver: &Home<M>,
        promised: Reservation,
    ) -> Result<(), Fault> {
        let (m, parcel) = (self.message.m, self.parcel);
        let mut words = [0; INLINE_WORDS];
        let copied = self.copy(promised.slots(), &mut words);
        let departed = copied.and_then(|outcome| {
            let departed = sender.with_table(|table| table.depart(&parcel));
            match departed {
                Some(Ok(())) => Ok(outcome),
                // A sibling, or the sender's end, came first.
                Some(Err(_)) | None => Err(Fault::Source(Status::Disconnected)),
            }
        });
        let outcome = match departed {
            Ok(outcome) => outcome,
            Err(fault) => {
                receiver.with_table(|table| table.abort(promised));
                return Err(fault);
            }
        };
        if m.plants(Defect::SlowArrival) || m.plants(Defect::MoveLost) {
            m.linger();
        }
        let posted =
            receiver.with_table(|table| self.arrive(table, promised, &outcome, &words)).flatten();
        match posted {
            Some(due) => {
                sender.with_table(|table| table.settle(&parcel));
                due.wake(m, self.message.directly);
                Ok(())
            }
            None => {
                if !m.plants(Defect::MoveLost) {
                    self.call_back(sender);
                }
                Err(Fault::Target(Status::Cancelled))
            }
        }
    }

    /// Copies payload and descriptors to where the receiver wants them; what its completion says.
    fn copy(&self, slots: &[CapSlot], words: &mut [u64; INLINE_WORDS]) -> Result<Outcome, Fault> {
        let message = self.message;
        let length = message.payload.length();
        let mut outcome = message.outcome;
        outcome.flags |= (slots.len() as u8) << CqeFlags::TRANSFERS_SHIFT;
        if message.deadline_ns != 0 {
            outcome.flags |= CqeFlags::DEADLINE;
        }
        let mut named = [0; MOST * DESCRIPTOR_WORDS];
        for (place, slot) in named.chunks_exact_mut(DESCRIPTOR_WORDS).zip(slots) {
            place.copy_from_slice(&[slot.to_bits(), 0]);
        }
        let named = named.get(..slots.len() * DESCRIPTOR_WORDS).unwrap_or_default();
        let from = length.next_multiple_of(8);
        match self.room {
            Room::Inline => {
                message.fetch(0, words.as_mut_bytes(), length as usize)?;
                let into = words.iter_mut().skip(from as usize / 8);
                into.zip(named).for_each(|(word, name)| *word = *name);
            }
            room @ (Room::Address { .. } | Room::Registered { .. }) => {
                outcome.flags |= CqeFlags::BY_ADDRESS;
                message.copy_to(room, length)?;
                message.put(room, u64::from(from), named.as_bytes())?;
            }
        }
        Ok(outcome)
    }

    /// Fills the promised slots and completes the receiver's operation, or neither.
    fn arrive(
        &self,
        table: &mut CapTable<M::Other>,
        promised: Reservation,
        outcome: &Outcome,
        words: &[u64; INLINE_WORDS],
    ) -> Option<Due<M>> {
        let Message { m, to, deadline_ns, .. } = *self.message;
        let Ok(arrived) = table.arrive(promised, self.parcel) else { return None };
        let posted = post_with(m, to, |ring, cq, credit| {
            if deadline_ns != 0 {
                ring.kernel.write_next_inline(cq, DEADLINE_WORD, deadline_ns);
            }
            if self.room == Room::Inline {
                let named = arrived.slots().len() * DESCRIPTOR_WORDS;
                let from = outcome.length.div_ceil(8) as usize;
                for (word, value) in words.iter().enumerate().skip(from).take(named) {
                    ring.kernel.write_next_inline(cq, word, *value);
                }
                ring.kernel.post_words(cq, credit, outcome, words)
            } else {
                ring.kernel.post(cq, credit, outcome)
            }
        });
        if posted.is_none() {
            for slot in arrived.slots() {
                // Still the sender's: its rule runs where it is called back to.
                let taken_back = table.release(*slot);
                debug_assert!(taken_back.is_ok(), "the table was locked since it arrived");
            }
        }
        posted
    }

    /// Makes what did not arrive the sender's again; if that has ended too, its objects' rules run.
    fn call_back(&self, sender: &Home<M>) {
        let back = sender.with_table(|table| table.recall(self.parcel));
        if let Some(Ok(())) = back {
            return;
        }
        for item in self.parcel.moves() {
            object::released(self.message.m, sender.process, Released(item.cap));
        }
    }
}

/// Promises the slots that a parcel needs.
fn reserve<M: Objects>(
    receiver: &Home<M>,
    parcel: &Parcel<Object<M::Other>>,
) -> Result<Reservation, Fault> {
    match receiver.with_table(|table| table.reserve(parcel.count())) {
        Some(Ok(promised)) => Ok(promised),
        // An account that is closed pays for no slot: its process is ending, and the table is next.
        Some(Err(ReserveError::Insert(InsertError::Full))) if receiver.is_ending() => {
            Err(Fault::Target(Status::Cancelled))
        }
        Some(Err(ReserveError::Insert(InsertError::Full))) => {
            Err(Fault::Source(Status::Overloaded))
        }
        Some(Err(ReserveError::TooMany)) => Err(Fault::Source(Status::InvalidArgument)),
        Some(Err(ReserveError::Insert(InsertError::Closed))) | None => {
            Err(Fault::Target(Status::Cancelled))
        }
    }
}

/// Whether a list and its payload fit what a caller that waits for an answer takes.
pub fn check_answer<M: Machine>(
    m: M,
    waiting: Party,
    length: u32,
    list: &List,
) -> Result<(), Status> {
    let Some(operation) = operation_of(m, waiting) else { return Ok(()) };
    if operation.accepts < list.count() {
        return Err(Status::TransferRefused);
    }
    let fits = laden_bytes(length, list.count()) <= waiting.room.bytes();
    if fits { Ok(()) } else { Err(Status::ResultTooLarge) }
}
