//! What there is, for somebody who looks and changes nothing: processes, their threads, capabilities and accounts.
//!
//! A record is looked at by its position, and what is told of it is of one process or thread: names are compared before
//! and after, under the lock that a successor would have to take. No lock of the whole machine is taken, and none of
//! the looked at for longer than a portion of its list. Decided in ADR 340.

use crate::child::id_of;
use crate::machine::Machine;
use crate::process::{Ended, Members};
use abi_sync::atomic::{Ordering, fence};
use abi_types::place::CAPSET_VADDR;
use abi_types::{CAPSET_MAGIC, CapSetEntry, CapSetHeader, CapSlot, InterfaceTag};
use core_ledger::{Line, Reading};
use core_manifest::Name;
pub use core_sched::Snapshot;
use core_sched_policy::Weight;
use core_thread::{State, ThreadKey};
use kernel_dispatch::preemption_point;
use kernel_ops::capability::{Object, ProcessKey};
use kernel_ops::machine::{MAX_COPY_BYTES, Space};
use smp_pending::Target;
use smp_rq::lock_home_by;
use zerocopy::FromBytes;

/// Live threads whose time is added up under the lock of their process: a section has room for as many, and nobody
/// who wants that lock waits for more.
pub const SUMMED_THREADS: usize = 256;
/// Pending operations of a thread that are counted under one hold of its completion lock.
const CELLS_PER_LOOK: usize = 128;
/// Slots of a table that are looked at under one hold of its lock.
const SLOTS_PER_LOOK: u32 = 64;
/// Slots that one call looks at, at most.
const SLOTS_PER_CALL: u32 = 1024;

/// Slots that a table has at most.
const MOST_SLOTS: u32 = *core_manifest::limits::CAP_SLOTS.end();

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// Being made: without a thread.
    Starting,
    /// With threads.
    Running,
    /// Told to end, or without threads, and being taken apart.
    Ending,
    /// Nothing is left but how it ended.
    Gone,
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenProcess {
    /// Its name in the system.
    pub key: ProcessKey,
    /// Its name for people.
    pub name: Name,
    /// How far it is.
    pub state: ProcessState,
    /// How it ended; of one that is gone.
    pub ended: Option<Ended>,
    /// What its threads weigh.
    pub weight: Weight,
    /// Threads that live.
    pub live_threads: u32,
    /// When it began.
    pub began_ns: u64,
    /// Time its threads ran, each up to its last stop.
    pub cpu_time_ns: u64,
    /// Whether all of them are in it.
    pub is_cpu_time_whole: bool,
    /// Whose its limits are, if they are another process's.
    pub parent: Option<ProcessKey>,
    /// The session it belongs to.
    pub session: Option<ProcessKey>,
}

/// The process in the record at that position: one that is there, or one that is gone and can be asked for.
pub fn process_at<M: Machine>(m: M, slot: u32) -> Option<SeenProcess> {
    let process = m.records().process(slot)?;
    let name = process.ops.key();
    let is_there = !name.generation.is_multiple_of(2);
    let generation = if is_there { name.generation } else { name.generation.checked_sub(1)? };
    let is_it = || {
        // Acquire, pairs with the release of whoever made the record another's: what was read before was its.
        fence(Ordering::Acquire);
        process.ops.key() == name && (is_there || process.handles.is_of(generation))
    };
    if !is_it() {
        return None;
    }
    let seen = {
        let members = process.members.lock();
        // The record is being made another's: what is in it is not yet its.
        if members.generation != generation {
            return None;
        }
        let (ran_ns, is_cpu_time_whole) = live_time(m, &members);
        let live_threads = members.roster.live();
        SeenProcess {
            key: ProcessKey { slot, generation },
            name: members.name,
            state: match (is_there, members.roster.is_closed(), live_threads) {
                (false, ..) | (_, true, _) => ProcessState::Ending,
                (true, false, 0) => ProcessState::Starting,
                (true, false, _) => ProcessState::Running,
            },
            ended: None,
            weight: members.weight,
            live_threads,
            began_ns: process.began_ns.load(Ordering::Relaxed),
            cpu_time_ns: process.cpu_time_ns().saturating_add(ran_ns),
            is_cpu_time_whole,
            parent: members.lent.as_ref().map(|lent| lent.lender),
            session: members.session,
        }
    };
    let ended = if is_there { None } else { process.ending.lock().ended };
    let state = if ended.is_some() { ProcessState::Gone } else { seen.state };
    is_it().then_some(SeenProcess { ended, state, ..seen })
}

/// Time that live threads ran, and whether it is that of all of them. Under the lock of the members, under which what a
/// thread ran becomes its process's.
fn live_time<M: Machine>(m: M, members: &Members<M>) -> (u64, bool) {
    let (mut at, mut ran_ns) = (members.first_thread, 0_u64);
    for _ in 0..SUMMED_THREADS {
        let Some(thread) = m.records().thread(at) else { return (ran_ns, true) };
        ran_ns = ran_ns.saturating_add(thread.ran_ns());
        at = thread.sibling_after.load(Ordering::Relaxed);
    }
    (ran_ns, m.records().thread(at).is_none())
}

