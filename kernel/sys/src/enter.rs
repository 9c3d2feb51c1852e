//! `cap_enter`: the ring's operations are dispatched, then the thread waits for completions.
//!
//! This is the general path, which every operation can take. The walk of a CALL: [`cap_enter`] →
//! [`pass`] reads one SQE → [`dispatch`] → `ipc::call`.

use crate::complete;
use crate::process::{Fit, Party, ProcessKey};
use crate::system::{self, Cpu, System};
use crate::thread::{OwnRing, Thread};
use crate::{fastpath, ipc, object, park, sched, timers};
use abi_ring::{Credit, Head, Outcome, Pass, Payload, Refusal, Request, Room, Stop, Visitor};
use abi_types::{CapSlot, EnterFlags, EnterResult, NEVER, Opcode, Status};
use core_thread::{ParkVerdict, ResumeVerdict};
use kernel_mm::space::PinnedRing;
use smp_pending::{Operation, Target};

/// A thread in the kernel on its own behalf, with its ring.
#[derive(Clone, Copy)]
pub struct Caller<'r> {
    /// The thread.
    pub thread: &'static Thread,
    /// Its ring.
    pub ring: &'r OwnRing,
    /// The tables.
    pub system: &'static System,
}

/// The syscall: dispatches the calling thread's ring and waits.
pub fn cap_enter(min_complete: u64, timeout_ns: u64) -> u64 {
    let system = system::the();
    let me = system.here();
    me.counters.syscalls.bump();
    let Some(thread) = me.current() else {
        system::defect("a syscall without a thread");
    };
    let entered = thread
        .machine
        .with_own_ring(|ring| enter(Caller { thread, ring, system }, me, min_complete, timeout_ns));
    match entered {
        Some(result) => result.0,
        None => system::defect("a thread without a ring"),
    }
}

/// Looks for what to do; each way goes on in a function of its own, which does not return here.
#[inline(always)]
fn enter(caller: Caller<'_>, me: &'static Cpu, min_complete: u64, timeout_ns: u64) -> EnterResult {
    let Caller { thread, ring, system } = caller;
    if timeout_ns == 0 && ring.kernel.is_drained() {
        // Nothing to do and nothing to wait for.
        return leave(caller, me, ring.kernel.count());
    }
    if min_complete == 1 && timeout_ns == NEVER {
        match ring.kernel.glance() {
            CALL => return call_alone(thread, ring, me, system),
            RETURN => return answer_alone(thread, ring, me, system),
            UNPARK => return unpark_alone(thread, ring, me, system),
            YIELD => return yield_alone(thread, ring, me, system),
            _ => {}
        }
    }
    dispatch_and_wait(thread, ring, system, min_complete, timeout_ns)
}

const NOP: u8 = Opcode::Nop as u8;
const CALL: u8 = Opcode::Call as u8;
const RETURN: u8 = Opcode::Return as u8;
const UNPARK: u8 = Opcode::Unpark as u8;
const YIELD: u8 = Opcode::Yield as u8;

/// Back to user mode, unless others are owed the CPU.
#[inline(always)]
fn leave(caller: Caller<'_>, me: &'static Cpu, count: u32) -> EnterResult {
    if sched::owes_the_cpu(me) {
        return leave_late(caller.thread, caller.ring, me);
    }
    EnterResult::new(count, 0)
}

#[cold]
#[inline(never)]
fn leave_late(thread: &'static Thread, ring: &OwnRing, me: &'static Cpu) -> EnterResult {
    sched::before_user(me, thread);
    EnterResult::new(ring.kernel.count(), 0)
}

/// A CALL that is the only SQE of the ring, for who waits for its completion: the fast path.
#[inline(never)]
fn call_alone(
    thread: &'static Thread,
    ring: &OwnRing,
    me: &'static Cpu,
    system: &'static System,
) -> EnterResult {
    let caller = Caller { thread, ring, system };
    if let Some(sole) = ring.kernel.sole()
        && let Some(next) = fastpath::send(caller, sole)
    {
        return fastpath::wait(thread, ring, me, next);
    }
    dispatch_and_wait(thread, ring, system, 1, NEVER)
}

/// A RETURN that is the only SQE of the ring, for who waits for the next call: the fast path.
#[inline(never)]
fn answer_alone(
    thread: &'static Thread,
    ring: &OwnRing,
    me: &'static Cpu,
    system: &'static System,
) -> EnterResult {
    let caller = Caller { thread, ring, system };
    if let Some(sole) = ring.kernel.sole()
        && let Some(next) = fastpath::answer_and_wait(caller, sole)
    {
        return fastpath::wait(thread, ring, me, next);
    }
    dispatch_and_wait(thread, ring, system, 1, NEVER)
}

/// An UNPARK of one waiter that is the only SQE of the ring, for who waits for its completion.
#[inline(never)]
fn unpark_alone(
    thread: &'static Thread,
    ring: &OwnRing,
    me: &'static Cpu,
    system: &'static System,
) -> EnterResult {
    let caller = Caller { thread, ring, system };
    if let Some(sole) = ring.kernel.sole()
        && let at = sole.head()
        && let Some(request) = at.unpark()
        && request.count() == 1
    {
        park::unpark(&caller, sole.take(at.user_data()), request);
        let count = ring.kernel.count();
        if count != 0 {
            return leave(caller, me, count);
        }
    }
    dispatch_and_wait(thread, ring, system, 1, NEVER)
}

