//! What a machine owes the operations of a ring, beside what it owes the scheduler's driver; and the parts
//! of its records that operations reach.

use crate::capability::{CapTable, Object, ProcessKey};
use crate::lines::{Lines, Wiring};
use crate::map::AddressMap;
use crate::outlets::Outputs;
use crate::paid::NoMemory;
use crate::party::Party;
pub use crate::pending::Pending;
use crate::registered::{BufferTable, Pages};
use crate::service::Service;
use crate::shared::Shared;
use crate::trace_owner::TraceOwner;
use abi_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use abi_types::{CapSlot, Status};
use alloc::boxed::Box;
use core::convert::Infallible;
use core_cap::{Cap, CapError};
use core_fallible::OutOfMemory;
use core_ledger::{Charge, KernelStackPages, Ledger, Pool, Profile, SleepWaiters};
use core_thread::{ThreadKey, Want};
use core_tlb::CpuSet;
use core_vm::{Access, PageRange};
use kernel_dispatch as dispatch;
use smp_lock::{Guard, LockClass, TicketLock};
use smp_park::ParkTable;
use smp_pending::Target;
use smp_ring::{Completions, Context, Ring, RingHome};
use smp_timer::Deadlines;

/// Buckets of the park table, each with a lock of its own: two for each CPU there can be.
pub const PARK_BUCKETS: usize = 256;
/// Bytes that are copied to or from user memory in one go: a page.
pub const MAX_COPY_BYTES: usize = 4096;

/// The address is not mapped, or not for this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotMapped;

/// A process's memory, as operations reach it. Nothing here waits or switches.
pub trait Space: Sync + 'static {
    /// Copies at most [`MAX_COPY_BYTES`] from user memory.
    fn copy_in(&self, to: &mut [u8], from: u64) -> Result<(), NotMapped>;
    /// Copies at most [`MAX_COPY_BYTES`] to user memory that the user may write.
    fn copy_out(&self, to: u64, from: &[u8]) -> Result<(), NotMapped>;
    /// Whether the user may read so many bytes there.
    fn is_readable(&self, from: u64, bytes: u64) -> bool;
    /// Reads an aligned word. Acquire, pairs with the release of the user who wrote it. Takes no lock for a
    /// thread of the process that is on this CPU: a park bucket's is held meanwhile.
    fn load_u32(&self, address: u64) -> Result<u32, NotMapped>;

    /// What was taken out of the tables, until no CPU can reach it.
    type Taken: Taken;

    /// The pages behind a registered buffer.
    type Pages: Pages;

    /// Room for so many pages of a buffer, which `ledger` pays for.
    fn new_pages(ledger: &'static Ledger, count: u64) -> Result<Self::Pages, NoMemory>;
    /// Adds at most [`MAX_STEP_PAGES`] pages, all of which are mapped and stay so as long as the buffer is there.
    fn add_pages(&self, pages: &mut Self::Pages, part: PageRange) -> Result<(), NotMapped>;

    /// Maps pages of zeros, at most [`MAX_STEP_PAGES`], where nothing is mapped. By whom they are in transit for, as
    /// the next two.
    fn map_new(&self, range: PageRange, access: Access) -> Result<(), NoMemory>;
    /// The frames behind a memory object.
    type Shared: Shared;

    /// Maps at most [`MAX_STEP_PAGES`] pages of a memory object from number `first` on, which stay the object's. It is
    /// held meanwhile, and as long as they are mapped.
    fn map_shared(
        &self,
        range: PageRange,
        access: Access,
        from: &Self::Shared,
        first: u64,
    ) -> Result<(), NoMemory>;
    /// Unmaps at most [`MAX_STEP_PAGES`] pages, all of which are mapped; `None`, and nothing changes, if as many
    /// flushes are under way as may be.
    fn unmap(&self, range: PageRange) -> Option<Self::Taken>;
    /// Changes the access of at most [`MAX_STEP_PAGES`] pages, all of which are mapped; `None` as for unmap.
    fn protect(&self, range: PageRange, access: Access) -> Option<Self::Taken>;
}

/// Pages that are mapped, unmapped or protected in one step. No more than a step of a change has (`kernel_process::memory`): room for
/// so many frames is made, and moved, also for one.
pub const MAX_STEP_PAGES: u64 = 16;

/// What was taken out of a process's tables, or narrowed there, and other CPUs may still remember.
pub trait Taken: Sized + Send + 'static {
    /// The CPUs that are to be interrupted (`Requests::TLB`), so that they forget it.
    fn interrupt(&self) -> CpuSet;
    /// Whether all of them have.
    fn is_flushed(&self) -> bool;
    /// Frees its memory if they have; else it comes back.
    fn release(self) -> Result<(), Self>;
}

