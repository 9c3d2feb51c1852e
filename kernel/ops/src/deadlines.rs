//! Deadlines on the machine: armed, disarmed, and taken out when they have passed.
//!
//! A deadline is armed on the CPU that asks for it, and served there. What a deadline that passed means is
//! not known here: [`expire`] shows each as a [`Due`] to whoever serves it.

use crate::machine::{CpuPart, Defect, Machine, Record};
use crate::party::Party;
use crate::timers::{Purpose, Timers, Whose};
use core_timer::Armed;
use kernel_dispatch::{Cpu, Here};
use smp_pending::{Cell, Target};

/// Deadlines served in one go, each with a completion and a wake: as many as fit a section of kernel code
/// (`section`). The rest comes with the next interrupt, at once.
const DEADLINES_PER_SECTION: usize = 16;

/// Bounds a kept operation of the running thread by a deadline; `false` if no timer is left.
///
/// A timer of the pool is named by its cell until it is disarmed or served, both under the completion
/// lock of the cell's thread: so nobody disarms one that is another's by then.
pub fn bound<M: Machine>(
    m: M,
    purpose: Purpose,
    party: Party,
    cell: &Cell,
    deadline_ns: u64,
) -> bool {
    let Some(timer) = m.tables().timers.take(purpose, party) else { return false };
    cell.set_timer(timer);
    start(m, timer, deadline_ns);
    true
}

/// The operation of a cell is over, or was never made known: its timer goes back. Under the completion
/// lock, or by the owner before anyone else knows of the cell.
#[inline]
pub fn settle<M: Machine>(m: M, cell: &Cell) {
    if let Some(timer) = cell.timer() {
        if stop(m, timer) {
            m.tables().timers.give_back(timer);
        }
        cell.clear_timer();
    }
}

/// Claims a pending sleep; `false` if its time has come and someone completes it. Under the
/// completion lock.
pub fn claim_sleep<M: Machine>(m: M, cell: &Cell) -> bool {
    let Some(timer) = cell.timer() else { return false };
    let is_ours = stop(m, timer);
    if is_ours {
        m.tables().timers.give_back(timer);
        cell.clear_timer();
    }
    is_ours
}

/// Arms a timer on this CPU.
pub fn start<M: Machine>(m: M, timer: u32, deadline_ns: u64) {
    let here = Here::now(m);
    let deadline_ns =
        if m.plants(Defect::LateDeadline) { deadline_ns + 4_000_000 } else { deadline_ns };
    let cells = m.tables().timers.cells();
    let armed = here.own().deadlines().lock().arm(cells, timer, deadline_ns);
    match armed {
        Ok(Armed { is_nearest: true }) => m.arm(&here, m.clock(), deadline_ns),
        Ok(_) => {}
        Err(_) => m.defect("a timer that is in use was armed"),
    }
}

/// Disarms a timer wherever it is armed; `false` if its deadline was taken out to be served.
pub fn stop<M: Machine>(m: M, timer: u32) -> bool {
    let cells = m.tables().timers.cells();
    let Some(cell) = cells.get(timer as usize) else { return false };
    while let Some(queue) = cell.queue() {
        let Some(cpu) = m.cpus().get(queue as usize) else { return false };
        if cpu.own.deadlines().lock().cancel(cells, timer).is_ok() {
            return true;
        }
    }
    false
}

/// The time limits of a thread that is taken apart are no more.
pub fn stop_all_of<M: Machine>(m: M, slot: u32) {
    // Whether one of them was armed does not matter: nobody waits.
    stop(m, Timers::of_enter(slot));
    stop(m, m.tables().timers.of_park(slot));
}

/// The nearest deadline of a CPU.
pub fn next<M: Machine>(m: M, cpu: &Cpu<M>) -> Option<u64> {
    cpu.own.deadlines().lock().next_deadline_ns(m.tables().timers.cells())
}

/// A deadline that has passed, and what it bounds.
pub enum Due<M: Machine> {
    /// A thread's `cap_enter`.
    Enter(&'static M::Thread),
    /// A thread's PARK, as of that time.
    Park(&'static M::Thread, u64),
    /// A call that may still wait for a receiver, as of that time.
    Call(Party, u64),
    /// A sleep, which this ends.
    Sleep(Party),
}

/// Takes out what is due on this CPU and shows it to `serve`, and arms what is due next: whoever comes here
/// may have been interrupted by a timer that stood for an earlier one, the end of a slice for example.
pub fn expire<M: Machine>(m: M, here: &Here<M>, now_ns: u64, serve: impl Fn(Due<M>)) {
    let cells = m.tables().timers.cells();
    for _ in 0..DEADLINES_PER_SECTION {
        let Some(expired) = here.own().deadlines().lock().pop_expired(cells, now_ns) else { break };
        if let Some(due) = due(m, expired.index, now_ns) {
            serve(due);
        }
    }
    if let Some(at) = next(m, here) {
        m.arm(here, m.clock(), at);
    }
}

/// What the deadline of a timer that was taken out bounds; a timer of the pool goes back.
fn due<M: Machine>(m: M, timer: u32, now_ns: u64) -> Option<Due<M>> {
    let timers = &m.tables().timers;
    let (purpose, party) = match timers.whose(timer)? {
        Whose::Enter(slot) => return m.thread(slot).map(Due::Enter),
        Whose::Park(slot) => return m.thread(slot).map(|thread| Due::Park(thread, now_ns)),
        Whose::Pooled(purpose, party) => (purpose, party),
    };
    let is_current = forget(m, party, timer);
    timers.give_back(timer);
    match purpose {
        Purpose::CallDeadline => Some(Due::Call(party, now_ns)),
        Purpose::Sleep => is_current.then_some(Due::Sleep(party)),
    }
}

/// Makes the operation's cell forget a timer that is being served; `false` if it had before, or its
/// thread is gone.
fn forget<M: Machine>(m: M, party: Party, timer: u32) -> bool {
    let Some(thread) = m.thread(party.thread.slot) else { return false };
    let Some(held) = thread.ops().completions_of(party.thread.generation) else { return false };
    let Some(cell) = held.ring().shared.cells.get(party.cell) else { return false };
    let is_current = cell.timer() == Some(timer);
    if is_current {
        cell.clear_timer();
        if cell.target() == Target::Sleep {
            thread.ops().process(m).sleep_ended(m);
        }
    }
    is_current
}
