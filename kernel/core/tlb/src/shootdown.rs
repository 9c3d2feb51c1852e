//! Requests to flush, and their answers.

use abi_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::{CpuSet, Residents, Token};

/// The last number a request can have; at a billion requests a second it takes centuries.
const LAST: u64 = u64::MAX - 1;

/// What one CPU was asked for and has done. On a line of its own: its CPU looks at it on every
/// way out of the kernel.
#[derive(Debug)]
#[repr(align(64))]
struct Line {
    /// The largest number it was asked to flush for.
    wanted: AtomicU64,
    /// The largest number it has flushed for.
    flushed: AtomicU64,
}

/// The flushes of a machine.
#[derive(Debug)]
pub struct Shootdown<const CPUS: usize> {
    /// The number of the latest request.
    generation: AtomicU64,
    /// Requests that are permitted and not finished.
    open: AtomicU32,
    limit: u32,
    cpus: [Line; CPUS],
}

/// Why nothing may be taken away at this time. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginError {
    /// As many requests as there may be are not finished: finish one, or come back.
    TooMany,
    /// There are no numbers left.
    Exhausted,
}

/// The right to post one request; dropped, it goes back.
#[derive(Debug)]
#[must_use = "tables are changed between the permit and its post"]
pub struct Permit<'s, const CPUS: usize> {
    shootdown: &'s Shootdown<CPUS>,
}

/// A request was posted.
#[derive(Debug)]
#[must_use]
pub struct Posted {
    /// Says when it is over.
    pub token: Token,
    /// CPUs to be interrupted: those among the waited for that have no interrupt on its way.
    pub interrupt: CpuSet,
    /// This CPU has the space loaded and flushes at once; it is not waited for.
    pub flush_here: bool,
}

impl<const CPUS: usize> Shootdown<CPUS> {
    /// Nothing asked; at most `limit` requests are open at a time.
    #[cfg(not(loom))]
    pub const fn new(limit: u32) -> Self {
        Self::starting_at(limit, 0)
    }

    /// As [`new`](Self::new), with the number of the latest request.
    #[cfg(not(loom))]
    pub const fn starting_at(limit: u32, generation: u64) -> Self {
        Self {
            generation: AtomicU64::new(generation),
            open: AtomicU32::new(0),
            limit,
            cpus: [const { Line { wanted: AtomicU64::new(0), flushed: AtomicU64::new(0) } }; CPUS],
        }
    }

    /// Nothing asked; at most `limit` requests are open at a time.
    #[cfg(loom)]
    pub fn new(limit: u32) -> Self {
        let line = |_| Line { wanted: AtomicU64::new(0), flushed: AtomicU64::new(0) };
        Self {
            generation: AtomicU64::new(0),
            open: AtomicU32::new(0),
            limit,
            cpus: core::array::from_fn(line),
        }
    }

    /// Asks for room for one request, before any table changes.
    pub fn begin(&self) -> Result<Permit<'_, CPUS>, BeginError> {
        // Relaxed: each open permit uses at most one number.
        if self.generation.load(Ordering::Relaxed) >= LAST.saturating_sub(u64::from(self.limit)) {
            return Err(BeginError::Exhausted);
        }
        let mut open = self.open.load(Ordering::Relaxed);
        while open < self.limit {
            let next = open.saturating_add(1);
            match self.open.compare_exchange_weak(open, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Ok(Permit { shootdown: self }),
                Err(other) => open = other,
            }
        }
        Err(BeginError::TooMany)
    }

    /// Whether CPU `cpu` has a request to answer; a guess that is right when the interrupt of
    /// the request has come.
    #[inline]
    pub fn is_pending(&self, cpu: usize) -> bool {
        self.cpus.get(cpu).is_some_and(|line| {
            line.wanted.load(Ordering::Relaxed) > line.flushed.load(Ordering::Relaxed)
        })
    }

    /// Answers the requests to CPU `cpu`, which is the caller. `flush` makes it forget every
    /// translation of user addresses. Says whether it had to.
    #[inline]
    pub fn drain(&self, cpu: usize, mut flush: impl FnMut()) -> bool {
        let Some(line) = self.cpus.get(cpu) else { return false };
        let mut had_to = false;
        loop {
            // Acquire: pairs with the Release in `post`; what is walked after the flush sees the
            // changed tables.
            let wanted = line.wanted.load(Ordering::Acquire);
            if wanted <= line.flushed.load(Ordering::Relaxed) {
                return had_to;
            }
            flush();
            had_to = true;
            // Release: pairs with the Acquire in `is_done`; uses of the old translations come
            // before the reuse of what they led to.
            line.flushed.store(wanted, Ordering::Release);
            // The target's half of the pair with the last fence in `post`: answered, fence, look
            // again.
            fence(Ordering::SeqCst);
        }
    }

    /// Whether all CPUs of a request have answered.
    pub(crate) fn is_done(&self, generation: u64, cpus: CpuSet) -> bool {
        cpus.iter().filter_map(|cpu| self.cpus.get(cpu)).all(|line| {
            // Acquire: pairs with the Release in `drain`.
            line.flushed.load(Ordering::Acquire) >= generation
        })
    }

    /// A request is finished, or a permit was not used.
    pub(crate) fn end(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Requests that are not finished.
    pub fn open(&self) -> u32 {
        self.open.load(Ordering::Relaxed)
    }

    /// Checks what holds while nobody is inside an operation.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        let latest = self.generation.load(Ordering::Relaxed);
        for line in &self.cpus {
            let wanted = line.wanted.load(Ordering::Relaxed);
            if wanted > latest {
                return Err("a CPU was asked for a request that does not exist");
            }
            if line.flushed.load(Ordering::Relaxed) > wanted {
                return Err("a CPU answered what it was not asked");
            }
        }
        if self.open.load(Ordering::Relaxed) > self.limit {
            return Err("more requests are open than may be");
        }
        Ok(())
    }
}

impl<const CPUS: usize> Permit<'_, CPUS> {
    /// Posts the request, after the tables of the space have changed. `here` is the caller's
    /// own CPU.
    pub fn post(self, residents: &Residents, here: usize) -> Posted {
        let shootdown = self.shootdown;
        // AcqRel: with the increments of other requests. A CPU that answers a later request has
        // seen the tables of this one too, though it may never see its number.
        let generation = shootdown.generation.fetch_add(1, Ordering::AcqRel).saturating_add(1);
        let resident = residents.look();
        let others = resident.without(here);
        let mut interrupt = CpuSet::NONE;
        for (cpu, line) in others.iter().filter_map(|cpu| Some((cpu, shootdown.cpus.get(cpu)?))) {
            // Release: pairs with the Acquire in `drain`.
            let before = line.wanted.fetch_max(generation, Ordering::Release);
            // The poster's half of the pair with the fence in `drain`: asked, fence, look whether
            // an earlier request is still to be answered.
            fence(Ordering::SeqCst);
            let flushed = line.flushed.load(Ordering::Relaxed);
            if flushed >= before && flushed < generation {
                interrupt = interrupt.with(cpu);
            }
        }
        // The token takes the permit's place among the open ones.
        core::mem::forget(self);
        Posted {
            token: Token::new(generation, others),
            interrupt,
            flush_here: resident.contains(here),
        }
    }
}

impl<const CPUS: usize> Drop for Permit<'_, CPUS> {
    fn drop(&mut self) {
        self.shootdown.end();
    }
}
