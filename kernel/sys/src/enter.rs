//! `cap_enter`: the ring's operations are carried out, then the thread waits for completions.
//!
//! A thread that waits for one completion, with one SQE in its queue, has a short way for some operations
//! ([`alone`]); every operation can take the general way ([`dispatch_and_wait`]). The walk of a CALL:
//! [`cap_enter`] → `pass::run` reads one SQE → `pass::dispatch` → `ipc::call`.

use crate::caller::{Caller, Finish};
use crate::sched::Here;
use crate::system::{self, System};
use crate::thread::{OwnRing, Thread};
use crate::{deadlines, fastpath, park, pass, sched};
use abi_ring::{Refusal, Sole, Stop, Visitor};
use abi_types::{EnterFlags, EnterResult, NEVER, Opcode, Status};
use core_thread::{ResumeVerdict, WaitVerdict};
use kernel_mm::space::PinnedRing;

/// The syscall: dispatches the calling thread's ring and waits.
pub fn cap_enter(min_complete: u64, timeout_ns: u64) -> u64 {
    let system = system::the();
    let here = Here::on(system.here());
    here.own().counters.syscalls.bump();
    let Some(thread) = here.current() else {
        system::defect("a syscall without a thread");
    };
    let entered = thread.machine.with_own_ring(|ring| {
        enter(Caller { thread, ring, system }, here, min_complete, timeout_ns)
    });
    match entered {
        Some(result) => result.0,
        None => system::defect("a thread without a ring"),
    }
}

/// Looks for what to do; each way goes on in a function of its own, which does not return here.
#[inline(always)]
fn enter(caller: Caller<'_>, here: Here, min_complete: u64, timeout_ns: u64) -> EnterResult {
    let Caller { thread, ring, system } = caller;
    if timeout_ns == 0 && ring.kernel.is_drained() {
        // Nothing to do and nothing to wait for.
        return leave(caller, here, ring.kernel.count());
    }
    if min_complete == 1 && timeout_ns == NEVER {
        match ring.kernel.glance() {
            CALL => return alone(thread, ring, here, system, call),
            RETURN => return alone(thread, ring, here, system, answer),
            UNPARK => return alone(thread, ring, here, system, unpark),
            YIELD => return alone(thread, ring, here, system, give_way),
            _ => {}
        }
    }
    dispatch_and_wait(thread, ring, system, min_complete, timeout_ns)
}

const CALL: u8 = Opcode::Call as u8;
const RETURN: u8 = Opcode::Return as u8;
const UNPARK: u8 = Opcode::Unpark as u8;
const YIELD: u8 = Opcode::Yield as u8;

/// Back to user mode, unless others are owed the CPU.
#[inline(always)]
fn leave(caller: Caller<'_>, here: Here, count: u32) -> EnterResult {
    if sched::owes_the_cpu(&here) {
        return leave_late(caller.thread, caller.ring, here);
    }
    EnterResult::new(count, 0)
}

#[cold]
#[inline(never)]
fn leave_late(thread: &'static Thread, ring: &OwnRing, here: Here) -> EnterResult {
    sched::before_user(here, thread);
    EnterResult::new(ring.kernel.count(), 0)
}

/// The only SQE of a ring, for a thread that waits for its completion and no other: one of the short ways
/// carries it out and answers, or leaves it where it is for the general way.
///
/// One function for each short way: the four share nothing at run time, and a thread that comes back from
/// a switch in the middle of one has nothing else on its stack.
#[inline(never)]
fn alone(
    thread: &'static Thread,
    ring: &OwnRing,
    here: Here,
    system: &'static System,
    short_way: impl FnOnce(Caller<'_>, Here, Sole<'_, PinnedRing>) -> Option<EnterResult>,
) -> EnterResult {
    if let Some(sole) = ring.kernel.sole()
        && let Some(result) = short_way(Caller { thread, ring, system }, here, sole)
    {
        return result;
    }
    dispatch_and_wait(thread, ring, system, 1, NEVER)
}

/// A CALL: the fast path.
#[inline(always)]
fn call(caller: Caller<'_>, here: Here, sole: Sole<'_, PinnedRing>) -> Option<EnterResult> {
    let next = fastpath::send(caller, sole)?;
    Some(fastpath::wait(caller.thread, caller.ring, here, next))
}