/// A bug that a test machine plants in the order of things, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The fast path does not ask which interface a call means.
    AnyInterface,
    /// A message brings capabilities that its receiver did not say it takes.
    TransferForced,
    /// No bug: a delivery takes long between departure and arrival.
    SlowArrival,
    /// A capability that was moved to a receiver that is gone does not come back, as slowly.
    MoveLost,
    /// The fast path does not ask whether a facet was revoked.
    RevokedFacet,
    /// A receive that is put back gets its new name after the service's lock was let go.
    LateRetarget,
    /// A message is delivered although its call was given up while it was copied.
    CopyAfterCancel,
    /// A completion does not ask which thread of the record is meant.
    StaleGeneration,
    /// A completion wakes nobody.
    LostWake,
    /// The timer of an operation that is over stays armed.
    TimerKept,
    /// Who serves a deadline does not ask whether the timer was armed again since.
    StaleDeadline,
    /// A deadline is armed 4 ms too late.
    LateDeadline,
    /// The sleep of a dead thread is not counted out.
    SleepNotCountedOut,
    /// The calls that a dead thread was serving go on.
    ServesOn,
    /// A thread that begins while its process is closed is not killed.
    NotKilledAtBirth,
    /// The charge for the record of a thread that nobody can join is kept.
    RecordChargeKept,
    /// The charge for the stack of a thread that has ended is kept.
    StackChargeKept,
    /// What was reserved for a thread that could not be made stays reserved.
    ReservationKept,
    /// The charge for a message is kept when the message is gone.
    MessageChargeKept,
    /// What a spawner lent does not come back with its child's end.
    LoanKept,
    /// Who waits for a process is not told of its end.
    EndNotTold,
}

/// The parts of a thread's record that operations reach.
pub trait Record<M: Machine>: dispatch::Record {
    /// Its own.
    fn ops(&self) -> &ThreadPart<M>;
}

/// The part of a CPU's record that operations reach.
pub trait CpuPart {
    /// Deadlines armed there.
    fn deadlines(&self) -> &Deadlines;
}

/// A machine whose threads have rings. Its threads have stacks: an operation may switch in the middle.
pub trait Machine:
    dispatch::Machine<Thread: Record<Self>, Own: CpuPart, Gone = Infallible>
{
    /// What a CPU runs.
    type Context: Context;
    /// The memory of a ring.
    type RingMemory: abi_ring::Memory + Send + Sync + 'static;
    /// The memory of a process.
    type Space: Space;
    /// Whether system calls are recorded: a point more on the way of each.
    const TRACES_SYSCALLS: bool;
    /// Objects that the kernel serves and whose operations are calls alone.
    type Other: Copy + core::fmt::Debug + PartialEq + Send + 'static;

    /// What all rings share.
    fn tables(self) -> &'static Tables;
    /// The record at a process's position, whichever process is in it.
    fn process(self, slot: u32) -> Option<&'static ProcessPart<Self>>;
    /// What a clock chip showed once, in seconds since 1970, and what the clock then read; `None` without a date.
    fn wall_clock(self) -> Option<(u64, u64)> {
        None
    }
    /// So many words of zeros.
    fn zeroed_words(self, count: usize) -> Result<Box<[u64]>, OutOfMemory>;

    /// Claims an operation from an object that it waits for: `false` if someone else has it and
    /// completes it.
    fn claim(self, party: Party, target: Target) -> bool;
    /// Routes an interrupt line to the place of that number, masked; `false` if the machine keeps it, or has none such.
    /// Its interrupts come in by [`raised`](crate::interrupt::raised).
    fn take_line(self, _place: u32, _wiring: Wiring) -> bool {
        false
    }
    /// A line is nobody's: it is masked.
    fn give_line_back(self, _line: u32) {}
    /// Masks a line, or unmasks it.
    fn set_line_open(self, _line: u32, _is_open: bool) {}
    /// The last interrupt of a level-triggered line was served; until then it was masked.
    fn acknowledge_line(self, _line: u32) {}
    /// Lets others go far, where a planted bug has its window; does nothing in a kernel.
    #[inline(always)]
    fn linger(self) {}
    /// Whether that bug is planted; never in a kernel.
    #[inline(always)]
    fn plants(self, _: Defect) -> bool {
        false
    }
}

/// The frames behind memory objects of a machine.
pub type SharedOf<M> = <<M as Machine>::Space as Space>::Shared;

