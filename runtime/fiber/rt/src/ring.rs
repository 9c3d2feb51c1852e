//! Calls and other operations of the system that only the fiber waits for.
//!
//! [`submit`] gives an operation to the ring of the worker the fiber is on; when its completion comes
//! the fiber goes on, on whatever worker. Typed clients call through a [`Caller`], a service's loop is
//! [`serve`]. On a thread that is no worker all of them block the thread.
//!
//! What a worker's fibers submit goes to the kernel when the worker has nothing else to do, and after
//! some picks otherwise, together. A cancelled fiber's operation is cancelled in the kernel and waited
//! for: its buffers are the kernel's until it has completed. If it completed meanwhile, its result
//! counts.

use core::ptr;
use core::sync::atomic::Ordering;

use abi_ring::INLINE_WORDS;
use abi_types::{CapSlot, Cqe, Opcode, Sqe, SqeFlags, Status};
use capos_rt::caller::{Exchange, LARGE_WORDS};
use capos_rt::serve::Call;
use fiber_core::Outcome;
use schema_wire::{Callee, Encode, Reply, Served, Transfer, Transport};

use crate::fiber::shield;
use crate::shield::wait_in_any_case;
use crate::substrate::capos::{AGAIN, DONE, Operation, Port, Stage, run};
use crate::wait::{Wait, current_worker, wait};
use crate::what::What;
use crate::worker::current_fiber;

/// Submits an operation and waits for its completion, whose inline payload comes in `words`. `payload`
/// goes into an inline slot unless the SQE says that it is elsewhere; `sqe.user_data` is not the
/// caller's to choose.
///
/// `cancelled`: the fiber was cancelled, and the operation is not under way. `invalidArgument`: a PARK,
/// which is a thread's; a fiber waits at a channel, a lock or a timer.
pub fn submit(sqe: Sqe, payload: &[u64], words: &mut [u64; INLINE_WORDS]) -> Result<Cqe, Status> {
    loop {
        let (Some(fiber), Some(worker)) = (current_fiber(), current_worker()) else {
            return run(sqe, payload, words);
        };
        if sqe.opcode == Opcode::Park as u8 {
            return Err(Status::InvalidArgument);
        }
        let port = &worker.port;
        // SAFETY: a fiber runs, so its runtime is there, and stays while it does.
        let shared = unsafe { &*fiber.shared.load(Ordering::Relaxed) };
        let index = worker.index;
        let operation = Operation::new(sqe, payload);
        let begin = |wait: &Wait| {
            if !port.start(&operation, wait) {
                shared.offer(index);
            }
            true
        };
        match wait_at(port, &operation, begin) {
            Some(DONE) => {}
            // Its worker had not begun it, and is blocked, or has no room where another one has.
            Some(AGAIN) => continue,
            _ => match port.cancel(&operation) {
                Stage::New | Stage::Backlog => return Err(Status::Cancelled),
                Stage::Done => {}
                Stage::UnderWay => {
                    shared.kick(index);
                    let link = |wait: &Wait| port.set_wait(&operation, wait) != Stage::Done;
                    wait_in_any_case(|| wait_at(port, &operation, link));
                }
            },
        }
        return Ok(operation.completion(words));
    }
}

/// Waits until the operation is done or the fiber is cancelled. `link` says whether to wait at all.
fn wait_at(
    port: &Port,
    operation: &Operation,
    link: impl FnOnce(&Wait) -> bool,
) -> Option<Outcome> {
    let at = ptr::from_ref(operation).cast();
    wait(What::Completion, at, None, link, |outcome| {
        if outcome != DONE {
            let _ = port.set_wait(operation, ptr::null());
        }
    })
}

/// How a fiber's typed clients call: `timer::Client::new(Caller::new(), slot)`. Has memory of its own
/// for one message.
#[derive(Debug, Default)]
pub struct Caller<const WORDS: usize = INLINE_WORDS>(Exchange<WORDS>);

impl Caller {
    /// For messages that fit an inline slot both ways: most do.
    pub const fn new() -> Self {
        Self(Exchange::new())
    }
}

impl Caller<LARGE_WORDS> {
    /// For messages of up to 1 KiB both ways.
    pub const fn large() -> Self {
        Self(Exchange::large())
    }
}

impl<const WORDS: usize> Transport for Caller<WORDS> {
    fn call<P: Encode>(
        &mut self,
        callee: Callee,
        params: &P,
        transfers: &[Transfer],
    ) -> Result<Reply<'_>, Status> {
        self.0.call(submit, callee, params, transfers)
    }
}

/// Serves calls on `endpoint` in the fiber that calls it, until it can receive no more or is cancelled;
/// returns why. As `capos_rt::serve`. A call that was received is answered also by who was cancelled
/// meanwhile.
pub fn serve(
    endpoint: CapSlot,
    handle: impl FnMut(&Call<'_>, &mut [u8]) -> Result<Served, Status>,
) -> Status {
    let run = |sqe: Sqe, payload: &[u64], words: &mut [u64; INLINE_WORDS]| {
        let only_answers =
            sqe.opcode == Opcode::Return as u8 && sqe.flags & SqeFlags::THEN_RECV == 0;
        if only_answers {
            shield(|| submit(sqe, payload, words))
        } else {
            submit(sqe, payload, words)
        }
    };
    capos_rt::serve::serve_through(run, endpoint, handle)
}
