//! The current thread stops, and another runs in its place.
//!
//! A thread that stops is taken off the queue's account before the switch, and its state word moves on
//! after it, on the next stack ([`finish_switch`]): until then no other CPU can run it.

use crate::choose::{Choice, choose};
use crate::machine::{After, Defect, Here, IdlePath, Machine, Record, Saw, lock_home, thread_of};
use crate::trace::{self, Why, point};
use crate::wake::{arrive, enqueue_woken, send_where_allowed, wake_an_idle_cpu};
use core_sched::Requeue;
use core_thread::{CommitVerdict, DispatchVerdict, RequeueVerdict};
use schema::trace_capnp::TraceEvent;
use smp_rq::QueueGuard;

/// Carries a choice out: the CPU leaves the stack of `of` for the next one.
#[inline(always)]
fn go<M: Machine>(m: M, here: Here<M>, choice: &Choice<M>, after: After, of: &'static M::Thread) {
    let next = match *choice {
        Choice::Run(thread) => Some(thread),
        Choice::Idle | Choice::Again => None,
        Choice::Same => return,
    };
    point(m, TraceEvent::Switched, || {
        let why = match after {
            After::Wait => Why::Waits,
            After::Requeue => Why::Requeued,
            After::End => Why::Ended,
        };
        (trace::value_of::<M>(next), why as u64)
    });
    here.set_current(next);
    here.set_resched(false);
    m.saw(&here, Saw::Switched);
    match next {
        Some(next) => m.saw(&here, Saw::Runs(next)),
        None => here.goes_idle(
            m,
            match after {
                After::Wait => IdlePath::Block,
                After::Requeue => IdlePath::Timer,
                After::End => IdlePath::Exit,
            },
        ),
    }
    m.switch(here, next, after, of);
}

/// What the next context does first: the thread before it is off its stack.
#[inline(always)]
pub fn finish_switch<M: Machine>(m: M, after: After, of: &'static M::Thread) {
    match after {
        After::Wait => after_wait(m, of),
        After::Requeue => after_requeue(m, of),
        After::End => after_end(m, of),
    }
}

#[inline(always)]
fn after_wait<M: Machine>(m: M, thread: &'static M::Thread) {
    match thread.state().commit_wait() {
        Ok(CommitVerdict::Waits) => {}
        Ok(CommitVerdict::Enqueue) => enqueue_woken(m, thread),
        Ok(CommitVerdict::Finalise) => end_claimed(m, thread),
        Err(_) => m.defect("a thread that waits was not about to"),
    }
}

#[inline(always)]
fn after_requeue<M: Machine>(m: M, thread: &'static M::Thread) {
    if m.is_planted(Defect::RequeueBeforeSwitch) {
        return;
    }
    match thread.state().requeue() {
        // An idle CPU that looked before now has passed it over.
        Ok(RequeueVerdict::Enqueue) => {
            if m.idle_set().seek() != 0 {
                let here = Here::now(m);
                wake_an_idle_cpu(m, &here, here.id());
            }
        }
        Ok(RequeueVerdict::Finalise) => drop_requeued(m, thread),
        Err(_) => m.defect("a thread that was requeued did not run"),
    }
}

/// A thread in a queue has been killed: it never runs again.
#[cold]
#[inline(never)]
fn drop_requeued<M: Machine>(m: M, thread: &'static M::Thread) {
    let now = m.clock();
    let mut queue = lock_home(m, &Here::now(m), thread);
    m.agreed(queue.with(thread.node(), |queue, item, entity| queue.drop_dead(item, entity, now)));
    drop(queue);
    m.reap(thread);
}

fn after_end<M: Machine>(m: M, thread: &'static M::Thread) {
    if thread.state().finish().is_err() {
        m.defect("a thread that ended did not run");
    }
    m.reap(thread);
}

/// The current thread, which has announced its wait, stops until it is woken.
pub fn block<M: Machine>(m: M, thread: &'static M::Thread) {
    let now = m.clock();
    let here = Here::now(m);
    let mut queue = here.lock(m);
    let blocked = queue.with(thread.node(), |queue, item, entity| queue.block(item, entity, now));
    m.charge(thread, m.agreed(blocked).charge);
    let choice = choose(m, &here, queue, now, None);
    go(m, here, &choice, After::Wait, thread);
}

