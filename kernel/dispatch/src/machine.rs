//! What a machine owes the driver, and what the driver keeps of each CPU.

use abi_sync::AtomicRef;
use abi_sync::atomic::{AtomicBool, Ordering};
use core::ops::Deref;
use core_sched::{Charge, CpuId, CpuSet, Error};
use core_sched_policy::Policy;
use core_thread::{StateWord, ThreadKey};
use smp_ipi::{IdleSet, Pending, Requests};
use smp_rq::{Node, QueueGuard, RunQueue};
use smp_trace::{Buffer, Control, Memory};

/// The parts of a thread's record that the driver reaches.
pub trait Record: Sync + 'static {
    /// Its place in run queues; made or renewed with the bits of the thread's key.
    fn node(&self) -> &Node;
    /// The word that decides every race about it.
    fn state(&self) -> &StateWord;
}

/// What the next context does for the thread before it, once the CPU has left that thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The thread stopped to wait: the wait becomes real, unless it is over.
    Wait,
    /// The thread is in a queue already: from now on any CPU may run it.
    Requeue,
    /// The thread has ended: what is left of it is reaped.
    End,
}

/// A bug that a simulated or modelled machine plants in the driver, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A waker queues the thread whatever the state word says.
    DoubleEnqueue,
    /// An interrupt is not sent although the request was fresh.
    LostIpi,
    /// The end of a slice is not armed when a second thread comes.
    LostSliceArm,
    /// A waker does not ask who is idle after it has queued the thread.
    NoLookAtIdle,
    /// Who changes the share of a thread looks for it where it was, and does not follow it.
    ShareNotFollowed,
    /// A thread that is preempted can be run elsewhere before its stack is left.
    RequeueBeforeSwitch,
}

