//! Address spaces as CPUs see them: a root, and who has it loaded.
//!
//! A CPU says that it is resident before it loads the root and takes that back after it has loaded
//! another. Whoever takes a translation away changes the tables first and then posts a request, which looks
//! who is resident: a CPU that is not in the set had no chance to see the old tables. Those in the set are
//! asked to flush, and answer in their interrupt. What orders all this is `core_tlb`; here is what it does to
//! the hardware.

use crate::cpu::{self, PerCpu};
use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core_address::{Frame, PAGE_SIZE, VirtAddr};
pub use core_tlb::CpuSet;
use core_tlb::{Permit, Resident, Residents, Shootdown, Token};

/// CPUs that can be in a resident set.
pub const MAX_CPUS: usize = CpuSet::MAX_CPUS;

/// In the place of a number of contexts: there are no tables.
const CLOSED: u32 = u32::MAX;

/// Requests that may be open at a time: more than there can be pending operations, each of which has a cell
/// that its process paid for.
const MAX_REQUESTS: u32 = 1 << 20;

/// Pages of this CPU's that are forgotten one by one; beyond, all of user mode's at once are cheaper.
const PAGES_ONE_BY_ONE: u64 = 16;

/// The flushes that CPUs were asked for.
static SHOOTDOWN: Shootdown<MAX_CPUS> = Shootdown::new(MAX_REQUESTS);

/// Flushes that each CPU was asked for, by other CPUs.
static ASKED: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];
/// Flushes that each CPU wanted to ask for and might not.
static REFUSED: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// What one CPU has to do with flushes, since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushesOf {
    /// How often others asked it.
    pub asked: u64,
    /// How often it was refused the right to ask, because as many flushes as there may be were not over.
    pub refused: u64,
}

/// What a CPU has to do with flushes.
pub fn flushes_of(cpu: usize) -> FlushesOf {
    let count = |counts: &[AtomicU64; MAX_CPUS]| {
        counts.get(cpu).map_or(0, |count| count.load(Ordering::Relaxed))
    };
    FlushesOf { asked: count(&ASKED), refused: count(&REFUSED) }
}

fn count_one(counts: &[AtomicU64; MAX_CPUS], cpu: usize) {
    if let Some(count) = counts.get(cpu) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts openings of address spaces. Zero is none.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

/// A bit of a CPU's way into address spaces: its place in resident sets is in their second word.
const WAY_HIGH: u8 = 1 << 0;
/// Another: predictions learned in one address space are forgotten before the next.
pub(crate) const WAY_BARRIER: u8 = 1 << 1;

/// A CPU's way into address spaces, as far as its place in resident sets decides it.
pub(crate) const fn entry_way_of(cpu: Resident) -> u8 {
    if cpu.is_high() { WAY_HIGH } else { 0 }
}

/// A root of page tables that contexts run in.
#[derive(Debug)]
pub struct Space {
    /// What goes into CR3.
    cr3: AtomicU64,
    /// Which opening of all there were this one is: no two have the same.
    identity: AtomicU64,
    /// CPUs that have it loaded, or are about to.
    residents: Residents,
    /// Contexts made for it that have not been taken apart, or [`CLOSED`].
    contexts: AtomicU32,
}

/// The right to ask for one flush, taken before tables change.
#[derive(Debug)]
#[must_use = "tables are changed between the permit and its request"]
pub struct FlushPermit(Permit<'static, MAX_CPUS>);

/// As many flushes as there may be are not over. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyFlushes;

/// A flush that other CPUs were asked for.
#[derive(Debug)]
#[must_use = "what was taken away may be used again only when it is over"]
pub struct Flush(Token);

impl FlushPermit {
    /// Asks for room for one request.
    pub fn new() -> Result<Self, TooManyFlushes> {
        SHOOTDOWN.begin().map(Self).map_err(|_| {
            count_one(&REFUSED, cpu::this().index() as usize);
            TooManyFlushes
        })
    }
}

impl Flush {
    /// Whether every CPU asked has flushed.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.0.is_done(&SHOOTDOWN)
    }

    /// Ends the request if every CPU asked has flushed; else it comes back.
    #[inline]
    pub fn finish(self) -> Result<(), Self> {
        self.0.finish(&SHOOTDOWN).map_err(Self)
    }
}

impl Space {
    /// Without tables.
    pub const fn new() -> Self {
        Self {
            cr3: AtomicU64::new(0),
            identity: AtomicU64::new(0),
            residents: Residents::new(),
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

    /// The CPUs that have it loaded, as a guess.
    pub fn resident(&self) -> CpuSet {
        self.residents.glance()
    }

    /// Whether this CPU has it loaded; it stays so while the thread that asks is not switched from.
    #[inline(always)]
    pub fn is_loaded_here(&self) -> bool {
        core::ptr::eq(cpu::this().space.load(Ordering::Relaxed), self)
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
        self.residents.enter_low(cpu.resident);
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
        self.residents.enter(cpu.resident);
        // SAFETY: as in `enter`.
        unsafe { load(self.cr3.load(Ordering::Relaxed)) };
    }

    /// Takes back that a CPU has it loaded: it has loaded other tables.
    #[inline]
    pub(crate) fn leave(&self, cpu: Resident) {
        self.residents.leave(cpu);
    }

    /// After the translations of some pages were taken from the tables, or narrowed: forgets them on this CPU.
    /// The second is the CPUs that are to be interrupted and to call [`flush_if_requested`]: those that others
    /// wait for as well are on their way.
    pub fn request_flush(
        &self,
        permit: FlushPermit,
        start: VirtAddr,
        pages: u64,
    ) -> (Flush, CpuSet) {
        let posted = permit.0.post(&self.residents, cpu::this().index() as usize);
        if posted.flush_here {
            forget(start, pages);
        }
        posted.token.cpus().iter().for_each(|cpu| count_one(&ASKED, cpu));
        (Flush(posted.token), posted.interrupt)
    }
}

impl Default for Space {
    fn default() -> Self {
        Self::new()
    }
}

/// Forgets this CPU's translations of user pages, and what it remembers of the tables on the way.
fn forget(start: VirtAddr, pages: u64) {
    if pages > PAGES_ONE_BY_ONE {
        return forget_all();
    }
    for page in (0..pages).filter_map(|n| start.checked_add(n * PAGE_SIZE)) {
        super::flush(page);
    }
}

/// Forgets this CPU's translations of all user pages.
fn forget_all() {
    // SAFETY: loads what is loaded; translations that are not global are forgotten.
    unsafe { load(super::current_root().start().as_u64()) };
}

/// Answers the requests to this CPU that it has not answered. In the interrupt that comes with one, and
/// wherever else one may have come since.
pub fn flush_if_requested() {
    SHOOTDOWN.drain(cpu::this().index() as usize, forget_all);
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
