//! Scheduling on the machine: verdicts of the queues become switches, interrupts and armed timers.
//!
//! Which thread is next, where a woken one goes and what moves between CPUs is decided in
//! `core_sched` over `smp_rq`; this file carries it out. A thread that stops is taken off the queue's
//! account before the switch and its state word moves on after it, on the next stack ([`after_park`],
//! [`after_requeue`], [`after_end`]): until then no other CPU can run it.
//!
//! * [`idle`]: what a CPU does without threads. [`interrupt`]: what others ask of it.

use crate::system::{self, Cpu, NO_THREAD, System, here, the};
use crate::thread::Thread;
use crate::{reaper, section, timers};
use core::sync::atomic::Ordering;
use core_sched::place::{self, Situation};
use core_sched::{CpuId, CpuSet, DirectOffer, Enqueued, MayRun, Requeue, balance};
use core_sched_policy::Lag;
use core_thread::{CommitVerdict, DispatchVerdict, RequeueVerdict, State, ThreadKey};
use kernel_arch::context::{self, After, Context};
use kernel_arch::{apic, time};
use smp_ipi::Requests;
use smp_rq::{Next, Node, QueueGuard, RunQueue, lock_home};

/// The clock; the system does not start without one.
#[inline]
pub fn clock() -> u64 {
    time::clock_ns()
}

#[inline]
fn queue_of(cpu: CpuId) -> &'static RunQueue<'static> {
    match the().queues.get(cpu.index()) {
        Some(queue) => queue,
        None => system::defect("a CPU without a queue"),
    }
}

#[inline(always)]
fn own_queue(system: &'static System, me: &'static Cpu) -> &'static RunQueue<'static> {
    match system.queues.get(me.id.index()) {
        Some(queue) => queue,
        None => system::defect("a CPU without a queue"),
    }
}

#[inline]
fn home_queue(thread: &'static Thread) -> QueueGuard<'static, 'static> {
    match lock_home(the().queues, &thread.node) {
        Some(queue) => queue,
        None => system::defect("a thread whose home is no CPU"),
    }
}

#[inline]
fn thread_of(node: &'static Node) -> (&'static Thread, ThreadKey) {
    thread_in(the(), node)
}

#[inline(always)]
fn thread_in(system: &'static System, node: &'static Node) -> (&'static Thread, ThreadKey) {
    let key = ThreadKey::from_bits(node.thread());
    match system.thread(key.slot) {
        Some(thread) => (thread, key),
        None => system::defect("a queue holds a node that is no thread's"),
    }
}

/// What a queue operation answered; the queues refuse only what the kernel did wrong.
#[inline]
fn sound<T>(answer: Result<T, core_sched::Error>) -> T {
    match answer {
        Ok(value) => value,
        Err(_) => system::defect("a run queue refuses what the kernel asks of it"),
    }
}

// ---- becoming runnable -------------------------------------------------------------------------

/// CPUs that a wake is on its way to, of those in `among`.
fn pending_of(among: CpuSet) -> CpuSet {
    among
        .iter()
        .filter(|&cpu| the().cpu(cpu).is_some_and(|cpu| cpu.requests.is_pending()))
        .fold(CpuSet::EMPTY, CpuSet::with)
}

