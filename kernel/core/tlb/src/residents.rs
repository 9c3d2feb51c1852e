//! Which CPUs have an address space loaded.

use abi_sync::atomic::{AtomicU64, Ordering, fence};

use crate::CpuSet;

/// CPUs in one word.
const WORD: usize = 64;

/// The CPUs that may have translations of one address space; part of the space.
#[derive(Debug)]
pub struct Residents([AtomicU64; 2]);

/// A CPU's place in every resident set, worked out once; one that there cannot be has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    is_high: bool,
    bit: u64,
}

impl Resident {
    /// The place of CPU `cpu`.
    pub const fn of(cpu: usize) -> Self {
        let bit = if cpu < CpuSet::MAX_CPUS { 1 << (cpu % WORD) } else { 0 };
        Self { is_high: cpu / WORD == 1, bit }
    }

    /// Whether it is in the second word of a set.
    pub const fn is_high(self) -> bool {
        self.is_high
    }
}

impl Residents {
    /// None.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self([AtomicU64::new(0), AtomicU64::new(0)])
    }

    /// None.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self([AtomicU64::new(0), AtomicU64::new(0)])
    }

    #[inline]
    fn word(&self, cpu: Resident) -> &AtomicU64 {
        let [low, high] = &self.0;
        if cpu.is_high { high } else { low }
    }

    /// A CPU is about to load the root.
    #[inline]
    pub fn enter(&self, cpu: Resident) {
        // The CPU's half of the pair with the fence in `look`: said, fence, tables walked. A locked
        // instruction is that fence on the machine; the model's atomics are weaker.
        self.word(cpu).fetch_or(cpu.bit, Ordering::SeqCst);
        #[cfg(loom)]
        fence(Ordering::SeqCst);
    }

    /// As [`enter`](Self::enter), for a CPU that is known not to be in the second word.
    #[inline]
    pub fn enter_low(&self, cpu: Resident) {
        debug_assert!(!cpu.is_high, "a CPU of the second word");
        let [low, _] = &self.0;
        low.fetch_or(cpu.bit, Ordering::SeqCst);
        #[cfg(loom)]
        fence(Ordering::SeqCst);
    }

    /// A CPU has loaded another root.
    #[inline]
    pub fn leave(&self, cpu: Resident) {
        // Release: pairs with the Acquire in `look`; its uses of the space come before the reuse of
        // what it does not have to flush any more.
        self.word(cpu).fetch_and(!cpu.bit, Ordering::Release);
    }

    /// The CPUs that have it loaded, asked after the tables were changed.
    #[inline]
    pub(crate) fn look(&self) -> CpuSet {
        // The changer's half of the pair with the fence in `enter`: tables changed, fence, look.
        fence(Ordering::SeqCst);
        let [low, high] = &self.0;
        // Acquire: pairs with the Release in `leave`.
        let (low, high) = (low.load(Ordering::Acquire), high.load(Ordering::Acquire));
        CpuSet::from_bits(u128::from(low) | u128::from(high) << WORD)
    }

    /// The CPUs that have it loaded, as a guess.
    pub fn glance(&self) -> CpuSet {
        let [low, high] = &self.0;
        let (low, high) = (low.load(Ordering::Relaxed), high.load(Ordering::Relaxed));
        CpuSet::from_bits(u128::from(low) | u128::from(high) << WORD)
    }
}

impl Default for Residents {
    fn default() -> Self {
        Self::new()
    }
}
