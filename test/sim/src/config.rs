//! What a run is made of, and what operations cost.

use core_sched::{CpuId, CpuSet};
use kernel_dispatch::Defect;

/// What operations take, in ns of the CPU that does them.
///
/// One instruction counts as one ns, as in the deterministic lane; the instructions are those
/// counted in docs/book/figures.md, and where nothing is counted yet, a guess on the high side.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Choosing and switching: the queue's part (about 600), registers and extended state.
    pub switch_ns: u64,
    /// Page tables of another process: the load and the misses after it.
    pub space_ns: u64,
    /// Holding a queue lock for one operation; another CPU that wants it waits.
    pub lock_ns: u64,
    /// Waking: the state word, placement, the interrupt command.
    pub wake_ns: u64,
    /// From the command to the first instruction of the target's handler, at least; at most
    /// twice that.
    pub ipi_ns: u64,
    /// The handler.
    pub interrupt_ns: u64,
    /// A call or reply beside the switch.
    pub ipc_ns: u64,
    /// Looking at one other CPU's hint, a cache line away.
    pub glance_ns: u64,
    /// Cold caches of a thread that changed CPUs.
    pub migration_ns: u64,
    /// Any other system call.
    pub call_ns: u64,
}

impl Costs {
    /// The usual machine.
    pub const USUAL: Self = Self {
        switch_ns: 1_000,
        space_ns: 800,
        lock_ns: 250,
        wake_ns: 400,
        ipi_ns: 1_000,
        interrupt_ns: 400,
        ipc_ns: 700,
        glance_ns: 30,
        migration_ns: 5_000,
        call_ns: 200,
    };
}

/// A bug planted in the driver; the checks have to find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// None.
    #[default]
    None,
    /// That one, once in so many times that it could be.
    Planted(Defect, u64),
}

impl Fault {
    pub(crate) fn is(self, defect: Defect) -> bool {
        matches!(self, Self::Planted(planted, _) if planted == defect)
    }

    pub(crate) fn one_in(self) -> u64 {
        match self {
            Self::None => u64::MAX,
            Self::Planted(_, one_in) => one_in,
        }
    }
}

/// A run, but for its workload.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// CPUs, 1 to 128.
    pub cpus: usize,
    /// Hardware threads of a core; neighbours in number.
    pub threads_per_core: usize,
    /// Where chance comes from.
    pub seed: u64,
    /// What operations cost.
    pub costs: Costs,
    /// A planted bug.
    pub fault: Fault,
    /// Whether a crowded CPU gives threads away.
    pub balances: bool,
    /// The longest an idle CPU sleeps. Without end, unless a test is about that: a look around now and
    /// then would hide wakes that were missed.
    pub max_sleep_ns: Option<u64>,
    /// Whether to keep a timeline.
    pub traces: bool,
}

impl Config {
    /// The usual machine with that many CPUs.
    pub fn new(cpus: usize, seed: u64) -> Self {
        assert!((1..=core_sched::MAX_CPUS).contains(&cpus), "1 to 128 CPUs, not {cpus}");
        Self {
            cpus,
            threads_per_core: 1,
            seed,
            costs: Costs::USUAL,
            fault: Fault::None,
            balances: true,
            max_sleep_ns: None,
            traces: false,
        }
    }

    /// Every CPU of the machine.
    pub fn all(&self) -> CpuSet {
        CpuSet::first_n(self.cpus)
    }

    /// The CPUs of the core that `cpu` belongs to.
    pub fn siblings(&self, cpu: CpuId) -> CpuSet {
        let width = self.threads_per_core;
        let first = cpu.index() / width * width;
        CpuSet::from_bits(CpuSet::first_n(width).to_bits() << first).and(self.all())
    }
}