/// What all rings share.
pub struct Tables {
    /// Threads that wait at addresses.
    pub park: ParkTable<PARK_BUCKETS>,
    /// Whether IPC may take its fast path.
    pub has_fast_path: bool,
    /// Console output of processes.
    pub outputs: Outputs,
    /// Interrupt lines of programs.
    pub lines: Lines,
    /// Whose the trace is.
    pub trace: TraceOwner,
}

/// What a thread keeps with its ring, for as long as it lives.
pub struct Own<M: Machine> {
    /// The cells of its pending operations, with their timers.
    pub cells: Pending,
    /// Its process.
    pub process: &'static ProcessPart<M>,
    /// Which thread of its record it is.
    pub generation: u32,
    /// Pays for its stack in the kernel.
    pub stack: Charge<'static, KernelStackPages>,
}

/// A thread's ring with what it keeps there.
pub type OwnRing<M> = Ring<<M as Machine>::RingMemory, Own<M>>;
/// The completion side of a thread's ring, locked.
pub type Completing<'t, M> = Completions<'t, <M as Machine>::RingMemory, Own<M>>;

/// The part of a thread's record that operations reach.
pub struct ThreadPart<M: Machine> {
    /// How many completions its wait in `cap_enter` is for.
    pub want: Want,
    /// What runs, and its ring.
    pub home: RingHome<M::Context, M::RingMemory, Own<M>>,
    slot: u32,
    process: AtomicU32,
    /// The cell of the pending PARK, as a name; 0 while there is none.
    pub park_cell: AtomicU64,
}

/// In the place of a process's position: none.
const NO_PROCESS: u32 = u32::MAX;

impl<M: Machine> ThreadPart<M> {
    /// The part of a record without a thread.
    pub fn new(slot: u32, context: M::Context) -> Self {
        Self {
            want: Want::new(),
            home: RingHome::new(context),
            slot,
            process: AtomicU32::new(NO_PROCESS),
            park_cell: AtomicU64::new(0),
        }
    }

    /// The position of the record.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// The position of its process.
    #[inline]
    pub fn process_slot(&self) -> u32 {
        self.process.load(Ordering::Relaxed)
    }

    /// A thread of that process begins in the record, with nothing pending.
    pub fn begin(&self, process: u32) {
        self.process.store(process, Ordering::Relaxed);
        self.park_cell.store(0, Ordering::Relaxed);
    }

    /// No process's thread is in the record any more.
    pub fn end(&self) {
        self.process.store(NO_PROCESS, Ordering::Relaxed);
    }

    /// Its process.
    #[inline]
    pub fn process(&self, m: M) -> &'static ProcessPart<M> {
        match m.process(self.process_slot()) {
            Some(process) => process,
            None => m.defect("a thread without a process"),
        }
    }

    /// Locks the completion side of the ring of the thread with this generation.
    #[inline]
    pub fn completions_of(&self, generation: u32) -> Option<Completing<'_, M>> {
        let completions = self.home.completions()?;
        let is_its = completions.ring().shared.generation == generation;
        is_its.then_some(completions)
    }
}

/// The name of the thread in a record, while it is in use.
#[inline]
pub fn key_of<M: Machine>(thread: &'static M::Thread) -> ThreadKey {
    use dispatch::Record as _;
    ThreadKey { slot: thread.ops().slot, generation: thread.state().load().generation() }
}

/// The part of a process's record that operations reach.
pub struct ProcessPart<M: Machine> {
    /// Its memory.
    pub space: M::Space,
    /// What the pages of it are used for.
    pub map: AddressMap<SharedOf<M>>,
    /// Its capabilities; `None` while there is no process.
    pub caps: TicketLock<Option<CapTable<M::Other>>>,
    /// Its registered buffers.
    pub buffers: BufferTable<<M::Space as Space>::Pages>,
    /// Its endpoints; `None` if it serves nothing.
    pub service: TicketLock<Option<Service>>,
    /// Its name, as bits: the generation is odd while there is a process, and stepped when one begins
    /// and when it is gone.
    key: AtomicU64,
    /// Names its memory in park keys; never used again.
    identity: AtomicU64,
    /// What it may use and what it uses: open from its begin until it ends.
    pub ledger: Ledger,
    /// Pays for sleeps that are pending.
    sleeps: Pool<SleepWaiters>,
}

impl<M: Machine> ProcessPart<M> {
    /// The part of a record without a process.
    pub fn new(space: M::Space) -> Self {
        let ledger = Ledger::new(&Profile::NONE);
        ledger.close();
        Self {
            space,
            map: AddressMap::new(),
            buffers: BufferTable::new(),
            caps: TicketLock::with_class(LockClass::Table, None),
            service: TicketLock::with_class(LockClass::Endpoint, None),
            key: AtomicU64::new(0),
            identity: AtomicU64::new(0),
            ledger,
            sleeps: Pool::new(),
        }
    }

