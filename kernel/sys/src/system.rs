//! The tables of the running system: CPUs, threads, processes, timers, parked threads.
//!
//! Made once, when the first process is about to start, and never given back: a record is another
//! thread's or process's in another generation, and stays a record. So everything here is shared by
//! plain references, and names ([`ThreadKey`], process position and generation) are checked where
//! they are used.

use crate::counters::Counters;
use crate::deadlines::Sleep;
use crate::process::Process;
use crate::sched::Cpu;
use crate::thread::Thread;
use alloc::vec::Vec;
#[cfg(checked)]
use core::sync::atomic::AtomicU64;
use core_cmdline::Options;
use core_park::Waiter;
use core_sched::{CpuId, CpuSet};
use core_thread::ThreadKey;
use core_timer::{DeadlineQueue, Timer};
use kernel_arch::cpu::{self, PerCpu};
use kernel_mm::OutOfMemory;
use kernel_mm::fallible::{try_collect, try_leak};
use smp_lock::{LockClass, TicketLock};
use smp_park::ParkTable;
use smp_rq::RunQueue;
use spin::Once;

/// Threads there can be at most, whatever the memory: what is made of each, a record, a waiter and two
/// timers, is made at once and never given back, and `Process::close` looks at every record.
const MAX_THREADS: u64 = 2048;
/// Processes there can be: as for threads; a manifest names fewer.
pub const MAX_PROCESSES: usize = 128;
/// Pending sleeps and call deadlines of all processes together: two for each thread there can be.
const MAX_SLEEPS: usize = 4096;
/// Buckets of the park table, each with a lock of its own: two for each CPU there can be.
const PARK_BUCKETS: usize = 256;

// A pending call names the process that serves it in 24 bits of its cell.
const _: () = assert!(MAX_PROCESSES < 1 << 24);

/// In the place of a thread's position: none.
pub const NO_THREAD: u32 = u32::MAX;

/// What the kernel keeps of one CPU beside the scheduler's part.
pub struct CpuOwn {
    /// The machine's block.
    pub machine: &'static PerCpu,
    /// Deadlines armed here.
    pub timers: TicketLock<DeadlineQueue>,
    /// What it counts. Its own to change.
    pub counters: Counters,
    /// When it last entered the kernel or switched, in ticks. Its own.
    #[cfg(checked)]
    pub section_began: AtomicU64,
}

/// The tables.
pub struct System {
    /// By number.
    pub cpus: &'static [Cpu],
    /// Every CPU that takes threads.
    pub online: CpuSet,
    /// Thread records.
    pub threads: &'static [Thread],
    /// Process records.
    pub processes: &'static [Process],
    /// Timers: one per thread for `cap_enter`, one per thread for PARK, then those of `sleeps`.
    pub timers: &'static [Timer],
    /// What the timers beyond the threads' own are for.
    pub sleeps: &'static [Sleep],
    /// Whether IPC may take its fast path.
    pub has_fast_path: bool,
    /// Threads that wait at addresses.
    pub park: ParkTable<'static, PARK_BUCKETS>,
}

static SYSTEM: Once<System> = Once::new();

/// Makes the tables; once, on the boot CPU.
pub fn create(
    now_ns: u64,
    options: &Options,
    park_secret: [u64; 2],
) -> Result<&'static System, OutOfMemory> {
    let blocks = cpu::all();
    let ids =
        || blocks.iter().enumerate().filter_map(|(n, &machine)| Some((CpuId::new(n)?, machine)));
    let cpus = leak(ids().map(|(id, machine)| {
        let deadlines = DeadlineQueue::new(id.index() as u32);
        let own = CpuOwn {
            machine,
            timers: TicketLock::with_class(LockClass::Deadlines, deadlines),
            counters: Counters::new(),
            #[cfg(checked)]
            section_began: AtomicU64::new(0),
        };
        Cpu::new(RunQueue::with_policy(id, options.policy, now_ns), own)
    }))?;
    let first = CpuId::new(0).ok_or(OutOfMemory)?;
    let threads = thread_count();
    let system = System {
        cpus,
        online: CpuSet::first_n(cpus.len()),
        threads: leak((0..threads).map(|slot| Thread::new(slot, first, slot + 1 < threads)))?,
        processes: leak((0..MAX_PROCESSES).map(|_| Process::new()))?,
        timers: leak((0..2 * threads as usize + MAX_SLEEPS).map(|_| Timer::new()))?,
        sleeps: leak((0..MAX_SLEEPS as u32).map(Sleep::new))?,
        has_fast_path: options.fast_path,
        park: ParkTable::new(leak((0..threads).map(|_| Waiter::new()))?, park_secret),
    };
    smp_lock::watch(|| Some(cpu::this().index() as usize));
    Ok(SYSTEM.call_once(|| system))
}

fn leak<T>(items: impl Iterator<Item = T>) -> Result<&'static [T], OutOfMemory> {
    let items: Vec<T> = try_collect(items)?;
    Ok(try_leak(items)?.as_slice())
}

/// As many threads as a quarter of the memory could hold kernel stacks for.
fn thread_count() -> u32 {
    let frames = kernel_mm::frames::counts().free;
    (frames / 4 / kernel_mm::stack::STACK_PAGES).clamp(16, MAX_THREADS) as u32
}

/// The tables, if the system is up.
#[inline]
pub fn get() -> Option<&'static System> {
    SYSTEM.get()
}

/// The tables; user mode and everything that follows from it runs only once they are there.
#[inline]
pub fn the() -> &'static System {
    match SYSTEM.get() {
        Some(system) => system,
        None => defect("the system's tables are used before they are made"),
    }
}

impl System {
    /// The CPU this runs on.
    #[inline]
    pub fn here(&self) -> &'static Cpu {
        match self.cpus.get(cpu::this().index() as usize) {
            Some(cpu) => cpu,
            None => defect("a CPU without a record"),
        }
    }

    /// The CPU of that number.
    #[inline]
    pub fn cpu(&self, id: CpuId) -> Option<&'static Cpu> {
        self.cpus.get(id.index())
    }

    /// The record at a thread's position, whichever thread is in it.
    #[inline]
    pub fn thread(&self, slot: u32) -> Option<&'static Thread> {
        self.threads.get(slot as usize)
    }

    /// The record of the thread with this name, if it still is that thread's.
    #[inline]
    pub fn thread_named(&self, key: ThreadKey) -> Option<&'static Thread> {
        self.thread(key.slot).filter(|thread| thread.state.load().generation() == key.generation)
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
