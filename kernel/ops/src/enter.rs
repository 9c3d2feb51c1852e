//! `cap_enter`: the ring's operations are carried out, then the thread waits for completions.
//!
//! A thread that waits for one completion, with one SQE in its queue, has a short way for some operations
//! ([`alone`]); every operation can take the general way ([`dispatch_and_wait`]). The walk of a CALL:
//! [`cap_enter`] → `pass::run` reads one SQE → `pass::carry_out` → `ipc::call`.

use crate::caller::{Caller, Finish};
use crate::machine::{Machine, OwnRing, Record, end};
use crate::object::Objects;
use crate::wait::wait;
use crate::{fastpath, park, pass};
use abi_ring::{Refusal, Sole, Stop, Visitor};
use abi_types::{EnterFlags, EnterResult, NEVER, Opcode, Status};
use kernel_dispatch::trace::point;
use kernel_dispatch::{self as dispatch, Here, Record as _};
use schema::trace_capnp::TraceEvent;

/// The syscall: dispatches the calling thread's ring and waits.
#[inline(always)]
pub fn cap_enter<M: Objects>(m: M, here: Here<M>, min_complete: u64, timeout_ns: u64) -> u64 {
    let Some(thread) = here.current() else { m.defect("a syscall without a thread") };
    if M::TRACES_SYSCALLS {
        point(m, TraceEvent::Enter, || (min_complete, timeout_ns));
    }
    let entered = thread
        .ops()
        .home
        .with_own(|ring| enter(Caller { m, thread, ring }, here, min_complete, timeout_ns));
    match entered {
        Some(result) => {
            if M::TRACES_SYSCALLS {
                point(m, TraceEvent::Leave, || (result.0, 0));
            }
            result.0
        }
        None => m.defect("a thread without a ring"),
    }
}

/// Looks for what to do; each way goes on in a function of its own, which does not return here.
#[inline(always)]
fn enter<M: Objects>(
    caller: Caller<'_, M>,
    here: Here<M>,
    min_complete: u64,
    timeout_ns: u64,
) -> EnterResult {
    let Caller { m, thread, ring } = caller;
    if timeout_ns == 0 && ring.kernel.is_drained() {
        // Nothing to do and nothing to wait for.
        return leave(caller, here, ring.kernel.count());
    }
    if min_complete == 1 && timeout_ns == NEVER {
        match ring.kernel.glance() & GUESSED {
            CALL => return alone(m, thread, ring, here, call),
            RETURN => return alone(m, thread, ring, here, answer),
            UNPARK => return alone(m, thread, ring, here, unpark),
            YIELD => return alone(m, thread, ring, here, give_way),
            _ => {}
        }
    }
    dispatch_and_wait(m, thread, ring, min_complete, timeout_ns)
}

/// Bits of a guess that are looked at: it may choose an entry of a table of branches, and cannot lead far from
/// it even where the check of its bound is only guessed, too. What is decoded afterwards has the whole number.
const GUESSED: u8 = 0xf;
const _: () = assert!(YIELD <= GUESSED);

const CALL: u8 = Opcode::Call as u8;
const RETURN: u8 = Opcode::Return as u8;
const UNPARK: u8 = Opcode::Unpark as u8;
const YIELD: u8 = Opcode::Yield as u8;

/// Back to user mode, unless others are owed the CPU.
#[inline(always)]
fn leave<M: Machine>(caller: Caller<'_, M>, here: Here<M>, count: u32) -> EnterResult {
    if dispatch::owes(&here) {
        return leave_late(caller.m, caller.thread, caller.ring, here);
    }
    EnterResult::new(count, 0)
}

#[cold]
#[inline(never)]
fn leave_late<M: Machine>(
    m: M,
    thread: &'static M::Thread,
    ring: &OwnRing<M>,
    here: Here<M>,
) -> EnterResult {
    dispatch::before_user(m, here, thread);
    EnterResult::new(ring.kernel.count(), 0)
}

/// The only SQE of a ring, for a thread that waits for its completion and no other: one of the short ways
/// carries it out and answers, or leaves it where it is for the general way.
///
/// One function for each short way: the four share nothing at run time, and a thread that comes back from
/// a switch in the middle of one has nothing else on its stack.
#[inline(never)]
fn alone<M: Objects>(
    m: M,
    thread: &'static M::Thread,
    ring: &OwnRing<M>,
    here: Here<M>,
    short_way: impl FnOnce(Caller<'_, M>, Here<M>, Sole<'_, M::RingMemory>) -> Option<EnterResult>,
) -> EnterResult {
    if let Some(sole) = ring.kernel.sole()
        && let Some(result) = short_way(Caller { m, thread, ring }, here, sole)
    {
        return result;
    }
    dispatch_and_wait(m, thread, ring, 1, NEVER)
}