/// The current thread, which has announced its wait, stops, and `next`, whose wait the caller has
/// claimed, runs in its place, brought from another CPU if need be. If the queue wants otherwise `next`
/// is queued and the thread stops like any other.
#[inline(always)]
pub fn hand_over<M: Machine>(
    m: M,
    here: Here<M>,
    thread: &'static M::Thread,
    next: &'static M::Thread,
) {
    if !m.allowed(next).contains(here.id()) {
        return hand_over_otherwise(m, here, thread, next);
    }
    let now = m.clock();
    let mut queue = here.lock(m);
    let Ok(handed) = queue.hand_off(thread.node(), next.node(), now) else {
        drop(queue);
        return hand_over_otherwise(m, here, thread, next);
    };
    drop(queue);
    m.charge(thread, handed.charge);
    if let Some(at) = handed.slice_end_ns {
        m.arm(&here, now, at);
    }
    handed_over(m, here, thread, next);
}

#[inline(always)]
fn handed_over<M: Machine>(
    m: M,
    here: Here<M>,
    thread: &'static M::Thread,
    next: &'static M::Thread,
) {
    trace::hand_off(m, || trace::value_of::<M>(Some(next)));
    here.set_current(Some(next));
    m.saw(&here, Saw::Ready(next));
    m.saw(&here, Saw::HandedOver);
    m.saw(&here, Saw::Runs(next));
    m.switch(here, Some(next), After::Wait, thread);
}

/// A hand-over that the queue refused: because `next` belongs to another CPU, which it then leaves, or
/// because it is not to be now.
#[cold]
#[inline(never)]
fn hand_over_otherwise<M: Machine>(
    m: M,
    here: Here<M>,
    thread: &'static M::Thread,
    next: &'static M::Thread,
) {
    let now = m.clock();
    let is_foreign = next.node().home() != Some(here.id());
    if is_foreign && m.allowed(next).contains(here.id()) {
        let mut queue = lock_home(m, &here, next);
        let lag = m.agreed(queue.send(next.node(), here.id(), now));
        drop(queue);
        let mut queue = here.lock(m);
        let handed = queue.hand_off_moved(thread.node(), next.node(), lag, now);
        drop(queue);
        match handed {
            Ok(handed) => {
                m.charge(thread, handed.charge);
                if let Some(at) = handed.slice_end_ns {
                    m.arm(&here, now, at);
                }
                point(m, TraceEvent::Migrated, || trace::moved::<M>(next, here.id()));
                return handed_over(m, here, thread, next);
            }
            Err(_) => {
                m.saw(&here, Saw::HandOverMissed);
                match next.state().requeue() {
                    Ok(RequeueVerdict::Enqueue) => {
                        m.saw(&here, Saw::Ready(next));
                        arrive(m, &here, next, here.id(), lag, now);
                    }
                    Ok(RequeueVerdict::Finalise) => end_claimed(m, next),
                    Err(_) => m.defect("a claimed thread is not the claimer's"),
                }
                return block(m, thread);
            }
        }
    }
    m.saw(&here, Saw::HandOverMissed);
    give_back(m, next);
    block(m, thread);
}

/// A thread whose wait was claimed does not run here and now: it is queued like any other.
#[cold]
pub fn give_back<M: Machine>(m: M, thread: &'static M::Thread) {
    match thread.state().requeue() {
        Ok(RequeueVerdict::Enqueue) => enqueue_woken(m, thread),
        Ok(RequeueVerdict::Finalise) => end_claimed(m, thread),
        Err(_) => m.defect("a claimed thread is not the claimer's"),
    }
}

/// A thread that was claimed out of its wait has been killed: it never runs again.
pub(crate) fn end_claimed<M: Machine>(m: M, thread: &'static M::Thread) {
    let mut queue = lock_home(m, &Here::now(m), thread);
    m.agreed(queue.with(thread.node(), |queue, _, entity| queue.drop_resting(entity)));
    drop(queue);
    m.reap(thread);
}

/// The current thread gives way to others that are due.
#[inline(never)]
pub fn give_way<M: Machine>(m: M, here: Here<M>, thread: &'static M::Thread) {
    here.set_resched(false);
    let queue = here.lock(m);
    if !queue.view().nobody_waits() || !m.allowed(thread).contains(here.id()) {
        requeue(m, here, thread, Requeue::Preempted, queue, m.clock());
    }
}