    /// Makes the record at `slot` a process's if it is free; one of two that want it gets it. A record whose
    /// last account is not settled is not free.
    pub fn begin(&self, slot: u32, identity: u64, profile: &Profile) -> bool {
        // Acquire, pairs with the release below and in `vacate`.
        let now = self.key.load(Ordering::Acquire);
        let Some(begun) = ProcessKey::from_bits(now).begun(slot) else { return false };
        if !self.ledger.is_settled() {
            return false;
        }
        // AcqRel: as above.
        let exchanged =
            self.key.compare_exchange(now, begun.to_bits(), Ordering::AcqRel, Ordering::Relaxed);
        if exchanged.is_err() {
            return false;
        }
        if self.ledger.reopen(profile).is_err() {
            // Release, pairs with the acquire above.
            self.key.fetch_add(ProcessKey::ONE_GENERATION, Ordering::Release);
            return false;
        }
        self.identity.store(identity, Ordering::Relaxed);
        true
    }

    /// Gives the record back: nothing of the process is left. Whether its account reads zero.
    #[must_use = "an account that does not read zero is a defect"]
    pub fn vacate(&self) -> bool {
        *self.caps.lock() = None;
        *self.service.lock() = None;
        self.ledger.close();
        let is_zero = self.ledger.is_zero();
        // Release, pairs with the acquire in `begin`.
        self.key.fetch_add(ProcessKey::ONE_GENERATION, Ordering::Release);
        is_zero
    }

    /// Its position.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.key().slot
    }

    /// Its name. Acquire, pairs with the release in `begin` and `vacate`.
    #[inline]
    pub fn key(&self) -> ProcessKey {
        ProcessKey::from_bits(self.key.load(Ordering::Acquire))
    }

    /// Whether that is its name.
    #[inline(always)]
    pub fn is(&self, key: ProcessKey) -> bool {
        // Acquire: as in `key`.
        self.key.load(Ordering::Acquire) == key.to_bits()
    }

    /// Names its memory in park keys.
    #[inline]
    pub fn identity(&self) -> u64 {
        self.identity.load(Ordering::Relaxed)
    }

    /// Pays for one more pending sleep; `false` if it has as many as it may.
    pub fn sleep_began(&self) -> bool {
        match self.ledger.reserve(SleepWaiters, 1) {
            Ok(sleep) => {
                self.sleeps.put(sleep.commit());
                true
            }
            Err(_) => false,
        }
    }

    /// A pending sleep is over.
    pub fn sleep_ended(&self, m: M) {
        match self.sleeps.take(&self.ledger, 1) {
            Some(sleep) => sleep.release(),
            None => m.defect("more sleeps ended than began"),
        }
    }

    /// Sleeps that are pending.
    pub fn sleeps(&self) -> u32 {
        self.sleeps.count()
    }

    /// What a slot of its table holds.
    #[inline(always)]
    pub fn lookup(&self, slot: CapSlot) -> Result<Cap<Object<M::Other>>, Status> {
        self.look(slot, |cap| *cap)
    }

    /// What `read` takes of what a slot of its table holds, under the table's lock.
    #[inline(always)]
    pub fn look<R>(
        &self,
        slot: CapSlot,
        read: impl FnOnce(&Cap<Object<M::Other>>) -> R,
    ) -> Result<R, Status> {
        let caps = self.caps.lock();
        let table = caps.as_ref().ok_or(Status::Disconnected)?;
        match table.get(slot) {
            Ok(cap) => Ok(read(cap)),
            Err(CapError::Disconnected | CapError::Revoked) => Err(Status::Disconnected),
        }
    }
}

impl<M: Machine> core::fmt::Debug for ProcessPart<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "process {:?}", self.key())
    }
}

/// The service of the process with this name, if it is there.
pub fn service_of<M: Machine>(
    m: M,
    key: ProcessKey,
) -> Result<Guard<'static, Option<Service>>, Status> {
    let process = m.process(key.slot).ok_or(Status::Disconnected)?;
    let service = process.service.lock();
    // Under the lock: the record is not another process's before its service is taken out.
    if !process.is(key) || service.is_none() {
        return Err(Status::Disconnected);
    }
    Ok(service)
}

/// The current thread ends.
pub fn end<M: Machine>(m: M, thread: &'static M::Thread) -> ! {
    match dispatch::end(m, thread) {}
}
