//! What is left of threads and processes that ended: taken apart in small steps.
//!
//! A thread comes here when its last CPU is off its stack ([`reap`]), a process when its last thread has
//! been taken apart ([`reap_process`]). [`step`] does a bounded piece of the work, on one CPU at a
//! time: an idle CPU calls it in its loop, a busy one from an interrupt it sends itself, so that
//! neither a large process nor many threads keep a CPU in the kernel.
//!
//! The order for a thread: its pending operations are claimed from whatever they wait for; what it was
//! serving ends; its ring and stack are taken; its joiner completes; its process lets go of it. For a
//! process: capabilities, calls, memory, the record.

use crate::cancel;
use crate::complete::complete_ended;
use crate::deadlines;
use crate::object::{self, threads};
use crate::party::{Fit, Party};
use crate::process::Process;
use crate::sched;
use crate::shutdown;
use crate::system::{self, MAX_PROCESSES, NO_THREAD, the};
use crate::thread::{self, Thread};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core_cap::DrainVerdict;
use core_thread::{RecycleVerdict, ThreadKey};
use kernel_mm::space::StillInUse;
use smp_ipi::Requests;
use smp_lock::{LockClass, TicketLock};

// A step happens in an interrupt of whatever thread runs, in one section of kernel code (`section`): each of
// these is as many as fit beside what the interrupt does anyway.
/// Pending operations claimed in one step.
const OPERATIONS_PER_STEP: usize = 4;
/// Capability slots or call records looked at in one step.
const SLOTS_PER_STEP: u32 = 8;
/// Frames given back in one step.
const FRAMES_PER_STEP: u64 = 4;

/// The threads to be taken apart, by their `next`: first and last. In the order they ended, because
/// the last to leave a process gives it its exit code.
static DEAD: TicketLock<Dead> =
    TicketLock::with_class(LockClass::Reaper, Dead { first: NO_THREAD, last: NO_THREAD });
/// The first of the dead, once nothing waits for it any more: the rest is the next step's.
static CLAIMED: AtomicU32 = AtomicU32::new(NO_THREAD);
/// How many threads and processes are to be taken apart.
static JOBS: AtomicU32 = AtomicU32::new(0);
/// A CPU is at it.
static BUSY: AtomicBool = AtomicBool::new(false);
/// The processes to be taken apart.
static PROCESSES: TicketLock<Processes> = TicketLock::with_class(
    LockClass::Global,
    Processes { ending: None, waiting: [0; MAX_PROCESSES.div_ceil(WORD)] },
);

/// Processes in one word of the map of those that wait.
const WORD: usize = u64::BITS as usize;

struct Processes {
    /// The one that is being taken apart.
    ending: Option<Ending>,
    /// Those that wait for their turn: a bit for each record.
    waiting: [u64; MAX_PROCESSES.div_ceil(WORD)],
}

// Every record of a process has its bit.
const _: () = assert!(size_of::<[u64; MAX_PROCESSES.div_ceil(WORD)]>() * 8 >= MAX_PROCESSES);

impl Processes {
    /// Notes that a process waits.
    fn add(&mut self, slot: u32) {
        let slot = slot as usize;
        if let Some(word) = self.waiting.get_mut(slot / WORD) {
            *word |= 1 << (slot % WORD);
        }
    }

    /// The one to go on with: that which is being taken apart, or the first that waits.
    fn next(&mut self) -> Option<Ending> {
        if self.ending.is_some() {
            return self.ending;
        }
        let (at, word) = self.waiting.iter_mut().enumerate().find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros();
        *word &= *word - 1;
        Some(Ending { process: (at * WORD) as u32 + bit, stage: Stage::Capabilities })
    }
}

struct Dead {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy)]
struct Ending {
    process: u32,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Capabilities,
    Calls,
    Memory,
    /// Nothing is left but the record. A step of its own: telling of it takes as long as freeing.
    Record,
}

