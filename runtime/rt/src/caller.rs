//! How typed clients call: parameters in, wait, results out.
//!
//! A [`Caller`] has memory of its own for one message, so each client of a thread has its caller
//! and none invalidates another's results.
//!
//! Parameters that fit an inline slot go there, larger ones by address from the caller's memory.
//! Results come inline, unless the caller was made by [`large`](Caller::large).

use abi_ring::{INLINE_WORDS, Memory};
use abi_sync::BlockMemory;
use abi_types::limits::MAX_TRANSFERS;
use abi_types::{
    CapSlot, Cqe, CqeFlags, ExceptionKind, INLINE_BYTES, InterfaceTag, Opcode, Sqe, SqeFlags,
    Status, TransferMode,
};
use schema_wire::{
    CallError, Callee, Encode, Exception, Method, Reading, Reply, Transfer, Transport,
};
use zerocopy::IntoBytes;

use crate::io::{Io, Pending, status_of};
use crate::ring::{Enter, Kernel, NOP};

/// Words of the message of a [large](Io::large) caller: 1 KiB.
pub const LARGE_WORDS: usize = 128;

/// Calls through an [`Io`] and waits; holds the last results.
#[derive(Debug)]
pub struct Caller<'io, const WORDS: usize = INLINE_WORDS, M = BlockMemory, K = Kernel> {
    io: &'io Io<M, K>,
    exchange: Exchange<WORDS>,
}

/// Memory for the parameters and the results of one call at a time, whoever submits and waits.
#[derive(Debug)]
pub struct Exchange<const WORDS: usize = INLINE_WORDS> {
    message: [u64; WORDS],
    transfers: [CapSlot; MAX_TRANSFERS as usize],
    results_by_address: bool,
}

impl<M: Memory, K: Enter> Io<M, K> {
    /// A way to call for messages that fit an inline slot both ways: most do.
    pub const fn caller(&self) -> Caller<'_, INLINE_WORDS, M, K> {
        Caller::new(self)
    }

    /// Starts a call whose parameters fit an inline slot and does not wait for it:
    /// `io.start::<console::methods::Read>(console, &ReadParams { capacity: 1 })`.
    pub fn start<'p, C: Method>(
        &self,
        target: CapSlot,
        params: &C::Params<'p>,
    ) -> Result<Pending, Status> {
        let mut words = [0; INLINE_WORDS];
        let length = params.encode(words.as_mut_bytes()).map_err(|e| e.status())?;
        let payload = words.get(..length.div_ceil(8)).unwrap_or_default();
        self.submit(call_of::<C>(target, length as u32), payload)
    }

    /// Waits until a call that was started has its answer, and gives the results to `read`.
    pub fn finish<C: Method, R>(
        &self,
        pending: Pending,
        read: impl FnOnce(C::Results<'_>) -> R,
    ) -> Result<R, CallError> {
        let mut exchange = Exchange::<INLINE_WORDS>::new();
        let cqe = self.wait(pending, &mut exchange.message);
        Ok(read(Reading::<C>::new(exchange.reply(&cqe)?)?.get()?))
    }

    /// A way to call for messages of up to 1 KiB both ways.
    pub const fn large(&self) -> Caller<'_, LARGE_WORDS, M, K> {
        Caller::large(self)
    }
}

impl<'io, const WORDS: usize, M: Memory, K: Enter> Caller<'io, WORDS, M, K> {
    /// Parameters of up to `WORDS` words, results inline.
    pub const fn new(io: &'io Io<M, K>) -> Self {
        Self { io, exchange: Exchange::new() }
    }

    /// Parameters and results of up to `WORDS` words.
    pub const fn large(io: &'io Io<M, K>) -> Self {
        Self { io, exchange: Exchange::large() }
    }
}

