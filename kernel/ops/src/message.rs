//! Moving a message from one thread to another.
//!
//! Inline to inline is one copy of words from ring to ring. Everything else goes page by page
//! through a buffer of the kernel's: the slow form. A thread that is gone, or memory that is not
//! mapped, is a [`Fault`] of the side it is on, and nothing was completed.

use crate::buffers::{self, Using};
use crate::caller::Caller;
use crate::capability::ProcessKey;
use crate::complete::{complete_with, operation_of};
use crate::machine::{Defect, MAX_COPY_BYTES, Machine, Record, Space, service_of};
use crate::party::{Fit, Party};
use abi_ring::{INLINE_WORDS, Outcome, Payload, Room};
use abi_types::{CqeFlags, INLINE_BYTES, ReplyToken, Status};
use kernel_dispatch::preemption_point;
use zerocopy::IntoBytes;

/// Words of the buffer.
const BUFFER_WORDS: usize = MAX_COPY_BYTES / 8;
/// Bytes of a message between two preemption points: as many pages, each walked and copied twice, as fit a
/// section of kernel code (`section`).
const BYTES_PER_PREEMPTION_POINT: usize = 3 * MAX_COPY_BYTES;
/// The word of an inline slot that holds a call's deadline.
pub(crate) const DEADLINE_WORD: usize = INLINE_WORDS - 1;
/// Where that word begins.
const DEADLINE_OFFSET: u32 = (INLINE_BYTES - 8) as u32;

/// Which side a message could not be moved for, and what to tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The sender's.
    Source(Status),
    /// The receiver's.
    Target(Status),
}

impl Fault {
    /// What to tell, whichever side.
    pub const fn status(self) -> Status {
        match self {
            Self::Source(status) | Self::Target(status) => status,
        }
    }
}

/// Who sends.
pub enum Sender<'r, M: Machine> {
    /// The thread that runs this.
    Own(Caller<'r, M>),
    /// A thread that waits for the answer to a call, and may give it up at any time.
    Waiting {
        /// The call's operation.
        from: Party,
        /// The process that serves it.
        server: ProcessKey,
        /// The call there.
        token: ReplyToken,
    },
}

/// A message on its way.
pub struct Message<'r, M: Machine> {
    /// The machine.
    pub m: M,
    /// Who sends it.
    pub from: Sender<'r, M>,
    /// Where its bytes are.
    pub payload: Payload,
    /// Who gets it.
    pub to: Party,
    /// What the receiver's completion says.
    pub outcome: Outcome,
    /// The call's deadline, 0 for none.
    pub deadline_ns: u64,
    /// The receiver should run next on this CPU.
    pub directly: bool,
}

