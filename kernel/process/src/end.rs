//! The end of threads and processes: they are told to end, and what is left of them is taken apart.
//!
//! A thread comes to the reaper when its last CPU is off its stack ([`reap`]), a process when its last thread
//! has been taken apart. The reaper is a thread of the kernel's own, with a weight and an account like any
//! other ([`run_reaper`]): it does a bounded piece of the work between two preemption points, on whatever CPU
//! the scheduler gives it, so that neither a large process nor many threads keep anybody from running, and
//! nobody is billed for the end of another. Decided in ADR 232.
//!
//! The order for a thread: its pending operations are claimed from whatever they wait for; what it was
//! serving ends; its ring and stack are taken; its process lets go of it; its joiner completes. For a
//! process: capabilities, calls, memory; then its output goes out, and the record is given back. Changes of an address
//! space that waited for other CPUs go on before either.

use crate::join::{self, recycle};
use crate::machine::{Machine, process_of};
use crate::memory;
use crate::process::{Process, Reason, SpareRing};
use crate::remains::{Stage, ask_for_a_step};
use crate::shared;
use crate::thread::Thread;
use abi_sync::atomic::{Ordering, fence};
use core_cap::DrainVerdict;
use core_thread::{ResumeVerdict, ThreadKey, WaitVerdict};
use kernel_dispatch::{self as dispatch, Here, preemption_point};
use kernel_ops::complete::{complete_ended, end_buffers, leave_buffers};
use kernel_ops::machine::{Defect, Own};
use kernel_ops::party::{Fit, Party};
use kernel_ops::{cancel, deadlines, object, trace};
use smp_pending::{Buffers, Target};

/// Threads killed between two preemption points: as many as fit a section of kernel code (`section`), each with
/// a queue and an interrupt.
const KILLS_PER_PREEMPTION_POINT: usize = 8;

/// Ends a process with `code`: every thread but the caller is killed. Whoever closes it first decides the
/// code.
pub fn close<M: Machine>(m: M, process: &'static Process<M>, code: i64, reason: Reason) {
    if !process.close(code, reason) {
        return;
    }
    m.tables().outputs.stop(process.slot());
    let records = m.records();
    // A thread that closes its own process ends by itself.
    let me = Here::now(m).current().map(Thread::slot);
    loop {
        let mut names = [const { None }; KILLS_PER_PREEMPTION_POINT];
        let count = process.next_to_kill(&mut names, |slot| records.thread(slot));
        for (thread, key) in names.into_iter().flatten() {
            if Some(thread.slot()) != me {
                // By its name: a record that is another's by now is not hit.
                dispatch::kill(m, thread, key.generation);
            }
        }
        if count < KILLS_PER_PREEMPTION_POINT {
            return;
        }
        preemption_point(m);
    }
}

/// The running thread ends itself, with its code.
pub fn exit_thread<M: Machine>(m: M, thread: &'static Thread<M>, code: i64) -> ! {
    thread.set_exit_code(code);
    kernel_ops::machine::end(m, thread)
}

/// Closes the process of the running thread, which kills its other threads, and ends the thread.
pub fn exit_process<M: Machine>(m: M, thread: &'static Thread<M>, code: i64) -> ! {
    end_process(m, thread, code, Reason::Exited)
}

/// The same for a process that a fault of the thread ends.
pub fn fault_process<M: Machine>(m: M, thread: &'static Thread<M>, code: i64) -> ! {
    end_process(m, thread, code, Reason::Faulted)
}

fn end_process<M: Machine>(m: M, thread: &'static Thread<M>, code: i64, reason: Reason) -> ! {
    thread.set_exit_code(code);
    close(m, process_of(m, thread), code, reason);
    kernel_ops::machine::end(m, thread)
}

