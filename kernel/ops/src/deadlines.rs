//! Deadlines on the machine: armed, disarmed, and taken out when they have passed.
//!
//! A deadline is armed on the CPU that asks for it, and served there. What a deadline that passed means is
//! not known here: [`expire`] shows each as a [`Due`] to whoever serves it.
//!
//! The timer of an operation lies beside its cell ([`Pending`]). Two may want it at the same time: who serves
//! the deadline on the CPU where it was armed, and who ends the operation, on any. The cell decides between
//! them, under the completion lock of its thread: it says which arming bounds it, and whoever comes second finds
//! none, or another. So a timer that was taken out may be armed again before it is served. Decided in ADR 250.

use crate::machine::{CpuPart, Defect, Machine, OwnRing, Pending, Record};
use crate::party::{Fit, Party};
use core_thread::ThreadKey;
use kernel_dispatch::trace::point;
use kernel_dispatch::{Cpu, Here};
use schema::trace_capnp::TraceEvent;
use smp_pending::{Limit, Target};
use smp_timer::{Armed, Expired, Owner, Pinned};

/// Deadlines served in one go, each with a completion and a wake: as many as fit a section of kernel code
/// (`section`). The rest comes with the next interrupt, at once.
const DEADLINES_PER_SECTION: usize = 16;

/// Bounds a kept operation of the running thread by a deadline, before anyone else knows of it.
#[inline]
pub fn bound<M: Machine>(m: M, ring: &OwnRing<M>, limit: Limit, party: Party, deadline_ns: u64) {
    if bound_quietly(m, ring, limit, party, deadline_ns).is_nearest {
        nearest_is(m, deadline_ns);
    }
}

/// As [`bound`], for one who holds a lock that others wait for: to be followed by [`nearest_is`] if the deadline
/// is the nearest of this CPU, and with interrupts off until then.
#[inline]
pub fn bound_quietly<M: Machine>(
    m: M,
    ring: &OwnRing<M>,
    limit: Limit,
    party: Party,
    deadline_ns: u64,
) -> Armed {
    let Some((cell, timer)) = ring.shared.cells.with_timer(party.cell) else {
        m.defect("a kept operation without a cell");
    };
    let (thread, number) = (party.thread.to_bits(), Pending::number_of(party.cell));
    arm(m, timer, Owner { thread, number, arming: cell.bind(limit) }, deadline_ns)
}

/// Lets this CPU's one-shot fire at a deadline that is its nearest.
pub fn nearest_is<M: Machine>(m: M, deadline_ns: u64) {
    m.arm(&Here::now(m), m.clock(), deadline_ns);
}

/// The operation of a cell is over, or was never made known: nothing bounds it any more. Under the completion
/// lock, or by the owner before anyone else knows of the cell.
#[inline(always)]
pub fn settle<M: Machine>(m: M, pending: &Pending, index: u32) {
    if pending.get(index).is_some_and(smp_pending::Cell::is_bound) {
        unbind(m, pending, index);
    }
}

#[inline(never)]
fn unbind<M: Machine>(m: M, pending: &Pending, index: u32) {
    if let Some((cell, timer)) = pending.with_timer(index) {
        // Whether it was still armed does not matter: who has taken it out finds another arming, or none.
        stop(m, timer);
        cell.unbind();
    }
}

/// Claims a pending sleep; `false` if its time has come and someone completes it. Under the
/// completion lock.
pub fn claim_sleep<M: Machine>(m: M, pending: &Pending, index: u32) -> bool {
    let is_ours = pending.get(index).is_some_and(smp_pending::Cell::is_bound);
    if is_ours {
        unbind(m, pending, index);
    }
    is_ours
}

/// Arms the time limit of the running thread's `cap_enter`.
pub fn start_enter<M: Machine>(m: M, ring: &OwnRing<M>, key: ThreadKey, deadline_ns: u64) {
    let Some(timer) = ring.shared.cells.of_enter() else { m.defect("a ring without a timer") };
    start_wait(m, timer, key, deadline_ns);
}

/// Arms the time limit of the running thread's own wait.
pub fn start_wait<M: Machine>(m: M, timer: Pinned<'_>, key: ThreadKey, deadline_ns: u64) {
    // Nobody asks which arming it is: a wait that is ended too early goes on.
    let owner = Owner { thread: key.to_bits(), number: Pending::ENTER, arming: 0 };
    if arm(m, timer, owner, deadline_ns).is_nearest {
        nearest_is(m, deadline_ns);
    }
}