impl<M: Machine> Message<'_, M> {
    /// Copies the bytes and completes the receiver's operation.
    pub fn deliver(&self) -> Result<(), Fault> {
        let length = self.payload.length();
        if length > self.to.room.bytes() {
            return Err(Fault::Source(Status::ParamsTooLarge));
        }
        if let Sender::Own(caller) = &self.from
            && let Payload::Inline { slot, .. } = self.payload
            && self.to.room == Fit::SIMPLE_INLINE
            && self.deadline_ns == 0
        {
            complete_with(self.m, self.to, self.directly, |ring, cq, credit| {
                ring.kernel.post_from_slot(cq, credit, &self.outcome, &caller.ring.kernel, slot)
            });
            return Ok(());
        }
        self.deliver_slowly(length)
    }

    fn deliver_slowly(&self, length: u32) -> Result<(), Fault> {
        let gone = Fault::Target(Status::Cancelled);
        let room = operation_of(self.m, self.to).ok_or(gone)?.room;
        let mut words = [0; INLINE_WORDS];
        let mut outcome = self.outcome;
        match room {
            // The deadline has the last word of the slot: a payload that needs it does not fit.
            Room::Inline if self.deadline_ns != 0 && length > DEADLINE_OFFSET => {
                return Err(Fault::Source(Status::ParamsTooLarge));
            }
            Room::Inline => self.fetch(0, words.as_mut_bytes(), length as usize)?,
            Room::Address { .. } | Room::Registered { .. } => {
                outcome.flags |= CqeFlags::BY_ADDRESS;
                self.copy_to(room, length)?;
            }
        }
        let is_inline = room == Room::Inline;
        if self.deadline_ns != 0 {
            outcome.flags |= CqeFlags::DEADLINE;
        }
        complete_with(self.m, self.to, self.directly, |ring, cq, credit| {
            if self.deadline_ns != 0 {
                ring.kernel.write_next_inline(cq, DEADLINE_WORD, self.deadline_ns);
            }
            if is_inline {
                ring.kernel.post_words(cq, credit, &outcome, &words)
            } else {
                ring.kernel.post(cq, credit, &outcome)
            }
        });
        Ok(())
    }

    /// Copies the first `length` bytes after `offset` into the kernel.
    pub(crate) fn fetch(&self, offset: usize, into: &mut [u8], length: usize) -> Result<(), Fault> {
        self.fetch_of(self.payload, offset, into, length)
    }

    /// The same of what is at `payload`.
    pub(crate) fn fetch_of(
        &self,
        payload: Payload,
        offset: usize,
        into: &mut [u8],
        length: usize,
    ) -> Result<(), Fault> {
        let into = into.get_mut(..length).ok_or(Fault::Source(Status::ParamsTooLarge))?;
        match &self.from {
            Sender::Own(caller) => fetch(*caller, payload, offset, into),
            &Sender::Waiting { from, server, token } => {
                let gone = Fault::Source(Status::Cancelled);
                if self.m.plants(Defect::CopyAfterCancel) {
                    self.m.linger();
                }
                let thread = self.m.thread(from.thread.slot).ok_or(gone)?;
                // The ring is there while its lock is held, and so is its process.
                let held = thread.ops().completions_of(from.thread.generation).ok_or(gone)?;
                let process = thread.ops().process(self.m);
                if let Payload::Registered { buffer, offset: start, .. } = payload {
                    let using = buffers::look(self.m, process, buffer);
                    // Its process stays as long as somebody looks.
                    drop(held);
                    read_buffer(using, start, offset, into)?;
                } else {
                    fetch_plain::<M>(payload, offset, into, &process.space, &held.ring().kernel)?;
                    drop(held);
                }
                // After the look at its cell and its memory: both are the sender's again from the moment
                // it gives the call up, and what they hold then is not for this receiver.
                if is_waited_for(self.m, server, token) || self.m.plants(Defect::CopyAfterCancel) {
                    Ok(())
                } else {
                    Err(gone)
                }
            }
        }
    }

    /// The receiver's buffer of that number.
    fn look_at_room(&self, number: u16) -> Result<Using<'static, M>, Fault> {
        let gone = Fault::Target(Status::Cancelled);
        let thread = self.m.thread(self.to.thread.slot).ok_or(gone)?;
        // As in `fetch`: with the lock held, the process cannot go away; and then as long as somebody looks.
        let held = thread.ops().completions_of(self.to.thread.generation).ok_or(gone)?;
        let using = buffers::look(self.m, thread.ops().process(self.m), number);
        drop(held);
        using.ok_or(Fault::Target(Status::BadAddress))
    }

    /// Copies at most a page to the receiver's room, from its `offset` on.
    #[inline]
    pub(crate) fn put(&self, room: Room, offset: u64, bytes: &[u8]) -> Result<(), Fault> {
        let bad = Fault::Target(Status::BadAddress);
        let gone = Fault::Target(Status::Cancelled);
        match room {
            Room::Inline => Err(bad),
            Room::Address { address, .. } => {
                let to = address.checked_add(offset).ok_or(bad)?;
                let thread = self.m.thread(self.to.thread.slot).ok_or(gone)?;
                // As in `fetch`: with the lock held, the process cannot go away.
                let _held = thread.ops().completions_of(self.to.thread.generation).ok_or(gone)?;
                thread.ops().process(self.m).space.copy_out(to, bytes).map_err(|_| bad)
            }
            Room::Registered { buffer, offset: start, .. } => {
                let to = start.checked_add(offset).ok_or(bad)?;
                self.look_at_room(buffer)?.write(to, bytes).ok_or(bad)
            }
        }
    }

    /// Copies the message to the receiver's room, a page at a time.
    pub(crate) fn copy_to(&self, room: Room, length: u32) -> Result<(), Fault> {
        if length == 0 {
            // Nothing to copy; whether there is a call all the same is for `fetch` to say.
            return self.fetch(0, &mut [], 0);
        }
        if let Sender::Own(caller) = &self.from
            && let Payload::Registered { buffer, offset, .. } = self.payload
            && let Room::Registered { buffer: to, offset: to_offset, .. } = room
        {
            return self.copy_between(*caller, (buffer, offset), (to, to_offset), length as usize);
        }
        let mut buffer = [0_u64; BUFFER_WORDS];
        self.in_portions(length as usize, |done, part| {
            self.fetch(done, buffer.as_mut_bytes(), part)?;
            let bytes = buffer.as_bytes().get(..part).unwrap_or_default();
            self.put(room, done as u64, bytes)
        })
    }

    /// Does something for each portion of a message: where it begins, and its length.
    fn in_portions(
        &self,
        length: usize,
        mut copy: impl FnMut(usize, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut done = 0_usize;
        while done < length {
            let part = (length - done).min(MAX_COPY_BYTES);
            copy(done, part)?;
            done += part;
            if done.is_multiple_of(BYTES_PER_PREEMPTION_POINT) {
                preemption_point(self.m);
            }
        }
        Ok(())
    }

    /// Copies a message of the caller's own from buffer to buffer, once. Of a thread that waits it is not: what is in
    /// its buffer when it gives the call up is not for the receiver.
    fn copy_between(
        &self,
        caller: Caller<'_, M>,
        (from, offset): (u16, u64),
        (to, to_offset): (u16, u64),
        length: usize,
    ) -> Result<(), Fault> {
        let (bad, no_room) = (Fault::Source(Status::BadAddress), Fault::Target(Status::BadAddress));
        self.in_portions(length, |done, part| {
            let source = buffers::look(self.m, caller.ring.shared.process, from).ok_or(bad)?;
            let target = self.look_at_room(to)?;
            let from = offset.checked_add(done as u64).ok_or(bad)?;
            let to = to_offset.checked_add(done as u64).ok_or(no_room)?;
            // Both were checked when their operations were accepted, and are held since.
            buffers::copy(&source, from, &target, to, part).ok_or(no_room)
        })
    }
}

