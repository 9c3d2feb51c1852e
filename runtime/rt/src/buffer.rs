//! Registered buffers: messages of more than an inline slot without a walk of page tables.
//!
//! ```ignore
//! let pages = memory.map(&env.io, 4 * PAGE_BYTES)?;
//! let mut buffer = memory.register(&env.io, pages)?;
//! let mut files = files::Client::new(env.io.through(&mut buffer), target);
//! let read = files.read(path)?;
//! ```
//!
//! A buffer is used by one call or one service at a time, which has it by `&mut`: what the kernel writes to it while an
//! operation is under way, nothing here looks at. The first half is for what comes in, the second for what goes out.

use abi_ring::{INLINE_WORDS, Memory as RingMemory};
use abi_types::limits::MAX_TRANSFERS;
use abi_types::{CapSlot, Cqe, ExceptionKind, Sqe, SqeFlags, Status, Transfer as Descriptor};
use schema::virtual_memory;
use schema_wire::{CallError, Callee, Encode, Exception, Reply, Served, Transfer, Transport};

use crate::caller::call;
use crate::io::{Io, status_of};
use crate::memory::{Memory, Pages};
use crate::ring::Enter;
use crate::serve::{self, Call};

/// Pages that operations name by a number, until they are given up.
#[derive(Debug)]
#[must_use = "a buffer that is dropped stays registered"]
pub struct Buffer {
    pages: Pages,
    number: u16,
}

impl Memory {
    /// Registers pages as a buffer; if that fails they come back.
    pub fn register<M: RingMemory, K: Enter>(
        self,
        io: &Io<M, K>,
        pages: Pages,
    ) -> Result<Buffer, (Pages, CallError)> {
        let mut client = virtual_memory::Client::new(io.caller(), self.slot());
        match client.register(pages.address(), pages.length() as u64, true) {
            Ok(made) => Ok(Buffer { pages, number: made.buffer }),
            Err(error) => Err((pages, error)),
        }
    }

    /// Gives a buffer up and waits until no operation uses it. It comes back if that is refused: by a number that is given
    /// up by hand, or a process that ends.
    pub fn unregister<M: RingMemory, K: Enter>(
        self,
        io: &Io<M, K>,
        buffer: Buffer,
    ) -> Result<Pages, Buffer> {
        let mut client = virtual_memory::Client::new(io.caller(), self.slot());
        match client.unregister(buffer.number) {
            Ok(_) => Ok(buffer.pages),
            Err(_) => Err(buffer),
        }
    }
}

impl Buffer {
    /// Its number, for who writes entries by hand.
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// Its pages.
    pub const fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Bytes of each half.
    fn half(&self) -> usize {
        self.pages.length() / 2
    }

    /// Where what comes in is, and where what goes out.
    fn halves(&mut self) -> (&mut [u8], &mut [u8]) {
        let half = self.half();
        self.pages.bytes().split_at_mut(half)
    }

    /// An entry with room for what comes in.
    fn receiving(&self, sqe: Sqe) -> Sqe {
        Sqe {
            flags: sqe.flags | SqeFlags::RESULT_REGISTERED,
            result_buffer: self.number,
            result_capacity: self.half() as u32,
            ..sqe
        }
    }

    /// An entry that sends what the second half begins with.
    fn sending(&self, sqe: Sqe, length: usize) -> Sqe {
        Sqe {
            flags: sqe.flags | SqeFlags::REGISTERED,
            buffer: self.number,
            address: self.half() as u64,
            length: length as u32,
            ..sqe
        }
    }
}

/// Calls through a buffer and waits; the results are in it.
#[derive(Debug)]
pub struct Through<'b, M, K> {
    io: &'b Io<M, K>,
    buffer: &'b mut Buffer,
    transfers: [CapSlot; MAX_TRANSFERS as usize],
}

impl<M: RingMemory, K: Enter> Io<M, K> {
    /// A way to call for messages of up to half a buffer, both ways.
    pub const fn through<'b>(&'b self, buffer: &'b mut Buffer) -> Through<'b, M, K> {
        let transfers = [CapSlot::NONE; MAX_TRANSFERS as usize];
        Through { io: self, buffer, transfers }
    }
}

impl<M: RingMemory, K: Enter> Transport for Through<'_, M, K> {
    fn call<P: Encode>(
        &mut self,
        callee: Callee,
        params: &P,
        transfers: &[Transfer],
    ) -> Result<Reply<'_>, Status> {
        let (_, out) = self.buffer.halves();
        let length = params.encode(out).map_err(|error| error.status())?;
        let list = out.get_mut(length.next_multiple_of(8)..).unwrap_or_default();
        add_transfers(list, transfers)?;
        let Callee { target, interface, method, accepts } = callee;
        let mut sqe = call(target, interface, method, 0);
        sqe.transfers = transfers.len() as u16;
        sqe.result_transfers = accepts;
        let sqe = self.buffer.receiving(self.buffer.sending(sqe, length));
        // The kernel has the buffer while this does not return.
        let cqe = self.io.run(sqe, &[], &mut [0; INLINE_WORDS])?;
        self.reply(&cqe)
    }
}

