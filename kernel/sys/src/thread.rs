//! Threads: the record, how one is made, and how one is named.

use crate::process::Process;
use crate::sched;
use crate::sched::preemption_point;
use crate::system::{self, NO_THREAD, the};
use abi_ring::Memory;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use core_sched::{Charge, CpuId};
use core_sched_policy::{LatencyClass, Share, Weight};
use core_thread::{Lifecycle, StateWord, ThreadKey, Want};
use kernel_arch::context::UserStart;
use kernel_mm::fallible::try_collect;
use kernel_mm::space::PinnedRing;
use kernel_mm::stack::KernelStack;
use kernel_mm::thread::{Completions, NewRing, Ring, UserThread};
use kernel_mm::{OutOfMemory, stack};
use smp_lock::{LockClass, TicketLock};
use smp_pending::{Cell, Cells};
use smp_rq::{Node, lock_home_by};

/// What a thread keeps with its ring, for as long as it lives.
#[derive(Debug)]
pub struct Own {
    /// The cells of its pending operations.
    pub cells: Pending,
    /// Its process.
    pub process: &'static Process,
    /// Which thread of its record it is.
    pub generation: u32,
}

/// The cells of a thread's pending operations.
pub type Pending = Cells<Vec<Cell>, Vec<AtomicU64>>;
/// A thread's ring with what it keeps there.
pub type OwnRing = Ring<Own>;
/// The completion side of a thread's ring, locked.
pub type Completing<'t> = Completions<'t, Own>;

/// One record.
pub struct Thread {
    /// Who owns it, and every race about it.
    pub state: StateWord,
    /// How many completions its wait in `cap_enter` is for.
    pub want: Want,
    /// Its place in run queues.
    pub node: Node,
    /// Registers, stack, ring.
    pub machine: UserThread<Own>,
    slot: u32,
    process: AtomicU32,
    /// What it ran that its process has not paid for yet, in ns. By the CPU that stops it, until its
    /// word moves on.
    ran_ns: AtomicU64,
    /// What it exits with.
    pub exit_code: AtomicI64,
    /// Join, detach and exit.
    pub lifecycle: TicketLock<Option<Lifecycle>>,
    /// Which place of the ring arena its ring has.
    pub ring_number: AtomicU32,
    /// The pending PARK: which wait, and its cell.
    pub park_ticket: AtomicU32,
    /// See `park_ticket`; 0 while there is none.
    pub park_cell: AtomicU64,
    /// When that PARK times out.
    pub park_deadline_ns: AtomicU64,
    /// The next free record, or the next to be reaped.
    pub next: AtomicU32,
}

/// The free records.
static FREE: TicketLock<u32> = TicketLock::with_class(LockClass::Global, 0);

/// Why a thread could not be made. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// The process is ending.
    Closed,
    /// The process has as many thread records as it may.
    Records,
    /// Its kernel stacks have as many pages as they may.
    StackPages,
    /// No memory for a kernel stack.
    StackMemory,
    /// No memory for the ring, or every thread record is in use.
    Memory,
}

impl Thread {
    /// A record without a thread.
    pub fn new(slot: u32, home: CpuId, has_next: bool) -> Self {
        Self {
            state: StateWord::new(),
            want: Want::new(),
            node: Node::vacant(home),
            machine: UserThread::new(),
            slot,
            process: AtomicU32::new(NO_THREAD),
            ran_ns: AtomicU64::new(0),
            exit_code: AtomicI64::new(0),
            lifecycle: TicketLock::with_class(LockClass::Lifecycle, None),
            ring_number: AtomicU32::new(0),
            park_ticket: AtomicU32::new(0),
            park_cell: AtomicU64::new(0),
            park_deadline_ns: AtomicU64::new(0),
            next: AtomicU32::new(if has_next { slot + 1 } else { NO_THREAD }),
        }
    }

    /// Its position.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Its name, while it is in use.
    #[inline]
    pub fn key(&self) -> ThreadKey {
        ThreadKey { slot: self.slot, generation: self.state.load().generation() }
    }

    /// The position of its process.
    #[inline]
    pub fn process_slot(&self) -> u32 {
        self.process.load(Ordering::Relaxed)
    }

    /// Its process.
    #[inline]
    pub fn process(&self) -> &'static Process {
        match the().processes.get(self.process_slot() as usize) {
            Some(process) => process,
            None => system::defect("a thread without a process"),
        }
    }

    /// It ran: its process pays when it ends, as long as nobody else offers to.
    #[inline(always)]
    pub fn charge(&self, charge: Charge) {
        // Not an atomic addition: nobody else writes it.
        let ran_ns = self.ran_ns.load(Ordering::Relaxed).wrapping_add(charge.elapsed_ns);
        self.ran_ns.store(ran_ns, Ordering::Relaxed);
    }

    /// It has ended: what it ran is its process's from now on.
    pub fn settle_account(&self) {
        self.process().pay(self.ran_ns.swap(0, Ordering::Relaxed));
    }

    /// Locks the completion side of the ring of the thread with this generation.
    #[inline]
    pub fn completions_of(&self, generation: u32) -> Option<Completing<'_>> {
        let completions = self.machine.completions()?;
        let is_its = completions.ring().shared.generation == generation;
        is_its.then_some(completions)
    }
}