/// Takes a process apart that never had a thread, here and now: who wanted to start it waits for that.
pub(crate) fn take_back<M: Machine>(m: M, process: &'static Process<M>) {
    process.ops.ledger.close();
    let mut stage = Stage::Capabilities;
    loop {
        stage = match stage {
            Stage::Capabilities => drain_capabilities(m, process),
            Stage::Calls => drain_calls(m, process),
            Stage::Memory => free_memory(m, process),
            Stage::Record => break,
        };
        preemption_point(m);
    }
    if !m.records().vacate(m, process) {
        m.defect("the account of a process that never ran does not read zero");
    }
}

// A step is one section of kernel code (`section`): each of these is as many as fit.
/// Pending operations claimed in one step.
const OPERATIONS_PER_STEP: usize = 4;
/// Capability slots or call records looked at in one step.
const SLOTS_PER_STEP: u32 = 8;
/// Regions forgotten in one step.
const REGIONS_PER_STEP: usize = 16;
/// Frames given back in one step.
const FRAMES_PER_STEP: u64 = 10;

/// Whether something is to be taken apart.
#[inline]
pub fn has_work<M: Machine>(m: M) -> bool {
    m.records().remains.has_work()
}

/// Hands a thread over that is dead and off every stack.
pub fn reap<M: Machine>(m: M, thread: &'static Thread<M>) {
    let records = m.records();
    records.remains.add_thread(thread, |slot| records.thread(slot));
    ask_for_a_step(m);
}

/// Hands a process over whose last thread has left.
pub fn reap_process<M: Machine>(m: M, process: &'static Process<M>, code: i64) {
    process.set_exit_code(code);
    process.ops.ledger.close();
    let records = m.records();
    records.remains.add_process(process, |slot| records.process(slot));
    ask_for_a_step(m);
}

/// Hands a process over again that waited for its output to go out. What is taken apart already takes no time.
pub(crate) fn output_is_out<M: Machine>(m: M, slot: u32) {
    if let Some(process) = m.records().process(slot) {
        reap_process(m, process, process.exit_code());
    }
}

/// Wakes the reaper if it waits and there is something to do. For whoever serves [`Requests::REAP`].
pub fn wake_reaper<M: Machine>(m: M) {
    let records = m.records();
    if !records.remains.has_work() {
        return;
    }
    if let Some(reaper) = records.reaper() {
        let word = reaper.state.observe();
        if word.is_waiting() {
            dispatch::wake(m, reaper, word.generation(), word.ticket(), false);
        }
    }
}

/// What the reaper does, for good.
pub fn run_reaper<M: Machine>(m: M, me: &'static Thread<M>) -> ! {
    loop {
        while has_work(m) {
            match step(m) {
                Progress::Made => {}
                Progress::Blocked => dispatch::yield_cpu(m, Here::now(m), me),
                Progress::Waits => break,
            }
            preemption_point(m);
        }
        match me.state.begin_wait() {
            Ok(WaitVerdict::AboutToWait(_)) => {}
            Ok(WaitVerdict::Die) | Err(_) => m.defect("the reaper was killed"),
        }
        // The reaper's half of the pair with the fence of a CPU that answers a flush: announced, fence, look.
        fence(Ordering::SeqCst);
        // After the announcement: who adds something now sees it.
        if !can_go_on(m) {
            dispatch::block(m, me);
        } else if me.state.cancel_wait() != Ok(ResumeVerdict::Resume) {
            m.defect("the reaper was killed");
        }
    }
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Something was done.
    Made,
    /// Another CPU has to finish something first.
    Blocked,
    /// Other CPUs have to flush first, and the last of them wakes the reaper.
    Waits,
}

/// Whether there is something to do now.
fn can_go_on<M: Machine>(m: M) -> bool {
    let records = m.records();
    let remains = &records.remains;
    remains.has_work()
        && (!remains.has_changes() || remains.has_dead() || records.changes.lock().is_ready())
}