impl<M, K> Through<'_, M, K> {
    fn reply(&mut self, cqe: &Cqe) -> Result<Reply<'_>, Status> {
        let (into, _) = self.buffer.halves();
        let is_exception = match status_of(cqe) {
            Status::Ok => false,
            Status::Exception => true,
            other => return Err(other),
        };
        let mut length = (cqe.length as usize).min(into.len());
        if is_exception && length == 0 {
            let kind = ExceptionKind::from_number(cqe.method).unwrap_or(ExceptionKind::Failed);
            length = Exception::new(kind, "").encode(into).unwrap_or(0);
        }
        let count = usize::from(cqe.transfers()).min(self.transfers.len());
        let list = into.get(length.next_multiple_of(8)..).unwrap_or_default();
        for (slot, one) in self.transfers.iter_mut().zip(list.as_chunks::<16>().0).take(count) {
            let bits = one.first_chunk().map_or(0, |bits| u64::from_le_bytes(*bits));
            *slot = CapSlot::from_bits(bits);
        }
        Ok(Reply {
            is_exception,
            bytes: into.get(..length).unwrap_or_default(),
            transfers: self.transfers.get(..count).unwrap_or_default(),
        })
    }
}

/// Writes the descriptors of capabilities that go along.
fn add_transfers(list: &mut [u8], transfers: &[Transfer]) -> Result<(), Status> {
    if transfers.len() > usize::from(MAX_TRANSFERS) {
        return Err(Status::InvalidArgument);
    }
    let (places, _) = list.as_chunks_mut::<{ size_of::<Descriptor>() }>();
    if places.len() < transfers.len() {
        return Err(Status::ParamsTooLarge);
    }
    for (place, transfer) in places.iter_mut().zip(transfers) {
        let words = [transfer.slot.to_bits(), u64::from(transfer.is_move)];
        let (to, _) = place.as_chunks_mut::<8>();
        to.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
    }
    Ok(())
}

/// Serves calls on `endpoint` until it can receive no more, as [`serve`](serve::serve), with parameters and results of up to
/// half a buffer; returns why. An answer that is refused is told to its caller as an exception.
pub fn serve_through_buffer<M: RingMemory, K: Enter>(
    io: &Io<M, K>,
    endpoint: CapSlot,
    buffer: &mut Buffer,
    mut handle: impl FnMut(&Call<'_>, &mut [u8]) -> Result<Served, Status>,
) -> Status {
    let mut words = [0; INLINE_WORDS];
    let mut next = buffer.receiving(serve::receive(endpoint));
    loop {
        let cqe = match io.run(next, &[], &mut words) {
            Ok(cqe) => cqe,
            Err(status) => return status,
        };
        let status = status_of(&cqe);
        if status != Status::Ok {
            if next.arg == 0 {
                return status;
            }
            // The answer was not given: nobody waits for ever on a service that goes on.
            let token = abi_types::ReplyToken::from_bits(next.arg);
            let sqe = serve::answer(token, Err(status), &mut words);
            if let Some(sqe) = sqe {
                let payload = words;
                let _gone = io.run(sqe, &payload, &mut words);
            }
            next = buffer.receiving(serve::receive(endpoint));
            continue;
        }
        let deadline_ns = serve::deadline(&cqe, &words);
        let (params, results) = buffer.halves();
        let length = (cqe.length as usize).min(params.len());
        let call = Call {
            method: cqe.method,
            badge: cqe.badge,
            token: cqe.reply_token(),
            deadline_ns,
            params: params.get(..length).unwrap_or_default(),
        };
        let token = call.token;
        let served = handle(&call, results);
        let receive = serve::receive(endpoint);
        next = match served {
            Ok(Served::Later) => buffer.receiving(receive),
            Ok(Served::Results(length)) => {
                let flags = SqeFlags::THEN_RECV;
                let sqe = Sqe { opcode: RETURN, flags, arg: token.to_bits(), ..receive };
                buffer.receiving(buffer.sending(sqe, length))
            }
            Ok(Served::Exception(length)) => {
                let said = results.get(..length).unwrap_or_default();
                let kind = Exception::decode(said).map_or(ExceptionKind::Failed, |e| e.kind());
                let flags = SqeFlags::THEN_RECV | SqeFlags::EXCEPTION;
                let (method, arg) = (kind as u16, token.to_bits());
                let sqe = Sqe { opcode: RETURN, flags, method, arg, ..receive };
                buffer.receiving(buffer.sending(sqe, length))
            }
            Err(status) => {
                if let Some(sqe) = serve::answer(token, Err(status), &mut words) {
                    let payload = words;
                    let _gone = io.run(sqe, &payload, &mut words);
                }
                buffer.receiving(receive)
            }
        };
    }
}

const RETURN: u8 = abi_types::Opcode::Return as u8;
