//! A place for a registered buffer: used by many CPUs without a lock, and emptied once, when nobody uses it any more.
//!
//! A place is free, or open: it holds a buffer, and counts who uses it. Operations that name the buffer
//! [`hold`](Place::hold) it from their acceptance to their completion; whoever copies [`look`](Place::look)s at it for as
//! long as one section of kernel code. Who closes an open place holds it too, until it has said who is to be told; from
//! then on no operation begins to use it, and those that do go on. The last to leave a closing place gets
//! [`Left::Last`], and empties it: [`take`](Place::take), and [`free`](Place::free) when all is put away.
//!
//! # Why nobody looks at a buffer that is gone
//!
//! - A buffer is taken out of a closing place without users, by one exchange of the word; the word of such a place counts
//!   no user any more, because neither `hold` nor `look` raises a count of zero there.
//! - `leave` releases, and `take` acquires: every look came before.
//! - A place is filled again only after it was freed.
//!
//! Decided in ADR 361.
#![cfg_attr(not(any(test, loom)), no_std)]

use abi_sync::atomic::{AtomicU64, Ordering};
use abi_sync::cell::RaceCell;

/// Users, in the low half of a place's word.
const USERS: u64 = u32::MAX as u64;
/// It holds a buffer.
const OPEN: u64 = 1 << 62;
/// The buffer goes when nobody uses it.
const CLOSING: u64 = 1 << 63;
/// Somebody fills or empties it.
const BUSY: u64 = 1 << 61;
const FREE: u64 = 0;

/// A place for a buffer `B`, and for who waits for its end.
#[derive(Debug)]
pub struct Place<B, W> {
    word: AtomicU64,
    buffer: RaceCell<Option<B>>,
    waiter: RaceCell<Option<W>>,
}

// SAFETY: the word says who may reach the cells: everybody who uses an open place, reading the buffer; its closer alone the
// waiter, while it holds the place; one alone both of a busy place.
unsafe impl<B: Send + Sync, W: Send> Sync for Place<B, W> {}

/// What became of a place that somebody left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the last to leave a closing place empties it"]
pub enum Left {
    /// It is open, or others use it.
    Used,
    /// It is closing, and nobody uses it: the caller, and nobody else, empties it.
    Last,
}

/// What a place is at the end of a process, whose threads are gone.
#[derive(Debug)]
#[must_use]
pub enum Cleared<B> {
    /// It is free.
    Free,
    /// Another CPU is at it, and leaves it any moment.
    Busy,
    /// It was open: the caller frees it when the buffer is put away.
    Was(B),
}

/// Somebody who looks at a buffer. Left explicitly, by whoever holds no lock then.
#[derive(Debug)]
#[must_use = "a place that is looked at is not emptied"]
pub struct Look<'p, B, W>(&'p Place<B, W>);

impl<B, W> Look<'_, B, W> {
    /// The buffer.
    #[inline]
    pub fn buffer(&self) -> Option<&B> {
        // SAFETY: nobody writes to the cell of a place that counts a user, as this value is one.
        self.0.buffer.with(|buffer| unsafe { (*buffer).as_ref() })
    }

    /// Goes on using the place, which is [left](Place::leave) by who knows it.
    #[inline]
    pub fn stay(self) {}

    /// Looks no more.
    #[inline]
    pub fn leave(self) -> Left {
        self.0.leave()
    }
}

