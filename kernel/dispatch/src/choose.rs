//! What a CPU runs next: the first of its own queue. A crowded CPU gives some away before it chooses; an
//! idle one takes from others.

use crate::machine::{Here, Machine, Record, Saw, cpu_of, lock, thread_of};
use crate::trace::{self, point};
use crate::wake::{arrive, request, send_where_allowed, situation};
use core_sched::{CpuId, CpuSet, MayRun, Refusal, balance};
use core_thread::{DispatchVerdict, State};
use schema::trace_capnp::TraceEvent;
use smp_ipi::Requests;
use smp_rq::{Next, Node, QueueGuard};

/// How many CPUs an idle one tries to take a thread from before it halts: a first one may hold only
/// threads that are not to be had, and more tries keep locks from those that use them.
const STEAL_TRIES: usize = 4;

/// Dead threads that a choice takes out of a queue at most: as many as fit a section of kernel code beside what comes
/// before and after it. There may be as many in a queue as a process has threads.
const ENDS_PER_CHOICE: u32 = 4;

/// What a CPU does next.
pub(crate) enum Choice<M: Machine> {
    /// Runs this thread, whose word says so.
    Run(&'static M::Thread),
    /// Goes on with the thread that was asked about itself.
    Same,
    /// Nothing may run.
    Idle,
    /// The queue has to be asked again: it had more dead threads than go in one section. The idle loop does that.
    Again,
}

/// Whether a queued thread can run on this CPU; `current` is the one whose stack this is.
#[inline(always)]
fn may_run<M: Machine>(
    m: M,
    here: CpuId,
    node: &'static Node,
    current: Option<&'static M::Thread>,
) -> MayRun {
    let (thread, _) = thread_of(m, node);
    if !m.allowed(thread).contains(here) {
        return MayRun::No(Refusal::Elsewhere);
    }
    if current.is_some_and(|current| core::ptr::eq(current, thread)) {
        return MayRun::Yes;
    }
    can_leave(m, node)
}

/// Whether a queued thread is off every stack. Anything but `Runnable` is on its way off a CPU.
#[inline(always)]
fn can_leave<M: Machine>(m: M, node: &'static Node) -> MayRun {
    let (thread, _) = thread_of(m, node);
    if thread.state().load().state() == State::Runnable { MayRun::Yes } else { MayRun::Later }
}

/// Chooses and claims the next thread for this CPU, whose queue is held and then let go.
#[inline]
pub(crate) fn choose<M: Machine>(
    m: M,
    here: &Here<M>,
    mut queue: QueueGuard<'static, 'static, M::Policy>,
    now: u64,
    current: Option<&'static M::Thread>,
) -> Choice<M> {
    // The thread in the direct slot is chosen, or queued on the way.
    here.set_direct(false);
    if queue.view().is_look_due(now) {
        queue = look_around(m, here, queue, now);
    }
    let mut ends = 0;
    loop {
        let next = m.agreed(queue.next(now, |node| may_run(m, here.id(), node, current)));
        let (item, started) = match next {
            Next::Run(item, started) => (item, started),
            Next::Idle => return Choice::Idle,
            Next::Refused(item, _) => {
                drop(queue);
                let (thread, _) = thread_of(m, item.0);
                send_where_allowed(m, here, thread);
                queue = here.lock(m);
                continue;
            }
        };
        let (thread, key) = thread_of(m, item.0);
        let is_same = current.is_some_and(|current| core::ptr::eq(current, thread));
        let verdict = if is_same {
            Ok(DispatchVerdict::Run)
        } else {
            thread.state().dispatch(key.generation)
        };
        match verdict {
            Ok(DispatchVerdict::Run) => {
                drop(queue);
                if let Some(at) = started.slice_end_ns {
                    m.arm(here, now, at);
                }
                return if is_same { Choice::Same } else { Choice::Run(thread) };
            }
            Ok(DispatchVerdict::Finalise) => {
                let ended = queue.with(item.0, |queue, item, entity| queue.exit(item, entity, now));
                m.charge(thread, m.agreed(ended).charge);
                m.reap(thread);
                ends += 1;
                if ends == ENDS_PER_CHOICE {
                    return Choice::Again;
                }
            }
            Err(_) => m.defect("a queue holds a thread that is not runnable"),
        }
    }
}

/// Looks for CPUs with less to do than this one, which has threads waiting: idle ones are told to
/// come, else threads are given away (ADR 121). The queue is let go meanwhile.
#[cold]
#[inline(never)]
fn look_around<M: Machine>(
    m: M,
    here: &Here<M>,
    mut queue: QueueGuard<'static, 'static, M::Policy>,
    now: u64,
) -> QueueGuard<'static, 'static, M::Policy> {
    queue.looked_around(now);
    let waiting = queue.view().hint().waiting;
    drop(queue);
    // One of those that wait is chosen here.
    let helpers = match m.balances() {
        true => balance::helpers(&situation(m, CpuSet::ALL), waiting.saturating_sub(1)),
        false => CpuSet::EMPTY,
    };
    for helper in helpers.without(here.id()).iter() {
        request(m, here, helper, Requests::RESCHEDULE);
    }
    if helpers.is_empty() && m.balances() {
        for _ in 0..balance::MOVES_PER_LOOK {
            if !give_surplus_away(m, here, now) {
                break;
            }
        }
    }
    here.lock(m)
}

/// Gives one thread to a CPU with less to do, if there is one for it; whether it did.
fn give_surplus_away<M: Machine>(m: M, here: &Here<M>, now: u64) -> bool {
    m.saw(here, Saw::Glanced(m.cpus().len()));
    let mut queue = here.lock(m);
    let surplus = queue.view().surplus(
        now,
        m.online(),
        |cpu| cpu_of(m, cpu).queue.hint(),
        |item, to| {
            let (thread, _) = thread_of(m, item.0);
            match m.allowed(thread).contains(to) {
                true => can_leave(m, item.0),
                false => MayRun::No(Refusal::Elsewhere),
            }
        },
    );
    let Some(surplus) = surplus else { return false };
    let lag = m.agreed(queue.send(surplus.item.0, surplus.to, now));
    drop(queue);
    let (thread, _) = thread_of(m, surplus.item.0);
    m.saw(here, Saw::Balanced(thread));
    arrive(m, here, thread, surplus.to, lag, now);
    true
}

/// What an idle CPU found in others' queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loot {
    /// A thread, which is in this CPU's queue now.
    Thread,
    /// A thread that is still on its way off another CPU: look again.
    Later,
    /// Nothing to be had.
    Nothing,
}

