//! One CPU's run queue: the lock, access to queue and entity under it, the hints beside it.

use crate::node::{Node, NodeRef};
use crate::tree::Tree;
use abi_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core_sched::{
    Activity, CpuId, Enqueued, Entity, Error, HandedOff, Hint, MayRun, Pick, Queue, Refusal,
    Started, Turn, YieldedTo,
};
use core_sched_policy::{AnyPolicy, Lag, Policy, PolicyKind, Share, VirtualTime};
use smp_lock::{Guard, LockClass, TicketLock};

/// What the lock protects.
pub type Inner<'n, P = AnyPolicy> = Queue<P, Tree<'n>>;

/// A CPU's queue with its lock and what it publishes without.
#[derive(Debug)]
pub struct RunQueue<'n, P: Policy = AnyPolicy> {
    cpu: CpuId,
    lock: TicketLock<Inner<'n, P>>,
    waiting: AtomicU32,
    load: AtomicU64,
    lateness_ns: AtomicU64,
}

/// A queue held locked. Dropping it publishes the hints and unlocks.
#[derive(Debug)]
pub struct QueueGuard<'q, 'n, P: Policy = AnyPolicy> {
    queue: Guard<'q, Inner<'n, P>>,
    shared: &'q RunQueue<'n, P>,
    /// What others see of the queue did not change.
    is_unchanged: bool,
}

/// What the CPU does next.
#[must_use = "the CPU has to switch to it"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'n> {
    /// This thread is current.
    Run(NodeRef<'n>, Started),
    /// Nothing may run.
    Idle,
    /// This thread is still queued and must not stay; deal with it and ask again.
    Refused(NodeRef<'n>, Refusal),
}

/// The first that waits is next if the current thread yields: [`Turn`] with the nodes of the two,
/// which belong to the queue and are not the same. The queue stays locked.
#[must_use = "nothing has happened yet"]
#[derive(Debug)]
pub struct QueueTurn<'g, 'n, P: Policy = AnyPolicy> {
    turn: Turn<'g, P, Tree<'n>>,
    from: &'n Node,
    to: &'n Node,
}

impl<'n, P: Policy> QueueTurn<'_, 'n, P> {
    /// The thread that is next; claimed before the turn is taken.
    #[inline(always)]
    pub fn node(&self) -> &'n Node {
        self.to
    }

    /// The two change places, once the caller has got hold of the one that is next.
    #[inline(always)]
    pub fn take(self, now_ns: u64) -> YieldedTo {
        let Self { turn, from, to } = self;
        // SAFETY: both nodes belong to the queue, whose lock is held by the guard this was made
        // from, and they are not the same; the queue has no way of its own to either.
        unsafe {
            from.with_entity(|leaving| to.with_entity(|coming| turn.take(leaving, coming, now_ns)))
        }
    }
}

/// Locks the queue a node belongs to; `queues` holds CPU `n`'s at `n`.
pub fn lock_home<'q, 'n, P: Policy>(
    queues: &'q [RunQueue<'n, P>],
    node: &Node,
) -> Option<QueueGuard<'q, 'n, P>> {
    lock_home_by(|cpu| queues.get(cpu.index()), node)
}

/// Locks the queue a node belongs to; `queue_of` says where a CPU's is.
#[inline]
pub fn lock_home_by<'q, 'n: 'q, P: Policy + 'q>(
    queue_of: impl Fn(CpuId) -> Option<&'q RunQueue<'n, P>>,
    node: &Node,
) -> Option<QueueGuard<'q, 'n, P>> {
    loop {
        let guard = queue_of(node.home()?)?.lock();
        if node.is_home(guard.shared.cpu) {
            return Some(guard);
        }
        drop(guard);
        abi_sync::spin_hint();
    }
}

impl<'n> RunQueue<'n> {
    /// The queue of `cpu`, which is idle since `now_ns`, with the usual policy.
    pub fn new(cpu: CpuId, now_ns: u64) -> Self {
        Self::with_policy(cpu, PolicyKind::default(), now_ns)
    }

    /// The queue of `cpu` with that policy; all queues of a machine have the same.
    pub fn with_policy(cpu: CpuId, kind: PolicyKind, now_ns: u64) -> Self {
        Self::ordered_by(cpu, AnyPolicy::new(kind, VirtualTime::default()), now_ns)
    }
}