/// A YIELD that is the only SQE of the ring, for who waits for its completion.
#[inline(never)]
fn yield_alone(
    thread: &'static Thread,
    ring: &OwnRing,
    me: &'static Cpu,
    system: &'static System,
) -> EnterResult {
    let caller = Caller { thread, ring, system };
    if let Some(sole) = ring.kernel.sole()
        && let at = sole.head()
        && at.is_yield()
    {
        caller.finish(sole.take(at.user_data()), &Outcome::plain(Status::Ok));
        sched::yield_to_first(system, me, thread);
        let count = ring.kernel.count();
        if count != 0 {
            return leave(caller, system.here(), count);
        }
    }
    dispatch_and_wait(thread, ring, system, 1, NEVER)
}

/// A YIELD of a pass that may have more to do.
#[inline(never)]
fn yield_among_others(caller: &Caller<'_>, credit: Credit) {
    caller.finish(credit, &Outcome::plain(Status::Ok));
    sched::yield_cpu(caller.system, caller.system.here(), caller.thread);
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
            pass(&caller, &mut taken);
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
    sched::before_user(system.here(), thread);
    EnterResult::new(count, flags)
}

/// The timer interrupted a thread whose slice is over: what it submitted without entering.
pub fn timer_pass(thread: &'static Thread) {
    thread.machine.with_own_ring(|ring| {
        if let Ok(mut taken) = ring.kernel.begin(Visitor::Timer) {
            pass(&Caller { thread, ring, system: system::the() }, &mut taken);
        }
    });
}

/// Operations between two preemption points of a pass.
const BREATH: u32 = 4;

/// Dispatches the SQEs of one pass.
#[inline(always)]
fn pass(caller: &Caller<'_>, pass: &mut Pass<'_, PinnedRing>) {
    let mut taken = 0_u32;
    while !pass.is_over() {
        taken += 1;
        if taken.is_multiple_of(BREATH) {
            sched::breathe();
            if caller.thread.state.is_killed() {
                return;
            }
        }
        if caller.ring.kernel.glance() == NOP && finish_nops(caller, pass) {
            continue;
        }
        let Some(at) = pass.head() else { return };
        let credit = pass.take(&at);
        if let Some(request) = at.unpark() {
            park::unpark(caller, credit, request);
        } else if let Some(request) = at.park() {
            park::park(caller, credit, request);
        } else if at.is_yield() {
            yield_among_others(caller, credit);
        } else {
            dispatch(caller, credit, &at);
        }
    }
}

/// Completes the NOPs that are next, under one lock; whether there were any.
#[inline(always)]
fn finish_nops(caller: &Caller<'_>, pass: &mut Pass<'_, PinnedRing>) -> bool {
    if let Some(mut completions) = caller.thread.machine.completions()
        && let Some((_, cq)) = completions.parts()
    {
        return pass.finish_nops(cq);
    }
    false
}

/// Carries out one operation, or leaves it pending.
#[inline(never)]
fn dispatch(caller: &Caller<'_>, credit: Credit, at: &Head) {
    let request = match at.decode(&caller.ring.kernel) {
        Ok(request) => request,
        Err(status) => return caller.finish(credit, &Outcome::plain(status)),
    };
    let caller = *caller;
    match request {
        Request::Nop => caller.finish(credit, &Outcome::plain(Status::Ok)),
        Request::Call(call) => ipc::call(caller, credit, &call),
        Request::Recv(recv) => ipc::recv(caller, credit, &recv),
        Request::Return(answer) => ipc::answer(caller, credit, &answer),
        Request::Release(slot) => {
            let status = release(caller, slot);
            caller.finish(credit, &Outcome::plain(status));
        }
        Request::Cancel { target } => {
            let status = cancel(caller, target);
            caller.finish(credit, &Outcome::plain(status));
        }
        Request::Park(request) => park::park(&caller, credit, request),
        Request::Unpark(request) => park::unpark(&caller, credit, request),
        Request::Yield => yield_among_others(&caller, credit),
        #[cfg(measure)]
        Request::ParkBench => caller.finish(credit, &Outcome::plain(Status::Woken)),
    }
}

