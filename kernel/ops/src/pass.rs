//! A pass: the SQEs of a ring, carried out one after the other.

use crate::caller::{Caller, Finish};
use crate::machine::{Machine, Record};
use crate::object::{self, Objects};
use crate::{cancel, ipc, park};
use abi_ring::{Credit, Head, Pass, Request};
use abi_types::{CapSlot, Opcode, Status};
use kernel_dispatch::{self as dispatch, Here, Record as _, preemption_point};

/// Operations between two preemption points: as many of the longest ones as fit a section of kernel code
/// (`section`). One that moves pages has points of its own.
const OPERATIONS_PER_PREEMPTION_POINT: u32 = 4;

const NOP: u8 = Opcode::Nop as u8;

/// Carries out the SQEs of one pass.
#[inline(always)]
pub fn run<M: Objects>(caller: &Caller<'_, M>, pass: &mut Pass<'_, M::RingMemory>) {
    let mut taken = 0_u32;
    while !pass.is_over() {
        taken += 1;
        if taken.is_multiple_of(OPERATIONS_PER_PREEMPTION_POINT) {
            preemption_point(caller.m);
            if caller.thread.state().is_killed() {
                return;
            }
        }
        if caller.ring.kernel.glance() == NOP && finish_nops(caller, pass) {
            continue;
        }
        let Some(at) = pass.head() else { return };
        let credit = pass.take(&at);
        let finish = if let Some(request) = at.unpark() {
            park::unpark(caller, credit, request)
        } else if let Some(request) = at.park() {
            park::park(caller, credit, request)
        } else if at.is_yield() {
            yield_among_others(caller, credit)
        } else {
            carry_out(caller, credit, &at)
        };
        caller.finish(finish);
    }
}

/// Completes the NOPs that are next, under one lock; whether there were any.
#[inline(always)]
fn finish_nops<M: Machine>(caller: &Caller<'_, M>, pass: &mut Pass<'_, M::RingMemory>) -> bool {
    if let Some(mut completions) = caller.thread.ops().home.completions()
        && let Some((_, cq)) = completions.parts()
    {
        return pass.finish_nops(cq);
    }
    false
}

/// Carries out one operation, whatever it is.
#[inline(never)]
fn carry_out<M: Objects>(caller: &Caller<'_, M>, credit: Credit, at: &Head) -> Finish {
    let request = match at.decode(&caller.ring.kernel) {
        Ok(request) => request,
        Err(status) => return Finish::Plain(credit, status),
    };
    match request {
        Request::Nop => Finish::Plain(credit, Status::Ok),
        Request::Call(call) => ipc::call(*caller, credit, &call),
        Request::Recv(recv) => ipc::recv(*caller, credit, &recv),
        Request::Return(answer) => ipc::answer(*caller, credit, &answer),
        Request::Release(slot) => release(*caller, credit, slot),
        Request::Cancel { target } => cancel::cancel(*caller, credit, target),
        Request::Park(request) => park::park(caller, credit, request),
        Request::Unpark(request) => park::unpark(caller, credit, request),
        Request::Yield => yield_among_others(caller, credit),
        #[cfg(measure)]
        Request::ParkBench => Finish::Plain(credit, Status::Woken),
    }
}

/// YIELD, in a pass that may have more to do.
#[inline(never)]
fn yield_among_others<M: Machine>(caller: &Caller<'_, M>, credit: Credit) -> Finish {
    dispatch::yield_cpu(caller.m, Here::now(caller.m), caller.thread);
    Finish::Plain(credit, Status::Ok)
}

/// RELEASE: the slot is emptied, then the object's own rule runs.
fn release<M: Objects>(caller: Caller<'_, M>, credit: Credit, slot: CapSlot) -> Finish {
    let process = caller.ring.shared.process;
    let released = match process.caps.lock().as_mut().map(|table| table.release(slot)) {
        Some(Ok(released)) => released,
        Some(Err(_)) | None => return Finish::Plain(credit, Status::Disconnected),
    };
    object::released(caller.m, process, released);
    Finish::Plain(credit, Status::Ok)
}
