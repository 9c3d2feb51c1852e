//! How many handles a process has, and when its record is nobody's.
//!
//! A process does not depend on its handles, nor they on it: what it ended with stays in its record until the last
//! handle is gone. One word says which process of the record is meant, whether it is gone, and how many hold it, so
//! that exactly one of the last release and the process's end gives the record back, and a handle to a process
//! of long ago reaches nothing.

use abi_sync::atomic::{AtomicU64, Ordering};

/// Set when nothing of the process is left but what handles ask for.
const GONE: u64 = 1 << 31;
/// Below it: handles, and calls on one that are in progress.
const COUNT: u64 = GONE - 1;
const GENERATION_SHIFT: u32 = 32;

/// The handles of the process in one record; 0 while there is none.
#[derive(Debug)]
pub struct Handles(AtomicU64);

/// What follows from a release or an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a record that is nobody's is to be given back"]
pub enum HandlesVerdict {
    /// The process lives, or somebody can ask for it.
    Kept,
    /// It is gone and nobody can ask: the record is free.
    Free,
}

impl Handles {
    abi_sync::const_fn! {
        /// Of a record without a process.
        pub fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    /// A process begins with so many handles. By the owner of the free record.
    pub fn begin(&self, generation: u32, count: u32) {
        let word = u64::from(generation) << GENERATION_SHIFT | u64::from(count);
        // Relaxed: what names the process was not given out yet.
        self.0.store(word, Ordering::Relaxed);
    }

    /// One more holds it, if somebody does and it is that process; `false` otherwise.
    #[must_use = "what is not held may be another's"]
    pub fn hold(&self, generation: u32) -> bool {
        let held = |word: u64| {
            let is_its = word >> GENERATION_SHIFT == u64::from(generation);
            (is_its && word & COUNT != 0 && word & COUNT != COUNT).then_some(word + 1)
        };
        // Acquire, pairs with the release of whoever held it before.
        self.0.fetch_update(Ordering::Acquire, Ordering::Relaxed, held).is_ok()
    }

    /// One more holds the record of a process that is not gone, whether anybody does or not: what it lent to another is
    /// to come back to it.
    #[must_use = "what is not held may be another's"]
    pub fn hold_living(&self, generation: u32) -> bool {
        let held = |word: u64| {
            let is_its = word >> GENERATION_SHIFT == u64::from(generation);
            (is_its && word & GONE == 0 && word & COUNT != COUNT).then_some(word + 1)
        };
        // Acquire: as above.
        self.0.fetch_update(Ordering::Acquire, Ordering::Relaxed, held).is_ok()
    }

    /// Whether the record is that process's: it lives, or somebody holds it.
    pub fn is_of(&self, generation: u32) -> bool {
        // Acquire, pairs with the release of whoever gave the record back.
        self.0.load(Ordering::Acquire) >> GENERATION_SHIFT == u64::from(generation)
    }

    /// One that held it does no longer.
    pub fn release(&self, generation: u32) -> HandlesVerdict {
        let released = |word: u64| {
            let is_its = word >> GENERATION_SHIFT == u64::from(generation);
            debug_assert!(is_its && word & COUNT != 0, "released and not held");
            (is_its && word & COUNT != 0).then(|| without(word - 1))
        };
        self.change(released)
    }

    /// Nothing of the process is left but what handles ask for.
    pub fn leave(&self, generation: u32) -> HandlesVerdict {
        self.change(|word| {
            (word >> GENERATION_SHIFT == u64::from(generation)).then(|| without(word | GONE))
        })
    }

    fn change(&self, change: impl Fn(u64) -> Option<u64>) -> HandlesVerdict {
        // AcqRel, pairs with itself: who gives the record back comes after all who held it.
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, &change);
        match before.ok().and_then(change) {
            Some(0) => HandlesVerdict::Free,
            _ => HandlesVerdict::Kept,
        }
    }

    /// Handles, and calls on one that are in progress.
    pub fn count(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) & COUNT) as u32
    }
}

impl Default for Handles {
    fn default() -> Self {
        Self::new()
    }
}

/// The word, or 0 if the process is gone and nobody holds it.
const fn without(word: u64) -> u64 {
    if word & GONE != 0 && word & COUNT == 0 { 0 } else { word }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use HandlesVerdict::{Free, Kept};

    #[test]
    fn the_last_of_end_and_releases_frees_the_record_once() {
        let handles = Handles::new();
        handles.begin(3, 1);
        assert!(handles.hold(3));
        assert_eq!([handles.release(3), handles.leave(3)], [Kept, Kept]);
        assert!(handles.hold(3), "what it ended with can be asked for");
        assert!(handles.is_of(3) && !handles.is_of(1));
        assert_eq!([handles.release(3), handles.release(3)], [Kept, Free]);
        assert!(!handles.hold(3) && !handles.is_of(3), "nobody's");
        handles.begin(5, 1);
        assert_eq!([handles.release(5), handles.leave(5)], [Kept, Free]);
        handles.begin(7, 0);
        assert_eq!(handles.leave(7), Free);
    }

    #[test]
    fn a_handle_of_long_ago_holds_nothing() {
        let handles = Handles::new();
        handles.begin(3, 1);
        assert_eq!([handles.leave(3), handles.release(3)], [Kept, Free]);
        handles.begin(5, 1);
        assert!(!handles.hold(3) && !handles.hold(4) && handles.hold(5));
        assert_eq!(handles.leave(3), Kept);
        assert_eq!(handles.count(), 2);
    }

    /// Every order of steps in which a process ends and its handles are copied and released: the record is free
    /// exactly once, at the end.
    #[test]
    fn in_every_order_the_record_is_free_once() {
        fn go(handles: &Handles, held: u32, copies: u32, has_left: bool, free: u32) {
            let word = handles.0.load(Ordering::Relaxed);
            if held == 0 && has_left {
                return assert_eq!((free, word), (1, 0));
            }
            assert_eq!(free, 0);
            let undo = || handles.0.store(word, Ordering::Relaxed);
            if held > 0 && copies > 0 {
                assert!(handles.hold(9));
                go(handles, held + 1, copies - 1, has_left, free);
                undo();
            }
            if held > 0 {
                let is_free = u32::from(handles.release(9) == Free);
                go(handles, held - 1, copies, has_left, free + is_free);
                undo();
            }
            if !has_left {
                let is_free = u32::from(handles.leave(9) == Free);
                go(handles, held, copies, true, free + is_free);
                undo();
            }
        }
        let handles = Handles::new();
        handles.begin(9, 1);
        go(&handles, 1, 4, false, 0);
    }
}
