//! The account.

use abi_sync::atomic::{AtomicU32, Ordering};

use crate::word::{Denied, Purpose, Word};
use crate::{Counted, Line, MAX_LIMIT, Profile, Reading, Reservation};

/// The account of one process.
#[derive(Debug)]
pub struct Ledger {
    lines: [Entry; Line::COUNT],
}

/// A line and its limit, which changes only while the account is closed and settled.
#[derive(Debug)]
struct Entry {
    word: Word,
    limit: AtomicU32,
}

/// Why nothing was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeError {
    /// The account was closed because its process is ending.
    Closed,
    /// The line has less left than asked for.
    Exhausted {
        /// The line that has too little.
        line: Line,
        /// How many were asked for.
        wanted: u32,
        /// The line at that moment.
        reading: Reading,
    },
}

/// The account still has charges or loans, or was not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsettled;

impl Ledger {
    /// An open account with these limits and nothing charged.
    #[cfg(not(loom))]
    pub const fn new(profile: &Profile) -> Self {
        const fn entry(profile: &Profile, line: Line) -> Entry {
            Entry { word: Word::new(), limit: AtomicU32::new(limit_of(profile, line)) }
        }
        Self {
            lines: [
                entry(profile, Line::CapSlots),
                entry(profile, Line::Threads),
                entry(profile, Line::KernelStackPages),
                entry(profile, Line::Frames),
                entry(profile, Line::SleepWaiters),
                entry(profile, Line::KernelBytes),
                entry(profile, Line::RegisteredBuffers),
            ],
        }
    }

    /// An open account with these limits and nothing charged.
    #[cfg(loom)]
    pub fn new(profile: &Profile) -> Self {
        let entry =
            |line| Entry { word: Word::new(), limit: AtomicU32::new(limit_of(profile, line)) };
        Self { lines: Line::ALL.map(entry) }
    }

    /// Reserves `count` of a line. Commit it when what it pays for exists, or drop it.
    #[inline]
    pub fn reserve<L: Counted>(&self, _: L, count: u32) -> Result<Reservation<'_, L>, ChargeError> {
        self.reserve_line(count)
    }

    #[inline]
    pub(crate) fn reserve_line<L: Counted>(
        &self,
        count: u32,
    ) -> Result<Reservation<'_, L>, ChargeError> {
        match self.take(L::LINE, Purpose::Use, count) {
            Ok(()) => Ok(Reservation::taken(self, count)),
            Err(denied) => Err(ChargeError::from_denied(denied, L::LINE, count)),
        }
    }

    /// What is used, lent and allowed of a line.
    pub fn reading(&self, line: Line) -> Reading {
        let entry = self.entry(line);
        // Relaxed: the limit does not change while the account is in use.
        entry.word.reading(entry.limit.load(Ordering::Relaxed))
    }

    /// What it has lent, line by line.
    pub fn lent(&self) -> Profile {
        Profile {
            cap_slots: self.reading(Line::CapSlots).lent,
            threads: self.reading(Line::Threads).lent,
            kernel_stack_pages: self.reading(Line::KernelStackPages).lent,
            frames: self.reading(Line::Frames).lent,
            sleep_waiters: self.reading(Line::SleepWaiters).lent,
            kernel_bytes: self.reading(Line::KernelBytes).lent,
            registered_buffers: self.reading(Line::RegisteredBuffers).lent,
            ..Profile::NONE
        }
    }

    /// Ends the account: nothing is charged or lent any more.
    pub fn close(&self) {
        for entry in &self.lines {
            entry.word.close();
        }
    }

    /// Whether nothing is charged. Asked after [`close`](Self::close), a `true` is final, and
    /// comes after everything that was done before each release.
    pub fn is_zero(&self) -> bool {
        self.lines.iter().all(|entry| entry.word.settled().used == 0)
    }

    /// Whether, beyond that, everything lent has come back.
    pub fn is_settled(&self) -> bool {
        self.lines.iter().all(|entry| {
            let reading = entry.word.settled();
            reading.used == 0 && reading.lent == 0
        })
    }

    /// Makes a closed and settled account the account of another process. Only the owner of
    /// the record calls it, when nothing that could still charge the old process can find it.
    pub fn reopen(&self, profile: &Profile) -> Result<(), Unsettled> {
        if !self.lines.iter().all(|entry| entry.word.is_closed()) || !self.is_settled() {
            return Err(Unsettled);
        }
        for (entry, line) in self.lines.iter().zip(Line::ALL) {
            entry.limit.store(limit_of(profile, line), Ordering::Relaxed);
            if !entry.word.reopen() {
                return Err(Unsettled);
            }
        }
        Ok(())
    }

    /// Checks what holds at every moment.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        for line in Line::ALL {
            let reading = self.reading(line);
            let taken = u64::from(reading.used).saturating_add(u64::from(reading.lent));
            if taken > u64::from(reading.limit) {
                return Err("more is used and lent than the limit");
            }
        }
        let closed = self.lines.iter().filter(|entry| entry.word.is_closed()).count();
        if closed != 0 && closed != Line::COUNT {
            return Err("some lines are closed and some are not");
        }
        Ok(())
    }

    pub(crate) fn take(&self, line: Line, purpose: Purpose, count: u32) -> Result<(), Denied> {
        let entry = self.entry(line);
        // Relaxed: as in `reading`.
        entry.word.take(purpose, count, entry.limit.load(Ordering::Relaxed))
    }

    pub(crate) fn give(&self, line: Line, purpose: Purpose, count: u32) {
        self.entry(line).word.give(purpose, count);
    }

    #[inline]
    fn entry(&self, line: Line) -> &Entry {
        let [cap_slots, threads, kernel_stack_pages, frames, sleep_waiters, kernel_bytes, buffers] =
            &self.lines;
        match line {
            Line::CapSlots => cap_slots,
            Line::Threads => threads,
            Line::KernelStackPages => kernel_stack_pages,
            Line::Frames => frames,
            Line::SleepWaiters => sleep_waiters,
            Line::KernelBytes => kernel_bytes,
            Line::RegisteredBuffers => buffers,
        }
    }
}

impl ChargeError {
    pub(crate) const fn from_denied(denied: Denied, line: Line, wanted: u32) -> Self {
        match denied {
            Denied::Closed => Self::Closed,
            Denied::Exhausted(reading) => Self::Exhausted { line, wanted, reading },
        }
    }

    /// The error as a sentence, one of its own for each line.
    pub const fn message(&self) -> &'static str {
        match self {
            Self::Closed => "the process is ending",
            Self::Exhausted { line, .. } => line.exhausted(),
        }
    }
}

const fn limit_of(profile: &Profile, line: Line) -> u32 {
    let limit = profile.counted(line);
    if limit < MAX_LIMIT { limit } else { MAX_LIMIT }
}
