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

use crate::join::{self, recycle};
use crate::machine::{Machine, process_of};
use crate::process::Process;
use crate::remains::Stage;
use crate::thread::Thread;
use abi_sync::atomic::Ordering;
use core_cap::DrainVerdict;
use core_thread::ThreadKey;
use kernel_dispatch::{self as dispatch, Here};
use kernel_ops::complete::complete_ended;
use kernel_ops::machine::Defect;
use kernel_ops::party::{Fit, Party};
use kernel_ops::{cancel, deadlines, object};
use smp_ipi::Requests;
use smp_pending::Target;

// A step happens in an interrupt of whatever thread runs, in one section of kernel code (`section`): each of
// these is as many as fit beside what the interrupt does anyway.
/// Pending operations claimed in one step.
const OPERATIONS_PER_STEP: usize = 4;
/// Capability slots or call records looked at in one step.
const SLOTS_PER_STEP: u32 = 8;
/// Frames given back in one step.
const FRAMES_PER_STEP: u64 = 4;

/// Whether something is to be taken apart.
#[inline]
pub fn has_work<M: Machine>(m: M) -> bool {
    m.records().remains.has_work()
}

fn ask_for_a_step<M: Machine>(m: M) {
    let here = Here::now(m);
    dispatch::request(m, &here, here.id(), Requests::REAP);
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
    let records = m.records();
    records.remains.add_process(process, |slot| records.process(slot));
    ask_for_a_step(m);
}

/// Does one piece of the work, if no other CPU is at it.
pub fn step<M: Machine>(m: M) {
    let remains = &m.records().remains;
    if !remains.has_work() || !remains.begin_step() {
        return;
    }
    match m.records().thread(remains.first_thread()) {
        Some(thread) => take_thread_apart(m, thread),
        None => continue_process(m),
    }
    remains.end_step();
    if remains.has_work() {
        ask_for_a_step(m);
    }
}

/// One piece of a thread's end.
fn take_thread_apart<M: Machine>(m: M, thread: &'static Thread<M>) {
    let key = thread.key();
    let process = process_of(m, thread);
    let remains = &m.records().remains;
    if !remains.is_claimed(thread.slot()) {
        if claim_operations(m, thread, key) {
            deadlines::stop_all_of(m, thread.slot());
            stop_serving(m, process, key);
            remains.set_claimed(thread.slot());
        }
        return;
    }
    let Ok(left) = thread.ops.home.retire() else { m.defect("a dead thread is on a stack") };
    remains.unlist_thread(thread);
    drop(left.stack);
    if let Some(ring) = left.ring {
        process.give_ring(thread.ring_number.load(Ordering::Relaxed), ring);
    }
    let code = thread.exit_code();
    // Before a join can say that the thread is gone: who joins it leaves after it. Should this end the
    // process, that is another step.
    process.pay(thread.take_account());
    if let Some(code) = process.leave(m, code) {
        reap_process(m, process, code);
    }
    let mut life = thread.lifecycle.lock();
    let Some(lifecycle) = life.as_mut() else { m.defect("a thread without a lifecycle") };
    let Ok(verdict) = lifecycle.exit(code) else { m.defect("a thread exited twice") };
    let is_over = lifecycle.is_over();
    if is_over {
        *life = None;
    }
    drop(life);
    if verdict.ends_charge {
        process.discharge(m);
    }
    if let Some(joiner) = verdict.complete {
        join::complete(m, joiner, code);
    }
    if is_over {
        recycle(m, m.records(), thread, key);
    }
    remains.end_job();
}

/// Claims some of a thread's pending operations; `true` once none is left to claim.
fn claim_operations<M: Machine>(m: M, thread: &'static Thread<M>, key: ThreadKey) -> bool {
    for _ in 0..OPERATIONS_PER_STEP {
        let Some(held) = thread.ops.completions_of(key.generation) else { return true };
        let Some((index, target)) =
            held.ring().shared.cells.busy(0).next().map(|(index, cell)| (index, cell.target()))
        else {
            return true;
        };
        drop(held);
        let party = Party { thread: key, cell: index, room: Fit::NONE };
        let is_ours = cancel::claim(m, thread, party, target);
        if !is_ours && target == Target::Park {
            // Whoever has claimed the wait completes it any moment, by the thread's record alone.
            return false;
        }
        // Whoever has it instead finds the cell given back, and nobody to tell.
        let Some(held) = thread.ops.completions_of(key.generation) else { return true };
        let ring = held.ring();
        if let Some(cell) = ring.shared.cells.get(index) {
            if !is_ours && target == Target::Sleep && cell.timer().is_some() {
                ring.shared.process.sleep_ended(m);
            }
            deadlines::settle(m, cell);
        }
        ring.shared.cells.drop_with_ring(index);
    }
    false
}

/// The calls a thread was serving end, and so do its receives.
fn stop_serving<M: Machine>(m: M, process: &'static Process<M>, key: ThreadKey) {
    if m.plants(Defect::ServesOn) {
        return;
    }
    if let Some(service) = process.ops.service.lock().as_mut() {
        let is_its = |party: &Party| party.thread == key;
        service.calls.receiver_exit(is_its, |ended| complete_ended(m, ended));
    }
}

/// One piece of a process's end.
fn continue_process<M: Machine>(m: M) {
    let remains = &m.records().remains;
    let (slot, stage) = remains.first_process();
    let Some(process) = m.records().process(slot) else { return };
    let next = match stage {
        Stage::Capabilities => drain_capabilities(m, process),
        Stage::Calls => drain_calls(m, process),
        Stage::Memory => free_memory(m, process),
        Stage::Record => {
            remains.unlist_process(process);
            m.process_reaped(process);
            return remains.end_job();
        }
    };
    remains.set_stage(next);
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
        DrainVerdict::Done => Stage::Calls,
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
    process.drop_rings();
    if m.free_memory(&process.ops.space, FRAMES_PER_STEP) { Stage::Record } else { Stage::Memory }
}
