//! A process's record: its threads' count, its rings, its account, its end.

pub(crate) use crate::ending::Ending;
pub use crate::ending::{Ended, Lent, Reason};
use crate::thread::{NONE, Thread};
use abi_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use abi_types::InterfaceTag;
use abi_types::place::CAPSET_VADDR;
use alloc::vec::Vec;
use core_elf::Guards;
use core_endpoint::{EndpointKey, Limits};
use core_ledger::{ChargeError, KernelStackPages, Line, Reservation, Threads};
use core_manifest::{Name, Profile};
use core_sched_policy::Weight;
use core_thread::{CloseVerdict, Handles, LeaveVerdict, Roster, Session, ThreadKey};
use kernel_ops::capability::{ProcessKey, new_table};
use kernel_ops::machine::{Pending, ProcessPart};
use kernel_ops::object::Objects;
use kernel_ops::paid::{NoMemory, PaidVec};
use kernel_ops::service::Service;
use smp_lock::{LockClass, TicketLock};

/// One record.
pub struct Process<M: Objects> {
    /// What operations reach: its name, memory, capabilities, endpoints.
    pub ops: ProcessPart<M>,
    /// Its threads and what they share.
    pub members: TicketLock<Members<M>>,
    capset: AtomicU64,
    /// What it ended with, as bits.
    exit_code: AtomicU64,
    /// CPU time its threads ran, in ns.
    cpu_time_ns: AtomicU64,
    /// Changes of its address space that wait for other CPUs.
    changes: AtomicU32,
    /// Who can ask for it, also when it is gone.
    pub(crate) handles: Handles,
    /// The session that it began, if it did.
    pub(crate) session: Session,
    /// Who waits for its end.
    pub(crate) ending: TicketLock<Ending>,
    /// When it began.
    pub(crate) began_ns: AtomicU64,
    /// The next to be taken apart.
    pub(crate) next: AtomicU32,
}

/// Its threads and what they share, under one lock.
pub struct Members<M: Objects> {
    /// How many live, and how it ends.
    pub roster: Roster,
    /// What it may use.
    pub profile: Profile,
    /// What it is called.
    pub name: Name,
    /// The system ends with it.
    pub is_essential: bool,
    /// The guards below its stacks.
    pub guards: Guards,
    /// Rings that threads have left; made with the first ring.
    rings: Option<PaidVec<SpareRing<M>>>,
    /// The first place of the arena that never held a ring.
    next_ring: u32,
    /// What its threads weigh.
    pub(crate) weight: Weight,
    /// Why it ends, once it does.
    pub(crate) reason: Reason,
    /// Where its limits come from, if they are another process's.
    pub(crate) lent: Option<Lent>,
    /// The session that it belongs to: who began that.
    pub(crate) session: Option<ProcessKey>,
    /// Whether a program started it.
    pub is_child: bool,
    /// The first of its threads.
    pub(crate) first_thread: u32,
    /// The next of its threads to be killed, once it is closed.
    next_to_kill: u32,
    /// Which process of the record all this is of.
    pub(crate) generation: u32,
}

/// What a process is made with.
pub struct NewProcess<'a> {
    /// What it is called.
    pub name: Name,
    /// What it may use.
    pub profile: Profile,
    /// What its threads weigh.
    pub weight: Weight,
    /// The system ends with it.
    pub is_essential: bool,
    /// The endpoints it serves, each by its interface.
    pub serves: &'a [InterfaceTag],
    /// Handles to it that there are going to be: one if a program starts it.
    pub handles: u32,
    /// Where its limits come from, if they are another process's.
    pub lent: Option<Lent>,
}

/// Why there is no process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginError {
    /// Every record is in use.
    Records,
    /// No memory for its table or its endpoints.
    Memory(NoMemory),
}

/// Why a thread could not be made. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// The process is ending.
    Closed,
    /// The process has as many thread records as it may.
    Records,
    /// Its kernel stacks have as many pages as they may.
    StackPages,
    /// The capability table has no slot for the handle.
    Slots,
    /// Its memory has as many frames as it may.
    Frames,
    /// It uses as much of the kernel's memory as it may.
    KernelBytes,
    /// No memory for a kernel stack.
    StackMemory,
    /// No memory for the ring, or every thread record is in use.
    Memory,
}

