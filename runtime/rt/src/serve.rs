//! A service's loop: receive, dispatch, answer and receive with one entry.
//!
//! Messages are inline both ways. Anything an answer can be refused for is told to the caller as
//! an exception, so that no caller waits for ever on a service that goes on.

use abi_ring::{INLINE_WORDS, Memory};
use abi_types::{
    CapSlot, Cqe, CqeFlags, ExceptionKind, INLINE_BYTES, Opcode, ReplyToken, Sqe, SqeFlags, Status,
};
use schema_wire::{Exception, Served};
use zerocopy::IntoBytes;

use crate::io::{Io, status_of};
use crate::ring::Enter;

/// A received call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// The method's ordinal.
    pub method: u16,
    /// The badge of the facet it came through.
    pub badge: u64,
    /// What answers it, for a service that answers later.
    pub token: ReplyToken,
    /// When the caller no longer wants an answer, on the clock of [`now_ns`](crate::time).
    pub deadline_ns: Option<u64>,
    /// The parameters.
    pub params: &'c [u8],
}

/// Serves calls on `endpoint` until it can receive no more; returns why.
///
/// `handle` is what the schema's `dispatch` is: it writes results or exception into its buffer, or
/// keeps the call's token for a later [`answer`].
pub fn serve<M: Memory, K: Enter>(
    io: &Io<M, K>,
    endpoint: CapSlot,
    handle: impl FnMut(&Call<'_>, &mut [u8]) -> Result<Served, Status>,
) -> Status {
    serve_through(|sqe, payload, words| io.run(sqe, payload, words), endpoint, handle)
}

/// As [`serve`], for who submits and waits in another way than through an [`Io`].
pub fn serve_through(
    mut run: impl FnMut(Sqe, &[u64], &mut [u64; INLINE_WORDS]) -> Result<Cqe, Status>,
    endpoint: CapSlot,
    mut handle: impl FnMut(&Call<'_>, &mut [u8]) -> Result<Served, Status>,
) -> Status {
    let (mut params, mut results) = ([0; INLINE_WORDS], [0; INLINE_WORDS]);
    let mut next = receive(endpoint);
    loop {
        let payload = results.get(..next.length.div_ceil(8) as usize).unwrap_or_default();
        let cqe = match run(next, payload, &mut params) {
            Ok(cqe) => cqe,
            Err(status) => {
                // Not even begun: an answer that waits for the next call with it goes out alone.
                if next.opcode == Opcode::Return as u8 {
                    insist(&mut run, next, payload);
                }
                return status;
            }
        };
        let status = status_of(&cqe);
        if status != Status::Ok {
            if next.opcode == Opcode::Recv as u8 {
                return status;
            }
            insist(&mut run, next, payload);
            next = receive(endpoint);
            continue;
        }
        let length = (cqe.length as usize).min(INLINE_BYTES);
        let call = Call {
            method: cqe.method,
            badge: cqe.badge,
            token: cqe.reply_token(),
            deadline_ns: deadline(&cqe, &params),
            params: params.as_bytes().get(..length).unwrap_or_default(),
        };
        let served = handle(&call, results.as_mut_bytes());
        next = match answer(call.token, served, &mut results) {
            Some(sqe) => {
                let flags = sqe.flags | SqeFlags::THEN_RECV;
                Sqe { flags, cap: endpoint.to_bits(), ..sqe }
            }
            None => receive(endpoint),
        };
    }
}

/// An SQE that receives a call on `endpoint`.
#[inline]
pub fn receive(endpoint: CapSlot) -> Sqe {
    Sqe { opcode: Opcode::Recv as u8, cap: endpoint.to_bits(), ..Sqe::default() }
}

/// An SQE that answers a call with what a dispatch left in `results`; `None` if it answers later.
pub fn answer(
    token: ReplyToken,
    served: Result<Served, Status>,
    results: &mut [u64; INLINE_WORDS],
) -> Option<Sqe> {
    let sqe = Sqe { opcode: Opcode::Return as u8, arg: token.to_bits(), ..Sqe::default() };
    let served = match served {
        Ok(served) => served,
        Err(status) => {
            let (kind, message) = refusal(status);
            let length = Exception::new(kind, message).encode(results.as_mut_bytes());
            Served::Exception(length.unwrap_or(0))
        }
    };
    match served {
        Served::Later => None,
        Served::Results(length) => Some(Sqe { length: length as u32, ..sqe }),
        Served::Exception(length) => {
            let bytes = results.as_bytes().get(..length).unwrap_or_default();
            let kind = Exception::decode(bytes).map_or(ExceptionKind::Failed, |e| e.kind());
            let flags = SqeFlags::EXCEPTION;
            Some(Sqe { flags, method: kind as u16, length: length as u32, ..sqe })
        }
    }
}

/// What the caller is told about a call that did not reach its method.
fn refusal(status: Status) -> (ExceptionKind, &'static str) {
    match status {
        Status::InvalidArgument => {
            (ExceptionKind::InvalidArgument, "the parameters are no message of this interface")
        }
        Status::Unimplemented => (ExceptionKind::Unimplemented, "the interface has no such method"),
        _ => (ExceptionKind::Failed, "the results do not fit an inline slot"),
    }
}

/// Answers a call whose answer was refused together with the next receive: alone, and if that is
/// refused too, with an exception without a word. A caller that is gone needs none.
fn insist(
    mut run: impl FnMut(Sqe, &[u64], &mut [u64; INLINE_WORDS]) -> Result<Cqe, Status>,
    refused: Sqe,
    payload: &[u64],
) {
    let alone = Sqe { flags: refused.flags & !SqeFlags::THEN_RECV, cap: 0, ..refused };
    let mut words = [0; INLINE_WORDS];
    let done = run(alone, payload, &mut words).is_ok_and(|cqe| status_of(&cqe) == Status::Ok);
    if !done {
        let bare = Sqe {
            opcode: Opcode::Return as u8,
            flags: SqeFlags::EXCEPTION,
            method: ExceptionKind::Failed as u16,
            arg: refused.arg,
            ..Sqe::default()
        };
        let _ = run(bare, &[], &mut words);
    }
}

pub(crate) fn deadline(cqe: &Cqe, inline: &[u64; INLINE_WORDS]) -> Option<u64> {
    if cqe.flags & CqeFlags::DEADLINE == 0 { None } else { inline.last().copied() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ENDPOINT, TestKernel, with_io};
    use schema::timer;
    use schema_testing::Everything;
    use std::vec;

    /// Serves what `prepare` scripts with a Timer until there are no more calls.
    fn session(prepare: impl FnOnce(&mut TestKernel<'_>), look: impl FnOnce(&TestKernel<'_>)) {
        let mut service = Everything { number: 5, ..Everything::default() };
        with_io(
            8,
            prepare,
            |io| {
                serve(io, ENDPOINT, |call, results| {
                    assert_eq!((call.badge, call.deadline_ns), (9, None));
                    timer::dispatch(&mut service, call.method, call.params, results)
                })
            },
            |kernel, status| {
                assert_eq!(status, Status::Disconnected);
                look(kernel);
            },
        );
    }

    #[test]
    fn each_call_is_answered_and_the_next_received_in_one_entry() {
        session(
            |kernel| kernel.calls.extend([(0, vec![]), (0, vec![]), (0, vec![])]),
            |kernel| {
                assert_eq!(kernel.answers.len(), 3);
                for (kind, bytes) in &kernel.answers {
                    assert_eq!((kind, bytes.last_chunk()), (&None, Some(&5u64.to_le_bytes())));
                }
                // The first receive, one for each answer; the last answer ends it, twice more:
                // alone, and the receive that finds nothing.
                assert_eq!(kernel.entries, 1 + 3 + 2);
            },
        );
    }

    #[test]
    fn what_cannot_be_dispatched_is_an_exception() {
        session(
            |kernel| kernel.calls.extend([(9, vec![]), (1, vec![!0])]),
            |kernel| {
                let kinds: std::vec::Vec<_> =
                    kernel.answers.iter().map(|(kind, _)| *kind).collect();
                let expected = [ExceptionKind::Unimplemented, ExceptionKind::InvalidArgument];
                assert_eq!(kinds[..2], expected.map(|kind| Some(kind as u16)));
                let exception = Exception::decode_from(&kernel.answers[0].1);
                assert_eq!(exception, (ExceptionKind::Unimplemented, true));
            },
        );
    }

    #[test]
    fn a_call_that_is_answered_later_is_not_answered_now() {
        let sleep_for_ever = vec![1 << 32, u64::MAX];
        session(
            |kernel| kernel.calls.extend([(1, sleep_for_ever), (0, vec![])]),
            |kernel| assert_eq!(kernel.answers.len(), 1),
        );
    }

    #[test]
    fn an_answer_that_is_refused_is_given_in_another_way() {
        session(
            |kernel| {
                kernel.calls.extend([(0, vec![]), (0, vec![])]);
                kernel.refusals.extend([Status::ResultTooLarge, Status::ResultTooLarge]);
            },
            |kernel| {
                let failed = Some(ExceptionKind::Failed as u16);
                assert_eq!(kernel.answers[0], (failed, vec![]));
                assert_eq!(kernel.answers[1].0, None);
            },
        );
    }

    /// Whoever submits may refuse to wait for the next call; the last one is answered before it ends.
    #[test]
    fn an_answer_goes_out_alone_if_nothing_more_is_to_be_received() {
        let mut service = Everything { number: 5, ..Everything::default() };
        with_io(
            8,
            |kernel| kernel.calls.extend([(0, vec![]), (0, vec![])]),
            |io| {
                let run = |sqe: Sqe, payload: &[u64], words: &mut [u64; INLINE_WORDS]| {
                    if sqe.flags & SqeFlags::THEN_RECV != 0 {
                        return Err(Status::Cancelled);
                    }
                    io.run(sqe, payload, words)
                };
                serve_through(run, ENDPOINT, |call, results| {
                    timer::dispatch(&mut service, call.method, call.params, results)
                })
            },
            |kernel, status| {
                assert_eq!(status, Status::Cancelled);
                assert_eq!(kernel.answers.len(), 1);
                let (kind, bytes) = &kernel.answers[0];
                assert_eq!((kind, bytes.last_chunk()), (&None, Some(&5u64.to_le_bytes())));
            },
        );
    }

    trait DecodeFrom {
        fn decode_from(bytes: &[u8]) -> (ExceptionKind, bool);
    }

    impl DecodeFrom for Exception {
        /// Its kind, and whether it says something.
        fn decode_from(bytes: &[u8]) -> (ExceptionKind, bool) {
            let mut words = [0u64; INLINE_WORDS];
            words.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
            let exception = Exception::decode(&words.as_bytes()[..bytes.len()]).unwrap();
            (exception.kind(), !exception.message().is_empty())
        }
    }
}
