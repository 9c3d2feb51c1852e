//! Address spaces as CPUs see them: a root, and who has it loaded.
//!
//! A CPU says that it is resident before it loads the root and takes that back after it has loaded
//! another. Whoever takes a translation away changes the tables first and then looks who is
//! resident: a CPU that is not in the set had no chance to see the old tables. Those in the set
//! are asked to flush, and answer with the generation they have flushed up to.

use crate::cpu::{self, PerCpu};
use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use core_address::Frame;

/// CPUs that can be in a resident set.
pub const MAX_CPUS: usize = 128;

/// In the place of a number of contexts: there are no tables.
const CLOSED: u32 = u32::MAX;

/// Counts requests to flush: each gets the next number.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Counts openings of address spaces. Zero is none.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

/// A bit of a CPU's way into address spaces: its place in resident sets is in their second word.
const WAY_HIGH: u8 = 1 << 0;
/// Another: predictions learned in one address space are forgotten before the next.
pub(crate) const WAY_BARRIER: u8 = 1 << 1;

/// A root of page tables that contexts run in.
#[derive(Debug)]
pub struct Space {
    /// What goes into CR3.
    cr3: AtomicU64,
    /// Which opening of all there were this one is: no two have the same.
    identity: AtomicU64,
    /// CPUs that have it loaded, or are about to.
    resident: [AtomicU64; 2],
    /// Contexts made for it that have not been taken apart, or [`CLOSED`].
    contexts: AtomicU32,
}

/// A CPU's place in resident sets; one beyond [`MAX_CPUS`] has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resident {
    is_high: bool,
    bit: u64,
}

impl Resident {
    /// The place of the CPU with that number.
    pub(crate) const fn of(cpu: u32) -> Self {
        let bit = if cpu < MAX_CPUS as u32 { 1 << (cpu % 64) } else { 0 };
        Self { is_high: cpu / 64 == 1, bit }
    }

    /// Its way into address spaces, as far as the place decides it.
    pub(crate) const fn entry_way(self) -> u8 {
        if self.is_high { WAY_HIGH } else { 0 }
    }
}

/// CPUs, bit n for number n.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuSet(pub u128);

/// A flush that CPUs were asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlushRequest {
    generation: u64,
    cpus: CpuSet,
}

impl Space {
    /// Without tables.
    pub const fn new() -> Self {
        Self {
            cr3: AtomicU64::new(0),
            identity: AtomicU64::new(0),
            resident: [const { AtomicU64::new(0) }; 2],
            contexts: AtomicU32::new(CLOSED),
        }
    }