/// Whether something is to be taken apart.
#[inline]
pub fn has_work() -> bool {
    JOBS.load(Ordering::Relaxed) != 0
}

fn add_job() {
    JOBS.fetch_add(1, Ordering::Relaxed);
    sched::request_here(Requests::REAP);
}

/// Hands a thread over that is dead and off every stack.
pub fn reap(thread: &'static Thread) {
    thread.next.store(NO_THREAD, Ordering::Relaxed);
    let mut dead = DEAD.lock();
    match the().thread(dead.last) {
        Some(last) => last.next.store(thread.slot(), Ordering::Relaxed),
        None => dead.first = thread.slot(),
    }
    dead.last = thread.slot();
    drop(dead);
    add_job();
}

/// Hands a process over whose last thread has left.
pub fn reap_process(process: &'static Process, code: i64) {
    process.exit_code.store(code, Ordering::Relaxed);
    PROCESSES.lock().add(process.slot());
    add_job();
}

/// Does one piece of the work, if no other CPU is at it.
pub fn step() {
    if !has_work() {
        return;
    }
    // Acquire, pairs with the release below: what the last one did is seen.
    if BUSY.swap(true, Ordering::Acquire) {
        return;
    }
    let first = DEAD.lock().first;
    if let Some(thread) = the().thread(first) {
        if take_thread_apart(thread) {
            JOBS.fetch_sub(1, Ordering::Relaxed);
        }
    } else {
        continue_process();
    }
    BUSY.store(false, Ordering::Release);
    if has_work() {
        sched::request_here(Requests::REAP);
    }
}

/// Takes the first of the dead out of the list.
fn unlist(thread: &'static Thread) {
    let mut dead = DEAD.lock();
    dead.first = thread.next.load(Ordering::Relaxed);
    if dead.first == NO_THREAD {
        dead.last = NO_THREAD;
    }
}

/// One piece of a thread's end; `true` once it is done.
fn take_thread_apart(thread: &'static Thread) -> bool {
    let key = thread.key();
    let process = thread.process();
    if CLAIMED.load(Ordering::Relaxed) != thread.slot() {
        if claim_operations(thread, key) {
            deadlines::stop(deadlines::of_enter(thread.slot()));
            deadlines::stop(deadlines::of_park(thread.slot()));
            stop_serving(process, key);
            CLAIMED.store(thread.slot(), Ordering::Relaxed);
        }
        return false;
    }
    CLAIMED.store(NO_THREAD, Ordering::Relaxed);
    let remains = match thread.machine.retire() {
        Ok(remains) => remains,
        Err(_) => system::defect("a dead thread is on a stack"),
    };
    unlist(thread);
    drop(remains.stack);
    if let Some(ring) = remains.ring {
        process.give_ring(thread.ring_number.load(Ordering::Relaxed), ring);
    }
    let code = thread.exit_code.load(Ordering::Relaxed);
    // Before a join can say that the thread is gone: who joins it leaves after it. Should this end the
    // process, that is another step.
    thread.settle_account();
    process.leave(code);
    let mut life = thread.lifecycle.lock();
    let Some(lifecycle) = life.as_mut() else { system::defect("a thread without a lifecycle") };
    let Ok(verdict) = lifecycle.exit(code) else { system::defect("a thread exited twice") };
    let is_over = lifecycle.is_over();
    if is_over {
        *life = None;
    }
    drop(life);
    if verdict.ends_charge {
        process.discharge();
    }
    if let Some(joiner) = verdict.complete {
        threads::complete_join(joiner, code);
    }
    if is_over {
        recycle(thread, key);
    }
    true
}

