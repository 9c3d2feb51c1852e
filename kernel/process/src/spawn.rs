//! A thread begins.

use crate::end;
use crate::join;
use crate::machine::{Machine, Place, Stack, Worker, process_of};
use crate::process::{Admitted, Process, RingPlace, SpareRing, SpawnError};
use crate::thread::{Life, Thread};
use abi_types::{CapSlot, RingBlock};
use core_cap::Cap;
use core_fallible::OutOfMemory;
use core_sched::CpuId;
use core_sched_policy::{LatencyClass, Share, Weight};
use core_thread::{Lifecycle, ThreadKey};
use kernel_dispatch::{self as dispatch, preemption_point};
use kernel_ops::capability::Object;
use kernel_ops::machine::{Defect, Own, Pending};
use kernel_ops::object::Calling;
use kernel_ops::paid::NoMemory;
use smp_ring::{NewRing, Refused};
use smp_rq::lock_home_by;

/// What a thread is made of, before it is one.
struct Parts<M: Machine> {
    stack: Stack<M>,
    ring: SpareRing<M>,
    /// Where user code finds the ring.
    address: u64,
    /// How much one call may carry.
    limit: u32,
}

impl<M: Machine> Parts<M> {
    fn allocate(m: M, process: &'static Process<M>) -> Result<Self, SpawnError> {
        let stack = m.new_stack().map_err(|OutOfMemory| SpawnError::StackMemory)?;
        preemption_point(m);
        // The stack is given back in a section of its own.
        let (entries, limit) = {
            let profile = &process.members.lock().profile;
            (profile.ring_entries, profile.ring_scratch_limit_bytes)
        };
        let block = RingBlock::new(entries).ok_or(SpawnError::Memory)?;
        let ring = take_ring(m, process, block).inspect_err(|_| preemption_point(m))?;
        preemption_point(m);
        let address = block.address(ring.number);
        Ok(Self { stack, ring, address, limit })
    }
}

/// A ring for a new thread.
fn take_ring<M: Machine>(
    m: M,
    process: &'static Process<M>,
    block: RingBlock,
) -> Result<SpareRing<M>, NoMemory> {
    match process.take_ring_place()? {
        RingPlace::Used(ring) => Ok(ring),
        RingPlace::New(number) => {
            let made = new_ring(m, process, number, block);
            made.inspect_err(|_| process.untake_ring_place(number))
        }
    }
}

fn new_ring<M: Machine>(
    m: M,
    process: &'static Process<M>,
    number: u32,
    block: RingBlock,
) -> Result<SpareRing<M>, NoMemory> {
    let cells = Pending::new(&process.ops.ledger, block.cq_entries(), || preemption_point(m))?;
    preemption_point(m);
    let memory = m.new_ring(&process.ops.space, block.address(number), block)?;
    Ok(SpareRing { number, memory, cells })
}

/// Makes a thread of `process` and lets it run. `held` says that a handle to it exists.
pub fn spawn<M: Machine>(
    m: M,
    process: &'static Process<M>,
    mut start: M::UserStart,
    weight: Weight,
    held: bool,
) -> Result<ThreadKey, SpawnError> {
    let admitted = process.admit(M::STACK_PAGES)?;
    match prepare(m, process, &mut start, weight, held, admitted) {
        Ok(thread) => {
            let key = thread.key();
            // The process may have been closed since it admitted the thread: then its killer did not find it.
            let records = m.records();
            if process.link(thread, |slot| records.thread(slot))
                && !m.plants(Defect::NotKilledAtBirth)
                && thread.state.kill(key.generation).is_err()
            {
                m.defect("a thread that was not started is gone");
            }
            if thread.state.start().is_err() {
                m.defect("a new thread cannot be started");
            }
            dispatch::enqueue_new(m, thread);
            Ok(key)
        }
        Err(error) => {
            if let Some(code) = process.leave(m, 0) {
                end::reap_process(m, process, code);
            }
            Err(error)
        }
    }
}

/// Makes a thread of the caller's process, with a handle to it in the caller's table; all or nothing.
pub fn spawn_held<M: Machine>(
    calling: &mut Calling<'_, M>,
    start: M::UserStart,
) -> Result<CapSlot, SpawnError> {
    let m = calling.caller.m;
    let process = process_of(m, calling.caller.thread);
    // The slot first: what comes after it can be undone without anyone having seen a thread.
    let mut caps = process.ops.caps.lock();
    let table = caps.as_mut().ok_or(SpawnError::Closed)?;
    let place = table.reserve(1).map_err(|_| SpawnError::Slots)?;
    drop(caps);
    let made = spawn(m, process, start, process.weight(), true);
    let mut caps = process.ops.caps.lock();
    let table = caps.as_mut().ok_or(SpawnError::Closed)?;
    let key = match made {
        Ok(key) => key,
        Err(error) => {
            table.abort(place);
            return Err(error);
        }
    };
    let (handle, interface) = M::handle_to(key);
    let slot = table.fill(place, Cap::new(Object::Other(handle), interface));
    drop(caps);
    if slot.is_none() {
        join::handle_released(m, key);
    }
    slot.ok_or(SpawnError::Closed)
}