/// Takes a free record.
fn allocate() -> Option<&'static Thread> {
    let mut first = FREE.lock();
    let thread = the().thread(*first)?;
    *first = thread.next.load(Ordering::Relaxed);
    Some(thread)
}

/// Gives a record back whose word says that it is free.
pub fn free(thread: &'static Thread) {
    thread.process.store(NO_THREAD, Ordering::Relaxed);
    let mut first = FREE.lock();
    thread.next.store(*first, Ordering::Relaxed);
    *first = thread.slot;
}

/// What a thread is made of, before it is one.
struct Parts {
    stack: KernelStack,
    /// The place of its ring in the arena, the ring's memory, and how much one call may carry.
    number: u32,
    memory: PinnedRing,
    limit: u32,
    /// What its pending operations need.
    cells: Vec<Cell>,
    words: Vec<AtomicU64>,
}

impl Parts {
    fn allocate(process: &'static Process) -> Result<Self, SpawnError> {
        let stack = KernelStack::for_thread().map_err(|OutOfMemory| SpawnError::StackMemory)?;
        preemption_point();
        let (number, memory, limit) = process.take_ring().map_err(|_| SpawnError::Memory)?;
        preemption_point();
        match pending(memory.block().cq_entries()) {
            Ok((cells, words)) => Ok(Self { stack, number, memory, limit, cells, words }),
            Err(OutOfMemory) => {
                process.give_ring(number, memory);
                Err(SpawnError::Memory)
            }
        }
    }
}

/// Storage for that many pending operations.
fn pending(count: u32) -> Result<(Vec<Cell>, Vec<AtomicU64>), OutOfMemory> {
    let cells = try_collect((1..count).map(|_| Cell::default()))?;
    let words = count.div_ceil(u64::BITS);
    Ok((cells, try_collect((1..words).map(|_| AtomicU64::new(0)))?))
}

/// Makes a thread of `process` and lets it run. `held` says that a handle to it exists.
pub fn spawn(
    process: &'static Process,
    mut start: UserStart,
    weight: Weight,
    held: bool,
) -> Result<ThreadKey, SpawnError> {
    process.admit()?;
    let made = prepare(process, &mut start, weight, held);
    match made {
        Ok(thread) => {
            let key = thread.key();
            // The process may have been closed since it admitted the thread, and its killer may
            // have looked before the record was in use.
            if process.is_closed() {
                let _ = thread.state.kill(key.generation);
            }
            if thread.state.start().is_err() {
                system::defect("a new thread cannot be started");
            }
            sched::enqueue_new(thread);
            Ok(key)
        }
        Err(error) => {
            process.dismiss();
            Err(error)
        }
    }
}

fn prepare(
    process: &'static Process,
    start: &mut UserStart,
    weight: Weight,
    held: bool,
) -> Result<&'static Thread, SpawnError> {
    let parts = Parts::allocate(process)?;
    let Some(thread) = allocate() else {
        process.give_ring(parts.number, parts.memory);
        return Err(SpawnError::Memory);
    };
    let Ok(generation) = thread.state.create() else {
        system::defect("a free thread record is in use");
    };
    let key = thread.key();
    start.tid = u64::from(thread.slot);
    start.pid = u64::from(process.slot());
    start.ring = Process::ring_address(parts.number);
    start.capset = process.capset_address();
    thread.process.store(process.slot(), Ordering::Relaxed);
    thread.ran_ns.store(0, Ordering::Relaxed);
    thread.exit_code.store(0, Ordering::Relaxed);
    thread.park_cell.store(0, Ordering::Relaxed);
    thread.ring_number.store(parts.number, Ordering::Relaxed);
    *thread.lifecycle.lock() =
        Some(if held { Lifecycle::new(key) } else { Lifecycle::new_unheld(key) });
    let (cells, words) = (parts.cells, parts.words);
    let ring = NewRing {
        memory: parts.memory,
        params_bytes: parts.limit,
        result_bytes: parts.limit,
        shared: || Own { cells: Cells::new(cells, words), process, generation },
        only_passes: !the().has_fast_path,
    };
    if let Err((stack, ring, _)) =
        thread.machine.prepare(parts.stack, &process.space, start, Some(ring))
    {
        drop(stack);
        if let Some(ring) = ring {
            process.give_ring(parts.number, ring.memory);
        }
        undo(thread);
        return Err(SpawnError::Closed);
    }
    let share = Share::new(weight, LatencyClass::Normal);
    let queue_of = |cpu: CpuId| the().cpu(cpu).map(|cpu| &cpu.queue);
    let renewed = lock_home_by(queue_of, &thread.node)
        .map(|mut queue| queue.renew(&thread.node, key.to_bits(), share));
    if !matches!(renewed, Some(Ok(()))) {
        system::defect("the queue node of a free thread record is in use");
    }
    Ok(thread)
}

fn undo(thread: &'static Thread) {
    *thread.lifecycle.lock() = None;
    if thread.state.abandon().is_err() || thread.state.recycle().is_err() {
        system::defect("a thread that was never started cannot be undone");
    }
    free(thread);
}

/// Kernel-stack pages of one thread.
pub const STACK_PAGES: u32 = stack::STACK_PAGES as u32;
