//! Who may consume a ring's submission queue: one word in kernel memory.
//!
//! ```text
//!  bit  0-1   owner: none, syscall, timer, sqpoll
//!       2     PASS: a pass is running; its runner alone moves the head
//!       3     ASLEEP: the poller sleeps or has not begun
//!       4     STOP: the poller's ownership ends with the running pass
//!       5     CLOSED: the ring is being torn down; nothing begins any more
//!       6     ANNOUNCED: user space is told to enter; the poller's next pass takes that back
//!       7     PASSES: every SQE is consumed in a pass, also the only one; set when the ring is made
//!  bit 32-63  generation of the poller's ownership
//! ```
//!
//! A syscall or the timer owns the queue for one pass. A poller owns it across passes, by a
//! [`PollerToken`] that carries the generation: once its ownership was revoked, the token is
//! stale and begins nothing, also when another poller owns the ring by then. Ownership is
//! never pulled from under a running pass: who revokes or closes meanwhile leaves a mark, and
//! the pass's end carries it out. So an SQE is consumed by exactly one pass, and never again.
//!
//! The generation counts hand-overs to a poller. It wraps after 2³² of them; a token would
//! have to lie unused that long to be mistaken.
//!
//! Decided in ADR 52.

use abi_sync::atomic::{AtomicU64, Ordering};

const OWNER: u64 = 0b11;
const SYSCALL: u64 = 1;
const TIMER: u64 = 2;
const SQPOLL: u64 = 3;
const PASS: u64 = 1 << 2;
const ASLEEP: u64 = 1 << 3;
const STOP: u64 = 1 << 4;
const CLOSED: u64 = 1 << 5;
const ANNOUNCED: u64 = 1 << 6;
const PASSES: u64 = 1 << 7;
/// What goes with a poller's ownership.
const OWNERSHIP: u64 = OWNER | ASLEEP | STOP | ANNOUNCED;
const GENERATION_SHIFT: u32 = 32;
const ONE_GENERATION: u64 = 1 << GENERATION_SHIFT;

/// Who begins a pass without a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visitor {
    /// The ring's own thread, in `cap_enter`.
    Syscall,
    /// The timer interrupt, on behalf of the thread it interrupted.
    Timer,
}

/// Why a consumer may not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another consumer is at it: try again.
    Busy,
    /// A poller owns the queue: the ring's own thread may take a pass on its behalf.
    Polled,
    /// The token's ownership has ended: `staleSqConsumer`. Nothing was consumed.
    Stale,
    /// The ring is being torn down.
    Closed,
}

/// The name of one poller's ownership of a ring; names nothing once that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollerId(u32);

/// A poller's ownership of a ring's submission queue.
#[derive(Debug)]
#[must_use = "release it, or the ring stays owned by a poller that does not exist"]
pub struct PollerToken(u32);

impl PollerToken {
    /// The name to revoke it by.
    #[inline]
    pub const fn id(&self) -> PollerId {
        PollerId(self.0)
    }
}

/// What came of ending an ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Ended {
    /// The queue has no consumer.
    Now,
    /// A pass is running and carries it out when it ends.
    WithPass,
    /// It had ended before.
    Stale,
}

/// The owner word.
#[derive(Debug)]
pub(crate) struct SqOwner(AtomicU64);

impl SqOwner {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Begins a pass. Acquire pairs with the Release in [`end`](Self::end): this pass sees the
    /// head where the last one left it.
    #[inline]
    pub(crate) fn begin(&self, visitor: Visitor) -> Result<(), Refusal> {
        let owner = match visitor {
            Visitor::Syscall => SYSCALL,
            Visitor::Timer => TIMER,
        };
        self.change(Ordering::Acquire, |word| {
            if word & (CLOSED | PASS | OWNER) == 0 {
                Ok(word | owner | PASS)
            } else if word & CLOSED != 0 {
                Err(Refusal::Closed)
            } else if word & OWNER == SQPOLL {
                Err(Refusal::Polled)
            } else {
                Err(Refusal::Busy)
            }
        })
        .map(|_| ())
    }

    /// Whether nobody consumes, as the ring's own thread sees it: it may then consume without saying
    /// so, as long as it hands the queue to nobody meanwhile. A poller gets the queue from this
    /// thread alone, and the timer visits on its behalf, while it is in user mode.
    #[inline(always)]
    pub(crate) fn is_free(&self) -> bool {
        // Acquire: as for `begin`.
        self.0.load(Ordering::Acquire) & (PASSES | CLOSED | PASS | OWNER) == 0
    }

    /// From now on [`is_free`](Self::is_free) says no. By whoever makes the ring.
    pub(crate) fn only_passes(&self) {
        self.0.fetch_or(PASSES, Ordering::Relaxed);
    }

    /// Begins a pass of the ring's own thread on behalf of the poller that owns the queue.
    #[inline]
    pub(crate) fn borrow(&self) -> Result<(), Refusal> {
        self.change(Ordering::Acquire, |word| {
            owned_by(word, generation(word))?;
            if word & PASS != 0 { Err(Refusal::Busy) } else { Ok(word | PASS) }
        })
        .map(|_| ())
    }

    /// Begins a pass of the poller; says whether user space was told to enter.
    #[inline]
    pub(crate) fn begin_poll(&self, token: &PollerToken) -> Result<bool, Refusal> {
        self.change(Ordering::Acquire, |word| {
            owned_by(word, token.0)?;
            if word & PASS != 0 {
                Err(Refusal::Busy)
            } else {
                Ok(word & !(ASLEEP | ANNOUNCED) | PASS)
            }
        })
        .map(|word| word & ANNOUNCED != 0)
    }

