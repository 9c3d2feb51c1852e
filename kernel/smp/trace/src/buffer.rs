//! One CPU's records.

use abi_sync::atomic::{AtomicU64, Ordering, fence};

use crate::{RECORD_WORDS, Record, Session};

/// The records of one CPU, over memory from outside. Its CPU writes, everybody reads.
#[derive(Debug)]
pub struct Buffer<S> {
    /// The session in the upper half, how many records of it there are in the lower: one word, so
    /// that nobody takes the count of one session for another's.
    state: AtomicU64,
    /// The session in the upper half, how many records of it had no place in the lower.
    lost: AtomicU64,
    words: S,
}

/// What a look at a buffer found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Portion {
    /// So many records were copied.
    pub copied: usize,
    /// The position after them.
    pub next: u64,
    /// So many were dropped because the buffer was full.
    pub lost: u64,
}

const fn pack(session: Session, count: u32) -> u64 {
    (session.0 as u64) << 32 | count as u64
}

const fn session_of(word: u64) -> Session {
    Session((word >> 32) as u32)
}

/// Truncation takes the lower half.
const fn count_of(word: u64) -> u32 {
    word as u32
}

impl<S: AsRef<[AtomicU64]>> Buffer<S> {
    /// Without records; `words` hold one each four.
    #[cfg(not(loom))]
    pub const fn new(words: S) -> Self {
        Self { state: AtomicU64::new(0), lost: AtomicU64::new(0), words }
    }

    /// Without records; `words` hold one each four.
    #[cfg(loom)]
    pub fn new(words: S) -> Self {
        Self { state: AtomicU64::new(0), lost: AtomicU64::new(0), words }
    }

    /// What it is made of.
    pub const fn memory(&self) -> &S {
        &self.words
    }

    /// So many records fit.
    pub fn capacity(&self) -> usize {
        self.words.as_ref().len() / RECORD_WORDS
    }

    fn place(&self, index: usize) -> Option<&[AtomicU64]> {
        let start = index.checked_mul(RECORD_WORDS)?;
        self.words.as_ref().get(start..start.checked_add(RECORD_WORDS)?)
    }

    /// Adds a record; called by the buffer's own CPU, with interrupts off.
    #[cold]
    #[inline(never)]
    pub fn record(&self, session: Session, record: &Record) {
        // Relaxed: only this CPU changes it.
        let mut state = self.state.load(Ordering::Relaxed);
        if session_of(state) != session {
            state = pack(session, 0);
            self.state.store(state, Ordering::Relaxed);
            self.lost.store(state, Ordering::Relaxed);
            // The writer's half of the pair with the fence in `read`: a reader that sees a word
            // of this session sees that the one before is over.
            fence(Ordering::Release);
        }
        let Some(place) = self.place(count_of(state) as usize) else {
            let lost = self.lost.load(Ordering::Relaxed);
            if count_of(lost) != u32::MAX {
                self.lost.store(lost.wrapping_add(1), Ordering::Relaxed);
            }
            return;
        };
        for (to, word) in place.iter().zip(record.words()) {
            to.store(word, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `read`; the count covers whole records only.
        self.state.store(state.wrapping_add(1), Ordering::Release);
    }

    /// How many records of `session` there are, and how many had no place. On any CPU, at any time.
    pub fn counts(&self, session: Session) -> (u64, u64) {
        let of = |word: u64| if session_of(word) == session { count_of(word).into() } else { 0 };
        // Relaxed: nothing is read that these count.
        (of(self.state.load(Ordering::Relaxed)), of(self.lost.load(Ordering::Relaxed)))
    }

    /// Copies records of `session` from number `position` on into `to`, as many as there are and
    /// fit. On any CPU, at any time.
    pub fn read(&self, session: Session, position: u64, to: &mut [Record]) -> Portion {
        let nothing = Portion { copied: 0, next: position, lost: 0 };
        // Acquire: pairs with the Release in `record`.
        let state = self.state.load(Ordering::Acquire);
        if session_of(state) != session {
            return nothing;
        }
        let there = u64::from(count_of(state)).saturating_sub(position);
        let count = usize::try_from(there).unwrap_or(usize::MAX).min(to.len());
        let first = usize::try_from(position).unwrap_or(usize::MAX);
        let mut copied = 0_usize;
        for (offset, record) in to.iter_mut().take(count).enumerate() {
            let Some(place) = first.checked_add(offset).and_then(|at| self.place(at)) else {
                break;
            };
            let mut words = [0; RECORD_WORDS];
            for (word, from) in words.iter_mut().zip(place) {
                *word = from.load(Ordering::Relaxed);
            }
            *record = Record::of(words);
            copied = copied.saturating_add(1);
        }
        let lost = self.lost.load(Ordering::Relaxed);
        // The reader's half of the pair with the fence in `record`: what was copied is of this
        // session only if the session is still the same afterwards.
        fence(Ordering::Acquire);
        if session_of(self.state.load(Ordering::Relaxed)) != session {
            return nothing;
        }
        let lost = if session_of(lost) == session { u64::from(count_of(lost)) } else { 0 };
        Portion { copied, next: position.saturating_add(copied as u64), lost }
    }
}
