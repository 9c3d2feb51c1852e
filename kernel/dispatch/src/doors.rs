//! Where interrupts come in and where threads go out to user mode.

use crate::machine::{Here, Machine, Record, Saw};
use crate::stop::{end, give_way};
use crate::trace::point;
use crate::wake::settle_direct;
use schema::trace_capnp::TraceEvent;
use smp_ipi::Requests;

/// The timer's deadline has passed. `from_user` says that it interrupted user mode; the machine then
/// takes the thread's [`way_out`].
pub fn timer<M: Machine>(m: M, from_user: bool) {
    let here = Here::now(m);
    m.saw(&here, Saw::TimerFired);
    point(m, TraceEvent::Fired, || (0, 0));
    let now = m.clock();
    m.expire(&here, now);
    // An idle CPU looks at its queue next and arms what it needs. There is no slice to be armed for: the
    // end of the last one has passed, and would interrupt again before the CPU comes to look.
    let Some(thread) = here.current() else { return };
    let slice_end = here.lock(m).view().slice_end_if_shared();
    if slice_end.is_none_or(|end| end > now) {
        // Another deadline passed: the end of the slice may have been asked for and not armed, because
        // this was earlier.
        return rearm(m, &here, now);
    }
    if !from_user {
        // At a preemption point: the thread gives way when it goes on.
        return here.set_resched(true);
    }
    // The thread that runs next may be alone and arm nothing: what is due here later stays armed.
    if let Some(at) = m.next_deadline(&here) {
        m.arm(&here, now, at);
    }
    m.timer_pass(here, thread);
    let here = Here::now(m);
    if is_here(&here, thread) {
        give_way(m, here, thread);
    }
}

/// Whether the thread is the CPU's current one: always so for a machine with stacks, where the code of a
/// thread runs only while the thread does.
#[inline(always)]
fn is_here<M: Machine>(here: &Here<M>, thread: &'static M::Thread) -> bool {
    here.current().is_some_and(|current| core::ptr::eq(current, thread))
}

/// Arms what is due next here: the slice's end, the nearest deadline.
fn rearm<M: Machine>(m: M, here: &Here<M>, now: u64) {
    let slice = here.lock(m).view().slice_end_if_shared();
    let deadline = m.next_deadline(here);
    if let Some(at) = slice.into_iter().chain(deadline).min() {
        m.arm(here, now, at);
    }
}

/// Another CPU, or this one, asked for attention. As for [`timer`], the machine takes the
/// interrupted thread's [`way_out`].
pub fn interrupt<M: Machine>(m: M) {
    let here = Here::now(m);
    let requests = here.requests.take();
    if requests.is_empty() {
        return;
    }
    point(m, TraceEvent::Interrupt, || (0, requests.bits().into()));
    m.serve(&here, requests);
    if here.current().is_none() {
        // The idle loop looks again.
        return;
    }
    if requests.contains(Requests::RESCHEDULE) {
        here.set_resched(true);
    }
    rearm(m, &here, m.clock());
}

/// What becomes of a thread that wants to return to user mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a thread goes out when nothing is in its way"]
pub enum WayOut {
    /// It goes out.
    Free,
    /// It let others go first, or was about to die: ask again, once it runs.
    Again,
}

/// One step of the current thread's way out to user mode: those it owes the CPU go first, and it dies
/// if it was killed.
#[inline(always)]
pub fn way_out<M: Machine>(m: M, thread: &'static M::Thread) -> WayOut {
    let here = Here::now(m);
    if owes(&here) {
        let_others_go_first(m, here, thread);
        return WayOut::Again;
    }
    if thread.state().is_killed() {
        let _gone = end(m, thread);
        return WayOut::Again;
    }
    WayOut::Free
}

/// Whether the thread this CPU runs lets others go first before it returns to user mode.
#[inline(always)]
pub fn owes<M: Machine>(here: &Here<M>) -> bool {
    here.direct() || here.resched()
}

#[cold]
#[inline(never)]
pub(crate) fn let_others_go_first<M: Machine>(m: M, here: Here<M>, thread: &'static M::Thread) {
    if here.direct() {
        settle_direct(m, &here);
    }
    if here.resched() {
        give_way(m, here, thread);
    }
}

/// The thread lets those it owes the CPU go first.
#[inline(always)]
pub fn before_user<M: Machine>(m: M, here: Here<M>, thread: &'static M::Thread) {
    if owes(&here) {
        let_others_go_first(m, here, thread);
    }
}

/// A preemption point in a long operation of the current thread, which holds no lock: what is pending
/// is served, and those that are due run first.
///
/// The thread comes back from here even if it is killed meanwhile: a call it has matched and not
/// delivered, or memory that only its stack knows of, is nobody else's to finish. It dies on its way
/// out (ADR 155).
pub fn preemption_point<M: Machine>(m: M) {
    m.let_interrupts_in();
    let here = Here::now(m);
    if here.resched()
        && let Some(thread) = here.current()
    {
        let is_paused = thread.state().pause();
        give_way(m, here, thread);
        if is_paused.and(thread.state().resume()).is_err() {
            m.defect("a thread at a preemption point does not run");
        }
    }
}