/// Something the driver did that a machine may count, pay for or look at; it changes nothing.
#[derive(Clone, Copy, Debug)]
pub enum Saw<T: 'static> {
    /// The queue of that CPU was locked for one operation.
    Locked(CpuId),
    /// The hints of that many CPUs were read.
    Glanced(usize),
    /// The thread became runnable: it woke, is new, or was claimed for a hand-over.
    Ready(&'static T),
    /// The current thread went back into the queue.
    Requeued(&'static T),
    /// The thread waits in the queue of that CPU, having come from another one or from rest.
    Queued(&'static T, CpuId),
    /// The thread is this CPU's current one from now on; the slice ends then, if somebody waits.
    Runs(&'static T),
    /// A yield changed places with the first that waited.
    Exchanged,
    /// A thread was preempted: its slice ended, or somebody more urgent came.
    Preempted,
    /// The CPU went from one thread to another, or to idle, by the queue's choice.
    Switched,
    /// A thread was taken from another CPU's queue.
    Stole(&'static T),
    /// A thread was given to a CPU with less to do.
    Balanced(&'static T),
    /// A wake found no better CPU than a busy one.
    PlacedBusy,
    /// A wake took the thread to another CPU than its last.
    PlacedElsewhere,
    /// A wake came before the thread had stopped.
    WokeEarly,
    /// A thread that waits handed its CPU over to its peer, which is a switch.
    HandedOver,
    /// A woken thread is in the direct slot: it runs when its waker stops.
    Offered,
    /// Such a peer was queued instead.
    HandOverMissed,
    /// An interrupt was sent to another CPU.
    SentIpi,
    /// None was sent, because one is on its way there.
    SkippedIpi,
    /// The timer's deadline passed.
    TimerFired,
    /// The CPU left its thread for the idle loop, for that reason.
    WentIdle(IdlePath),
    /// The CPU is about to halt; `again` if it has halted before since it left a thread.
    Halts {
        /// Whether the idle loop does it by itself.
        again: bool,
    },
}

/// Why a CPU left its thread for the idle loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdlePath {
    /// The thread was put back into the queue, and nothing there may run here.
    Timer,
    /// The thread waits.
    Block,
    /// The thread has ended.
    Exit,
}

/// The longest an idle CPU sleeps without looking around: ten looks a second cost nothing, and a timer
/// that loses an interrupt costs no more than one of them.
pub const MAX_SLEEP_NS: u64 = 100_000_000;

/// A machine that runs threads. The kernel's is a type without content, passed by value.
pub trait Machine: Copy + 'static {
    /// The policy of its run queues.
    type Policy: Policy + 'static;
    /// A thread's record.
    type Thread: Record;
    /// What it keeps of a CPU beside the driver's own part.
    type Own: Sync + 'static;
    /// What comes after the end of a thread, for the code that ran on its stack: nothing, unless the
    /// machine has no stacks.
    type Gone;

    /// The CPUs, by number.
    fn cpus(self) -> &'static [Cpu<Self>];
    /// The CPU this runs on.
    fn cpu_here(self) -> &'static Cpu<Self>;
    /// CPUs that announced they are idle.
    fn idle_set(self) -> &'static IdleSet;
    /// CPUs that take threads.
    fn online(self) -> CpuSet;
    /// The CPUs of a core, the CPU itself included.
    fn siblings(self, of: CpuId) -> CpuSet;
    /// The record at a thread's position, whichever thread is in it.
    fn thread(self, slot: u32) -> Option<&'static Self::Thread>;
    /// The CPUs a thread may run on.
    #[inline(always)]
    fn allowed(self, _thread: &'static Self::Thread) -> CpuSet {
        CpuSet::ALL
    }
    /// Whether a crowded CPU gives threads away.
    #[inline(always)]
    fn balances(self) -> bool {
        true
    }

    /// The time, in ns; of one thread's view it never goes back.
    fn clock(self) -> u64;
    /// Sees to it that [`timer`](crate::timer) runs on this CPU at `at_ns` or before.
    /// The clock was just read as `now_ns`.
    fn arm(self, here: &Here<Self>, now_ns: u64, at_ns: u64);
    /// Serves the deadlines that are due on this CPU, and arms the next.
    fn expire(self, here: &Here<Self>, now_ns: u64);
    /// The nearest deadline of this CPU.
    fn next_deadline(self, here: &Here<Self>) -> Option<u64>;
    /// The longest a CPU sleeps without looking around. A machine that searches for missed wakes has
    /// none: the look would hide them.
    fn max_sleep_ns(self) -> Option<u64> {
        Some(MAX_SLEEP_NS)
    }

    /// Interrupts a CPU.
    fn send_ipi(self, to: &'static Cpu<Self>);
    /// Serves what was asked of this CPU beside rescheduling; also called when it is idle.
    fn serve(self, here: &Here<Self>, requests: Requests);
    /// Whether there is something for [`serve`](Self::serve) although nobody asked.
    fn has_work(self, here: &Here<Self>) -> bool;
    /// Interrupts that are pending come in, at a point where the current thread holds nothing.
    fn let_interrupts_in(self);
    /// Halts until an interrupt. Interrupts were off since before the last look at the queues, and
    /// coming on and halting is one step.
    fn halt(self, here: Here<Self>);
    /// Waits a moment for another CPU to finish a step.
    fn relax(self, here: Here<Self>);

    /// Goes on with the stack of `next`, or with the idle loop's, after which
    /// [`finish_switch`](crate::finish_switch) runs there for `of`, first of all. Comes back when
    /// `of` runs again, on whatever CPU.
    fn switch(
        self,
        here: Here<Self>,
        next: Option<&'static Self::Thread>,
        after: After,
        of: &'static Self::Thread,
    );
    /// As [`switch`](Self::switch), with [`After::End`]: `of` never runs again.
    fn switch_for_good(
        self,
        here: Here<Self>,
        next: Option<&'static Self::Thread>,
        of: &'static Self::Thread,
    ) -> Self::Gone;
    /// Leaves the idle loop's stack for that of `next`; comes back when the CPU is idle again.
    fn leave_idle(self, here: Here<Self>, next: &'static Self::Thread);

    /// The slice of a thread that was interrupted in user mode is over: what it submitted without
    /// entering the kernel is dispatched. The thread may have moved to another CPU meanwhile.
    fn timer_pass(self, here: Here<Self>, thread: &'static Self::Thread);
    /// A thread will never run again, and no CPU is on its stack.
    fn reap(self, thread: &'static Self::Thread);
    /// A thread ran, and somebody pays for it.
    fn charge(self, thread: &'static Self::Thread, charge: Charge);
    /// What is recorded; nothing ever is on a machine without it.
    #[inline(always)]
    fn trace(self) -> Option<&'static Control> {
        None
    }
    /// Something happened that a machine may count.
    fn saw(self, here: &Here<Self>, what: Saw<Self::Thread>);
    /// Whether that bug is planted here and now; never in a kernel.
    #[inline(always)]
    fn is_planted(self, _: Defect) -> bool {
        false
    }
    /// The driver or a queue contradicts itself: a defect of the kernel, and the end.
    fn defect(self, what: &'static str) -> !;

    /// What a queue answered; queues refuse only what the driver did wrong.
    #[inline(always)]
    fn agreed<T>(self, answer: Result<T, Error>) -> T {
        match answer {
            Ok(value) => value,
            Err(error) => self.refused(error),
        }
    }

    /// A queue refused what the driver asked of it: a defect of the kernel, and the end.
    fn refused(self, error: Error) -> !;
}

/// What the driver keeps of one CPU.
pub struct Cpu<M: Machine> {
    id: CpuId,
    /// Its run queue.
    pub queue: RunQueue<'static, M::Policy>,
    /// What other CPUs ask of it.
    pub requests: Pending,
    current: AtomicRef<M::Thread>,
    /// A thread is in the queue's direct slot. Its own.
    direct: AtomicBool,
    /// It chooses again before it returns to user mode. Its own.
    resched: AtomicBool,
    /// It is in the idle set. Its own.
    is_announced: AtomicBool,
    /// What it records. Its own to write.
    pub trace: Buffer<Memory>,
    /// It has halted since it left a thread. Its own.
    has_halted: AtomicBool,
    /// What the machine keeps of it.
    pub own: M::Own,
}

impl<M: Machine> Cpu<M> {
    /// A CPU that runs nothing.
    pub fn new(queue: RunQueue<'static, M::Policy>, own: M::Own) -> Self {
        Self {
            id: queue.cpu(),
            queue,
            requests: Pending::new(),
            current: AtomicRef::new(),
            direct: AtomicBool::new(false),
            resched: AtomicBool::new(false),
            is_announced: AtomicBool::new(false),
            trace: Buffer::new(Memory::new()),
            has_halted: AtomicBool::new(true),
            own,
        }
    }

    /// Its number.
    #[inline(always)]
    pub fn id(&self) -> CpuId {
        self.id
    }

    /// The thread it runs; for another CPU a guess.
    #[inline(always)]
    pub fn current(&self) -> Option<&'static M::Thread> {
        self.current.get()
    }
}

/// The proof that the code runs on a certain CPU, and the way to its record.
///
/// A thread that switches away may come back on another CPU, so whatever may switch takes this by
/// value: a reference to the CPU that was borrowed from it cannot be used afterwards.
pub struct Here<M: Machine>(&'static Cpu<M>);

impl<M: Machine> Here<M> {
    /// The CPU this runs on.
    #[inline(always)]
    pub fn now(m: M) -> Self {
        Self(m.cpu_here())
    }

    /// As [`now`](Self::now), for a machine that has just looked where it is.
    #[inline(always)]
    pub fn on(cpu: &'static Cpu<M>) -> Self {
        Self(cpu)
    }

    /// The machine's own part of the CPU.
    #[inline(always)]
    pub fn own(&self) -> &M::Own {
        &self.0.own
    }

    #[inline(always)]
    pub(crate) fn set_current(&self, thread: Option<&'static M::Thread>) {
        self.0.current.set(thread);
    }

    #[inline(always)]
    pub(crate) fn set_resched(&self, on: bool) {
        self.0.resched.store(on, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn resched(&self) -> bool {
        self.0.resched.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set_direct(&self, on: bool) {
        self.0.direct.store(on, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn direct(&self) -> bool {
        self.0.direct.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set_announced(&self, on: bool) {
        self.0.is_announced.store(on, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn is_announced(&self) -> bool {
        self.0.is_announced.load(Ordering::Relaxed)
    }

    /// The CPU leaves its thread for the idle loop.
    pub(crate) fn goes_idle(&self, m: M, path: IdlePath) {
        self.0.has_halted.store(false, Ordering::Relaxed);
        m.saw(self, Saw::WentIdle(path));
    }

    /// The CPU is about to halt: whether it has before, since it left a thread.
    pub(crate) fn halts_again(&self) -> bool {
        let again = self.0.has_halted.load(Ordering::Relaxed);
        self.0.has_halted.store(true, Ordering::Relaxed);
        again
    }

    /// Locks this CPU's queue. The guard outlives the proof: it is let go before the switch.
    #[inline(always)]
    pub(crate) fn lock(&self, m: M) -> QueueGuard<'static, 'static, M::Policy> {
        m.saw(self, Saw::Locked(self.0.id));
        self.0.queue.lock()
    }
}

impl<M: Machine> Deref for Here<M> {
    type Target = Cpu<M>;

    #[inline(always)]
    fn deref(&self) -> &Cpu<M> {
        self.0
    }
}

/// The CPU of that number.
#[inline]
pub(crate) fn cpu_of<M: Machine>(m: M, id: CpuId) -> &'static Cpu<M> {
    match m.cpus().get(id.index()) {
        Some(cpu) => cpu,
        None => m.defect("a CPU without a record"),
    }
}

/// Locks the queue of a CPU.
#[inline]
pub(crate) fn lock<M: Machine>(
    m: M,
    here: &Here<M>,
    cpu: CpuId,
) -> QueueGuard<'static, 'static, M::Policy> {
    m.saw(here, Saw::Locked(cpu));
    cpu_of(m, cpu).queue.lock()
}

/// Locks the queue that a thread belongs to.
#[inline]
pub(crate) fn lock_home<M: Machine>(
    m: M,
    here: &Here<M>,
    thread: &'static M::Thread,
) -> QueueGuard<'static, 'static, M::Policy> {
    let queue_of = |cpu: CpuId| m.cpus().get(cpu.index()).map(|cpu| &cpu.queue);
    match smp_rq::lock_home_by(queue_of, thread.node()) {
        Some(queue) => {
            m.saw(here, Saw::Locked(queue.view().cpu()));
            queue
        }
        None => m.defect("a thread whose home is no CPU"),
    }
}

/// The thread that a queue holds the node of, and its name.
#[inline(always)]
pub(crate) fn thread_of<M: Machine>(m: M, node: &'static Node) -> (&'static M::Thread, ThreadKey) {
    let key = ThreadKey::from_bits(node.thread());
    match m.thread(key.slot) {
        Some(thread) => (thread, key),
        None => m.defect("a queue holds a node that is no thread's"),
    }
}
