//! Threads become runnable: where they go, and who is told.

use crate::machine::{Defect, Here, Machine, Record, Saw, cpu_of, lock, lock_home};
use crate::trace::{self, point};
use core_sched::place::{self, Situation};
use core_sched::{Activity, CpuId, CpuSet, DirectOffer, Enqueued};
use core_sched_policy::Lag;
use core_thread::{KillVerdict, Ticket, WakeVerdict};
use schema::trace_capnp::TraceEvent;
use smp_ipi::Requests;

/// CPUs that a wake is on its way to, of those in `among`.
fn pending_of<M: Machine>(m: M, among: CpuSet) -> CpuSet {
    among
        .iter()
        .filter(|&cpu| m.cpus().get(cpu.index()).is_some_and(|cpu| cpu.requests.is_pending()))
        .fold(CpuSet::EMPTY, CpuSet::with)
}

/// A guess at who could take a thread now, to choose a queue by.
fn guess<M: Machine>(m: M, allowed: CpuSet) -> Situation {
    let idle = CpuSet::from_bits(m.idle_set().glance());
    Situation { allowed: m.online().and(allowed), idle, pending: pending_of(m, idle) }
}

/// Who could take a thread that was made visible before: the second half of S9's order.
pub(crate) fn situation<M: Machine>(m: M, allowed: CpuSet) -> Situation {
    let idle = CpuSet::from_bits(m.idle_set().seek());
    Situation { allowed: m.online().and(allowed), idle, pending: pending_of(m, idle) }
}

/// Ends the wait of a thread by that name. `directly` asks for it to run next on this CPU. A name that
/// is out of date is no failure: the wait is over already.
#[inline]
pub fn wake<M: Machine>(
    m: M,
    thread: &'static M::Thread,
    generation: u32,
    ticket: Ticket,
    directly: bool,
) {
    let verdict = thread.state().wake(generation, ticket);
    if verdict.is_ok() && m.is_planted(Defect::DoubleEnqueue) {
        enqueue_woken(m, thread);
    }
    match verdict {
        Ok(WakeVerdict::Enqueue) if directly => offer_direct(m, thread),
        Ok(WakeVerdict::Enqueue) => enqueue_woken(m, thread),
        Ok(WakeVerdict::Noted) => m.saw(&Here::now(m), Saw::WokeEarly),
        Err(_) => {}
    }
}

/// A thread whose wake was claimed joins a queue, once.
pub fn enqueue_woken<M: Machine>(m: M, thread: &'static M::Thread) {
    let here = Here::now(m);
    m.saw(&here, Saw::Ready(thread));
    let Some(home) = thread.node().home() else {
        m.defect("a thread whose home is no CPU");
    };
    let at = guess(m, m.allowed(thread));
    let Some(to) = place::woken(home, &at) else {
        m.defect("a thread that may run nowhere was woken");
    };
    if to != home {
        m.saw(&here, Saw::PlacedElsewhere);
    } else if !at.idle.contains(to) {
        m.saw(&here, Saw::PlacedBusy);
    }
    join(m, &here, thread, to);
}

/// A new thread joins a queue.
pub fn enqueue_new<M: Machine>(m: M, thread: &'static M::Thread) {
    let here = Here::now(m);
    m.saw(&here, Saw::Ready(thread));
    let at = guess(m, m.allowed(thread));
    let Some(to) = place::new_thread(here.id(), &at, |cpu| m.siblings(cpu)) else {
        m.defect("a new thread may run nowhere");
    };
    join(m, &here, thread, to);
}

/// A resting thread joins the queue of `to`.
fn join<M: Machine>(m: M, here: &Here<M>, thread: &'static M::Thread, to: CpuId) {
    point(m, TraceEvent::Woke, || trace::moved::<M>(thread, to));
    let now = m.clock();
    let mut queue = lock_home(m, here, thread);
    if queue.view().cpu() == to {
        let enqueued = m.agreed(queue.wake(thread.node(), now));
        drop(queue);
        m.saw(here, Saw::Queued(thread, to));
        return tell(m, here, to, enqueued, now);
    }
    let lag = m.agreed(queue.send(thread.node(), to, now));
    drop(queue);
    arrive(m, here, thread, to, lag, now);
}

/// A thread that left another queue for that of `to` joins it.
pub(crate) fn arrive<M: Machine>(
    m: M,
    here: &Here<M>,
    thread: &'static M::Thread,
    to: CpuId,
    lag: Lag,
    now: u64,
) {
    point(m, TraceEvent::Migrated, || trace::moved::<M>(thread, to));
    let mut queue = lock(m, here, to);
    let enqueued = m.agreed(
        queue.with(thread.node(), |queue, item, entity| queue.enqueue(item, entity, lag, now)),
    );
    drop(queue);
    m.saw(here, Saw::Queued(thread, to));
    tell(m, here, to, enqueued, now);
}

/// A CPU has one more thread in its queue: it is told, or an idle one is if the thread would wait.
pub(crate) fn tell<M: Machine>(m: M, here: &Here<M>, cpu: CpuId, enqueued: Enqueued, now: u64) {
    let runs_at_once = if cpu == here.id() {
        if enqueued.resched {
            here.set_resched(true);
        }
        if let Some(at) = enqueued.arm_slice_ns
            && !m.is_planted(Defect::LostSliceArm)
        {
            m.arm(here, now, at);
        }
        // Who is preempted by it is offered to others when its stack is free.
        enqueued.resched
    } else if enqueued.resched {
        // If a wake is on its way there already, that one's thread is first.
        request(m, here, cpu, Requests::RESCHEDULE)
    } else {
        if enqueued.arm_slice_ns.is_some() && !m.is_planted(Defect::LostSliceArm) {
            request(m, here, cpu, Requests::TIMER);
        }
        false
    };
    if !runs_at_once && m.idle_set().seek() != 0 && !m.is_planted(Defect::NoLookAtIdle) {
        wake_an_idle_cpu(m, here, cpu);
    }
}