impl<const WORDS: usize, M: Memory, K: Enter> Transport for Caller<'_, WORDS, M, K> {
    fn call<P: Encode>(
        &mut self,
        callee: Callee,
        params: &P,
        transfers: &[Transfer],
    ) -> Result<Reply<'_>, Status> {
        let io = self.io;
        let run = |sqe, payload: &[u64], inline: &mut _| io.run(sqe, payload, inline);
        self.exchange.call(run, callee, params, transfers)
    }
}

impl<const WORDS: usize> Default for Exchange<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const WORDS: usize> Exchange<WORDS> {
    const HOLDS_AN_INLINE_SLOT: () = assert!(WORDS >= INLINE_WORDS);

    /// Parameters of up to `WORDS` words, results inline.
    pub const fn new() -> Self {
        let () = Self::HOLDS_AN_INLINE_SLOT;
        let transfers = [CapSlot::NONE; MAX_TRANSFERS as usize];
        Self { message: [0; WORDS], transfers, results_by_address: false }
    }

    /// Parameters and results of up to `WORDS` words.
    pub const fn large() -> Self {
        let mut exchange = Self::new();
        exchange.results_by_address = true;
        exchange
    }

    /// Writes descriptors behind `length` bytes of payload; returns the words of both.
    fn add_transfers(&mut self, length: usize, transfers: &[Transfer]) -> Result<usize, Status> {
        let from = length.div_ceil(8);
        let room = self.message.get_mut(from..).unwrap_or_default();
        if transfers.len() > usize::from(MAX_TRANSFERS) {
            return Err(Status::InvalidArgument);
        }
        if room.len() < transfers.len() * 2 {
            return Err(Status::ParamsTooLarge);
        }
        for (words, transfer) in room.chunks_exact_mut(2).zip(transfers) {
            let mode = if transfer.is_move { TransferMode::Move } else { TransferMode::Copy };
            words.copy_from_slice(&[transfer.slot.to_bits(), u64::from(mode as u32)]);
        }
        Ok(from + transfers.len() * 2)
    }

    /// The results of a completion whose inline payload is at the beginning of the message.
    fn reply(&mut self, cqe: &Cqe) -> Result<Reply<'_>, Status> {
        let is_exception = match status_of(cqe) {
            Status::Ok => false,
            Status::Exception => true,
            other => return Err(other),
        };
        let mut length = (cqe.length as usize).min(WORDS * 8);
        if is_exception && length == 0 {
            // A service may say no without a word; the kind is in the completion.
            let kind = ExceptionKind::from_number(cqe.method).unwrap_or(ExceptionKind::Failed);
            let exception = Exception::new(kind, "");
            length = exception.encode(self.message.as_mut_bytes()).unwrap_or(0);
        }
        let count = usize::from(cqe.transfers()).min(self.transfers.len());
        let descriptors = self.message.get(length.div_ceil(8)..).unwrap_or_default();
        for (slot, words) in self.transfers.iter_mut().zip(descriptors.chunks_exact(2)).take(count)
        {
            *slot = CapSlot::from_bits(words.first().copied().unwrap_or_default());
        }
        Ok(Reply {
            is_exception,
            bytes: self.message.as_bytes().get(..length).unwrap_or_default(),
            transfers: self.transfers.get(..count).unwrap_or_default(),
        })
    }

    /// Calls: `run` submits an SQE with a payload for its inline slot, waits until it has completed,
    /// whatever happens, and puts the completion's inline payload into the words it is given.
    #[inline]
    pub fn call<P: Encode>(
        &mut self,
        run: impl FnOnce(Sqe, &[u64], &mut [u64; INLINE_WORDS]) -> Result<Cqe, Status>,
        callee: Callee,
        params: &P,
        transfers: &[Transfer],
    ) -> Result<Reply<'_>, Status> {
        let length = params.encode(self.message.as_mut_bytes()).map_err(|e| e.status())?;
        let words = self.add_transfers(length, transfers)?;
        let Callee { target, interface, method, accepts } = callee;
        let mut sqe = call(target, interface, method, length as u32);
        sqe.transfers = transfers.len() as u16;
        sqe.result_transfers = accepts;
        // The kernel reads parameters from here and writes results to here while `run` does not
        // return, which is when nothing else has the message.
        let place = self.message.as_mut_ptr().expose_provenance() as u64;
        if words * 8 > INLINE_BYTES {
            sqe.flags |= SqeFlags::BY_ADDRESS;
            sqe.address = place;
        }
        if self.results_by_address {
            sqe.flags |= SqeFlags::RESULT_BY_ADDRESS;
            sqe.result_address = place;
            sqe.result_capacity = (WORDS * 8) as u32;
        }
        let payload = self.message.get(..words.min(INLINE_WORDS)).unwrap_or_default();
        let mut inline = [0; INLINE_WORDS];
        let cqe = run(sqe, payload, &mut inline)?;
        if cqe.flags & CqeFlags::BY_ADDRESS == 0
            && let Some(message) = self.message.first_chunk_mut()
        {
            *message = inline;
        }
        self.reply(&cqe)
    }
}