    /// Gives it tables.
    ///
    /// # Safety
    /// The tables have the kernel's half of the root and stay valid until [`Self::close`] succeeds.
    pub unsafe fn open(&self, root: Frame) {
        self.cr3.store(root.start().as_u64(), Ordering::Relaxed);
        self.identity.store(OPENINGS.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Release, pairs with the acquire in `hold`.
        self.contexts.store(0, Ordering::Release);
    }

    /// Takes its tables away: no CPU has them loaded, and none will. `Err` says how many contexts
    /// are made for it.
    ///
    /// # Safety
    /// Called once for each [`Self::open`].
    pub unsafe fn close(&self) -> Result<(), u32> {
        // A CPU has the tables of the context it runs, and a context holds its space until it is
        // taken apart. Acquire, pairs with the release in `release`.
        self.contexts.compare_exchange(0, CLOSED, Ordering::Acquire, Ordering::Relaxed).map(|_| ())
    }

    /// Adds a context; `false` if there are no tables.
    pub(crate) fn hold(&self) -> bool {
        // Acquire, pairs with the release in `open`.
        self.contexts
            .try_update(Ordering::Acquire, Ordering::Relaxed, |n| (n < CLOSED - 1).then(|| n + 1))
            .is_ok()
    }

    /// Release, pairs with the acquire in `close`.
    pub(crate) fn release(&self) {
        self.contexts.fetch_sub(1, Ordering::Release);
    }

    /// The CPUs that have it loaded.
    pub fn resident(&self) -> CpuSet {
        let [low, high] = &self.resident;
        CpuSet(
            u128::from(low.load(Ordering::Relaxed))
                | u128::from(high.load(Ordering::Relaxed)) << 64,
        )
    }

    /// Where a CPU says that it is resident.
    #[inline]
    fn word(&self, cpu: Resident) -> &AtomicU64 {
        let [low, high] = &self.resident;
        if cpu.is_high { high } else { low }
    }

    /// Makes this CPU use the space.
    ///
    /// # Safety
    /// It has tables, and a context made for it keeps them while they are loaded.
    #[inline]
    pub(crate) unsafe fn enter(&self, cpu: &PerCpu) {
        // One test for what most CPUs have none of.
        if cpu.entry_way.load(Ordering::Relaxed) != 0 {
            // SAFETY: by the contract.
            return unsafe { self.enter_otherwise(cpu) };
        }
        let [low, _] = &self.resident;
        // SeqCst, pairs with the fence in `request_flush`: said before the tables are walked.
        low.fetch_or(cpu.resident.bit, Ordering::SeqCst);
        // SAFETY: the kernel's half is the same in all tables, so everything in use stays.
        unsafe { load(self.cr3.load(Ordering::Relaxed)) };
    }

    /// As [`Self::enter`], on a CPU of the second word or one that forgets predictions.
    ///
    /// # Safety
    /// As for [`Self::enter`].
    #[cold]
    #[inline(never)]
    unsafe fn enter_otherwise(&self, cpu: &PerCpu) {
        if cpu.entry_way.load(Ordering::Relaxed) & WAY_BARRIER != 0 {
            cpu.predictions.belong_to(self.identity.load(Ordering::Relaxed));
        }
        // SeqCst, as in `enter`.
        self.word(cpu.resident).fetch_or(cpu.resident.bit, Ordering::SeqCst);
        // SAFETY: as in `enter`.
        unsafe { load(self.cr3.load(Ordering::Relaxed)) };
    }

    /// Takes back that a CPU has it loaded.
    #[inline]
    pub(crate) fn leave(&self, cpu: Resident) {
        // Release: the load of other tables came before.
        self.word(cpu).fetch_and(!cpu.bit, Ordering::Release);
    }

    /// After a translation was taken from the tables: forgets it on this CPU, and says which other
    /// CPUs have to. They are to be interrupted and to call [`flush_requested`].
    #[must_use = "the CPUs have to be interrupted, and waited for"]
    pub fn request_flush(&self) -> FlushRequest {
        // AcqRel, pairs with the acquire in `flush_requested`: a CPU that sees the number sees the
        // changed tables.
        let generation = GENERATION.fetch_add(1, Ordering::AcqRel) + 1;
        // Pairs with the SeqCst in `enter`: tables changed, fence, look.
        fence(Ordering::SeqCst);
        let me = cpu::this().index();
        let resident = self.resident().0;
        if resident >> me & 1 == 1 {
            flush_requested();
        }
        FlushRequest { generation, cpus: CpuSet(resident & !(1 << me)) }
    }
}

impl Default for Space {
    fn default() -> Self {
        Self::new()
    }
}

impl CpuSet {
    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their numbers.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_CPUS).filter(move |cpu| self.0 >> cpu & 1 == 1)
    }
}

impl FlushRequest {
    /// The CPUs to be interrupted.
    pub const fn cpus(&self) -> CpuSet {
        self.cpus
    }

    /// Whether every CPU asked has flushed.
    pub fn is_done(&self) -> bool {
        self.cpus.iter().all(|index| {
            // Acquire, pairs with the release in `flush_requested`.
            cpu::all()
                .get(index)
                .is_none_or(|cpu| cpu.flushed.load(Ordering::Acquire) >= self.generation)
        })
    }
}

/// Forgets this CPU's translations of user addresses, and says up to which request it has.
pub fn flush_requested() {
    let cpu: &PerCpu = cpu::this();
    // Acquire, pairs with the increment in `request_flush`.
    let generation = GENERATION.load(Ordering::Acquire);
    // SAFETY: loads what is loaded; translations that are not global are forgotten.
    unsafe { load(super::current_root().start().as_u64()) };
    // Release, pairs with the acquire in `is_done`.
    cpu.flushed.store(generation, Ordering::Release);
}

/// Forgets them if there is a request this CPU has not answered.
pub(crate) fn flush_if_requested() {
    // Relaxed: a request that is not seen here sends an interrupt that comes after.
    if cpu::this().flushed.load(Ordering::Relaxed) != GENERATION.load(Ordering::Relaxed) {
        flush_requested();
    }
}

/// Loads CR3.
///
/// # Safety
/// The tables have the kernel's half and stay valid while loaded.
#[inline]
pub(crate) unsafe fn load(cr3: u64) {
    // SAFETY: by the contract everything in use stays where it is.
    unsafe { asm!("mov cr3, {}", in(reg) cr3, options(nostack, preserves_flags)) };
}