/// There is work in the queue of a CPU that an idle one could take; it was made visible before.
#[cold]
#[inline(never)]
pub(crate) fn wake_an_idle_cpu<M: Machine>(m: M, here: &Here<M>, queued_on: CpuId) {
    if let Some(cpu) = place::second_wake(queued_on, &situation(m, CpuSet::ALL)) {
        request(m, here, cpu, Requests::RESCHEDULE);
    }
}

/// Asks something of a CPU, this one included; whether nothing was asked of it before, so that it
/// comes for this.
pub fn request<M: Machine>(m: M, here: &Here<M>, cpu: CpuId, what: Requests) -> bool {
    let target = cpu_of(m, cpu);
    let is_fresh = target.requests.post(what);
    if is_fresh {
        if !m.is_planted(Defect::LostIpi) {
            m.send_ipi(target);
        }
        m.saw(here, Saw::SentIpi);
    } else {
        m.saw(here, Saw::SkippedIpi);
    }
    is_fresh
}

/// Kills the thread of that name: it dies when it next leaves the kernel or would run. A name that is
/// out of date is no failure: the thread is gone already.
pub fn kill<M: Machine>(m: M, thread: &'static M::Thread, generation: u32) {
    match thread.state().kill(generation) {
        Ok(KillVerdict::Enqueue) => enqueue_woken(m, thread),
        Ok(KillVerdict::Interrupt) => interrupt_running(m, &Here::now(m), thread),
        Ok(KillVerdict::Noted | KillVerdict::Already) | Err(_) => {}
    }
}

/// Interrupts the CPU that a thread runs on, so that it comes to its way out.
fn interrupt_running<M: Machine>(m: M, here: &Here<M>, thread: &'static M::Thread) {
    if let Some(cpu) = thread.node().home() {
        request(m, here, cpu, Requests::RESCHEDULE);
    }
}

/// The CPUs that a thread may run on have changed: it leaves its queue or its CPU if they do not
/// include it any more.
pub fn allowed_changed<M: Machine>(m: M, thread: &'static M::Thread) {
    let here = Here::now(m);
    let mut queue = lock_home(m, &here, thread);
    let home = queue.view().cpu();
    if m.allowed(thread).contains(home) {
        return;
    }
    let activity = m.agreed(queue.with(thread.node(), |_, _, entity| Ok(entity.activity())));
    drop(queue);
    match activity {
        Activity::Running => interrupt_running(m, &here, thread),
        Activity::Queued | Activity::Direct => send_where_allowed(m, &here, thread),
        Activity::Resting | Activity::Moving | Activity::Dead => {}
    }
}

/// A queued thread whose CPUs do not include its home goes to one of them, if it is still queued there.
#[cold]
#[inline(never)]
pub(crate) fn send_where_allowed<M: Machine>(m: M, here: &Here<M>, thread: &'static M::Thread) {
    let now = m.clock();
    let allowed = m.allowed(thread);
    let mut queue = lock_home(m, here, thread);
    let home = queue.view().cpu();
    let Some(to) = place::woken(home, &guess(m, allowed)) else {
        m.defect("a thread that may run nowhere was queued");
    };
    let activity = m.agreed(queue.with(thread.node(), |_, _, entity| Ok(entity.activity())));
    if allowed.contains(home) || !matches!(activity, Activity::Queued | Activity::Direct) {
        return;
    }
    let lag = m.agreed(queue.send(thread.node(), to, now));
    drop(queue);
    arrive(m, here, thread, to, lag, now);
}

/// A thread whose wake was claimed should run next on this CPU, when its waker stops.
pub fn offer_direct<M: Machine>(m: M, thread: &'static M::Thread) {
    let here = Here::now(m);
    if !m.allowed(thread).contains(here.id()) {
        return enqueue_woken(m, thread);
    }
    m.saw(&here, Saw::Ready(thread));
    point(m, TraceEvent::Woke, || trace::moved::<M>(thread, here.id()));
    let now = m.clock();
    let node = thread.node();
    let mut queue = lock_home(m, &here, thread);
    let lag = if queue.view().cpu() == here.id() {
        None
    } else {
        let lag = m.agreed(queue.send(node, here.id(), now));
        drop(queue);
        queue = here.lock(m);
        Some(lag)
    };
    let offer = m.agreed(queue.with(node, |queue, item, entity| {
        let lag = lag.unwrap_or_else(|| queue.rest_lag(entity));
        queue.offer_direct(item, entity, lag, now)
    }));
    drop(queue);
    m.saw(&here, Saw::Queued(thread, here.id()));
    match offer {
        DirectOffer::Taken { arm_slice_ns } => {
            here.set_direct(true);
            m.saw(&here, Saw::Offered);
            if let Some(at) = arm_slice_ns {
                m.arm(&here, now, at);
            }
        }
        DirectOffer::Queued(enqueued) => {
            m.saw(&here, Saw::HandOverMissed);
            tell(m, &here, here.id(), enqueued, now);
        }
    }
}

/// The current thread goes on although it offered its place: the thread in the direct slot is queued.
pub(crate) fn settle_direct<M: Machine>(m: M, here: &Here<M>) {
    here.set_direct(false);
    let mut queue = here.lock(m);
    let Some(item) = queue.view().direct() else { return };
    let enqueued =
        m.agreed(queue.with(item.0, |queue, item, entity| queue.settle_direct(item, entity)));
    drop(queue);
    m.saw(here, Saw::HandOverMissed);
    tell(m, here, here.id(), enqueued, m.clock());
}
