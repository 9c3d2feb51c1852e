//! A thread's record.

use abi_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core_ledger::{Charge, Threads};
use core_sched::CpuId;
use core_thread::{Lifecycle, StateWord, ThreadKey};
use kernel_ops::machine::ThreadPart;
use kernel_ops::object::Objects;
use smp_lock::{LockClass, TicketLock};
use smp_rq::Node;

/// In the place of a record's position: none.
pub const NONE: u32 = u32::MAX;

/// A thread's lifecycle, with what pays for its record.
#[derive(Debug)]
pub struct Life {
    lifecycle: Lifecycle,
    paid: Option<Charge<'static, Threads>>,
}

impl Life {
    pub(crate) fn new(lifecycle: Lifecycle, paid: Charge<'static, Threads>) -> Self {
        Self { lifecycle, paid: Some(paid) }
    }

    /// Takes out what pays for the record, once: nobody can ask for the thread's exit code any more.
    #[must_use = "released when the lock is"]
    pub(crate) fn end_charge<M: Objects>(&mut self, m: M) -> Charge<'static, Threads> {
        match self.paid.take() {
            Some(paid) => paid,
            None => m.defect("a thread record's charge was ended twice"),
        }
    }

    /// Whether the record is paid for.
    pub fn is_paid(&self) -> bool {
        self.paid.is_some()
    }
}

impl core::ops::Deref for Life {
    type Target = Lifecycle;

    fn deref(&self) -> &Lifecycle {
        &self.lifecycle
    }
}

impl core::ops::DerefMut for Life {
    fn deref_mut(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }
}

/// One record.
pub struct Thread<M: Objects> {
    /// Who owns it, and every race about it.
    pub state: StateWord,
    /// Its place in run queues.
    pub node: Node,
    /// What operations reach: what runs, its ring, its wait.
    pub ops: ThreadPart<M>,
    /// What it ran that its process has not paid for yet, in ns. By the CPU that stops it, until its
    /// word moves on.
    ran_ns: AtomicU64,
    /// What it exits with, as bits.
    exit_code: AtomicU64,
    /// Join, detach and exit.
    pub lifecycle: TicketLock<Option<Life>>,
    /// Which place of the ring arena its ring has.
    pub(crate) ring_number: AtomicU32,
    /// The next free record, or the next to be taken apart.
    pub(crate) next: AtomicU32,
    /// Its neighbours among the threads of its process; under the lock of the members.
    pub(crate) sibling_before: AtomicU32,
    /// See `sibling_before`.
    pub(crate) sibling_after: AtomicU32,
}

impl<M: Objects> Thread<M> {
    /// A record without a thread.
    pub fn new(slot: u32, home: CpuId, context: M::Context) -> Self {
        Self {
            state: StateWord::new(),
            node: Node::vacant(home),
            ops: ThreadPart::new(slot, context),
            ran_ns: AtomicU64::new(0),
            exit_code: AtomicU64::new(0),
            lifecycle: TicketLock::with_class(LockClass::Lifecycle, None),
            ring_number: AtomicU32::new(0),
            next: AtomicU32::new(NONE),
            sibling_before: AtomicU32::new(NONE),
            sibling_after: AtomicU32::new(NONE),
        }
    }

    /// Its position.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.ops.slot()
    }

    /// Its name, while it is in use.
    #[inline]
    pub fn key(&self) -> ThreadKey {
        ThreadKey { slot: self.slot(), generation: self.state.load().generation() }
    }

    /// A new thread begins in the record: it has run nothing and exits with 0.
    pub(crate) fn begin(&self, process: u32, ring_number: u32) {
        self.ops.begin(process);
        self.ran_ns.store(0, Ordering::Relaxed);
        self.set_exit_code(0);
        self.ring_number.store(ring_number, Ordering::Relaxed);
    }

    /// It ran: its process pays when it ends, as long as nobody else offers to.
    #[inline(always)]
    pub fn charge(&self, charge: core_sched::Charge) {
        // Not an atomic addition: nobody else writes it.
        let ran_ns = self.ran_ns.load(Ordering::Relaxed).wrapping_add(charge.elapsed_ns);
        self.ran_ns.store(ran_ns, Ordering::Relaxed);
    }

    /// What it ran that nobody else has paid for, in ns: all of it for a thread of no process.
    pub fn ran_ns(&self) -> u64 {
        self.ran_ns.load(Ordering::Relaxed)
    }

    /// It has ended: what it ran that nobody has paid for.
    pub(crate) fn take_account(&self) -> u64 {
        self.ran_ns.swap(0, Ordering::Relaxed)
    }

    /// What it exits with.
    pub fn exit_code(&self) -> i64 {
        self.exit_code.load(Ordering::Relaxed).cast_signed()
    }

    /// Says what it exits with. By itself.
    pub fn set_exit_code(&self, code: i64) {
        self.exit_code.store(code.cast_unsigned(), Ordering::Relaxed);
    }
}

impl<M: Objects> kernel_dispatch::Record for Thread<M> {
    #[inline(always)]
    fn node(&self) -> &Node {
        &self.node
    }

    #[inline(always)]
    fn state(&self) -> &StateWord {
        &self.state
    }
}

impl<M: Objects> kernel_ops::machine::Record<M> for Thread<M> {
    #[inline(always)]
    fn ops(&self) -> &ThreadPart<M> {
        &self.ops
    }
}