impl Caller<'_> {
    /// Completes an operation of the caller at once. A thread that runs does not wait, so this
    /// wakes nobody.
    #[inline(always)]
    pub fn finish(self, credit: Credit, outcome: &Outcome) {
        if let Some(mut completions) = self.thread.machine.completions()
            && let Some((ring, cq)) = completions.parts()
        {
            debug_assert!(!self.thread.state.load().is_waiting(), "a thread that runs waits");
            ring.kernel.post_unawaited(cq, credit, outcome);
        }
    }

    /// Completes an operation of the caller at once, as `post` does it under the completion lock.
    #[inline]
    pub fn finish_with(
        self,
        credit: Credit,
        post: impl FnOnce(&OwnRing, &mut abi_ring::CqProducer, Credit) -> abi_ring::Posted,
    ) {
        let Some(mut completions) = self.thread.machine.completions() else { return };
        let Some((ring, cq)) = completions.parts() else { return };
        // The thread is here and does not wait.
        let _ = post(ring, cq, credit);
    }

    /// Keeps an operation that cannot complete yet; how others name it.
    #[inline]
    pub fn keep(
        self,
        credit: Credit,
        method: u16,
        transfers: u8,
        payload: Payload,
        room: Room,
    ) -> Party {
        let operation = Operation { method, transfers, payload, room };
        let Ok((cell, _)) = self.ring.shared.cells.keep(credit, &operation) else {
            system::defect("more operations are pending than completions are owed");
        };
        Party { thread: self.thread.key(), cell, room: room.into() }
    }

    /// Keeps an operation without a payload.
    pub fn keep_plain(self, credit: Credit, target: Target) -> Party {
        let nothing = Payload::Inline { slot: 0, length: 0 };
        let party = self.keep(credit, 0, 0, nothing, Room::Inline);
        self.aim(party, target);
        party
    }

    /// Says what a kept operation waits for.
    #[inline]
    pub fn aim(self, party: Party, target: Target) {
        if let Some(cell) = self.ring.shared.cells.get(party.cell) {
            cell.set_target(target);
        }
    }

    /// Takes back a kept operation that nobody else knows of, to complete it at once.
    pub fn unkeep(self, party: Party) -> Credit {
        let cells = &self.ring.shared.cells;
        cells.get(party.cell).inspect(|cell| timers::settle(cell));
        match cells.finish(party.cell) {
            Some(credit) => credit,
            None => system::defect("an operation that nobody else knew of was completed"),
        }
    }
}

/// Waits until there are `want` completions or the time is up; how many there are.
#[inline(never)]
pub fn wait(thread: &'static Thread, ring: &OwnRing, want: u32, timeout_ns: u64) -> u32 {
    let deadline_ns = (timeout_ns != NEVER).then(|| sched::clock().saturating_add(timeout_ns));
    loop {
        thread.want.announce(want);
        match thread.state.begin_park() {
            Ok(ParkVerdict::Parking(_)) => {
                let count = ring.kernel.count();
                let is_late = deadline_ns.is_some_and(|at| at <= sched::clock());
                if count >= want || is_late {
                    match thread.state.cancel_park() {
                        Ok(ResumeVerdict::Resume) => return count,
                        Ok(ResumeVerdict::Die) => sched::end(thread),
                        Err(_) => system::defect("a thread that was about to wait is not"),
                    }
                }
            }
            Ok(ParkVerdict::Die) => sched::end(thread),
            Err(_) => system::defect("a thread that runs does not run"),
        }
        if let Some(at) = deadline_ns {
            timers::start(timers::of_enter(thread.slot()), at);
        }
        sched::block(thread);
        if deadline_ns.is_some() {
            timers::stop(timers::of_enter(thread.slot()));
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
        complete::wake(thread, due, false);
    }
}

/// RELEASE: the slot is emptied, then the object's own rule runs.
fn release(caller: Caller<'_>, slot: CapSlot) -> Status {
    let process = caller.thread.process();
    let released = match process.caps.lock().as_mut().map(|table| table.release(slot)) {
        Some(Ok(released)) => released,
        Some(Err(_)) | None => return Status::Disconnected,
    };
    object::released(process, released);
    Status::Ok
}

/// CANCEL: ends the pending operation of this ring with that user data.
fn cancel(caller: Caller<'_>, user_data: u64) -> Status {
    let found = caller.ring.shared.cells.busy(0).find(|(_, cell)| cell.user_data() == user_data);
    let Some((index, cell)) = found else { return Status::NotFound };
    let party = Party { thread: caller.thread.key(), cell: index, room: Fit::NONE };
    if claim(caller.thread, party, cell.target()) {
        complete::complete(party, &Outcome::plain(Status::Cancelled));
        Status::Ok
    } else {
        // Whoever was faster completes it.
        Status::NotFound
    }
}

/// Claims the outcome of a thread's pending operation from what it waits for: `false` if someone
/// else has it and completes it.
pub fn claim(thread: &'static Thread, party: Party, target: Target) -> bool {
    match target {
        Target::Call { process, generation, key } => {
            ipc::give_up_call(ProcessKey { slot: process, generation }, key)
        }
        Target::Recv { .. } => ipc::give_up_recv(thread.process(), party),
        Target::Sleep => {
            let Some(held) = thread.completions_of(party.thread.generation) else {
                return false;
            };
            let is_ours = held.ring().shared.cells.get(party.cell).is_some_and(timers::claim_sleep);
            if is_ours {
                thread.process().sleep_ended();
            }
            is_ours
        }
        Target::Join { thread: joined } => object::threads::give_up_join(joined, party),
        Target::Park => park::give_up(thread),
        Target::Read => object::console::give_up(party),
    }
}
