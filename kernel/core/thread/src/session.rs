//! A session: whether it is live, and how many processes it has.
//!
//! It is of the process that began it, in whose record the word lies; that record is not another's as long as anybody
//! belongs to the session or can ask for it. So a session's name is that process's, and is never used again.

use abi_sync::atomic::{AtomicU64, Ordering};

/// Set until it is ended.
const LIVE: u64 = 1 << 31;
/// Below it: processes.
const COUNT: u64 = LIVE - 1;
const GENERATION_SHIFT: u32 = 32;

/// The session that the process in one record began, if it did; 0 without.
#[derive(Debug)]
pub struct Session(AtomicU64);

/// What a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Nobody has ended it.
    pub is_live: bool,
    /// Processes that belong to it.
    pub processes: u32,
}

impl Session {
    abi_sync::const_fn! {
        /// None.
        pub fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    /// The process of that generation begins one, and belongs to it. By the owner of the new record.
    pub fn begin(&self, generation: u32) {
        // Relaxed: what names the session was not given out yet.
        self.0.store(u64::from(generation) << GENERATION_SHIFT | LIVE | 1, Ordering::Relaxed);
    }

    fn change(&self, generation: u32, change: impl Fn(u64) -> u64) -> Option<u64> {
        let its =
            |word: u64| (word >> GENERATION_SHIFT == u64::from(generation)).then(|| change(word));
        // Relaxed: nothing else is read by what the word says.
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, its).ok()
    }

    /// One more process belongs to it; `false` if it is not that session.
    #[must_use = "who did not join does not leave"]
    pub fn join(&self, generation: u32) -> bool {
        self.change(generation, |word| word + u64::from(word & COUNT != COUNT)).is_some()
    }

    /// A process that belonged to it is gone.
    pub fn leave(&self, generation: u32) {
        let before = self.change(generation, |word| word - u64::from(word & COUNT != 0));
        debug_assert!(before.is_some_and(|word| word & COUNT != 0), "left and not joined");
    }

    /// Ends it; whether it was live, or `None` if it is not that session.
    pub fn end(&self, generation: u32) -> Option<bool> {
        self.change(generation, |word| word & !LIVE).map(|before| before & LIVE != 0)
    }

    /// What it is, if it is that session.
    pub fn view(&self, generation: u32) -> Option<SessionView> {
        let word = self.0.load(Ordering::Relaxed);
        (word >> GENERATION_SHIFT == u64::from(generation) && generation != 0)
            .then_some(SessionView { is_live: word & LIVE != 0, processes: (word & COUNT) as u32 })
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_counts_its_processes_and_ends_once() {
        let session = Session::new();
        assert_eq!(session.view(3), None);
        session.begin(3);
        assert!(session.join(3) && session.join(3));
        assert_eq!(session.view(3), Some(SessionView { is_live: true, processes: 3 }));
        session.leave(3);
        assert_eq!([session.end(3), session.end(3)], [Some(true), Some(false)]);
        assert_eq!(session.view(3), Some(SessionView { is_live: false, processes: 2 }));
        assert!(session.join(3), "its processes go on");
        assert_eq!(session.view(3), Some(SessionView { is_live: false, processes: 3 }));
    }

    #[test]
    fn another_ones_name_does_nothing() {
        let session = Session::new();
        assert!(!session.join(0) || session.view(0).is_none());
        session.begin(5);
        assert!(!session.join(3) && session.end(3).is_none() && session.view(3).is_none());
        assert_eq!(session.view(5), Some(SessionView { is_live: true, processes: 1 }));
        session.begin(7);
        assert_eq!((session.end(5), session.end(7)), (None, Some(true)));
    }
}
