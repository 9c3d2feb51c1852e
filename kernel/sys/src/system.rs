//! The tables of the running system: CPUs, threads, processes, parked threads.
//!
//! Made once, when the first process is about to start, and never given back; those of threads and processes
//! grow. So everything here is shared
//! by plain references, and names are checked where they are used.

use crate::counters::Counters;
use crate::kernel::{Cpu, Kernel};
use abi_sync::OnceSlice;
use alloc::vec::Vec;
#[cfg(checked)]
use core::sync::atomic::AtomicU64;
use core_cmdline::Options;
use core_sched::CpuId;
use kernel_arch::cpu::{self, PerCpu};
use kernel_arch::time;
use kernel_mm::OutOfMemory;
use kernel_mm::fallible::{try_collect, try_leak};
use kernel_mm::room;
use kernel_ops::lines::Lines;
use kernel_ops::machine::{CpuPart, Tables};
use kernel_ops::outlets::Outputs;
use kernel_ops::trace_owner::TraceOwner;
use kernel_process::Records;
use smp_lock::Watch;
use smp_park::ParkTable;
use smp_rq::RunQueue;
use smp_timer::Deadlines;
use spin::Once;

/// Threads there can be at most, whatever the memory: what their addresses are set aside for. A record and a waiter are
/// made of each when it is needed, and never given back.
const MAX_THREADS: u32 = 64 * 1024;
/// Processes there can be at most: as for threads.
const MAX_PROCESSES: u32 = 16 * 1024;
/// Memory objects there can be at most: as for threads.
const MAX_OBJECTS: u32 = 64 * 1024;

// A pending call names the process that serves it in 24 bits of its cell.
const _: () = assert!(MAX_PROCESSES < 1 << 24);

/// What the kernel keeps of one CPU beside the scheduler's part.
pub struct CpuOwn {
    /// The machine's block.
    pub machine: &'static PerCpu,
    /// Deadlines armed here.
    deadlines: Deadlines,
    /// What it counts. Its own to change.
    pub counters: Counters,
    /// When it last entered the kernel or switched, in ticks. Its own.
    #[cfg(checked)]
    pub section_began: AtomicU64,
}

impl CpuPart for CpuOwn {
    #[inline(always)]
    fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }
}

/// Who holds locks, and for how long. Reading the clock at each would make every section of a checked kernel
/// longer than it is.
static WATCH: Watch = Watch {
    cpu: || Some(cpu::this().index() as usize),
    ticks: if cfg!(measure) { time::ticks } else { || 0 },
};

/// CPUs, by number.
static CPUS: OnceSlice<Cpu> = OnceSlice::new();
/// Threads and processes.
pub static RECORDS: Records<Kernel> = Records::new();
/// What all rings share; made last, so that what is there is whole.
static RINGS: Once<Tables> = Once::new();

/// Makes the tables; once, on the boot CPU.
pub fn create(now_ns: u64, options: &Options, park_secret: [u64; 2]) -> Result<(), OutOfMemory> {
    let blocks = cpu::all();
    let ids =
        || blocks.iter().enumerate().filter_map(|(n, &machine)| Some((CpuId::new(n)?, machine)));
    let cpus = leak(ids().map(|(id, machine)| {
        let own = CpuOwn {
            machine,
            deadlines: Deadlines::new(id.index() as u16),
            counters: Counters::new(),
            #[cfg(checked)]
            section_began: AtomicU64::new(0),
        };
        Cpu::new(RunQueue::with_policy(id, options.policy, now_ns), own)
    }))?;
    let threads = room::reserve(MAX_THREADS).ok_or(OutOfMemory)?;
    let processes = room::reserve(MAX_PROCESSES).ok_or(OutOfMemory)?;
    let objects = room::reserve(MAX_OBJECTS).ok_or(OutOfMemory)?;
    let waiters = room::reserve(MAX_THREADS).ok_or(OutOfMemory)?;
    let rings = Tables {
        park: ParkTable::new(waiters, park_secret),
        has_fast_path: options.fast_path,
        outputs: Outputs::new(MAX_PROCESSES as usize)?,
        lines: Lines::new(),
        trace: TraceOwner::new(),
    };
    if !RECORDS.set_rooms(threads, processes, objects) || !CPUS.set(cpus) {
        defect("the system's tables are made twice");
    }
    RINGS.call_once(|| rings);
    smp_lock::watch(&WATCH);
    Ok(())
}

fn leak<T>(items: impl Iterator<Item = T>) -> Result<&'static [T], OutOfMemory> {
    let items: Vec<T> = try_collect(items)?;
    Ok(try_leak(items)?.as_slice())
}

/// Whether the system is up.
#[inline]
pub fn is_up() -> bool {
    RINGS.is_completed()
}

/// What all rings share; user mode and everything that follows from it runs only once it is there.
#[inline]
pub fn rings() -> &'static Tables {
    match RINGS.get() {
        Some(rings) => rings,
        None => defect("the system's tables are used before they are made"),
    }
}

/// The CPUs, by number.
#[inline(always)]
pub fn cpus() -> &'static [Cpu] {
    CPUS.as_slice()
}

/// The CPU of that number.
#[inline(always)]
pub fn cpu(id: CpuId) -> Option<&'static Cpu> {
    CPUS.get(id.index())
}

/// The CPU this runs on.
#[inline(always)]
pub fn here() -> &'static Cpu {
    match CPUS.get(cpu::this().index() as usize) {
        Some(cpu) => cpu,
        None => defect("a CPU without a record"),
    }
}

/// Stops the machine: the kernel contradicts itself.
#[cold]
#[allow(
    clippy::panic,
    reason = "what user programs do never leads here; going on would corrupt them"
)]
pub fn defect(what: &str) -> ! {
    panic!("kernel defect: {what}")
}