fn prepare<M: Machine>(
    m: M,
    process: &'static Process<M>,
    start: &mut M::UserStart,
    weight: Weight,
    held: bool,
    admitted: Admitted,
) -> Result<&'static Thread<M>, SpawnError> {
    let parts = match Parts::allocate(m, process) {
        Ok(parts) => parts,
        Err(error) => {
            if m.plants(Defect::ReservationKept) {
                core::mem::forget(admitted);
            }
            return Err(error);
        }
    };
    let Some(thread) = m.records().take_thread(m) else {
        process.give_ring(m, parts.ring);
        return Err(SpawnError::Memory);
    };
    let Ok(generation) = thread.state.create() else {
        m.defect("a free thread record is in use");
    };
    let SpareRing { number, memory, cells } = parts.ring;
    let key = thread.key();
    let place = Place {
        thread: thread.slot(),
        process: process.slot(),
        ring: parts.address,
        capset: process.capset_address(),
    };
    thread.begin(process.slot(), number);
    let Admitted { record, stack } = admitted;
    let lifecycle = if held { Lifecycle::new(key) } else { Lifecycle::new_unheld(key) };
    *thread.lifecycle.lock() = Some(Life::new(lifecycle, record.commit()));
    let stack = stack.commit();
    let own_process = &process.ops;
    let ring = NewRing {
        memory,
        params_bytes: parts.limit,
        result_bytes: parts.limit,
        shared: || Own { cells, process: own_process, generation, stack },
        only_passes: !m.tables().has_fast_path,
    };
    let start = m.start(&process.ops.space, start, place);
    let prepared = thread.ops.home.prepare(parts.stack, start, Some(ring));
    if let Err(Refused { stack, ring, .. }) = prepared {
        drop(stack);
        if let Some(NewRing { memory, shared, .. }) = ring {
            process.give_ring(m, SpareRing { number, memory, cells: shared().cells });
        }
        undo(m, thread);
        return Err(SpawnError::Closed);
    }
    renew_node(m, thread, weight);
    Ok(thread)
}

/// Gives the node of a free record the name and the share of the thread that begins in it.
fn renew_node<M: Machine>(m: M, thread: &'static Thread<M>, weight: Weight) {
    let share = Share::new(weight, LatencyClass::Normal);
    let queue_of = |cpu: CpuId| m.cpus().get(cpu.index()).map(|cpu| &cpu.queue);
    let renewed = lock_home_by(queue_of, &thread.node)
        .map(|mut queue| queue.renew(&thread.node, thread.key().to_bits(), share));
    if !matches!(renewed, Some(Ok(()))) {
        m.defect("the queue node of a free thread record is in use");
    }
}

/// Makes a thread of the kernel's own, and lets it run: one of no process, with an account of its
/// own. Each once, before there are processes.
pub fn spawn_worker<M: Machine>(m: M, worker: Worker) -> Result<(), OutOfMemory> {
    let stack = m.new_stack()?;
    let thread = m.records().take_thread(m).ok_or(OutOfMemory)?;
    if thread.state.create().is_err() {
        m.defect("a free thread record is in use");
    }
    let start = m.worker_start(thread, worker);
    if thread.ops.home.prepare(stack, start, None::<NewRing<_, fn() -> _>>).is_err() {
        m.defect("the context of a free thread record is in use");
    }
    renew_node(m, thread, Weight::DEFAULT);
    if thread.state.start().is_err() {
        m.defect("a new thread cannot be started");
    }
    match worker {
        Worker::Reaper => m.records().reaper.set(Some(thread)),
        Worker::Drain => m.records().drain.set(Some(thread)),
    }
    dispatch::enqueue_new(m, thread);
    Ok(())
}

fn undo<M: Machine>(m: M, thread: &'static Thread<M>) {
    *thread.lifecycle.lock() = None;
    if thread.state.abandon().is_err() || thread.state.recycle().is_err() {
        m.defect("a thread that was never started cannot be undone");
    }
    m.records().give_thread(thread);
}