/// An SQE that calls a method of an interface with `length` bytes of parameters in an inline slot.
#[inline]
pub const fn call(target: CapSlot, interface: InterfaceTag, method: u16, length: u32) -> Sqe {
    let (opcode, cap, interface) = (Opcode::Call as u8, target.to_bits(), interface.to_bits());
    Sqe { opcode, method, length, cap, interface, ..NOP }
}

/// The same for a method that a schema declares.
#[inline]
pub const fn call_of<M: Method>(target: CapSlot, length: u32) -> Sqe {
    call(target, M::INTERFACE, M::ORDINAL, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CONSOLE, SYSTEM_INFO, TIMER, with_io};
    use schema::{console, system_info, timer};

    #[test]
    fn a_typed_client_calls_and_reads_the_answer() {
        with_io(
            8,
            |kernel| kernel.service.number = 77,
            |io| {
                let mut timer = timer::Client::new(io.caller(), TIMER);
                assert_eq!(timer.now().unwrap().ns, 77);
                timer.sleep(5).unwrap();
            },
            |kernel, ()| {
                // One entry a call: it submits and waits.
                assert_eq!((kernel.entries, kernel.service.asked.len()), (2, 1));
            },
        );
    }

    #[test]
    fn a_call_can_go_on_while_others_are_made() {
        with_io(
            8,
            |kernel| kernel.service.number = 8,
            |io| {
                let params = timer::SleepParams { ns: u64::MAX };
                let sleep = io.start::<timer::methods::Sleep>(TIMER, &params).unwrap();
                assert_eq!(timer::Client::new(io.caller(), TIMER).now().unwrap().ns, 8);
                assert!(!io.is_done(&sleep));
                let cqe = io.wait(sleep, &mut [0; INLINE_WORDS]);
                assert_eq!(status_of(&cqe), Status::Ok);
            },
            |_, ()| (),
        );
    }

    #[test]
    fn a_call_that_was_started_is_read_when_it_is_done() {
        with_io(
            8,
            |kernel| kernel.service.input = b"key".to_vec(),
            |io| {
                let params = console::ReadParams { capacity: 8 };
                let read = io.start::<console::methods::Read>(CONSOLE, &params).unwrap();
                let length = io.finish::<console::methods::Read, _>(read, |read| read.bytes.len());
                assert_eq!(length, Ok(3));
                let nothing = CapSlot::new(40, 1);
                let now = timer::NowParams {};
                let now = io.start::<timer::methods::Now>(nothing, &now).unwrap();
                let refused = io.finish::<timer::methods::Now, _>(now, |now| now.ns);
                assert_eq!(refused, Err(CallError::Status(Status::Disconnected)));
            },
            |_, ()| (),
        );
    }

    #[test]
    fn clients_of_one_thread_keep_their_own_results() {
        with_io(
            8,
            |kernel| {
                kernel.service.input = b"key".to_vec();
                kernel.service.number = 3;
            },
            |io| {
                let mut console = console::Client::new(io.caller(), CONSOLE);
                let mut timer = timer::Client::new(io.caller(), TIMER);
                let reading = console.read(80).unwrap();
                assert_eq!(timer.now().unwrap().ns, 3);
                assert_eq!(reading.get().unwrap().bytes, b"key");
            },
            |_, ()| (),
        );
    }

    #[test]
    fn parameters_beyond_an_inline_slot_go_by_address() {
        with_io(
            8,
            |_| (),
            |io| {
                let text = [7; 300];
                let mut small = console::Client::new(io.caller(), CONSOLE);
                let refused = Err(CallError::Status(Status::ParamsTooLarge));
                assert_eq!(small.write(&text), refused);
                let mut large = console::Client::new(io.large(), CONSOLE);
                assert_eq!(large.write(&text).unwrap().written, 300);
            },
            |_, ()| (),
        );
    }

    #[test]
    fn results_beyond_an_inline_slot_need_a_large_caller() {
        with_io(
            8,
            |kernel| kernel.service.number = 1,
            |io| {
                let mut small = system_info::Client::new(io.caller(), SYSTEM_INFO);
                let refused = Err(CallError::Status(Status::ResultTooLarge));
                assert_eq!(small.cpu(0).map(|_| ()), refused);
                let mut large = system_info::Client::new(io.large(), SYSTEM_INFO);
                large.cpu(0).unwrap();
            },
            |_, ()| (),
        );
    }

    #[test]
    fn statuses_and_exceptions_are_errors() {
        with_io(
            8,
            |_| (),
            |io| {
                let nothing = CapSlot::new(40, 1);
                let error = timer::Client::new(io.caller(), nothing).now();
                assert_eq!(error, Err(CallError::Status(Status::Disconnected)));
            },
            |_, ()| (),
        );
    }

    #[test]
    fn an_exception_without_a_word_has_the_completions_kind() {
        with_io(
            8,
            |_| (),
            |io| {
                let mut caller = io.caller();
                let method = ExceptionKind::Overloaded as u16;
                let cqe = Cqe { status: Status::Exception as u8, method, ..Cqe::default() };
                let reply = caller.exchange.reply(&cqe).unwrap();
                let exception = Exception::decode(reply.bytes).unwrap();
                assert_eq!(
                    (reply.is_exception, exception.kind()),
                    (true, ExceptionKind::Overloaded)
                );
            },
            |_, ()| (),
        );
    }

    #[test]
    fn capabilities_travel_behind_the_payload() {
        with_io(
            8,
            |_| (),
            |io| {
                let mut caller = io.caller();
                caller.exchange.message = core::array::from_fn(|word| word as u64);
                let transfers = 2 << CqeFlags::TRANSFERS_SHIFT;
                let cqe = Cqe { flags: transfers, length: 12, ..Cqe::default() };
                let reply = caller.exchange.reply(&cqe).unwrap();
                let slots = [CapSlot::from_bits(2), CapSlot::from_bits(4)];
                assert_eq!((reply.bytes.len(), reply.transfers), (12, &slots[..]));
                let sent = [Transfer { slot: CapSlot::new(5, 6), is_move: true }; 9];
                assert_eq!(caller.exchange.add_transfers(12, &sent[..2]), Ok(6));
                assert_eq!(caller.exchange.message[2..6], [6 << 32 | 5, 1, 6 << 32 | 5, 1]);
                assert_eq!(caller.exchange.add_transfers(12, &sent), Err(Status::InvalidArgument));
                assert_eq!(
                    caller.exchange.add_transfers(113, &sent[..1]),
                    Err(Status::ParamsTooLarge)
                );
            },
            |_, ()| (),
        );
    }
}