impl<'n, P: Policy> RunQueue<'n, P> {
    /// The queue of `cpu` with a policy fixed at compile time.
    pub fn ordered_by(cpu: CpuId, policy: P, now_ns: u64) -> Self {
        Self {
            cpu,
            lock: TicketLock::with_class(
                LockClass::Queue,
                Queue::new(cpu, policy, Tree::new(cpu), now_ns),
            ),
            waiting: AtomicU32::new(0),
            load: AtomicU64::new(0),
            lateness_ns: AtomicU64::new(i64::MIN as u64),
        }
    }

    /// The CPU it belongs to.
    #[inline(always)]
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// Takes the lock. Never while another queue's is held.
    #[inline]
    pub fn lock(&self) -> QueueGuard<'_, 'n, P> {
        QueueGuard { queue: self.lock.lock(), shared: self, is_unchanged: false }
    }

    /// What this CPU last published.
    #[inline]
    pub fn hint(&self) -> Hint {
        Hint {
            waiting: self.waiting.load(Ordering::Relaxed),
            load: self.load.load(Ordering::Relaxed),
            lateness_ns: self.lateness_ns.load(Ordering::Relaxed) as i64,
        }
    }
}

impl<P: Policy> Drop for QueueGuard<'_, '_, P> {
    #[inline]
    fn drop(&mut self) {
        if self.is_unchanged {
            return;
        }
        let hint = self.queue.hint();
        self.shared.waiting.store(hint.waiting, Ordering::Relaxed);
        self.shared.load.store(hint.load, Ordering::Relaxed);
        self.shared.lateness_ns.store(hint.lateness_ns as u64, Ordering::Relaxed);
    }
}