/// The current thread goes back into the queue, and the queue's choice runs.
#[inline]
fn requeue<M: Machine>(
    m: M,
    here: Here<M>,
    thread: &'static M::Thread,
    why: Requeue,
    mut queue: QueueGuard<'static, 'static, M::Policy>,
    now: u64,
) {
    let requeued =
        queue.with(thread.node(), |queue, item, entity| queue.requeue(item, entity, why, now));
    m.charge(thread, m.agreed(requeued).charge);
    m.saw(&here, Saw::Requeued(thread));
    if !m.allowed(thread).contains(here.id()) {
        drop(queue);
        send_where_allowed(m, &here, thread);
        queue = here.lock(m);
    }
    if m.is_planted(Defect::RequeueBeforeSwitch) {
        let _verdict = thread.state().requeue();
    }
    let choice = choose(m, &here, queue, now, Some(thread));
    if matches!(choice, Choice::Run(_)) && why == Requeue::Preempted {
        m.saw(&here, Saw::Preempted);
    }
    go(m, here, &choice, After::Requeue, thread);
}

/// The current thread lets the first that waits run.
#[inline(always)]
pub fn yield_to_first<M: Machine>(m: M, here: Here<M>, thread: &'static M::Thread) {
    here.set_resched(false);
    let now = m.clock();
    let mut queue = here.lock(m);
    if queue.view().is_look_near(now) || !m.allowed(thread).contains(here.id()) {
        return yield_in_turn(m, here, thread, queue);
    }
    let turn = match queue.turn(thread.node()) {
        Ok(turn) => turn,
        Err(_) => return yield_in_turn(m, here, thread, queue),
    };
    let (next, key) = thread_of(m, turn.node());
    if !m.allowed(next).contains(here.id()) {
        return yield_in_turn(m, here, thread, queue);
    }
    let verdict = next.state().dispatch(key.generation);
    if verdict != Ok(DispatchVerdict::Run) {
        // Killed, or on its way off another CPU.
        let dead = (verdict == Ok(DispatchVerdict::Finalise)).then_some(next);
        return yield_past(m, here, thread, queue, dead);
    }
    let yielded = turn.take(now);
    drop(queue);
    m.charge(thread, yielded.charge);
    here.set_direct(false);
    m.saw(&here, Saw::Requeued(thread));
    m.saw(&here, Saw::Exchanged);
    m.arm(&here, now, yielded.slice_end_ns);
    go(m, here, &Choice::Run(next), After::Requeue, thread);
}

/// A yield when the first that waits cannot run; it is reaped if it is `dead`.
#[cold]
#[inline(never)]
fn yield_past<M: Machine>(
    m: M,
    here: Here<M>,
    thread: &'static M::Thread,
    mut queue: QueueGuard<'static, 'static, M::Policy>,
    dead: Option<&'static M::Thread>,
) {
    if let Some(dead) = dead {
        let now = m.clock();
        m.agreed(queue.with(dead.node(), |queue, item, entity| queue.drop_dead(item, entity, now)));
        m.reap(dead);
    }
    yield_in_turn(m, here, thread, queue);
}

/// The current thread yields.
pub fn yield_cpu<M: Machine>(m: M, here: Here<M>, thread: &'static M::Thread) {
    here.set_resched(false);
    let queue = here.lock(m);
    yield_in_turn(m, here, thread, queue);
}

/// The current thread goes behind the first that waits, if somebody does, and the queue's choice
/// runs.
#[inline(never)]
fn yield_in_turn<M: Machine>(
    m: M,
    here: Here<M>,
    thread: &'static M::Thread,
    queue: QueueGuard<'static, 'static, M::Policy>,
) {
    if !queue.view().nobody_waits() || !m.allowed(thread).contains(here.id()) {
        requeue(m, here, thread, Requeue::Yielded, queue, m.clock());
    }
}

/// The current thread ends.
pub fn end<M: Machine>(m: M, thread: &'static M::Thread) -> M::Gone {
    let now = m.clock();
    let here = Here::now(m);
    let mut queue = here.lock(m);
    let ended = queue.with(thread.node(), |queue, item, entity| queue.exit(item, entity, now));
    m.charge(thread, m.agreed(ended).charge);
    let next = match choose(m, &here, queue, now, None) {
        Choice::Run(next) => Some(next),
        Choice::Idle | Choice::Again | Choice::Same => None,
    };
    point(m, TraceEvent::Switched, || (trace::value_of::<M>(next), Why::Ended as u64));
    here.set_current(next);
    here.set_resched(false);
    m.saw(&here, Saw::Switched);
    match next {
        Some(next) => m.saw(&here, Saw::Runs(next)),
        None => here.goes_idle(m, IdlePath::Exit),
    }
    m.switch_for_good(here, next, thread)
}