/// Claims some of a thread's pending operations; `true` once none is left to claim.
fn claim_operations(thread: &'static Thread, key: ThreadKey) -> bool {
    for _ in 0..OPERATIONS_PER_STEP {
        let Some(held) = thread.completions_of(key.generation) else { return true };
        let Some((index, target)) =
            held.ring().shared.cells.busy(0).next().map(|(index, cell)| (index, cell.target()))
        else {
            return true;
        };
        drop(held);
        let party = Party { thread: key, cell: index, room: Fit::NONE };
        let is_ours = cancel::claim(thread, party, target);
        if !is_ours && target == smp_pending::Target::Park {
            // Whoever has claimed the wait completes it any moment, by the thread's record alone.
            return false;
        }
        // Whoever has it instead finds the cell given back, and nobody to tell.
        let Some(held) = thread.completions_of(key.generation) else { return true };
        let ring = held.ring();
        if let Some(cell) = ring.shared.cells.get(index) {
            if !is_ours && target == smp_pending::Target::Sleep && cell.timer().is_some() {
                thread.process().sleep_ended();
            }
            deadlines::settle(cell);
        }
        ring.shared.cells.drop_with_ring(index);
    }
    false
}

/// The calls a thread was serving end, and so do its receives.
fn stop_serving(process: &'static Process, key: ThreadKey) {
    if let Some(service) = process.service.lock().as_mut() {
        service.calls.receiver_exit(|party| party.thread == key, complete_ended);
    }
}

/// Gives the record of a thread back that nobody refers to any more; its lifecycle is taken out.
pub fn recycle(thread: &'static Thread, key: ThreadKey) {
    debug_assert!(thread.key() == key, "a record is recycled once");
    match thread.state.recycle() {
        Ok(RecycleVerdict::Free) => thread::free(thread),
        Ok(RecycleVerdict::Retired) => {}
        Err(_) => system::defect("a thread record is recycled while it is in use"),
    }
}

/// One piece of a process's end.
fn continue_process() {
    let Some(ending) = PROCESSES.lock().next() else { return };
    let Some(process) = the().processes.get(ending.process as usize) else { return };
    let next = match ending.stage {
        Stage::Capabilities => drain_capabilities(process),
        Stage::Calls => drain_calls(process),
        Stage::Memory => free_memory(process),
        Stage::Record => None,
    };
    PROCESSES.lock().ending = next.map(|stage| Ending { stage, ..ending });
    if next.is_none() {
        shutdown::process_reaped(process);
        JOBS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn drain_capabilities(process: &'static Process) -> Option<Stage> {
    let mut gone = [const { None }; SLOTS_PER_STEP as usize];
    let verdict = {
        let mut caps = process.caps.lock();
        let Some(table) = caps.as_mut() else { return Some(Stage::Calls) };
        table.close();
        let mut places = gone.iter_mut();
        table.drain(SLOTS_PER_STEP, |released| {
            if let Some(place) = places.next() {
                *place = Some(released);
            }
        })
    };
    for released in gone.into_iter().flatten() {
        object::released(process, released);
    }
    Some(match verdict {
        DrainVerdict::More => Stage::Capabilities,
        DrainVerdict::Done => Stage::Calls,
    })
}

fn drain_calls(process: &'static Process) -> Option<Stage> {
    let mut service = process.service.lock();
    let Some(service) = service.as_mut() else { return Some(Stage::Memory) };
    service.calls.shut();
    Some(match service.calls.drain(SLOTS_PER_STEP, complete_ended) {
        core_endpoint::DrainVerdict::More => Stage::Calls,
        core_endpoint::DrainVerdict::Done => Stage::Memory,
    })
}

fn free_memory(process: &'static Process) -> Option<Stage> {
    process.drop_rings();
    match process.space.destroy(FRAMES_PER_STEP) {
        Ok(freed) if freed.is_done => Some(Stage::Record),
        Err(StillInUse::Absent) => Some(Stage::Record),
        Ok(_) => Some(Stage::Memory),
        Err(StillInUse::Contexts(_) | StillInUse::Pins(_)) => {
            system::defect("a process without threads is in use")
        }
    }
}