/// Does one piece of the work.
fn step<M: Machine>(m: M) -> Progress {
    let records = m.records();
    if records.remains.has_changes() {
        let ready = records.changes.lock().take_ready();
        if let Some(change) = ready {
            memory::go_on(m, change);
            return Progress::Made;
        }
    }
    match records.thread(records.remains.first_thread()) {
        Some(thread) => take_thread_apart(m, thread),
        None => continue_process(m),
    }
}

/// One piece of a thread's end.
fn take_thread_apart<M: Machine>(m: M, thread: &'static Thread<M>) -> Progress {
    let key = thread.key();
    let process = process_of(m, thread);
    let remains = &m.records().remains;
    if !remains.is_claimed(thread.slot()) {
        match claim_operations(m, thread, key) {
            Claimed::All => {}
            Claimed::Some => return Progress::Made,
            Claimed::OneIsAnothers => return Progress::Blocked,
        }
        if let Some(held) = thread.ops.completions_of(key.generation) {
            deadlines::stop_enter(m, held.ring());
        }
        remains.set_claimed(thread.slot());
        return Progress::Made;
    }
    if stop_serving(m, process, key) == core_endpoint::DrainVerdict::More {
        return Progress::Made;
    }
    let Ok(left) = thread.ops.home.retire() else { m.defect("a dead thread is on a stack") };
    remains.unlist_thread(thread);
    drop(left.stack);
    if let Some((memory, Own { cells, stack, .. })) = left.ring {
        if m.plants(Defect::StackChargeKept) {
            core::mem::forget(stack);
        } else {
            stack.release();
        }
        let number = thread.ring_number.load(Ordering::Relaxed);
        process.give_ring(m, SpareRing { number, memory, cells });
    }
    let code = thread.exit_code();
    // Before a join can say that the thread is gone: who joins it leaves after it. Should this end the
    // process, that is another step.
    process.unlink(thread, |slot| m.records().thread(slot));
    if let Some(code) = process.leave(m, code) {
        reap_process(m, process, code);
    }
    let mut life = thread.lifecycle.lock();
    let Some(lifecycle) = life.as_mut() else { m.defect("a thread without a lifecycle") };
    let Ok(verdict) = lifecycle.exit(code) else { m.defect("a thread exited twice") };
    let is_over = lifecycle.is_over();
    let paid = verdict.ends_charge.then(|| lifecycle.end_charge(m));
    if is_over {
        *life = None;
    }
    drop(life);
    if m.plants(Defect::RecordChargeKept) {
        core::mem::forget(paid);
    } else {
        drop(paid);
    }
    if let Some(joiner) = verdict.complete {
        join::complete(m, joiner, code);
    }
    if is_over {
        recycle(m, m.records(), thread, key);
    }
    remains.end_job();
    Progress::Made
}

/// How far the claims of a thread's operations have got.
enum Claimed {
    /// None is left.
    All,
    /// There are more.
    Some,
    /// Another CPU has one and completes it any moment.
    OneIsAnothers,
}

/// Claims some of a thread's pending operations.
fn claim_operations<M: Machine>(m: M, thread: &'static Thread<M>, key: ThreadKey) -> Claimed {
    for _ in 0..OPERATIONS_PER_STEP {
        let Some(held) = thread.ops.completions_of(key.generation) else { return Claimed::All };
        let Some((index, target)) =
            held.ring().shared.cells.busy(0).next().map(|(index, cell)| (index, cell.target()))
        else {
            return Claimed::All;
        };
        drop(held);
        let party = Party { thread: key, cell: index, room: Fit::NONE };
        let is_ours = cancel::claim(m, thread, party, target);
        if !is_ours && matches!(target, Target::Park { .. }) {
            // Whoever has claimed the wait completes it any moment, by the thread's record alone.
            return Claimed::OneIsAnothers;
        }
        // Whoever has it instead finds the cell given back, and nobody to tell.
        let Some(held) = thread.ops.completions_of(key.generation) else { return Claimed::All };
        let cells = &held.ring().shared.cells;
        deadlines::settle(m, cells, index);
        let named = cells.get(index).map_or(Buffers::NONE, smp_pending::Cell::buffers);
        let of = held.ring().shared.process;
        if cells.drop_with_ring(index) && named != Buffers::NONE {
            let closed = leave_buffers(of, named);
            drop(held);
            end_buffers(m, of, closed);
        }
    }
    Claimed::Some
}