impl From<ChargeError> for SpawnError {
    fn from(error: ChargeError) -> Self {
        match error {
            ChargeError::Closed => Self::Closed,
            ChargeError::Exhausted { line, .. } => match line {
                Line::CapSlots => Self::Slots,
                Line::Threads => Self::Records,
                Line::KernelStackPages => Self::StackPages,
                Line::Frames => Self::Frames,
                Line::KernelBytes => Self::KernelBytes,
                // No thread is made of sleeps or buffers.
                Line::SleepWaiters | Line::RegisteredBuffers => Self::Memory,
            },
        }
    }
}

impl From<NoMemory> for SpawnError {
    fn from(error: NoMemory) -> Self {
        match error {
            NoMemory::Machine => Self::Memory,
            NoMemory::Account(error) => error.into(),
        }
    }
}

impl<M: Objects> Members<M> {
    fn new(profile: Profile, weight: Weight, name: Name, is_essential: bool) -> Self {
        Self {
            roster: Roster::new(),
            profile,
            name,
            is_essential,
            guards: Guards::new(),
            rings: None,
            next_ring: 0,
            weight,
            reason: Reason::Exited,
            lent: None,
            session: None,
            is_child: false,
            first_thread: NONE,
            next_to_kill: NONE,
            generation: 0,
        }
    }

    /// Limits that are not counted: ring entries, scratch bytes, calls in flight, calls queued.
    pub fn uncounted_limits(&self) -> [u32; 4] {
        let Profile { ring_entries, ring_scratch_limit_bytes, .. } = self.profile;
        let Profile { in_flight_call_limit, endpoint_queue_limit, .. } = self.profile;
        [ring_entries, ring_scratch_limit_bytes, in_flight_call_limit, endpoint_queue_limit]
    }

    /// Rings without a thread, and how many there is room for.
    pub fn spare_rings(&self) -> (usize, usize) {
        self.rings.as_ref().map_or((0, 0), |rings| (rings.as_ref().len(), rings.room()))
    }

    /// Bytes of the kernel's heap that one of them is remembered in.
    pub const BYTES_PER_SPARE_RING: usize = size_of::<SpareRing<M>>();
}

/// A ring without a thread.
pub(crate) struct SpareRing<M: Objects> {
    /// Its place in the arena.
    pub number: u32,
    /// Its memory.
    pub memory: M::RingMemory,
    /// Room for its pending operations, all of it free.
    pub cells: Pending,
}

/// What is reserved for a thread that is being made.
pub(crate) struct Admitted {
    /// Its record.
    pub record: Reservation<'static, Threads>,
    /// Its stack in the kernel.
    pub stack: Reservation<'static, KernelStackPages>,
}

/// Rings that are remembered at least, once there is one: as many as threads of a small process.
const LEAST_RINGS: usize = 4;

/// A place of the ring arena for a new thread.
#[allow(clippy::large_enum_variant, reason = "one of it, for the length of a call")]
pub(crate) enum RingPlace<M: Objects> {
    /// One that a thread has left, with its memory.
    Used(SpareRing<M>),
    /// One that never held a ring.
    New(u32),
}

impl<M: Objects> Process<M> {
    /// A record without a process.
    pub fn new(space: M::Space) -> Self {
        Self {
            ops: ProcessPart::new(space),
            members: TicketLock::with_class(
                LockClass::Members,
                Members::new(Profile::NONE, Weight::DEFAULT, Name::new(""), false),
            ),
            capset: AtomicU64::new(0),
            exit_code: AtomicU64::new(0),
            cpu_time_ns: AtomicU64::new(0),
            changes: AtomicU32::new(0),
            handles: Handles::new(),
            session: Session::new(),
            ending: TicketLock::with_class(LockClass::Lifecycle, Ending::NONE),
            began_ns: AtomicU64::new(0),
            next: AtomicU32::new(NONE),
        }
    }

