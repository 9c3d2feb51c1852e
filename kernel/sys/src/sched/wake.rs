//! Threads become runnable: where they go, and who is told.

use super::{clock, home_queue, queue_of, sound};
use crate::system::{Cpu, here, the};
use crate::thread::Thread;
use core::sync::atomic::Ordering;
use core_sched::place::{self, Situation};
use core_sched::{CpuId, CpuSet, DirectOffer, Enqueued};
use kernel_arch::{apic, time};
use smp_ipi::Requests;

/// CPUs that a wake is on its way to, of those in `among`.
pub(super) fn pending_of(among: CpuSet) -> CpuSet {
    among
        .iter()
        .filter(|&cpu| the().cpu(cpu).is_some_and(|cpu| cpu.requests.is_pending()))
        .fold(CpuSet::EMPTY, CpuSet::with)
}

/// Who could take a thread now.
pub(super) fn situation() -> Situation {
    let system = the();
    let idle = CpuSet::from_bits(system.idle.seek());
    Situation { allowed: system.online, idle, pending: pending_of(idle) }
}

/// A thread whose wake was claimed joins a queue, once.
pub fn enqueue_woken(thread: &'static Thread) {
    let at = situation();
    let Some(home) = thread.node.home() else { return };
    let to = place::woken(home, &at).unwrap_or(home);
    if to == home && !at.idle.contains(to) {
        here().counters.failed_placements.bump();
    }
    join(thread, to);
}

/// A new thread joins a queue.
pub fn enqueue_new(thread: &'static Thread) {
    let creator = here().id;
    let to = place::new_thread(creator, &situation(), siblings).unwrap_or(creator);
    join(thread, to);
}

/// The CPUs of a core.
pub(super) fn siblings(of: CpuId) -> CpuSet {
    let system = the();
    let Some(cpu) = system.cpu(of) else { return CpuSet::only(of) };
    let place = cpu.machine.place();
    system
        .cpus
        .iter()
        .filter(|other| {
            let theirs = other.machine.place();
            (theirs.package, theirs.core) == (place.package, place.core)
        })
        .fold(CpuSet::only(of), |set, other| set.with(other.id))
}

pub(super) fn join(thread: &'static Thread, to: CpuId) {
    let now = clock();
    let node = &thread.node;
    let mut queue = home_queue(thread);
    let enqueued = if queue.look().cpu() == to {
        sound(queue.wake(node, now))
    } else {
        let lag = sound(queue.send(node, to, now));
        drop(queue);
        queue = queue_of(to).lock();
        sound(queue.with(node, |queue, item, entity| queue.enqueue(item, entity, lag, now)))
    };
    drop(queue);
    tell(to, enqueued);
}

/// A CPU has one more thread in its queue.
pub(super) fn tell(cpu: CpuId, enqueued: Enqueued) {
    let me = here();
    if cpu == me.id {
        if enqueued.resched {
            me.resched.store(true, Ordering::Relaxed);
        }
        if let Some(at) = enqueued.arm_slice_ns {
            arm(at);
        }
    } else if enqueued.resched {
        request(cpu, Requests::RESCHEDULE);
    } else if enqueued.arm_slice_ns.is_some() {
        request(cpu, Requests::TIMER);
    }
    me.counters.runnable_max.raise_to(u64::from(queue_of(me.id).hint().waiting));
}

/// Arms this CPU's timer.
#[inline]
pub fn arm(at_ns: u64) {
    here().counters.one_shots.bump();
    time::arm(at_ns);
}

/// Asks something of a CPU, this one included.
pub fn request(cpu: CpuId, what: Requests) {
    let Some(target) = the().cpu(cpu) else { return };
    let me = here();
    if target.requests.post(what) {
        apic::send_ipi(target.machine.apic_id());
        me.counters.reschedule_sent.bump();
    } else {
        me.counters.reschedule_skipped.bump();
    }
}

/// A killed thread runs on some CPU: it dies there when the interrupt comes.
pub fn interrupt_running(thread: &'static Thread) {
    if let Some(cpu) = thread.node.home() {
        request(cpu, Requests::RESCHEDULE);
    }
}

/// A thread whose wake was claimed should run next on this CPU, when its waker stops.
pub fn offer_direct(thread: &'static Thread) {
    let now = clock();
    let me = here();
    let node = &thread.node;
    let mut queue = home_queue(thread);
    let lag = if queue.look().cpu() == me.id {
        None
    } else {
        let lag = sound(queue.send(node, me.id, now));
        drop(queue);
        queue = queue_of(me.id).lock();
        Some(lag)
    };
    let offer = sound(queue.with(node, |queue, item, entity| {
        let lag = lag.unwrap_or_else(|| queue.rest_lag(entity));
        queue.offer_direct(item, entity, lag, now)
    }));
    drop(queue);
    match offer {
        DirectOffer::Taken { arm_slice_ns } => {
            me.direct.store(true, Ordering::Relaxed);
            me.counters.handoffs_taken.bump();
            if let Some(at) = arm_slice_ns {
                arm(at);
            }
        }
        DirectOffer::Queued(enqueued) => {
            me.counters.handoffs_missed.bump();
            tell(me.id, enqueued);
        }
    }
}

/// The current thread goes on although it offered its place: whoever was to follow is queued.
pub(super) fn settle_direct(me: &'static Cpu) {
    me.direct.store(false, Ordering::Relaxed);
    let mut queue = queue_of(me.id).lock();
    let Some(item) = queue.look().direct() else { return };
    let enqueued =
        sound(queue.with(item.0, |queue, item, entity| queue.settle_direct(item, entity)));
    drop(queue);
    me.counters.handoffs_missed.bump();
    tell(me.id, enqueued);
    wake_an_idle_cpu(me.id);
}

/// There is work here that an idle CPU could take.
pub(super) fn wake_an_idle_cpu(queued_on: CpuId) {
    if the().idle.glance() != 0
        && let Some(cpu) = place::second_wake(queued_on, &situation())
    {
        request(cpu, Requests::RESCHEDULE);
    }
}
