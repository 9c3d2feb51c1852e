//! The current thread stops, and another runs in its place.
//!
//! A thread that stops is taken off the queue's account before the switch and its state word moves on
//! after it, on the next stack ([`after_park`], [`after_requeue`], [`after_end`]): until then no other
//! CPU can run it.

use super::wake::{arm, enqueue_woken, settle_direct, wake_an_idle_cpu};
use super::{clock, home_queue, own_queue, sound, thread_in};
use crate::system::{self, Cpu, System, the};
use crate::thread::Thread;
use crate::{reaper, section};
use core::sync::atomic::Ordering;
use core_sched::{MayRun, Requeue};
use core_thread::{CommitVerdict, DispatchVerdict, RequeueVerdict, State};
use kernel_arch::context::{self, After, Context};
use kernel_arch::time;
use smp_rq::{Next, Node, QueueGuard};

/// What a CPU does next.
pub(super) enum Choice {
    Run(&'static Thread),
    /// The thread that was asked about itself.
    Same,
    Idle,
}

/// Whether a queued thread can run here; `current` is the one whose stack this is.
#[inline(always)]
pub(super) fn may_run(
    system: &'static System,
    node: &'static Node,
    current: Option<&'static Thread>,
) -> MayRun {
    let (thread, _) = thread_in(system, node);
    if current.is_some_and(|current| core::ptr::eq(current, thread)) {
        return MayRun::Yes;
    }
    // Anything but Runnable is on its way off another CPU, or to its end.
    if thread.state.load().state() == State::Runnable { MayRun::Yes } else { MayRun::Later }
}

/// Chooses and claims the next thread for the CPU `me`. The queue is given up.
#[inline]
pub(super) fn choose(
    system: &'static System,
    me: &'static Cpu,
    mut queue: QueueGuard<'static, 'static>,
    now: u64,
    current: Option<&'static Thread>,
) -> Choice {
    // Whoever is in the direct slot is chosen, or queued on the way.
    me.direct.store(false, Ordering::Relaxed);
    loop {
        let next = sound(queue.next(now, |node| may_run(system, node, current)));
        let (item, started) = match next {
            Next::Run(item, started) => (item, started),
            Next::Idle => return Choice::Idle,
            Next::Refused(..) => system::defect("a queue refused a thread nobody vetoed"),
        };
        let (thread, key) = thread_in(system, item.0);
        let is_same = current.is_some_and(|current| core::ptr::eq(current, thread));
        let verdict =
            if is_same { Ok(DispatchVerdict::Run) } else { thread.state.dispatch(key.generation) };
        match verdict {
            Ok(DispatchVerdict::Run) => {
                drop(queue);
                if let Some(at) = started.slice_end_ns {
                    me.counters.one_shots.bump();
                    time::arm_from(now, at);
                }
                return if is_same { Choice::Same } else { Choice::Run(thread) };
            }
            Ok(DispatchVerdict::Finalise) => {
                let _ =
                    sound(queue.with(item.0, |queue, item, entity| queue.exit(item, entity, now)));
                reaper::bury(thread);
            }
            Err(_) => system::defect("a queue holds a thread that is not runnable"),
        }
    }
}

/// Leaves the current context of the CPU `me` for what was chosen.
#[inline(always)]
pub(super) fn go<T: Sync>(me: &'static Cpu, choice: &Choice, after: After<T>, of: &'static T) {
    let (to, next): (&'static Context, Option<&'static Thread>) = match *choice {
        Choice::Run(thread) => (thread.machine.context(), Some(thread)),
        Choice::Idle => (me.machine.idle(), None),
        Choice::Same => return,
    };
    me.current.set(next);
    me.resched.store(false, Ordering::Relaxed);
    me.counters.switches.bump();
    section::end("a switch");
    if context::switch_to(to, after, of).is_err() {
        system::defect("a claimed context cannot be switched to");
    }
}

/// The thread switched away to wait.
pub(super) fn after_park(_: &'static Context, thread: &'static Thread) {
    match thread.state.commit_park() {
        Ok(CommitVerdict::Parked) => {}
        Ok(CommitVerdict::Enqueue) => enqueue_woken(thread),
        Ok(CommitVerdict::Finalise) => end_claimed(thread),
        Err(_) => system::defect("a thread that waits was not about to"),
    }
}

/// The thread was preempted or yielded; it is in a queue already.
pub(super) fn after_requeue(_: &'static Context, thread: &'static Thread) {
    match thread.state.requeue() {
        Ok(RequeueVerdict::Enqueue) => {
            let system = the();
            // An idle CPU that looked before now has passed it over.
            if system.idle.glance() != 0 {
                wake_an_idle_cpu(system.here().id);
            }
        }
        Ok(RequeueVerdict::Finalise) => drop_requeued(thread),
        Err(_) => system::defect("a thread that was requeued did not run"),
    }
}

/// A thread in a queue has been killed: it never runs again.
#[cold]
#[inline(never)]
pub(super) fn drop_requeued(thread: &'static Thread) {
    let now = clock();
    let mut queue = home_queue(thread);
    sound(queue.with(&thread.node, |queue, item, entity| queue.drop_dead(item, entity, now)));
    drop(queue);
    reaper::bury(thread);
}

/// The thread will not run again.
pub(super) fn after_end(_: &'static Context, thread: &'static Thread) {
    if thread.state.finish().is_err() {
        system::defect("a thread that ended did not run");
    }
    reaper::bury(thread);
}

/// Nothing follows from leaving the idle context.
pub(super) fn after_idle(_: &'static Context, _: &'static Cpu) {}

/// The current thread, which has announced its wait, stops until it is woken.
pub fn block(thread: &'static Thread) {
    let now = clock();
    let system = the();
    let me = system.here();
    let mut queue = own_queue(system, me).lock();
    let _ = sound(queue.with(&thread.node, |queue, item, entity| queue.block(item, entity, now)));
    let choice = choose(system, me, queue, now, None);
    go(me, &choice, after_park, thread);
}

/// The current thread, which has announced its wait, stops, and `next`, whose wait the caller has
/// claimed, runs in its place. `false` if the queue wants otherwise; nothing changed then.
#[inline]
pub fn hand_over(me: &'static Cpu, thread: &'static Thread, next: &'static Thread) -> bool {
    let now = clock();
    let mut queue = me.queue.lock();
    let Ok(handed) = queue.hand_off(&thread.node, &next.node, now) else { return false };
    drop(queue);
    if let Some(at) = handed.slice_end_ns {
        arm(at);
    }
    me.current.set(Some(next));
    me.counters.switches.bump();
    me.counters.handoffs_taken.bump();
    section::end("a hand-off");
    if context::switch_to(next.machine.context(), after_park, thread).is_err() {
        system::defect("a claimed context cannot be switched to");
    }
    true
}

/// A thread that was claimed out of its wait has been killed: it never runs again.
pub fn end_claimed(thread: &'static Thread) {
    let mut queue = home_queue(thread);
    sound(queue.with(&thread.node, |queue, _, entity| queue.drop_resting(entity)));
    drop(queue);
    reaper::bury(thread);
}

/// The current thread of the CPU `me` gives way to others that are due.
#[inline(never)]
pub(super) fn give_way(system: &'static System, me: &'static Cpu, thread: &'static Thread) {
    me.resched.store(false, Ordering::Relaxed);
    let queue = own_queue(system, me).lock();
    if !queue.look().nobody_waits() {
        requeue(system, me, thread, Requeue::Preempted, queue, clock());
    }
}

/// The current thread of the CPU `me` goes back into the queue, and the queue's choice runs.
#[inline]
fn requeue(
    system: &'static System,
    me: &'static Cpu,
    thread: &'static Thread,
    why: Requeue,
    mut queue: QueueGuard<'static, 'static>,
    now: u64,
) {
    let _ = sound(
        queue.with(&thread.node, |queue, item, entity| queue.requeue(item, entity, why, now)),
    );
    let choice = choose(system, me, queue, now, Some(thread));
    if matches!(choice, Choice::Run(_)) && why == Requeue::Preempted {
        me.counters.preemptions.bump();
    }
    go(me, &choice, after_requeue, thread);
}

/// The current thread of the CPU `me` lets the first that waits run.
#[inline(always)]
pub fn yield_to_first(system: &'static System, me: &'static Cpu, thread: &'static Thread) {
    me.resched.store(false, Ordering::Relaxed);
    let mut queue = own_queue(system, me).lock();
    let turn = match queue.turn(&thread.node) {
        Ok(turn) => turn,
        Err(_) => return yield_in_turn(system, me, thread, queue),
    };
    let (next, key) = thread_in(system, turn.node());
    let verdict = next.state.dispatch(key.generation);
    if verdict != Ok(DispatchVerdict::Run) {
        // Killed, or on its way off another CPU.
        let dead = (verdict == Ok(DispatchVerdict::Finalise)).then_some(next);
        return yield_past(system, me, thread, queue, dead);
    }
    let now = clock();
    let slice_end_ns = turn.take(now).slice_end_ns;
    drop(queue);
    me.direct.store(false, Ordering::Relaxed);
    me.counters.one_shots.bump();
    time::arm_from(now, slice_end_ns);
    go(me, &Choice::Run(next), after_requeue, thread);
}

/// A yield when the first that waits cannot run; it is to be buried if it is `dead`.
#[cold]
#[inline(never)]
fn yield_past(
    system: &'static System,
    me: &'static Cpu,
    thread: &'static Thread,
    mut queue: QueueGuard<'static, 'static>,
    dead: Option<&'static Thread>,
) {
    if let Some(dead) = dead {
        let now = clock();
        sound(queue.with(&dead.node, |queue, item, entity| queue.drop_dead(item, entity, now)));
        reaper::bury(dead);
    }
    yield_in_turn(system, me, thread, queue);
}

/// The current thread of the CPU `me` yields.
pub fn yield_cpu(system: &'static System, me: &'static Cpu, thread: &'static Thread) {
    me.resched.store(false, Ordering::Relaxed);
    yield_in_turn(system, me, thread, own_queue(system, me).lock());
}

/// The current thread goes behind the first that waits, if somebody does, and the queue's choice
/// runs.
#[inline(never)]
fn yield_in_turn(
    system: &'static System,
    me: &'static Cpu,
    thread: &'static Thread,
    queue: QueueGuard<'static, 'static>,
) {
    if !queue.look().nobody_waits() {
        requeue(system, me, thread, Requeue::Yielded, queue, clock());
    }
}

/// The current thread ends.
pub fn end(thread: &'static Thread) -> ! {
    let now = clock();
    let system = the();
    let me = system.here();
    let mut queue = own_queue(system, me).lock();
    let _ = sound(queue.with(&thread.node, |queue, item, entity| queue.exit(item, entity, now)));
    let choice = choose(system, me, queue, now, None);
    let (to, next): (&'static Context, Option<&'static Thread>) = match choice {
        Choice::Run(next) => (next.machine.context(), Some(next)),
        Choice::Idle | Choice::Same => (me.machine.idle(), None),
    };
    me.current.set(next);
    me.resched.store(false, Ordering::Relaxed);
    me.counters.switches.bump();
    section::end("the end of a thread");
    let _ = context::end_and_switch_to(to, after_end, thread);
    system::defect("a claimed context cannot be switched to")
}

/// What a thread does last before it returns to user mode: those it owes the CPU to come first.
#[inline(always)]
pub fn before_user(me: &'static Cpu, thread: &'static Thread) {
    if owes_the_cpu(me) {
        let_others_go_first(me, thread);
    }
}

/// Whether the thread this CPU runs lets others go first before it returns to user mode.
#[inline(always)]
pub fn owes_the_cpu(me: &'static Cpu) -> bool {
    me.direct.load(Ordering::Relaxed) || me.resched.load(Ordering::Relaxed)
}

#[cold]
#[inline(never)]
pub(super) fn let_others_go_first(me: &'static Cpu, thread: &'static Thread) {
    if me.direct.load(Ordering::Relaxed) {
        settle_direct(me);
    }
    if me.resched.load(Ordering::Relaxed) {
        give_way(the(), me, thread);
    }
}

/// A preemption point in a long operation of the current thread, which holds no lock: what is pending
/// is served, and those that are due run first.
///
/// The thread comes back from here even if it is killed meanwhile: a call it has matched and not
/// delivered, or memory that only its stack knows of, is nobody else's to finish. It dies on its way out.
pub fn breathe() {
    section::end("a preemption point");
    kernel_arch::cpu::let_interrupts_in();
    section::begin();
    let system = the();
    let me = system.here();
    if me.resched.load(Ordering::Relaxed)
        && let Some(thread) = me.current()
    {
        let is_paused = thread.state.pause();
        give_way(system, me, thread);
        if is_paused.and(thread.state.resume()).is_err() {
            system::defect("a thread at a preemption point does not run");
        }
    }
}