impl<B, W> Place<B, W> {
    /// A free place.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            word: AtomicU64::new(FREE),
            buffer: RaceCell::new(None),
            waiter: RaceCell::new(None),
        }
    }

    /// A free place.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            word: AtomicU64::new(FREE),
            buffer: RaceCell::new(None),
            waiter: RaceCell::new(None),
        }
    }

    /// Puts a buffer there, if it is free.
    pub fn fill(&self, buffer: B) -> Result<(), B> {
        // Acquire, pairs with the release in `free`.
        let taken = self.word.compare_exchange(FREE, BUSY, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            return Err(buffer);
        }
        // SAFETY: a busy place is its taker's alone.
        self.buffer.with_mut(|place| unsafe { *place = Some(buffer) });
        // Release, pairs with the acquire in `raise`.
        self.word.store(OPEN, Ordering::Release);
        Ok(())
    }

    /// Counts one more user of a place whose word passes, and sets `also`.
    #[inline]
    fn raise(&self, also: u64, passes: impl Fn(u64) -> bool) -> bool {
        // Acquire, pairs with the release in `fill`.
        let raised = self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, |word| {
            passes(word).then_some((word + 1) | also)
        });
        raised.is_ok()
    }

    /// An operation is going to use the buffer; nothing if there is none, or not for long.
    #[inline]
    pub fn hold(&self) -> Option<Look<'_, B, W>> {
        self.raise(0, |word| word & (OPEN | CLOSING) == OPEN).then_some(Look(self))
    }

    /// Another one is, of somebody who holds the buffer already.
    #[inline]
    pub fn hold_more(&self) {
        // Relaxed: it is held.
        let before = self.word.fetch_add(1, Ordering::Relaxed);
        debug_assert!(before & OPEN != 0 && before & USERS != 0, "held by nobody: {before:#x}");
    }

    /// A look at the buffer, for the time of a section; nothing if there is none.
    #[inline]
    pub fn look(&self) -> Option<Look<'_, B, W>> {
        let passes = |word| word & OPEN != 0 && (word & CLOSING == 0 || word & USERS != 0);
        self.raise(0, passes).then_some(Look(self))
    }

    /// One use less.
    #[inline]
    pub fn leave(&self) -> Left {
        // Release, pairs with the acquire in `take`.
        let before = self.word.fetch_sub(1, Ordering::Release);
        debug_assert!(before & OPEN != 0 && before & USERS != 0, "left by nobody: {before:#x}");
        if before == OPEN | CLOSING | 1 { Left::Last } else { Left::Used }
    }

    /// Closes the place and holds it; `false` if it is not open, or somebody else closes it.
    pub fn begin_close(&self) -> bool {
        self.raise(CLOSING, |word| word & (OPEN | CLOSING) == OPEN)
    }

    /// Says who is to be told of the end of a place. By its closer, before it leaves.
    pub fn set_waiter(&self, waiter: W) {
        // SAFETY: the closer's alone until it leaves, and there is one closer.
        self.waiter.with_mut(|place| unsafe { *place = Some(waiter) });
    }

    /// Takes out what is in a closing place that nobody uses; nothing if it is not that any more.
    pub fn take(&self) -> Option<(B, Option<W>)> {
        self.empty(OPEN | CLOSING)
    }

    fn empty(&self, from: u64) -> Option<(B, Option<W>)> {
        // Acquire, pairs with the release in `leave`, all of which its modifications go on, and with that in `fill`.
        self.word.compare_exchange(from, BUSY, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // SAFETY: a busy place is its taker's alone.
        let buffer = self.buffer.with_mut(|place| unsafe { (*place).take() });
        // SAFETY: as above.
        let waiter = self.waiter.with_mut(|place| unsafe { (*place).take() });
        Some((buffer?, waiter))
    }

    /// What was taken out is put away: the place may be filled again. By its taker.
    pub fn free(&self) {
        // Release, pairs with the acquire in `fill` and `clear`.
        self.word.store(FREE, Ordering::Release);
    }

    /// Empties a place of a process whose threads are gone.
    pub fn clear(&self) -> Cleared<B> {
        match self.empty(OPEN) {
            Some((buffer, _)) => Cleared::Was(buffer),
            // Acquire, pairs with the release in `free`.
            None if self.word.load(Ordering::Acquire) == FREE => Cleared::Free,
            None => Cleared::Busy,
        }
    }

    /// Whether nothing is there, nor going to be gone.
    pub fn is_free(&self) -> bool {
        self.word.load(Ordering::Relaxed) == FREE
    }
}

impl<B, W> Default for Place<B, W> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_filled_used_closed_and_freed() {
        let place = Place::<u32, &str>::new();
        assert!(place.is_free() && place.hold().is_none() && place.look().is_none());
        assert!(!place.begin_close() && place.take().is_none());
        assert_eq!(place.fill(7), Ok(()));
        assert_eq!(place.fill(8), Err(8));
        place.hold().unwrap().stay();
        let look = place.look().unwrap();
        assert_eq!(look.buffer(), Some(&7));
        assert_eq!(look.leave(), Left::Used);
        assert!(place.begin_close() && !place.begin_close());
        place.set_waiter("told");
        assert!(place.hold().is_none(), "no operation begins to use it");
        assert_eq!(place.look().unwrap().leave(), Left::Used, "those that do go on");
        assert_eq!(place.leave(), Left::Used);
        assert!(place.take().is_none(), "it is used");
        assert_eq!(place.leave(), Left::Last);
        assert!(place.look().is_none());
        assert_eq!(place.take(), Some((7, Some("told"))));
        assert_eq!(place.fill(9), Err(9), "not before it is put away");
        assert!(matches!(place.clear(), Cleared::Busy));
        place.free();
        assert_eq!(place.fill(9), Ok(()));
        assert!(matches!(place.clear(), Cleared::Was(9)));
        place.free();
        assert!(matches!(place.clear(), Cleared::Free));
    }

    #[test]
    fn a_place_that_nobody_uses_is_closed_at_once() {
        let place = Place::<u32, ()>::new();
        assert_eq!(place.fill(1), Ok(()));
        assert!(place.begin_close());
        assert_eq!(place.leave(), Left::Last);
        assert_eq!(place.take(), Some((1, None)));
    }

    #[test]
    fn at_the_end_of_a_process_what_is_used_is_left_alone() {
        let place = Place::<u32, ()>::new();
        assert_eq!(place.fill(1), Ok(()));
        let look = place.look().unwrap();
        assert!(matches!(place.clear(), Cleared::Busy));
        assert_eq!(look.leave(), Left::Used);
        assert!(matches!(place.clear(), Cleared::Was(1)));
    }
}