/// Some of the calls a thread was serving end, and of its receives.
fn stop_serving<M: Machine>(
    m: M,
    process: &'static Process<M>,
    key: ThreadKey,
) -> core_endpoint::DrainVerdict {
    let mut service = process.ops.service.lock();
    match service.as_mut() {
        Some(service) if !m.plants(Defect::ServesOn) => {
            let is_its = |party: &Party| party.thread == key;
            let ended = |ended| complete_ended(m, ended);
            service.calls.end_some_of(SLOTS_PER_STEP, is_its, ended)
        }
        _ => core_endpoint::DrainVerdict::Done,
    }
}

/// One piece of a process's end.
fn continue_process<M: Machine>(m: M) -> Progress {
    let remains = &m.records().remains;
    let (slot, stage) = remains.first_process();
    let Some(process) = m.records().process(slot) else { return Progress::Waits };
    let next = match stage {
        Stage::Capabilities => drain_capabilities(m, process),
        Stage::Calls => drain_calls(m, process),
        // They have what was taken out of its tables.
        Stage::Memory if process.has_changes() => return Progress::Blocked,
        // Another process's thread copies to or from a page of its, and is done any moment.
        Stage::Memory if !process.ops.buffers.clear() => return Progress::Blocked,
        Stage::Memory => free_memory(m, process),
        Stage::Record => {
            // Before the look: whoever sends the last of its output puts it into the list again.
            remains.unlist_process(process);
            if m.tables().outputs.leave(process.slot()) {
                m.process_reaped(process);
            }
            remains.end_job();
            return Progress::Made;
        }
    };
    remains.set_stage(next);
    Progress::Made
}

fn drain_capabilities<M: Machine>(m: M, process: &'static Process<M>) -> Stage {
    let mut gone = [const { None }; SLOTS_PER_STEP as usize];
    let verdict = {
        let mut caps = process.ops.caps.lock();
        let Some(table) = caps.as_mut() else { return Stage::Calls };
        table.close();
        let mut places = gone.iter_mut();
        table.drain(SLOTS_PER_STEP, |released| {
            if let Some(place) = places.next() {
                *place = Some(released);
            }
        })
    };
    for released in gone.into_iter().flatten() {
        object::released(m, &process.ops, released);
    }
    match verdict {
        DrainVerdict::More => Stage::Capabilities,
        DrainVerdict::Done => {
            // It may have passed on the capability by which it started.
            trace::end(m, process.key());
            Stage::Calls
        }
    }
}

fn drain_calls<M: Machine>(m: M, process: &'static Process<M>) -> Stage {
    let mut service = process.ops.service.lock();
    let Some(service) = service.as_mut() else { return Stage::Memory };
    service.calls.shut();
    match service.calls.drain(SLOTS_PER_STEP, |ended| complete_ended(m, ended)) {
        core_endpoint::DrainVerdict::More => Stage::Calls,
        core_endpoint::DrainVerdict::Done => Stage::Memory,
    }
}

fn free_memory<M: Machine>(m: M, process: &'static Process<M>) -> Stage {
    if process.drop_a_ring() {
        return Stage::Memory;
    }
    if !process.ops.map.drain(REGIONS_PER_STEP, |_| {}) {
        return Stage::Memory;
    }
    if !m.free_memory(&process.ops.space, FRAMES_PER_STEP) {
        return Stage::Memory;
    }
    // No CPU has its tables any more.
    shared::end_all(m, process);
    Stage::Record
}