impl<'n, P: Policy> QueueGuard<'_, 'n, P> {
    /// Runs an operation of the queue on the scheduling state of a thread that belongs to this
    /// CPU: `guard.with(node, |queue, item, entity| queue.block(item, entity, now_ns))`.
    #[inline]
    pub fn with<R>(
        &mut self,
        node: &'n Node,
        f: impl FnOnce(&mut Inner<'n, P>, NodeRef<'n>, &mut Entity) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if !node.is_home(self.shared.cpu) {
            return Err(Error::NotHere);
        }
        let queue = &mut *self.queue;
        // SAFETY: the node belongs to this queue, whose lock this guard holds; the closure has
        // no way to this guard and so to no second access.
        unsafe { node.with_entity(|entity| f(queue, NodeRef(node), entity)) }
    }

    /// A resting thread of this CPU wakes here.
    #[inline]
    pub fn wake(&mut self, node: &'n Node, now_ns: u64) -> Result<Enqueued, Error> {
        self.with(node, |queue, item, entity| {
            queue.enqueue(item, entity, queue.rest_lag(entity), now_ns)
        })
    }

    /// The current thread blocks and a resting thread of this CPU runs at once.
    #[inline]
    pub fn hand_off(
        &mut self,
        from: &'n Node,
        to: &'n Node,
        now_ns: u64,
    ) -> Result<HandedOff, Error> {
        self.hand_off_by(from, to, |queue, entity| queue.rest_lag(entity), now_ns)
    }

    /// The current thread blocks and a resting thread that came to this CPU for it, by
    /// [`send`](Self::send) of its last home, runs at once. If refused, it is to be enqueued
    /// here with the same lag.
    #[inline]
    pub fn hand_off_moved(
        &mut self,
        from: &'n Node,
        to: &'n Node,
        lag: Lag,
        now_ns: u64,
    ) -> Result<HandedOff, Error> {
        self.hand_off_by(from, to, |_, _| lag, now_ns)
    }

    #[inline]
    fn hand_off_by(
        &mut self,
        from: &'n Node,
        to: &'n Node,
        lag: impl FnOnce(&Inner<'n, P>, &Entity) -> Lag,
        now_ns: u64,
    ) -> Result<HandedOff, Error> {
        if core::ptr::eq(from, to) || !to.is_home(self.shared.cpu) {
            return Err(Error::NotHere);
        }
        let handed = self.with(from, |queue, from, leaving| {
            let access = |entity: &mut Entity| {
                queue.hand_off_by((from, leaving), (NodeRef(to), entity), lag, now_ns)
            };
            // SAFETY: `to` is another node than the one being accessed, of this locked queue.
            unsafe { to.with_entity(access) }
        });
        // The seat passed between equals, and nobody waits: the hints are what they were.
        self.is_unchanged = matches!(handed, Ok(HandedOff { is_like: true, .. }));
        handed
    }

    /// The thread that is next if the current one yields. Refused if it may be another's turn
    /// ([`Error::OutOfTurn`]: the thread is to be requeued and [`next`](Self::next) to be asked), or
    /// if nobody waits ([`Error::NotHere`]).
    #[inline(always)]
    pub fn turn(&mut self, from: &'n Node) -> Result<QueueTurn<'_, 'n, P>, Error> {
        let cpu = self.shared.cpu;
        if !from.is_home(cpu) {
            return Err(Error::NotHere);
        }
        let queue = &mut *self.queue;
        let activity = |to: NodeRef<'n>| {
            let is_another = !core::ptr::eq(from, to.0) && to.0.is_home(cpu);
            // SAFETY: it belongs to this queue too, and is another than `from`.
            is_another.then(|| unsafe { to.0.with_entity(|coming| coming.activity()) })
        };
        // SAFETY: the node belongs to this queue, whose lock this guard holds.
        let turn =
            unsafe { from.with_entity(|leaving| queue.turn(NodeRef(from), leaving, activity)) }?;
        let to = turn.item().0;
        Ok(QueueTurn { turn, from, to })
    }

    /// A thread of this CPU that rests or waits leaves for another: it belongs to `to` from
    /// here on, and is to be enqueued there with the lag.
    #[inline]
    pub fn send(&mut self, node: &'n Node, to: CpuId, now_ns: u64) -> Result<Lag, Error> {
        let lag = self.with(node, |queue, item, entity| match entity.activity() {
            Activity::Resting => Ok(queue.rest_lag(entity)),
            _ => Ok(queue.depart(item, entity, now_ns)?.lag),
        })?;
        node.set_home(to);
        Ok(lag)
    }

    /// Chooses and starts what runs next.
    #[inline]
    pub fn next(
        &mut self,
        now_ns: u64,
        mut may_run: impl FnMut(&'n Node) -> MayRun,
    ) -> Result<Next<'n>, Error> {
        loop {
            match self.queue.pick(now_ns, |item| may_run(item.0))? {
                Pick::Run { item, .. } => {
                    let started = self.with(item.0, |q, item, e| q.start(item, e, now_ns))?;
                    return Ok(Next::Run(item, started));
                }
                Pick::Idle => return Ok(Next::Idle),
                Pick::Refused { item, why } => return Ok(Next::Refused(item, why)),
                Pick::QueueDirect { item } => {
                    // Nobody runs and the next turn chooses anew: nothing to arm, nobody to preempt.
                    let Enqueued { .. } =
                        self.with(item.0, |q, item, e| q.settle_direct(item, e))?;
                }
            }
        }
    }

    /// The node of a dead thread of this CPU becomes that of a new one, which rests.
    pub fn renew(&mut self, node: &'n Node, thread: u64, share: Share) -> Result<(), Error> {
        self.with(node, |_, _, entity| match entity.activity() {
            Activity::Dead => {
                *entity = Entity::new(share);
                node.thread.store(thread, Ordering::Relaxed);
                Ok(())
            }
            is => Err(Error::Activity { is }),
        })
    }

    /// This CPU looks for one with less to do, because `view().is_look_due(…)`: `view().surplus(…)` says
    /// whom to [`send`](Self::send) where, up to `MOVES_PER_LOOK` times.
    #[inline]
    pub fn looked_around(&mut self, now_ns: u64) {
        self.queue.looked_around(now_ns);
    }

    /// Time this CPU spent idle, up to `now_ns`.
    pub fn idle_ns_until(&mut self, now_ns: u64) -> u64 {
        self.queue.idle_ns_until(now_ns)
    }

    /// The queue, to read.
    #[inline]
    pub fn view(&self) -> &Inner<'n, P> {
        &self.queue
    }

    /// Walks the queue; says which rule is broken.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        // SAFETY: the walk only reaches nodes of this locked queue, one at a time.
        self.queue.check_invariants(|item| unsafe { item.0.with_entity(|e| *e) })
    }
}
