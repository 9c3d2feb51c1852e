//! Processes: the record, its threads' count, its rings, its end.
//!
//! A process is an address space, a capability table, the endpoints it serves, and the right of its
//! threads to all of them. Records are type-stable; a process is named by position and generation.

use crate::object::Object;
use crate::party::Party;
use crate::sched::preemption_point;
use crate::system::{self, the};
use crate::thread::{STACK_PAGES, SpawnError, Thread};
use crate::{reaper, sched};
use abi_types::place::{CAPSET_VADDR, RING_STRIDE, RING_VADDR};
use abi_types::{RingBlock, Status};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use core_cap::{Cap, CapError, Grant, GrantEntry, Grants, Slot, Table};
use core_elf::Guards;
use core_endpoint::{Endpoint, EndpointKey, Record};
use core_manifest::{Name, Profile};
use core_thread::{CloseVerdict, LeaveVerdict, Roster};
use kernel_mm::fallible::try_push;
use kernel_mm::space::{AddressSpace, PinnedRing, SpaceError};
use smp_lock::{Guard, LockClass, TicketLock};

/// A process's capability table.
pub type CapTable = Table<Object, Vec<Slot<Object>>>;
/// The calls of what a process serves.
pub type Calls = core_endpoint::Service<Party, Party, Vec<Record<Party, Party>>, Vec<Endpoint>>;

/// What a process serves: calls, and the facets they come through.
#[derive(Debug)]
pub struct Service {
    /// Endpoints and calls.
    pub calls: Calls,
    /// What revokes facets; looked at under the same lock as the calls.
    pub grants: Grants<Vec<GrantEntry>>,
    /// The facets that were made, by endpoint and badge.
    pub facets: Vec<Facet>,
}

/// All facets of an endpoint with one badge.
#[derive(Clone, Copy, Debug)]
pub struct Facet {
    /// The endpoint.
    pub endpoint: EndpointKey,
    /// Their badge.
    pub badge: u64,
    /// What they fall with.
    pub grant: Grant,
    /// How many were made, copies not counted.
    pub minted: u32,
}

impl Service {
    /// The grant for a new facet of `endpoint` with `badge`; `None` if there are too many badges.
    pub fn mint(&mut self, endpoint: EndpointKey, badge: u64) -> Option<Grant> {
        let is_it = |f: &&mut Facet| f.endpoint == endpoint && f.badge == badge;
        if let Some(facet) = self.facets.iter_mut().find(is_it) {
            facet.minted = facet.minted.saturating_add(1);
            return Some(facet.grant);
        }
        self.facets.try_reserve(1).ok()?;
        let grant = self.grants.open().ok()?;
        try_push(&mut self.facets, Facet { endpoint, badge, grant, minted: 1 }).ok()?;
        Some(grant)
    }

    /// Takes back one [`mint`](Self::mint) whose facet found no slot.
    pub fn unmint(&mut self, endpoint: EndpointKey, badge: u64) {
        let is_it = |f: &&mut Facet| f.endpoint == endpoint && f.badge == badge;
        if let Some(facet) = self.facets.iter_mut().find(is_it) {
            facet.minted = facet.minted.saturating_sub(1);
        }
    }

    /// Makes every facet of `endpoint` with `badge` stale; how many were made.
    pub fn revoke(&mut self, endpoint: EndpointKey, badge: u64) -> u32 {
        let is_it = |f: &Facet| f.endpoint == endpoint && f.badge == badge;
        let Some(at) = self.facets.iter().position(is_it) else { return 0 };
        let facet = self.facets.swap_remove(at);
        // It was opened and never revoked, or it would not be in the list.
        let _ = self.grants.revoke(facet.grant);
        facet.minted
    }
}

/// The name of a process: where its record is, and which use of the record is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessKey {
    /// The position.
    pub slot: u32,
    /// The generation, odd.
    pub generation: u32,
}

const GENERATION_SHIFT: u32 = 32;
const ONE_GENERATION: u64 = 1 << GENERATION_SHIFT;

impl ProcessKey {
    #[inline(always)]
    const fn to_bits(self) -> u64 {
        self.slot as u64 | (self.generation as u64) << GENERATION_SHIFT
    }

    #[inline(always)]
    const fn from_bits(bits: u64) -> Self {
        Self { slot: bits as u32, generation: (bits >> GENERATION_SHIFT) as u32 }
    }
}

/// One record.
pub struct Process {
    /// Its memory.
    pub space: AddressSpace,
    /// Its capabilities; `None` while there is no process.
    pub caps: TicketLock<Option<CapTable>>,
    /// Its endpoints; `None` if it serves nothing.
    pub service: TicketLock<Option<Service>>,
    /// Its threads and what they share.
    pub members: TicketLock<Members>,
    /// Sleeps that are pending.
    pub sleeps: AtomicU32,
    /// Its name, as bits: the generation is odd while there is a process, and stepped when one begins
    /// and when it is gone.
    key: AtomicU64,
    /// Names its memory in park keys; never used again.
    identity: AtomicU64,
    capset: AtomicU64,
    /// What it ended with.
    pub exit_code: AtomicI64,
    /// CPU time its threads ran, in ns.
    cpu_time_ns: AtomicU64,
}

