//! What a CPU does when its timer fires or another CPU asks for attention.

use super::switch::{before_user, end, give_way};
use super::wake::{arm, tell};
use super::{clock, queue_of, sound, thread_of};
use crate::system::{self, Cpu, here, the};
use crate::thread::Thread;
use crate::{enter, reaper, timers};
use core::sync::atomic::Ordering;
use core_sched::CpuId;
use core_sched_policy::Lag;
use core_thread::State;
use smp_ipi::Requests;
use smp_rq::Node;

/// The timer's deadline has passed.
pub fn timer(from_user: bool) {
    let Some(system) = system::get() else { return };
    let me = here();
    me.counters.timer_interrupts.bump();
    let now = clock();
    timers::expire(now);
    if from_user && let Some(thread) = me.current() {
        if slice_is_over(me, now) {
            // Whoever runs next may be alone and arm nothing: what is due here later stays armed.
            if let Some(at) = timers::next(me) {
                arm(at);
            }
            enter::timer_pass(thread);
            give_surplus_away(me, now);
            give_way(system, me, thread);
        } else {
            rearm(me);
        }
        leave_interrupt(thread);
    } else if me.current().is_some() {
        // At a preemption point: the thread gives way when it goes on. If it was another deadline that
        // passed, the end of its slice may have been asked for and not armed, because this was earlier.
        if slice_is_over(me, now) {
            me.resched.store(true, Ordering::Relaxed);
        } else {
            rearm(me);
        }
    }
    // An idle CPU looks at its queue next and arms what it needs. There is no slice to be armed for:
    // the end of the last one has passed, and would interrupt again before the CPU comes to look.
}

pub(super) fn slice_is_over(me: &'static Cpu, now: u64) -> bool {
    queue_of(me.id).lock().look().slice_end_if_shared().is_some_and(|end| end <= now)
}

/// Arms what is due next here: the slice's end, the nearest deadline.
pub(super) fn rearm(me: &'static Cpu) {
    let slice = queue_of(me.id).lock().look().slice_end_if_shared();
    let deadline = timers::next(me);
    if let Some(at) = slice.into_iter().chain(deadline).min() {
        arm(at);
    }
}

/// At a slice's end: whether a CPU with less to do should have one of the threads that wait here.
pub(super) fn give_surplus_away(me: &'static Cpu, now: u64) {
    let system = the();
    if system.cpus.len() < 2 {
        return;
    }
    let mut queue = queue_of(me.id).lock();
    let is_movable = |node: &'static Node| {
        let (thread, _) = thread_of(node);
        thread.state.load().state() == State::Runnable
    };
    let surplus = queue.look().surplus(
        now,
        system.online,
        |cpu| queue_of(cpu).hint(),
        |item, _| is_movable(item.0),
    );
    let Some(surplus) = surplus else { return };
    let node = surplus.item.0;
    let lag = sound(queue.send(node, surplus.to, now));
    drop(queue);
    me.counters.balanced.bump();
    join_moved(node, surplus.to, lag, now);
}

/// A thread that left another queue joins this CPU's or that of `to`.
pub(super) fn join_moved(node: &'static Node, to: CpuId, lag: Lag, now: u64) {
    let mut queue = queue_of(to).lock();
    let enqueued =
        sound(queue.with(node, |queue, item, entity| queue.enqueue(item, entity, lag, now)));
    drop(queue);
    tell(to, enqueued);
}

/// Another CPU, or this one, asked for attention.
pub fn interrupt(from_user: bool) {
    if system::get().is_none() {
        return;
    }
    let me = here();
    let requests = me.requests.take();
    if requests.is_empty() {
        return;
    }
    reaper::step();
    let Some(thread) = me.current() else { return };
    if requests.contains(Requests::RESCHEDULE) {
        me.resched.store(true, Ordering::Relaxed);
    }
    rearm(me);
    // At a preemption point the thread gives way when it goes on, and dies when it leaves.
    if from_user {
        leave_interrupt(thread);
    }
}

/// The last thing before an interrupted thread goes on.
pub(super) fn leave_interrupt(thread: &'static Thread) {
    before_user(here(), thread);
    if thread.state.is_killed() {
        end(thread);
    }
}