/// A RETURN that waits for the next call: the fast path.
#[inline(always)]
fn answer(caller: Caller<'_>, here: Here, sole: Sole<'_, PinnedRing>) -> Option<EnterResult> {
    let next = fastpath::answer_and_wait(caller, sole)?;
    Some(fastpath::wait(caller.thread, caller.ring, here, next))
}

/// An UNPARK of one waiter.
#[inline(always)]
fn unpark(caller: Caller<'_>, here: Here, sole: Sole<'_, PinnedRing>) -> Option<EnterResult> {
    let at = sole.head();
    let request = at.unpark().filter(|request| request.count() == 1)?;
    caller.finish(park::unpark(&caller, sole.take(at.user_data()), request));
    leave_with_some(caller, here)
}

/// A YIELD.
#[inline(always)]
fn give_way(caller: Caller<'_>, here: Here, sole: Sole<'_, PinnedRing>) -> Option<EnterResult> {
    let at = sole.head();
    if !at.is_yield() {
        return None;
    }
    let credit = sole.take(at.user_data());
    sched::yield_to_first(here, caller.thread);
    caller.finish(Finish::Plain(credit, Status::Ok));
    leave_with_some(caller, Here::on(caller.system.here()))
}

/// Back to user mode with what was completed, if the user did not take it meanwhile.
#[inline(always)]
fn leave_with_some(caller: Caller<'_>, here: Here) -> Option<EnterResult> {
    match caller.ring.kernel.count() {
        0 => None,
        count => Some(leave(caller, here, count)),
    }
}

/// The general path.
#[inline(never)]
fn dispatch_and_wait(
    thread: &'static Thread,
    ring: &OwnRing,
    system: &'static System,
    min_complete: u64,
    timeout_ns: u64,
) -> EnterResult {
    let caller = Caller { thread, ring, system };
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
        count = wait(thread, caller.ring, want, timeout_ns);
    }
    // The interrupt that a killer sends may have come at a preemption point of the pass.
    if thread.state.is_killed() {
        sched::end(thread);
    }
    sched::before_user(Here::on(system.here()), thread);
    EnterResult::new(count, flags)
}

/// The timer interrupted a thread whose slice is over: what it submitted without entering.
pub fn timer_pass(thread: &'static Thread) {
    thread.machine.with_own_ring(|ring| {
        if let Ok(mut taken) = ring.kernel.begin(Visitor::Timer) {
            pass::run(&Caller { thread, ring, system: system::the() }, &mut taken);
        }
    });
}

/// Waits until there are `want` completions or the time is up; how many there are.
#[inline(never)]
pub fn wait(thread: &'static Thread, ring: &OwnRing, want: u32, timeout_ns: u64) -> u32 {
    let deadline_ns = (timeout_ns != NEVER).then(|| sched::clock().saturating_add(timeout_ns));
    loop {
        thread.want.announce(want);
        match thread.state.begin_wait() {
            Ok(WaitVerdict::AboutToWait(_)) => {
                let count = ring.kernel.count();
                let is_late = deadline_ns.is_some_and(|at| at <= sched::clock());
                if count >= want || is_late {
                    match thread.state.cancel_wait() {
                        Ok(ResumeVerdict::Resume) => return count,
                        Ok(ResumeVerdict::Die) => sched::end(thread),
                        Err(_) => system::defect("a thread that was about to wait is not"),
                    }
                }
            }
            Ok(WaitVerdict::Die) => sched::end(thread),
            Err(_) => system::defect("a thread that runs does not run"),
        }
        if let Some(at) = deadline_ns {
            deadlines::start(deadlines::of_enter(thread.slot()), at);
        }
        sched::block(thread);
        if deadline_ns.is_some() {
            deadlines::stop(deadlines::of_enter(thread.slot()));
        }
        let count = ring.kernel.count();
        if count >= want || deadline_ns.is_some_and(|at| at <= sched::clock()) {
            return count;
        }
    }
}

/// The time limit of a thread's `cap_enter` has passed.
pub fn time_is_up(thread: &'static Thread) {
    if let Some(due) = thread.want.due(&thread.state, u32::MAX) {
        sched::wake(thread, due, false);
    }
}