/// The time limit of a thread's `cap_enter` is no more; by the thread, or by who takes it apart.
pub fn stop_enter<M: Machine>(m: M, ring: &OwnRing<M>) {
    if let Some(timer) = ring.shared.cells.of_enter() {
        stop(m, timer);
    }
}

/// Arms a timer on this CPU.
fn arm<M: Machine>(m: M, timer: Pinned<'_>, owner: Owner, deadline_ns: u64) -> Armed {
    let deadline_ns =
        if m.plants(Defect::LateDeadline) { deadline_ns + 4_000_000 } else { deadline_ns };
    point(m, TraceEvent::Armed, || (ThreadKey::from_bits(owner.thread).slot.into(), deadline_ns));
    match Here::now(m).own().deadlines().arm(timer, owner, deadline_ns) {
        Ok(armed) => armed,
        Err(_) => m.defect("a timer that is in use was armed"),
    }
}

/// Disarms a timer wherever it is armed.
pub fn stop<M: Machine>(m: M, timer: Pinned<'_>) {
    timer.stop(|cpu| Some(m.cpus().get(usize::from(cpu))?.own.deadlines()));
}

/// The nearest deadline of a CPU.
pub fn next<M: Machine>(_: M, cpu: &Cpu<M>) -> Option<u64> {
    cpu.own.deadlines().next_deadline_ns()
}

/// A deadline that has passed, and what it bounds.
pub enum Due<M: Machine> {
    /// A thread's `cap_enter`.
    Enter(&'static M::Thread, ThreadKey),
    /// A thread's PARK: its ticket.
    Park(&'static M::Thread, u32),
    /// A call that may still wait for a receiver, as of that time.
    Call(Target, u64),
    /// A sleep, which this ends.
    Sleep(Party),
    /// How long the line at that place is masked while somebody waits for it, who goes on waiting.
    Line(u32),
}

/// Takes out what is due on this CPU and shows it to `serve`, and arms what is due next: whoever comes here
/// may have been interrupted by a timer that stood for an earlier one, the end of a slice for example.
pub fn expire<M: Machine>(m: M, here: &Here<M>, now_ns: u64, serve: impl Fn(Due<M>)) {
    for _ in 0..DEADLINES_PER_SECTION {
        let Some(expired) = here.own().deadlines().pop_expired(now_ns) else { break };
        if m.plants(Defect::StaleDeadline) {
            m.linger();
        }
        point(m, TraceEvent::Expired, || {
            (ThreadKey::from_bits(expired.owner.thread).slot.into(), 0)
        });
        if let Some(due) = due(m, expired, now_ns) {
            serve(due);
        }
    }
    if let Some(at) = next(m, here) {
        m.arm(here, m.clock(), at);
    }
}

/// What the deadline of a timer that was taken out bounds; nothing if its operation has ended meanwhile. From
/// here on nothing bounds the operation.
fn due<M: Machine>(m: M, expired: Expired, now_ns: u64) -> Option<Due<M>> {
    let Owner { thread, number, arming } = expired.owner;
    let key = ThreadKey::from_bits(thread);
    let thread = m.thread(key.slot)?;
    let Some(index) = Pending::index_of(number) else { return Some(Due::Enter(thread, key)) };
    let held = thread.ops().completions_of(key.generation)?;
    let cell = held.ring().shared.cells.get(index)?;
    let bound = cell.bound()?;
    if bound.arming != arming && !m.plants(Defect::StaleDeadline) {
        return None;
    }
    cell.unbind();
    match (bound.limit, cell.target()) {
        (Limit::Sleep, _) => {
            thread.ops().process(m).sleep_ended(m);
            Some(Due::Sleep(Party { thread: key, cell: index, room: Fit::NONE }))
        }
        (Limit::Call, target) => Some(Due::Call(target, now_ns)),
        (Limit::Park, Target::Park { ticket }) => Some(Due::Park(thread, ticket)),
        (Limit::Line, Target::Interrupt { place }) => Some(Due::Line(place)),
        (Limit::Park | Limit::Line, _) => None,
    }
}