/// Its threads and what they share, under one lock.
#[derive(Debug)]
pub struct Members {
    /// How many live, and how it ends.
    pub roster: Roster,
    /// Thread records that are charged.
    pub charged: u32,
    /// What it may use.
    pub profile: Profile,
    /// What it is called.
    pub name: Name,
    /// The system ends with it.
    pub is_essential: bool,
    /// The guards below its stacks.
    pub guards: Guards,
    /// Rings that threads have left, with their place in the arena.
    rings: Vec<(u32, PinnedRing)>,
    /// The first place of the arena that never held a ring.
    next_ring: u32,
}

/// Thread records looked at between two preemption points: as many as fit a section of kernel code
/// (`section`) if all of them are the process's and most of those only have to be marked.
const RECORDS_PER_PREEMPTION_POINT: usize = 256;

/// Numbers address spaces for park keys.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);

/// What a process is made with.
pub struct NewProcess {
    /// What it is called.
    pub name: Name,
    /// What it may use.
    pub profile: Profile,
    /// The system ends with it.
    pub is_essential: bool,
    /// Its table, empty.
    pub caps: CapTable,
    /// Its endpoints, if it serves any.
    pub service: Option<Service>,
}

impl Process {
    /// A record without a process.
    pub fn new() -> Self {
        Self {
            space: AddressSpace::new(),
            caps: TicketLock::with_class(LockClass::Table, None),
            service: TicketLock::with_class(LockClass::Endpoint, None),
            members: TicketLock::with_class(
                LockClass::Members,
                Members {
                    roster: Roster::new(),
                    charged: 0,
                    profile: Profile::NONE,
                    name: Name::new(""),
                    is_essential: false,
                    guards: Guards::new(),
                    rings: Vec::new(),
                    next_ring: 0,
                },
            ),
            sleeps: AtomicU32::new(0),
            key: AtomicU64::new(0),
            identity: AtomicU64::new(0),
            capset: AtomicU64::new(0),
            exit_code: AtomicI64::new(0),
            cpu_time_ns: AtomicU64::new(0),
        }
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

    /// Pays for the CPU time of a thread that has ended.
    pub fn pay(&self, ran_ns: u64) {
        self.cpu_time_ns.fetch_add(ran_ns, Ordering::Relaxed);
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

    /// Where a place of the ring arena is.
    pub const fn ring_address(number: u32) -> u64 {
        RING_VADDR + number as u64 * RING_STRIDE
    }

    /// Makes a free record a process without memory or threads; `None` if none is free.
    pub fn begin(new: NewProcess) -> Option<&'static Process> {
        for (slot, process) in (0_u32..).zip(the().processes) {
            // Acquire, pairs with the release below and in `vacate`. An even number is free.
            let now = process.key.load(Ordering::Acquire);
            let ProcessKey { generation, .. } = ProcessKey::from_bits(now);
            if generation % 2 == 1 || generation > u32::MAX - 2 {
                continue;
            }
            let begun = ProcessKey { slot, generation: generation + 1 }.to_bits();
            // AcqRel: as above; one of two that want the record gets it.
            if process
                .key
                .compare_exchange(now, begun, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            process.capset.store(0, Ordering::Relaxed);
            process.sleeps.store(0, Ordering::Relaxed);
            process.cpu_time_ns.store(0, Ordering::Relaxed);
            let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
            process.identity.store(identity, Ordering::Relaxed);
            *process.members.lock() = Members {
                roster: Roster::new(),
                charged: 0,
                profile: new.profile,
                name: new.name,
                is_essential: new.is_essential,
                guards: Guards::new(),
                rings: Vec::new(),
                next_ring: 0,
            };
            *process.caps.lock() = Some(new.caps);
            *process.service.lock() = new.service;
            return Some(process);
        }
        None
    }

    /// Gives the record back: nothing of the process is left.
    pub fn vacate(&self) {
        *self.caps.lock() = None;
        *self.service.lock() = None;
        // Release, pairs with the acquire in `begin`.
        self.key.fetch_add(ONE_GENERATION, Ordering::Release);
    }

    /// Makes room for one more thread: its record and its stack are charged.
    pub fn admit(&self) -> Result<(), SpawnError> {
        let mut members = self.members.lock();
        if members.roster.is_closed() {
            return Err(SpawnError::Closed);
        }
        let charged = members.charged.saturating_add(1);
        if charged > members.profile.threads {
            return Err(SpawnError::Records);
        }
        if charged.saturating_mul(STACK_PAGES) > members.profile.kernel_stack_pages {
            return Err(SpawnError::StackPages);
        }
        members.roster.admit().map_err(|_| SpawnError::Closed)?;
        members.charged = charged;
        Ok(())
    }

    /// Undoes [`admit`](Self::admit) for a thread that never was.
    pub fn dismiss(&'static self) {
        self.discharge();
        self.leave(0);
    }

    /// Ends the charge of one thread record.
    pub fn discharge(&self) {
        let mut members = self.members.lock();
        match members.charged.checked_sub(1) {
            Some(charged) => members.charged = charged,
            None => system::defect("a thread record's charge was ended twice"),
        }
    }

    /// A thread has left; the last one ends the process.
    pub fn leave(&'static self, code: i64) {
        let verdict = self.members.lock().roster.leave(code);
        match verdict {
            Ok(LeaveVerdict::Continue) => {}
            Ok(LeaveVerdict::ProcessEnds { code }) => reaper::reap_process(self, code),
            Err(_) => system::defect("a thread left a process that has none"),
        }
    }

    /// Whether it admits no thread any more.
    pub fn is_closed(&self) -> bool {
        self.members.lock().roster.is_closed()
    }

    /// Ends it with `code`: every thread is killed. Whoever closes it first decides the code.
    pub fn close(&'static self, code: i64) {
        let verdict = self.members.lock().roster.close(code);
        if verdict == CloseVerdict::Already {
            return;
        }
        let me = sched::here().current().map(Thread::slot);
        for (n, thread) in the().threads.iter().enumerate() {
            if n.is_multiple_of(RECORDS_PER_PREEMPTION_POINT) {
                preemption_point();
            }
            // Its name before whose it is: a record that is another process's by the time it is asked
            // has another name by then, and the kill of this one finds nobody.
            let key = thread.key();
            // A thread that closes its own process ends by itself.
            if thread.process_slot() == self.slot() && Some(thread.slot()) != me {
                sched::kill(thread, key);
            }
        }
    }

    /// A ring for a new thread: its place, its memory, and how much one call may carry.
    pub fn take_ring(&'static self) -> Result<(u32, PinnedRing, u32), SpaceError> {
        let mut members = self.members.lock();
        let limit = members.profile.ring_scratch_limit_bytes;
        if let Some((number, memory)) = members.rings.pop() {
            return Ok((number, memory, limit));
        }
        let number = members.next_ring;
        let block = RingBlock::new(members.profile.ring_entries).ok_or(SpaceError::BadRange)?;
        members.rings.try_reserve(1).map_err(|_| SpaceError::OutOfMemory)?;
        members.next_ring = number.checked_add(1).ok_or(SpaceError::BadRange)?;
        drop(members);
        let pinned = self.space.pin(Self::ring_address(number), block.size());
        let memory = pinned.map(|block_memory| block_memory.into_ring(block));
        match memory {
            Ok(Some(memory)) => Ok((number, memory, limit)),
            Ok(None) => Err(SpaceError::BadRange),
            Err(error) => Err(error),
        }
    }

    /// Keeps a ring for the next thread.
    pub fn give_ring(&self, number: u32, memory: PinnedRing) {
        let mut members = self.members.lock();
        // Without memory to remember it by, the place stays unused until the process ends.
        let _ = try_push(&mut members.rings, (number, memory));
    }

    /// Lets go of every ring that no thread uses.
    pub fn drop_rings(&self) {
        let rings = core::mem::take(&mut self.members.lock().rings);
        drop(rings);
    }

    /// Counts one more pending sleep; `false` if it has as many as it may.
    pub fn sleep_began(&self) -> bool {
        let limit = self.members.lock().profile.sleep_waiters;
        let begin = |pending: u32| (pending < limit).then(|| pending + 1);
        self.sleeps.try_update(Ordering::Relaxed, Ordering::Relaxed, begin).is_ok()
    }

    /// A pending sleep is over.
    pub fn sleep_ended(&self) {
        if self.sleeps.fetch_sub(1, Ordering::Relaxed) == 0 {
            system::defect("more sleeps ended than began");
        }
    }

    /// What a slot of its table holds.
    #[inline(always)]
    pub fn lookup(&self, slot: abi_types::CapSlot) -> Result<Cap<Object>, Status> {
        let caps = self.caps.lock();
        let table = caps.as_ref().ok_or(Status::Disconnected)?;
        match table.get(slot) {
            Ok(cap) => Ok(*cap),
            Err(CapError::Disconnected | CapError::Revoked) => Err(Status::Disconnected),
        }
    }
}

impl core::fmt::Debug for Process {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "process {:?}", self.key())
    }
}

impl Default for Process {
    fn default() -> Self {
        Self::new()
    }
}

/// The service of the process with this name, if it is there.
pub fn service_of(key: ProcessKey) -> Result<Guard<'static, Option<Service>>, Status> {
    let process = the().processes.get(key.slot as usize).ok_or(Status::Disconnected)?;
    let service = process.service.lock();
    // Under the lock: the record is not another process's before its service is taken out.
    if !process.is(key) || service.is_none() {
        return Err(Status::Disconnected);
    }
    Ok(service)
}
