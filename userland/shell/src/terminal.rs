//! The console that programs have: the shell's endpoint, which serves the interface Console.
//!
//! A write is answered when it was shown, a read when something was typed for it. What is no message of the interface
//! is answered at once.

use abi_ring::INLINE_WORDS;
use abi_types::{CapSlot, ExceptionKind, INLINE_BYTES, ReplyToken, Status};
use arrayvec::ArrayVec;
use capos_rt::io::status_of;
use capos_rt::serve;
use capos_rt::{Io, Pending};
use schema::console::{self, ReadParams, ReadResults, WriteParams, WriteResults};
use schema_wire::{Answer, Encode, Exception, NoResult, Served};
use shell_core::system::{Asked, PIECE_BYTES};
use zerocopy::IntoBytes;

/// What a program asks for.
pub(crate) enum Asks {
    Write {
        badge: u64,
        bytes: ArrayVec<u8, PIECE_BYTES>,
        asked: Asked,
    },
    Read {
        badge: u64,
        capacity: usize,
        asked: Asked,
    },
    /// It was answered already.
    Nothing,
}

/// What one call says, until it is answered.
#[derive(Default)]
struct Noted {
    bytes: ArrayVec<u8, PIECE_BYTES>,
    capacity: Option<usize>,
}

impl console::Server for Noted {
    fn write(&mut self, params: WriteParams<'_>) -> Answer<WriteResults> {
        let piece = params.bytes.get(..PIECE_BYTES).unwrap_or(params.bytes);
        let _fits = self.bytes.try_extend_from_slice(piece);
        Err(NoResult::Later)
    }

    fn read(&mut self, params: ReadParams, room: usize) -> Answer<ReadResults<'_>> {
        let capacity = (params.capacity as usize).min(room);
        if capacity == 0 {
            let refused = Exception::new(
                ExceptionKind::InvalidArgument,
                "a read of 0 bytes never ends: ask for at least one",
            );
            return Err(refused.into());
        }
        self.capacity = Some(capacity);
        Err(NoResult::Later)
    }
}

/// Receives a call, some time.
pub(crate) fn receive(io: &Io, terminal: CapSlot) -> Option<Pending> {
    io.submit(serve::receive(terminal), &[]).ok()
}

/// The call that was received.
pub(crate) fn take(io: &Io, receiving: Pending) -> Result<Asks, Status> {
    let mut params = [0; INLINE_WORDS];
    let cqe = io.wait(receiving, &mut params);
    match status_of(&cqe) {
        Status::Ok => {}
        status => return Err(status),
    }
    let length = (cqe.length as usize).min(INLINE_BYTES);
    let params = params.as_bytes().get(..length).unwrap_or_default();
    let (badge, token) = (cqe.badge, cqe.reply_token());
    let mut results = [0; INLINE_WORDS];
    let mut noted = Noted::default();
    let served = console::dispatch(&mut noted, cqe.method, params, results.as_mut_bytes());
    if served != Ok(Served::Later) {
        answer(io, token, served, &mut results);
        return Ok(Asks::Nothing);
    }
    let asked = Asked(token.to_bits());
    Ok(match noted {
        Noted { capacity: Some(capacity), .. } => Asks::Read { badge, capacity, asked },
        Noted { bytes, .. } => Asks::Write { badge, bytes, asked },
    })
}

/// So many bytes were shown.
pub(crate) fn answer_write(io: &Io, asked: Asked, length: usize) {
    encoded(io, asked, &WriteResults { written: length as u32 });
}

/// This was typed; or why nothing is read.
pub(crate) fn answer_read(io: &Io, asked: Asked, typed: Result<&[u8], &str>) {
    match typed {
        Ok(bytes) => encoded(io, asked, &ReadResults { bytes }),
        Err(sentence) => {
            let mut results = [0; INLINE_WORDS];
            let refused = Exception::new(ExceptionKind::Failed, sentence);
            let served = refused.encode(results.as_mut_bytes()).map(Served::Exception);
            let served = served.map_err(|_| Status::ResultTooLarge);
            answer(io, ReplyToken::from_bits(asked.0), served, &mut results);
        }
    }
}

fn encoded(io: &Io, asked: Asked, results: &impl Encode) {
    let mut words = [0; INLINE_WORDS];
    let served = results.encode(words.as_mut_bytes()).map(Served::Results);
    let served = served.map_err(|_| Status::ResultTooLarge);
    answer(io, ReplyToken::from_bits(asked.0), served, &mut words);
}

/// Answers a call. A caller that is gone needs no answer, and one whose answer is refused is told so by the kernel.
fn answer(
    io: &Io,
    token: ReplyToken,
    served: Result<Served, Status>,
    results: &mut [u64; INLINE_WORDS],
) {
    if let Some(sqe) = serve::answer(token, served, results) {
        let payload = results.get(..sqe.length.div_ceil(8) as usize).unwrap_or_default();
        let _answered = io.run(sqe, payload, &mut [0; INLINE_WORDS]);
    }
}
