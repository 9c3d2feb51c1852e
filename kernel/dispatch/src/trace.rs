//! Trace points: what happens is recorded by its CPU while somebody asks for it.
//!
//! A point stands where the order of things is, so every machine that has a trace records alike. While it is off it
//! is a load, a test and a branch ([`point`]); all else is out of line. Which records there are is in
//! `schema/trace.capnp`. Decided in ADR 350.

use crate::machine::{Here, Machine};
use core_sched::CpuId;
use core_thread::ThreadKey;
use schema::trace_capnp::{TraceCategory, TraceEvent};
use smp_trace::{Buffer, Memory, NO_THREAD, Record};

/// What a CPU records into.
pub type TraceBuffer = Buffer<Memory>;

/// In the place of a thread among an event's values: none.
pub const NOBODY: u64 = u64::MAX;

/// Why a CPU goes from one thread to another; the second value of `switched`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Why {
    /// The thread waits.
    Waits = 0,
    /// It is queued again.
    Requeued = 1,
    /// It has ended.
    Ended = 2,
    /// There was none.
    WasIdle = 3,
    /// It handed its CPU over.
    HandedOver = 4,
}

/// The category of an event.
pub const fn category_of(what: TraceEvent) -> TraceCategory {
    match what {
        TraceEvent::Switched | TraceEvent::Woke | TraceEvent::Migrated | TraceEvent::Stolen => {
            TraceCategory::Scheduler
        }
        TraceEvent::Call | TraceEvent::Receive | TraceEvent::Answer | TraceEvent::HandOff => {
            TraceCategory::Ipc
        }
        TraceEvent::Enter | TraceEvent::Leave => TraceCategory::Syscall,
        TraceEvent::Interrupt => TraceCategory::Interrupt,
        TraceEvent::Map | TraceEvent::Unmap | TraceEvent::Protect | TraceEvent::Shootdown => {
            TraceCategory::Memory
        }
        TraceEvent::Armed | TraceEvent::Fired | TraceEvent::Expired => TraceCategory::Timer,
        TraceEvent::Mark => TraceCategory::User,
    }
}

/// The bit of a category.
pub const fn bit_of(category: TraceCategory) -> u32 {
    1 << category as u16
}

/// Something happens on this CPU: recorded if its category is. The values are made only then.
#[inline(always)]
pub fn point<M: Machine>(m: M, what: TraceEvent, values: impl FnOnce() -> (u64, u64)) {
    if let Some(control) = m.trace()
        && control.is_on(bit_of(category_of(what)))
    {
        let (a, b) = values();
        record(m, what, a, b);
    }
}

/// A hand-over, which is a switch and an event of IPC: one point for both.
#[inline(always)]
pub(crate) fn hand_off<M: Machine>(m: M, next: impl FnOnce() -> u64) {
    const BOTH: u32 = bit_of(TraceCategory::Scheduler) | bit_of(TraceCategory::Ipc);
    if let Some(control) = m.trace()
        && control.is_on(BOTH)
    {
        record_hand_off(m, next());
    }
}

/// A function by a convention under which its caller keeps all registers: a point costs what it asks, and no spills
/// beside. Where the compiler has it.
macro_rules! out_of_line {
    (fn $($rest:tt)*) => {
        #[cfg(target_os = "none")]
        #[cold]
        #[inline(never)]
        extern "rust-cold" fn $($rest)*
        #[cfg(not(target_os = "none"))]
        #[cold]
        #[inline(never)]
        fn $($rest)*
    };
}

out_of_line! {
    fn record_hand_off<M: Machine>(m: M, next: u64) {
        point(m, TraceEvent::HandOff, || (next, 0));
        point(m, TraceEvent::Switched, || (next, Why::HandedOver as u64));
    }
}

out_of_line! {
    fn record<M: Machine>(m: M, what: TraceEvent, a: u64, b: u64) {
        let Some(control) = m.trace() else { return };
        let here = Here::now(m);
        let thread = here.current().map_or(NO_THREAD, name_of::<M>);
        let (kind, category) = (what as u16, category_of(what) as u16);
        let record = Record { time_ns: m.clock(), kind, category, thread, a, b };
        here.trace.record(control.session(), &record);
    }
}

/// The number of a thread in records.
pub(crate) fn name_of<M: Machine>(thread: &'static M::Thread) -> u32 {
    use crate::machine::Record as _;
    ThreadKey::from_bits(thread.node().thread()).slot
}

/// The values of an event about a thread and a CPU.
#[inline]
pub(crate) fn moved<M: Machine>(thread: &'static M::Thread, cpu: CpuId) -> (u64, u64) {
    (u64::from(name_of::<M>(thread)), cpu.index() as u64)
}

/// The same as one of an event's values.
#[inline]
pub(crate) fn value_of<M: Machine>(thread: Option<&'static M::Thread>) -> u64 {
    thread.map_or(NOBODY, |thread| u64::from(name_of::<M>(thread)))
}