/// Whether there is such a process.
pub fn is_there<M: Machine>(m: M, of: ProcessKey) -> bool {
    m.records().process(of.slot).is_some_and(|process| process.ops.is(of))
}

/// Pending operations of a thread, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingKinds {
    /// Answers to calls.
    pub calls: u16,
    /// Calls.
    pub receives: u16,
    /// Deadlines of the Timer's.
    pub sleeps: u16,
    /// Ends of threads.
    pub joins: u16,
    /// Wakes at an address.
    pub parks: u16,
    /// What somebody types.
    pub inputs: u16,
    /// Room for output.
    pub outputs: u16,
    /// Changes of its address space.
    pub memory_changes: u16,
    /// Ends of processes.
    pub process_ends: u16,
    /// Interrupts of a line.
    pub interrupts: u16,
}

impl PendingKinds {
    fn count(&mut self, target: Target) {
        let kind = match target {
            Target::Call { .. } => &mut self.calls,
            Target::Recv { .. } => &mut self.receives,
            Target::Sleep => &mut self.sleeps,
            Target::Join { .. } => &mut self.joins,
            Target::Park { .. } => &mut self.parks,
            Target::Read => &mut self.inputs,
            Target::Write => &mut self.outputs,
            Target::Memory => &mut self.memory_changes,
            Target::End { .. } => &mut self.process_ends,
            Target::Interrupt { .. } => &mut self.interrupts,
        };
        *kind = kind.saturating_add(1);
    }
}

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenThread {
    /// Its name.
    pub key: ThreadKey,
    /// What it does; never free or new.
    pub state: State,
    /// Whether it was told to end.
    pub is_killed: bool,
    /// What it waits for, if it waits.
    pub pending: Option<PendingKinds>,
    /// The CPU whose queue it belongs to.
    pub cpu: u32,
    /// What it ran, and how often it stopped.
    pub account: Snapshot,
}

/// The thread in the record at that position, if it is one of that process.
pub fn thread_at<M: Machine>(m: M, of: ProcessKey, slot: u32) -> Option<SeenThread> {
    let thread = m.records().thread(slot)?;
    if thread.ops.process_slot() != of.slot {
        return None;
    }
    let before = thread.state.load();
    let key = ThreadKey { slot, generation: before.generation() };
    if matches!(before.state(), State::Free | State::New | State::Retired) {
        return None;
    }
    let queue_of = |cpu: core_sched::CpuId| m.cpus().get(cpu.index()).map(|cpu| &cpu.queue);
    let (account, cpu) = {
        let mut queue = lock_home_by(queue_of, &thread.node)?;
        if thread.node.thread() != key.to_bits() {
            return None;
        }
        let cpu = thread.node.home()?;
        (queue.with(&thread.node, |_, _, entity| Ok(entity.snapshot())).ok()?, cpu)
    };
    let pending = before.is_waiting().then(|| pending_of(m, key)).flatten();
    // Acquire: as in `process_at`; it pairs with the release of whoever recycled the record.
    fence(Ordering::Acquire);
    let now = thread.state.load();
    if now.generation() != key.generation
        || thread.ops.process_slot() != of.slot
        || !is_there(m, of)
    {
        return None;
    }
    // It did nothing meanwhile, and nobody else keeps operations for it.
    let is_same_wait = now.is_waiting() && now.ticket() == before.ticket();
    Some(SeenThread {
        key,
        state: now.state(),
        is_killed: now.is_killed(),
        pending: if is_same_wait { pending } else { now.is_waiting().then(PendingKinds::default) },
        cpu: cpu.index() as u32,
        account,
    })
}

/// The operations of a thread that are pending, while it waits.
fn pending_of<M: Machine>(m: M, key: ThreadKey) -> Option<PendingKinds> {
    let thread = m.records().thread(key.slot)?;
    let mut kinds = PendingKinds::default();
    let mut from = 0;
    loop {
        let held = thread.ops.completions_of(key.generation)?;
        let mut looked = 0;
        for (index, cell) in held.ring().shared.cells.busy(from).take(CELLS_PER_LOOK) {
            kinds.count(cell.target());
            from = index + 1;
            looked += 1;
        }
        drop(held);
        if looked < CELLS_PER_LOOK {
            return Some(kinds);
        }
        preemption_point(m);
    }
}

/// What a capability is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapabilityKind {
    /// An object of the kernel's.
    Object,
    /// The receiving side of an endpoint.
    Endpoint,
    /// A client's side of one.
    Client,
}