/// Whether somebody waits for the answer to a call.
fn is_waited_for<M: Machine>(m: M, server: ProcessKey, token: ReplyToken) -> bool {
    service_of(m, server).is_ok_and(|service| {
        let calls = service.as_ref().map(|service| &service.calls);
        calls.is_some_and(|calls| matches!(calls.caller_of(token), Ok(Some(_))))
    })
}

/// Reads a part of a payload of the caller's own.
pub fn fetch<M: Machine>(
    caller: Caller<'_, M>,
    payload: Payload,
    offset: usize,
    into: &mut [u8],
) -> Result<(), Fault> {
    let process = caller.ring.shared.process;
    match payload {
        Payload::Registered { buffer, offset: start, .. } => {
            read_buffer(buffers::look(caller.m, process, buffer), start, offset, into)
        }
        payload => fetch_plain::<M>(payload, offset, into, &process.space, &caller.ring.kernel),
    }
}

/// Reads a part of a payload in a buffer, which is left then: with no lock of a completion queue held.
fn read_buffer<M: Machine>(
    using: Option<Using<'_, M>>,
    start: u64,
    offset: usize,
    into: &mut [u8],
) -> Result<(), Fault> {
    let from = start.checked_add(offset as u64);
    let read = from.and_then(|from| using?.read(from, into));
    read.ok_or(Fault::Source(Status::BadAddress))
}

/// Reads a part of a payload that is in no buffer.
fn fetch_plain<M: Machine>(
    payload: Payload,
    offset: usize,
    into: &mut [u8],
    space: &M::Space,
    ring: &abi_ring::KernelRing<M::RingMemory>,
) -> Result<(), Fault> {
    let bad = Fault::Source(Status::BadAddress);
    match payload {
        Payload::Inline { slot, length } => {
            let mut words = [0; INLINE_WORDS];
            ring.read_inline(slot, length, &mut words);
            let bytes = words.as_bytes().get(offset..).unwrap_or_default();
            for (to, from) in into.iter_mut().zip(bytes) {
                *to = *from;
            }
            Ok(())
        }
        Payload::Address { address, .. } => {
            let from = address.checked_add(offset as u64).ok_or(bad)?;
            if into.is_empty() {
                return Ok(());
            }
            space.copy_in(into, from).map_err(|_| bad)
        }
        Payload::Registered { .. } => Err(bad),
    }
}