    /// Ends a pass that a [`Visitor`] began: the owner goes with it, and nobody else changes the
    /// owner meanwhile.
    #[inline(always)]
    pub(crate) fn end_visit(&self) {
        let before = self.0.fetch_and(!(PASS | OWNER), Ordering::Release);
        debug_assert!(before & PASS != 0 && before & OWNER != SQPOLL);
    }

    /// Ends a pass of a poller or on its behalf. `last_words` runs if the poller's ownership ends
    /// with it, before it does.
    pub(crate) fn end(&self, last_words: impl Fn()) {
        let ended = self.change(Ordering::Release, |word| {
            if word & (STOP | CLOSED) == 0 {
                return Ok(word & !PASS);
            }
            last_words();
            Ok(word & !(PASS | OWNERSHIP))
        });
        debug_assert!(ended.is_ok_and(|word| word & (PASS | OWNER) == PASS | SQPOLL));
    }

    /// Turns a running syscall pass into a poller's ownership, asleep until it first begins.
    /// Release: the poller's first pass sees the head where this one left it.
    #[inline]
    pub(crate) fn hand_over(&self) -> Result<PollerToken, Refusal> {
        self.change(Ordering::Release, |word| {
            if word & CLOSED != 0 {
                Err(Refusal::Closed)
            } else if word & (PASS | OWNER) != PASS | SYSCALL {
                Err(Refusal::Stale)
            } else {
                Ok(next_generation(word) & !(PASS | OWNER) | SQPOLL | ASLEEP | ANNOUNCED)
            }
        })
        .map(|word| PollerToken(generation(next_generation(word))))
    }

    /// Marks the poller asleep.
    pub(crate) fn fall_asleep(&self, token: &PollerToken) -> Result<(), Refusal> {
        self.change(Ordering::Relaxed, |word| {
            owned_by(word, token.0)?;
            Ok(word | ASLEEP | ANNOUNCED)
        })
        .map(|_| ())
    }

    /// Marks the poller awake; says whether it was asleep.
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        self.change(Ordering::Relaxed, |word| {
            owned_by(word, generation(word))?;
            if word & ASLEEP != 0 { Ok(word & !ASLEEP) } else { Err(Refusal::Busy) }
        })
        .is_ok()
    }

    /// Whether this poller owns the queue and is asleep.
    #[inline]
    pub(crate) fn is_asleep(&self, poller: PollerId) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        owned_by(word, poller.0).is_ok() && word & ASLEEP != 0
    }

    /// Whether this poller owns the queue and is not about to lose it.
    #[inline]
    pub(crate) fn is_live(&self, poller: PollerId) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        owned_by(word, poller.0).is_ok() && word & STOP == 0
    }

    /// Ends the poller's ownership. `last_words` runs before it ends at once.
    pub(crate) fn revoke(&self, poller: PollerId, last_words: impl Fn()) -> Ended {
        let before = self.change(Ordering::Release, |word| {
            owned_by(word, poller.0)?;
            if word & PASS != 0 {
                return Ok(word | STOP);
            }
            last_words();
            Ok(word & !OWNERSHIP)
        });
        match before {
            Ok(word) if word & PASS != 0 => Ended::WithPass,
            Ok(_) => Ended::Now,
            Err(_) => Ended::Stale,
        }
    }

    /// Lets nothing begin any more.
    pub(crate) fn close(&self, last_words: impl Fn()) -> Ended {
        let before = self.change(Ordering::Release, |word| {
            if word & CLOSED != 0 {
                return Err(Refusal::Closed);
            }
            if word & PASS != 0 {
                return Ok(word | CLOSED);
            }
            last_words();
            Ok(word & !OWNERSHIP | CLOSED)
        });
        match before {
            Ok(word) if word & PASS != 0 => Ended::WithPass,
            Ok(_) => Ended::Now,
            Err(_) => Ended::Stale,
        }
    }

    /// Replaces the word by what `f` makes of it, and returns what it was. Fails as `f` does.
    #[inline]
    fn change(
        &self,
        order: Ordering,
        f: impl Fn(u64) -> Result<u64, Refusal>,
    ) -> Result<u64, Refusal> {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            match self.0.compare_exchange_weak(word, f(word)?, order, Ordering::Relaxed) {
                Ok(before) => return Ok(before),
                Err(now) => word = now,
            }
        }
    }
}

/// That the poller of this generation owns the queue.
#[inline]
fn owned_by(word: u64, poller: u32) -> Result<(), Refusal> {
    if word & CLOSED != 0 {
        Err(Refusal::Closed)
    } else if word & OWNER != SQPOLL || generation(word) != poller {
        Err(Refusal::Stale)
    } else {
        Ok(())
    }
}

#[inline]
const fn generation(word: u64) -> u32 {
    (word >> GENERATION_SHIFT) as u32
}

#[inline]
const fn next_generation(word: u64) -> u64 {
    word.wrapping_add(ONE_GENERATION)
}

#[cfg(loom)]
impl SqOwner {
    /// A planted mutant: begins as the poller whatever the token's generation.
    pub(crate) fn begin_poll_of_any_generation(&self) -> Result<bool, Refusal> {
        let word = self.0.load(Ordering::Relaxed);
        self.begin_poll(&PollerToken(generation(word)))
    }
}