/// An idle CPU takes a thread from the CPU that needs it most.
pub(crate) fn steal<M: Machine>(m: M, here: &Here<M>, now: u64) -> Loot {
    let mut among = m.online();
    let mut found = Loot::Nothing;
    for _ in 0..STEAL_TRIES {
        m.saw(here, Saw::Glanced(m.cpus().len()));
        let hint = |cpu| cpu_of(m, cpu).queue.hint();
        let Some(victim) = balance::victim(here.id(), among, hint) else { break };
        let mut queue = lock(m, here, victim);
        let item = queue.view().to_steal(|item| {
            let (thread, _) = thread_of(m, item.0);
            let may_leave = can_leave(m, item.0);
            if may_leave == MayRun::Later {
                found = Loot::Later;
            }
            may_leave == MayRun::Yes && m.allowed(thread).contains(here.id())
        });
        let Some(item) = item else {
            drop(queue);
            among = among.without(victim);
            continue;
        };
        let lag = m.agreed(queue.send(item.0, here.id(), now));
        drop(queue);
        let (thread, _) = thread_of(m, item.0);
        let mut queue = here.lock(m);
        // This CPU is idle: it chooses next, so nobody is to be told.
        let _queued = m.agreed(
            queue.with(item.0, |queue, item, entity| queue.enqueue(item, entity, lag, now)),
        );
        drop(queue);
        point(m, TraceEvent::Stolen, || trace::moved::<M>(thread, victim));
        m.saw(here, Saw::Stole(thread));
        m.saw(here, Saw::Queued(thread, here.id()));
        return Loot::Thread;
    }
    found
}