/// Who could take a thread now.
fn situation() -> Situation {
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
fn siblings(of: CpuId) -> CpuSet {
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

fn join(thread: &'static Thread, to: CpuId) {
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
fn tell(cpu: CpuId, enqueued: Enqueued) {
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
fn settle_direct(me: &'static Cpu) {
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
fn wake_an_idle_cpu(queued_on: CpuId) {
    if the().idle.glance() != 0
        && let Some(cpu) = place::second_wake(queued_on, &situation())
    {
        request(cpu, Requests::RESCHEDULE);
    }
}

// ---- stopping and switching --------------------------------------------------------------------

/// What a CPU does next.
enum Choice {
    Run(&'static Thread),
    /// The thread that was asked about itself.
    Same,
    Idle,
}

/// Whether a queued thread can run here; `current` is the one whose stack this is.
#[inline(always)]
fn may_run(
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
fn choose(
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
fn go(me: &'static Cpu, choice: &Choice, after: After, data: u64) {
    let (to, slot): (&'static Context, u32) = match choice {
        Choice::Run(thread) => (thread.machine.context(), thread.slot()),
        Choice::Idle => (me.machine.idle(), NO_THREAD),
        Choice::Same => return,
    };
    me.current.store(slot, Ordering::Relaxed);
    me.resched.store(false, Ordering::Relaxed);
    me.counters.switches.bump();
    section::end("a switch");
    if context::switch_to(to, after, data).is_err() {
        system::defect("a claimed context cannot be switched to");
    }
}

/// The thread `data` names switched away to wait.
fn after_park(_: &'static Context, data: u64) {
    let Some(thread) = the().thread(ThreadKey::from_bits(data).slot) else { return };
    match thread.state.commit_park() {
        Ok(CommitVerdict::Parked) => {}
        Ok(CommitVerdict::Enqueue) => enqueue_woken(thread),
        Ok(CommitVerdict::Finalise) => end_claimed(thread),
        Err(_) => system::defect("a thread that waits was not about to"),
    }
}

/// The thread `data` names was preempted or yielded; it is in a queue already.
fn after_requeue(_: &'static Context, data: u64) {
    let system = the();
    let Some(thread) = system.thread(ThreadKey::from_bits(data).slot) else { return };
    match thread.state.requeue() {
        Ok(RequeueVerdict::Enqueue) => {
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
fn drop_requeued(thread: &'static Thread) {
    let now = clock();
    let mut queue = home_queue(thread);
    sound(queue.with(&thread.node, |queue, item, entity| queue.drop_dead(item, entity, now)));
    drop(queue);
    reaper::bury(thread);
}

/// The thread `data` names will not run again.
fn after_end(_: &'static Context, data: u64) {
    let Some(thread) = the().thread(ThreadKey::from_bits(data).slot) else { return };
    if thread.state.finish().is_err() {
        system::defect("a thread that ended did not run");
    }
    reaper::bury(thread);
}

/// Nothing follows from leaving the idle context.
fn after_idle(_: &'static Context, _: u64) {}

/// The current thread, which has announced its wait, stops until it is woken.
pub fn block(thread: &'static Thread) {
    let now = clock();
    let system = the();
    let me = system.here();
    let mut queue = own_queue(system, me).lock();
    let _ = sound(queue.with(&thread.node, |queue, item, entity| queue.block(item, entity, now)));
    let choice = choose(system, me, queue, now, None);
    go(me, &choice, after_park, thread.key().to_bits());
}

/// The current thread, which has announced its wait, stops, and `next`, whose wait the caller has
/// claimed, runs in its place. `false` if the queue wants otherwise; nothing changed then.
#[inline]
pub fn hand_over(
    system: &'static System,
    me: &'static Cpu,
    thread: &'static Thread,
    next: &'static Thread,
) -> bool {
    let Some(queue) = system.queues.get(me.id.index()) else { return false };
    let now = clock();
    let mut queue = queue.lock();
    let Ok(handed) = queue.hand_off(&thread.node, &next.node, now) else { return false };
    drop(queue);
    if let Some(at) = handed.slice_end_ns {
        arm(at);
    }
    me.current.store(next.slot(), Ordering::Relaxed);
    me.counters.switches.bump();
    me.counters.handoffs_taken.bump();
    section::end("a hand-off");
    if context::switch_to(next.machine.context(), after_park, thread.key().to_bits()).is_err() {
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
pub fn give_way(system: &'static System, me: &'static Cpu, thread: &'static Thread, why: Requeue) {
    me.resched.store(false, Ordering::Relaxed);
    let mut queue = own_queue(system, me).lock();
    if queue.look().nobody_waits() {
        return;
    }
    let now = clock();
    let _ = sound(
        queue.with(&thread.node, |queue, item, entity| queue.requeue(item, entity, why, now)),
    );
    let choice = choose(system, me, queue, now, Some(thread));
    if matches!(choice, Choice::Run(_)) && why == Requeue::Preempted {
        me.counters.preemptions.bump();
    }
    go(me, &choice, after_requeue, thread.key().to_bits());
}

/// The current thread ends.
pub fn end(thread: &'static Thread) -> ! {
    let now = clock();
    let system = the();
    let me = system.here();
    let mut queue = own_queue(system, me).lock();
    let _ = sound(queue.with(&thread.node, |queue, item, entity| queue.exit(item, entity, now)));
    let choice = choose(system, me, queue, now, None);
    let (to, slot): (&'static Context, u32) = match choice {
        Choice::Run(next) => (next.machine.context(), next.slot()),
        Choice::Idle | Choice::Same => (me.machine.idle(), NO_THREAD),
    };
    me.current.store(slot, Ordering::Relaxed);
    me.resched.store(false, Ordering::Relaxed);
    me.counters.switches.bump();
    section::end("the end of a thread");
    let _ = context::end_and_switch_to(to, after_end, thread.key().to_bits());
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
fn let_others_go_first(me: &'static Cpu, thread: &'static Thread) {
    if me.direct.load(Ordering::Relaxed) {
        settle_direct(me);
    }
    if me.resched.load(Ordering::Relaxed) {
        give_way(the(), me, thread, Requeue::Preempted);
    }
}

/// A preemption point in a long operation of the current thread, which holds no lock: what is pending
/// is served, and those that are due run first.
pub fn breathe() {
    section::end("a preemption point");
    kernel_arch::cpu::let_interrupts_in();
    section::begin();
    let system = the();
    let me = system.here();
    if me.resched.load(Ordering::Relaxed)
        && let Some(thread) = me.current()
    {
        give_way(system, me, thread, Requeue::Preempted);
    }
}

// ---- interrupts --------------------------------------------------------------------------------

/// The timer's deadline has passed.
pub fn timer(from_user: bool) {
    let Some(system) = system::get() else { return };
    let me = here();
    me.counters.timer_interrupts.bump();
    let now = clock();
    timers::expire(now);
    if from_user && let Some(thread) = system.thread(me.current.load(Ordering::Relaxed)) {
        if slice_is_over(me, now) {
            // Whoever runs next may be alone and arm nothing: what is due here later stays armed.
            if let Some(at) = timers::next(me) {
                arm(at);
            }
            crate::enter::timer_pass(thread);
            give_surplus_away(me, now);
            give_way(system, me, thread, Requeue::Preempted);
        } else {
            rearm(me);
        }
        leave_interrupt(thread);
    } else if me.current.load(Ordering::Relaxed) != NO_THREAD && slice_is_over(me, now) {
        // At a preemption point: the thread gives way when it goes on.
        me.resched.store(true, Ordering::Relaxed);
    }
    // An idle CPU looks at its queue next and arms what it needs. There is no slice to be armed for:
    // the end of the last one has passed, and would interrupt again before the CPU comes to look.
}

fn slice_is_over(me: &'static Cpu, now: u64) -> bool {
    queue_of(me.id).lock().look().slice_end_if_shared().is_some_and(|end| end <= now)
}

/// Arms what is due next here: the slice's end, the nearest deadline.
fn rearm(me: &'static Cpu) {
    let slice = queue_of(me.id).lock().look().slice_end_if_shared();
    let deadline = timers::next(me);
    if let Some(at) = slice.into_iter().chain(deadline).min() {
        arm(at);
    }
}

/// At a slice's end: whether a CPU with less to do should have one of the threads that wait here.
fn give_surplus_away(me: &'static Cpu, now: u64) {
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
fn join_moved(node: &'static Node, to: CpuId, lag: Lag, now: u64) {
    let mut queue = queue_of(to).lock();
    let enqueued =
        sound(queue.with(node, |queue, item, entity| queue.enqueue(item, entity, lag, now)));
    drop(queue);
    tell(to, enqueued);
}

/// Another CPU, or this one, asked for attention.
pub fn interrupt(from_user: bool) {
    let Some(system) = system::get() else { return };
    let me = here();
    let requests = me.requests.take();
    if requests.is_empty() {
        return;
    }
    reaper::step();
    let Some(thread) = system.thread(me.current.load(Ordering::Relaxed)) else { return };
    if requests.contains(Requests::RESCHEDULE) {
        me.resched.store(true, Ordering::Relaxed);
    }
    // At a preemption point the thread gives way when it goes on, and dies when it leaves.
    if from_user {
        rearm(me);
        leave_interrupt(thread);
    }
}

/// The last thing before an interrupted thread goes on.
fn leave_interrupt(thread: &'static Thread) {
    before_user(here(), thread);
    if thread.state.is_killed() {
        end(thread);
    }
}

// ---- idle --------------------------------------------------------------------------------------

/// What a CPU does when no thread is on it. Runs on the CPU's own stack, for good.
pub fn idle() -> ! {
    let me = here();
    loop {
        section::end("a turn of the idle loop");
        me.machine.run_job();
        let _ = me.requests.take();
        reaper::step();
        let now = clock();
        timers::expire(now);
        let choice = match choose(the(), me, queue_of(me.id).lock(), now, None) {
            Choice::Idle if steal(me, now) => continue,
            choice => choice,
        };
        if matches!(choice, Choice::Run(_)) {
            go(me, &choice, after_idle, 0);
            continue;
        }
        rest(me);
    }
}

/// Takes a thread from the CPU that needs it most.
fn steal(me: &'static Cpu, now: u64) -> bool {
    let Some(victim) = balance::victim(me.id, the().online, |cpu| queue_of(cpu).hint()) else {
        return false;
    };
    let mut queue = queue_of(victim).lock();
    let found = queue.look().to_steal(|item| {
        let (thread, _) = thread_of(item.0);
        thread.state.load().state() == State::Runnable
    });
    let Some(item) = found else { return false };
    let lag = sound(queue.send(item.0, me.id, now));
    drop(queue);
    me.counters.steals.bump();
    join_moved(item.0, me.id, lag, now);
    true
}

/// Sleeps until an interrupt, unless there is something to do after all.
fn rest(me: &'static Cpu) {
    let system = the();
    let number = me.id.index();
    system.idle.announce(number);
    let stealable = balance::victim(me.id, system.online, |cpu| queue_of(cpu).hint()).is_some();
    let has_work = me.requests.is_pending()
        || queue_of(me.id).hint().waiting > 0
        || stealable
        || reaper::has_work();
    if !has_work {
        me.counters.idle_entries.bump();
        if let Some(at) = timers::next(me) {
            arm(at);
        }
        section::end("idle");
        // Interrupts are off since before the look, and on for this one instruction.
        kernel_arch::cpu::wait_for_interrupt();
        section::begin();
    } else if stealable {
        // What can be seen and not taken yet is on its way off another CPU.
        kernel_arch::cpu::relax();
    }
    system.idle.retract(number);
}