    /// A change of its address space waits for other CPUs.
    pub(crate) fn change_began(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// One of them is over. By the reaper, as the question below.
    pub(crate) fn change_ended(&self) {
        self.changes.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether changes of its address space wait for other CPUs.
    pub(crate) fn has_changes(&self) -> bool {
        self.changes.load(Ordering::Relaxed) != 0
    }

    /// Makes it a process without memory or threads; the endpoints it serves. By whoever took the free record.
    pub(crate) fn begin(
        &'static self,
        new: NewProcess<'_>,
        now_ns: u64,
        pause: impl Fn(),
    ) -> Result<Vec<EndpointKey>, NoMemory> {
        self.handles.begin(self.key().generation, new.handles);
        let profile = &new.profile;
        let ledger = &self.ops.ledger;
        let caps = new_table(ledger, profile.cap_slots, &pause)?;
        let limits = Limits {
            queued: profile.endpoint_queue_limit,
            in_flight: profile.in_flight_call_limit,
        };
        let (service, endpoints) = match new.serves {
            [] => (None, Vec::new()),
            serves => Service::new(ledger, limits, serves, &pause)
                .map(|(service, endpoints)| (Some(service), endpoints))?,
        };
        pause();
        *self.ending.lock() = Ending::NONE;
        let mut members = Members::new(new.profile, new.weight, new.name, new.is_essential);
        members.is_child = new.handles != 0;
        members.lent = new.lent;
        members.generation = self.key().generation;
        {
            // Together: whoever looks at the record finds all of one process.
            let mut place = self.members.lock();
            self.capset.store(0, Ordering::Relaxed);
            self.cpu_time_ns.store(0, Ordering::Relaxed);
            self.began_ns.store(now_ns, Ordering::Relaxed);
            *place = members;
        }
        *self.ops.caps.lock() = Some(caps);
        *self.ops.service.lock() = service;
        Ok(endpoints)
    }

    /// Its position.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.ops.slot()
    }

    /// Its name.
    #[inline]
    pub fn key(&self) -> ProcessKey {
        self.ops.key()
    }

    /// What it ended with.
    pub fn exit_code(&self) -> i64 {
        self.exit_code.load(Ordering::Relaxed).cast_signed()
    }

    pub(crate) fn set_exit_code(&self, code: i64) {
        self.exit_code.store(code.cast_unsigned(), Ordering::Relaxed);
    }

    /// CPU time of its threads that have ended, in ns: all of it once the last one has.
    pub fn cpu_time_ns(&self) -> u64 {
        self.cpu_time_ns.load(Ordering::Relaxed)
    }

    /// Where its CapSet is, or 0.
    pub fn capset_address(&self) -> u64 {
        self.capset.load(Ordering::Relaxed)
    }

    /// Says that it has a CapSet.
    pub fn has_capset(&self) {
        self.capset.store(CAPSET_VADDR, Ordering::Relaxed);
    }

    /// Makes room for one more thread, whose kernel stack has so many pages: its record and its stack are
    /// reserved.
    pub(crate) fn admit(&'static self, stack_pages: u32) -> Result<Admitted, SpawnError> {
        let ledger = &self.ops.ledger;
        let record = ledger.reserve(Threads, 1)?;
        let stack = ledger.reserve(KernelStackPages, stack_pages)?;
        self.members.lock().roster.admit().map_err(|_| SpawnError::Closed)?;
        Ok(Admitted { record, stack })
    }

    /// A thread has left; with what the process ends, if that was the last one.
    #[must_use = "a process whose last thread has left is to be taken apart"]
    pub(crate) fn leave(&self, m: M, code: i64) -> Option<i64> {
        let verdict = self.members.lock().roster.leave(code);
        match verdict {
            Ok(LeaveVerdict::Continue) => None,
            Ok(LeaveVerdict::ProcessEnds { code }) => Some(code),
            Err(_) => m.defect("a thread left a process that has none"),
        }
    }

    /// Whether it admits no thread any more.
    pub fn is_closed(&self) -> bool {
        self.members.lock().roster.is_closed()
    }

    /// What its threads weigh.
    pub fn weight(&self) -> Weight {
        self.members.lock().weight
    }

    /// Admits no thread from now on; `false` if it was so before. Whoever closes it first decides the code.
    pub(crate) fn close(&self, code: i64, reason: Reason) -> bool {
        let mut members = self.members.lock();
        members.next_to_kill = members.first_thread;
        let is_first = members.roster.close(code) != CloseVerdict::Already;
        if is_first {
            members.reason = reason;
        }
        drop(members);
        self.ops.ledger.close();
        is_first
    }

    /// A thread is one of its own from now on; whether the process is closed, and the thread to be killed by
    /// who made it. `record` finds other threads.
    pub(crate) fn link(
        &self,
        thread: &Thread<M>,
        record: impl Fn(u32) -> Option<&'static Thread<M>>,
    ) -> bool {
        let mut members = self.members.lock();
        let first = members.first_thread;
        thread.sibling_before.store(NONE, Ordering::Relaxed);
        thread.sibling_after.store(first, Ordering::Relaxed);
        if let Some(first) = record(first) {
            first.sibling_before.store(thread.slot(), Ordering::Relaxed);
        }
        members.first_thread = thread.slot();
        members.roster.is_closed()
    }

    /// A thread is one of its own no longer, and has ended: what it ran is the process's to pay.
    pub(crate) fn unlink(
        &self,
        thread: &Thread<M>,
        record: impl Fn(u32) -> Option<&'static Thread<M>>,
    ) {
        let mut members = self.members.lock();
        // Under the lock: whoever adds up what threads ran finds it here or there.
        self.cpu_time_ns.fetch_add(thread.take_account(), Ordering::Relaxed);
        let before = thread.sibling_before.load(Ordering::Relaxed);
        let after = thread.sibling_after.load(Ordering::Relaxed);
        match record(before) {
            Some(before) => before.sibling_after.store(after, Ordering::Relaxed),
            None => members.first_thread = after,
        }
        if let Some(after) = record(after) {
            after.sibling_before.store(before, Ordering::Relaxed);
        }
        if members.next_to_kill == thread.slot() {
            members.next_to_kill = after;
        }
    }

    /// Fills `names` with those of the threads that are to be killed next; how many there were.
    pub(crate) fn next_to_kill(
        &self,
        names: &mut [Option<(&'static Thread<M>, ThreadKey)>],
        record: impl Fn(u32) -> Option<&'static Thread<M>>,
    ) -> usize {
        let mut members = self.members.lock();
        let mut count = 0;
        for place in names {
            let Some(thread) = record(members.next_to_kill) else { break };
            *place = Some((thread, thread.key()));
            members.next_to_kill = thread.sibling_after.load(Ordering::Relaxed);
            count += 1;
        }
        count
    }

    /// A place in the ring arena for a new thread, and room to remember it by.
    pub(crate) fn take_ring_place(&'static self) -> Result<RingPlace<M>, NoMemory> {
        let mut members = self.members.lock();
        let number = members.next_ring;
        match &mut members.rings {
            Some(rings) => {
                if let Some(spare) = rings.pop() {
                    return Ok(RingPlace::Used(spare));
                }
                if rings.room() <= number as usize {
                    rings.grow(rings.room())?;
                }
            }
            none => *none = Some(PaidVec::with_room(&self.ops.ledger, LEAST_RINGS)?),
        }
        members.next_ring = number.checked_add(1).ok_or(NoMemory::Machine)?;
        Ok(RingPlace::New(number))
    }

    /// Gives a place back at which no ring was made: the last one, if no other was taken since.
    pub(crate) fn untake_ring_place(&self, number: u32) {
        let mut members = self.members.lock();
        if members.next_ring == number + 1 {
            members.next_ring = number;
        }
    }

    /// Keeps a ring for the next thread.
    pub(crate) fn give_ring(&self, m: M, ring: SpareRing<M>) {
        let mut members = self.members.lock();
        // There is room for every place that was taken.
        if members.rings.as_mut().is_none_or(|rings| rings.push(ring).is_err()) {
            m.defect("a ring that nothing was made to remember by");
        }
    }

    /// Lets go of a ring that no thread uses; `false` if there is none.
    pub(crate) fn drop_a_ring(&self) -> bool {
        let mut members = self.members.lock();
        let ring = members.rings.as_mut().and_then(PaidVec::pop);
        if ring.is_none() {
            // Nor is there one to come.
            members.rings = None;
        }
        drop(members);
        ring.is_some()
    }
}

impl<M: Objects> core::fmt::Debug for Process<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.ops.fmt(f)
    }
}
