//! What a CPU does without threads: look for work everywhere, then sleep.

use crate::choose::{Choice, Loot, choose, steal};
use crate::machine::{Here, Machine, Saw};
use crate::trace::{self, Why, point};
use schema::trace_capnp::TraceEvent;

/// One turn of the idle loop: a thread runs if there is one to be had here or elsewhere, else the CPU
/// halts. The machine calls it again when the CPU is idle and something has happened.
pub fn turn_of_idle<M: Machine>(m: M) {
    let here = Here::now(m);
    let requests = here.requests.take();
    m.serve(&here, requests);
    let now = m.clock();
    m.expire(&here, now);
    here.set_resched(false);
    let queue = here.lock(m);
    match choose(m, &here, queue, now, None) {
        Choice::Run(thread) => return start(m, here, thread),
        Choice::Again => return m.relax(here),
        Choice::Same | Choice::Idle => {}
    }
    // Announce, fence, look: the other half of S9's order.
    if !here.is_announced() {
        here.set_announced(true);
        m.idle_set().announce(here.id().index());
    }
    match steal(m, &here, now) {
        Loot::Thread => {
            let queue = here.lock(m);
            match choose(m, &here, queue, now, None) {
                Choice::Run(thread) => start(m, here, thread),
                Choice::Same | Choice::Idle | Choice::Again => m.relax(here),
            }
        }
        // It is on its way off another CPU.
        Loot::Later => m.relax(here),
        Loot::Nothing => rest(m, here, now),
    }
}

/// The CPU is idle no longer.
fn start<M: Machine>(m: M, here: Here<M>, thread: &'static M::Thread) {
    if here.is_announced() {
        here.set_announced(false);
        m.idle_set().retract(here.id().index());
    }
    point(m, TraceEvent::Switched, || (trace::value_of::<M>(Some(thread)), Why::WasIdle as u64));
    here.set_current(Some(thread));
    m.saw(&here, Saw::Switched);
    m.saw(&here, Saw::Runs(thread));
    m.leave_idle(here, thread);
}

/// Sleeps until an interrupt, unless there is something to do after all. The CPU has announced that it
/// is idle, and found nothing in others' queues since.
fn rest<M: Machine>(m: M, here: Here<M>, now: u64) {
    if here.requests.is_pending() || here.queue.hint().waiting > 0 || m.has_work(&here) {
        return m.relax(here);
    }
    m.saw(&here, Saw::Halts { again: here.halts_again() });
    let latest = m.max_sleep_ns().map(|most| now.saturating_add(most));
    if let Some(at) = m.next_deadline(&here).into_iter().chain(latest).min() {
        m.arm(&here, now, at);
    }
    m.halt(here);
}
