//! Whose the trace is: the process that started it, which pays for its buffers.
//!
//! The buffers are memory that CPUs write without asking, so it is never given back to the machine: it is made when the
//! trace is started for the first time, and then kept for the next. Who starts has it, and pays for it, until it ends
//! ([`end`]), or stops and another starts. Decided in ADR 350.

use crate::caller::Caller;
use crate::capability::ProcessKey;
use crate::machine::Machine;
use crate::object::{Calling, Objects};
use crate::paid::{NoMemory, pay_for_bytes};
use crate::trace_owner::Owner;
use abi_sync::atomic::AtomicU64;
use abi_sync::mask_below;
use core_fallible::{OutOfMemory, try_collect};
use kernel_dispatch::preemption_point;
use kernel_dispatch::trace::{TraceBuffer, point};
use schema::trace_capnp::TraceEvent;
use smp_trace::{Portion, RECORD_BYTES, RECORD_WORDS, Record};

/// Bytes of a CPU's buffer: 2,048 events, some milliseconds of a busy CPU. A process of the usual profile can pay for
/// those of seven CPUs beside what else it has.
pub const BUFFER_BYTES: usize = 64 * 1024;

/// Words made between two preemption points.
const WORDS_PER_PREEMPTION_POINT: usize = 1024;

/// Why the trace is not started, or not stopped. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// Another process records.
    Another,
    /// The buffers cannot be made, or not be paid for.
    Memory(NoMemory),
    /// The machine has no trace.
    Absent,
}

impl From<NoMemory> for Busy {
    fn from(error: NoMemory) -> Self {
        Self::Memory(error)
    }
}

/// Empties the buffers and records these categories, for the caller's process.
pub fn start<M: Objects>(calling: &Calling<'_, M>, categories: u32) -> Result<(), Busy> {
    let Caller { m, ring, .. } = calling.caller;
    let control = m.trace().ok_or(Busy::Absent)?;
    let (process, state) = (ring.shared.process, &m.tables().trace.0);
    let key = process.key();
    {
        let mut state = state.lock();
        let is_its = state.owner.as_ref().is_some_and(|owner| owner.process == key);
        if state.is_starting || control.categories() != 0 && !is_its {
            return Err(Busy::Another);
        }
        if is_its {
            control.start(categories);
            return Ok(());
        }
        state.is_starting = true;
    }
    let bytes = BUFFER_BYTES.saturating_mul(m.cpus().len());
    let paid = pay_for_bytes(&process.ledger, bytes)
        .and_then(|paid| make_buffers(m).map(|()| paid).map_err(NoMemory::from));
    let mut state = state.lock();
    state.is_starting = false;
    state.owner = Some(Owner { process: key, paid: paid? });
    control.start(categories);
    Ok(())
}

/// Gives each CPU a buffer that has none yet.
fn make_buffers<M: Machine>(m: M) -> Result<(), OutOfMemory> {
    for cpu in m.cpus() {
        if cpu.trace.capacity() == 0 {
            let words =
                try_collect((0..BUFFER_BYTES / RECORD_BYTES * RECORD_WORDS).map(|number| {
                    if number % WORDS_PER_PREEMPTION_POINT == 0 {
                        preemption_point(m);
                    }
                    AtomicU64::new(0)
                }))?;
            if !cpu.trace.memory().set(words.leak()) {
                m.defect("two make the buffers of a trace");
            }
        }
        preemption_point(m);
    }
    Ok(())
}

/// Records no more; how many events there are and how many were lost.
pub fn stop<M: Objects>(calling: &Calling<'_, M>) -> Result<(u64, u64), Busy> {
    let Caller { m, ring, .. } = calling.caller;
    let control = m.trace().ok_or(Busy::Absent)?;
    let key = ring.shared.process.key();
    {
        let state = m.tables().trace.0.lock();
        let is_its = state.owner.as_ref().is_some_and(|owner| owner.process == key);
        if control.categories() != 0 && !is_its {
            return Err(Busy::Another);
        }
        control.stop();
    }
    let session = control.session();
    let counts = m.cpus().iter().map(|cpu| cpu.trace.counts(session));
    Ok(counts.fold((0, 0), |sum: (u64, u64), of| {
        (sum.0.saturating_add(of.0), sum.1.saturating_add(of.1))
    }))
}

/// Copies records of a CPU from number `position` on; `None` if there is no such CPU.
pub fn read<M: Machine>(m: M, cpu: u32, position: u64, into: &mut [Record]) -> Option<Portion> {
    let (cpus, at) = (m.cpus(), cpu as usize);
    if at >= cpus.len() {
        return None;
    }
    // The program chose the number: it stays within the table even where the check is only guessed.
    let buffer: &TraceBuffer = &cpus.get(at & mask_below(at, cpus.len()) as usize)?.trace;
    let session = m.trace().map(smp_trace::Control::session)?;
    Some(buffer.read(session, position, into))
}

/// Records a mark of the caller's.
pub fn mark<M: Machine>(m: M, value: u64) {
    point(m, TraceEvent::Mark, || (value, 0));
}

/// What is recorded, as bits.
pub fn categories<M: Machine>(m: M) -> u32 {
    m.trace().map_or(0, smp_trace::Control::categories)
}

/// The process has nothing to do with the trace any more: if it is the one that has it, nobody has, and nothing can be
/// read of it.
pub fn end<M: Machine>(m: M, process: ProcessKey) {
    let Some(control) = m.trace() else { return };
    let mut state = m.tables().trace.0.lock();
    let owner = state.owner.take_if(|owner| owner.process == process);
    if owner.is_some() {
        // A session in which nothing is recorded: what the buffers hold is another's.
        control.start(0);
    }
}