/// A capability in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenCapability {
    /// The slot's name.
    pub slot: CapSlot,
    /// What it is to.
    pub kind: CapabilityKind,
    /// Its interface.
    pub tag: InterfaceTag,
    /// The id of the interface, or 0 if nobody here knows it.
    pub interface_id: u64,
    /// Its name in the CapSet; empty without one.
    pub name: Name,
}

/// How far a look at a list has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Entries that were found.
    pub count: usize,
    /// Where to go on.
    pub next: u32,
    /// Whether there is anything.
    pub has_more: bool,
}

/// Fills `into` with what the slots of a process from position `from` on hold; `None` if it is gone.
pub fn capabilities<M: Machine>(
    m: M,
    of: ProcessKey,
    from: u32,
    into: &mut [Option<SeenCapability>],
) -> Option<Looked> {
    let process = m.records().process(of.slot)?;
    let mut looked = Looked { count: 0, next: from.min(MOST_SLOTS), has_more: true };
    let end = looked.next.saturating_add(SLOTS_PER_CALL);
    while looked.has_more && looked.next < end && looked.count < into.len() {
        {
            let caps = process.ops.caps.lock();
            // Under the lock: a table is taken out before its process's name goes, and put in after the next one's.
            if !process.ops.is(of) {
                return None;
            }
            let Some(table) = caps.as_ref() else {
                looked.has_more = false;
                break;
            };
            let last = looked.next.saturating_add(SLOTS_PER_LOOK).min(table.positions());
            while looked.next < last && looked.count < into.len() {
                if let Some((slot, cap)) = table.held_at(looked.next)
                    && let Some(place) = into.get_mut(looked.count)
                {
                    let kind = match cap.object {
                        Object::ParkSpace | Object::Other(_) => CapabilityKind::Object,
                        Object::Endpoint(_) => CapabilityKind::Endpoint,
                        Object::Facet(_) => CapabilityKind::Client,
                    };
                    let (tag, interface_id) = (cap.interface, 0);
                    *place =
                        Some(SeenCapability { slot, kind, tag, interface_id, name: Name::new("") });
                    looked.count += 1;
                }
                looked.next += 1;
            }
            looked.has_more = looked.next < table.positions();
        }
        preemption_point(m);
    }
    name_all(m, of, into.get_mut(..looked.count).unwrap_or_default());
    is_there(m, of).then_some(looked)
}

/// Names capabilities by the CapSet of their process, which it can neither write nor unmap.
fn name_all<M: Machine>(m: M, of: ProcessKey, seen: &mut [Option<SeenCapability>]) {
    let mut page = [0; MAX_COPY_BYTES];
    let process = m.records().process(of.slot);
    let has_capset = process.is_some_and(|process| {
        process.capset_address() != 0 && process.ops.space.copy_in(&mut page, CAPSET_VADDR).is_ok()
    });
    preemption_point(m);
    let header = CapSetHeader::read_from_prefix(&page).ok().map(|(header, _)| header);
    let count = match header {
        Some(header) if has_capset && header.magic == CAPSET_MAGIC => header.count as usize,
        _ => 0,
    };
    let entries = page.get(size_of::<CapSetHeader>()..).unwrap_or_default();
    for cap in seen.iter_mut().flatten() {
        let mut named = entries.chunks_exact(size_of::<CapSetEntry>()).take(count);
        let slot = cap.slot.to_bits().to_le_bytes();
        // The slot comes first in an entry.
        let found = named.find(|entry| entry.first_chunk::<8>() == Some(&slot));
        let entry = found.and_then(|entry| CapSetEntry::read_from_bytes(entry).ok());
        let id = entry.map_or(0, |entry| entry.interface);
        if let Some(entry) = entry
            && let Some(name) = entry.name.get(..entry.name_length as usize)
        {
            cap.name = Name::new(core::str::from_utf8(name).unwrap_or_default());
        }
        let is_its = InterfaceTag::of(id) == Some(cap.tag);
        cap.interface_id = if is_its { id } else { id_of(cap.tag).unwrap_or(0) };
    }
}

/// The account of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenAccount {
    /// Its lines, in the order of [`Line::ALL`].
    pub lines: [Reading; Line::COUNT],
    /// Limits that are not counted: ring entries, scratch bytes, calls in flight, calls queued.
    pub limits: [u32; 4],
}

/// The account of a process; `None` if it is gone. Each line is of one moment.
pub fn account<M: Machine>(m: M, of: ProcessKey) -> Option<SeenAccount> {
    let process = m.records().process(of.slot)?;
    let (limits, generation) = {
        let members = process.members.lock();
        (members.uncounted_limits(), members.generation)
    };
    let lines = Line::ALL.map(|line| process.ops.ledger.reading(line));
    // Acquire: as in `process_at`.
    fence(Ordering::Acquire);
    (generation == of.generation && process.ops.is(of)).then_some(SeenAccount { lines, limits })
}
