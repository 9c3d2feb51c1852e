//! What is traced, and since when.

use abi_sync::atomic::{AtomicU32, Ordering};

/// The switch of the trace; one for the machine, in memory that every CPU only reads while nobody
/// changes it.
#[derive(Debug)]
pub struct Control {
    /// A bit per category that is recorded.
    categories: AtomicU32,
    /// How often it was started.
    session: AtomicU32,
}

/// One start of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session(pub(crate) u32);

impl Control {
    /// Off.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { categories: AtomicU32::new(0), session: AtomicU32::new(0) }
    }

    /// Off.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { categories: AtomicU32::new(0), session: AtomicU32::new(0) }
    }

    /// Whether any of these categories is recorded.
    #[inline(always)]
    pub fn is_on(&self, categories: u32) -> bool {
        // Relaxed: a point that sees a start or stop a little later is a little later.
        self.categories.load(Ordering::Relaxed) & categories != 0
    }

    /// A bit per category that is recorded now; 0 while the trace is off.
    pub fn categories(&self) -> u32 {
        self.categories.load(Ordering::Relaxed)
    }

    /// The latest session; what its buffers hold stays readable until the next.
    pub fn session(&self) -> Session {
        // Relaxed: buffers of another session are told apart by its number.
        Session(self.session.load(Ordering::Relaxed))
    }

    /// Begins a session in which these categories are recorded.
    pub fn start(&self, categories: u32) -> Session {
        let before = self.session.fetch_add(1, Ordering::Relaxed);
        // A point that sees the categories and still the old session writes to the old session,
        // which nobody asks for any more.
        self.categories.store(categories, Ordering::Relaxed);
        Session(before.wrapping_add(1))
    }

    /// Records no more. A CPU that is in the middle of a record still finishes it.
    pub fn stop(&self) {
        self.categories.store(0, Ordering::Relaxed);
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}