/// A CALL: the fast path.
#[inline(always)]
fn call<M: Machine>(
    caller: Caller<'_, M>,
    here: Here<M>,
    sole: Sole<'_, M::RingMemory>,
) -> Option<EnterResult> {
    let next = fastpath::send(caller, sole)?;
    Some(fastpath::wait(caller.m, caller.thread, caller.ring, here, next))
}

/// A RETURN that waits for the next call: the fast path.
#[inline(always)]
fn answer<M: Machine>(
    caller: Caller<'_, M>,
    here: Here<M>,
    sole: Sole<'_, M::RingMemory>,
) -> Option<EnterResult> {
    let next = fastpath::answer_and_wait(caller, sole)?;
    Some(fastpath::wait(caller.m, caller.thread, caller.ring, here, next))
}

/// An UNPARK of one waiter.
#[inline(always)]
fn unpark<M: Machine>(
    caller: Caller<'_, M>,
    here: Here<M>,
    sole: Sole<'_, M::RingMemory>,
) -> Option<EnterResult> {
    let at = sole.head();
    let request = at.unpark().filter(|request| request.count() == 1)?;
    caller.finish(park::unpark(&caller, sole.take(at.user_data()), request));
    leave_with_some(caller, here)
}

/// A YIELD.
#[inline(always)]
fn give_way<M: Machine>(
    caller: Caller<'_, M>,
    here: Here<M>,
    sole: Sole<'_, M::RingMemory>,
) -> Option<EnterResult> {
    let at = sole.head();
    if !at.is_yield() {
        return None;
    }
    let credit = sole.take(at.user_data());
    dispatch::yield_to_first(caller.m, here, caller.thread);
    caller.finish(Finish::Plain(credit, Status::Ok));
    leave_with_some(caller, Here::now(caller.m))
}

/// Back to user mode with what was completed, if the user did not take it meanwhile.
#[inline(always)]
fn leave_with_some<M: Machine>(caller: Caller<'_, M>, here: Here<M>) -> Option<EnterResult> {
    match caller.ring.kernel.count() {
        0 => None,
        count => Some(leave(caller, here, count)),
    }
}

/// The general path.
#[inline(never)]
fn dispatch_and_wait<M: Objects>(
    m: M,
    thread: &'static M::Thread,
    ring: &OwnRing<M>,
    min_complete: u64,
    timeout_ns: u64,
) -> EnterResult {
    let caller = Caller { m, thread, ring };
    let ring = &caller.ring.kernel;
    let begun = match ring.begin(Visitor::Syscall) {
        Err(Refusal::Polled) => ring.borrow(),
        begun => begun,
    };
    let flags = match begun {
        Ok(mut taken) => {
            pass::run(&caller, &mut taken);
            if taken.stop() == Stop::CqFull { EnterFlags::CQ_FULL } else { 0 }
        }
        Err(Refusal::Busy) => EnterFlags::BUSY,
        // Nothing begins on a ring that is torn down; its thread is on its way out.
        Err(Refusal::Closed | Refusal::Stale | Refusal::Polled) => 0,
    };
    let most = abi_ring::Memory::block(ring.memory()).cq_entries();
    let mut count = ring.count();
    if u64::from(count) < min_complete && count < most && timeout_ns != 0 && flags == 0 {
        let want = u32::try_from(min_complete).unwrap_or(u32::MAX).min(most);
        count = wait(m, thread, caller.ring, want, timeout_ns);
    }
    // The interrupt that a killer sends may have come at a preemption point of the pass.
    if thread.state().is_killed() {
        end(m, thread)
    }
    dispatch::before_user(m, Here::now(m), thread);
    EnterResult::new(count, flags)
}

/// The timer interrupted a thread whose slice is over: what it submitted without entering.
pub fn timer_pass<M: Objects>(m: M, thread: &'static M::Thread) {
    thread.ops().home.with_own(|ring| {
        if let Ok(mut taken) = ring.kernel.begin(Visitor::Timer) {
            pass::run(&Caller { m, thread, ring }, &mut taken);
        }
    });
}
