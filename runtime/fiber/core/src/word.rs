//! The fiber state word as a value: its layout and every transition it may take.
//!
//! Nothing here is shared; [`StateWord`](crate::StateWord) puts each transition into one
//! compare-and-swap. Keeping them apart lets the whole (state × event) table be tested alone.
//!
//! ```text
//!  63             8 7  6    5       4       3     2   0
//!  ticket          │ 0 │ SHIELD │PENDING│CANCEL│ state
//! ```
//!
//! | state | owner, who alone may move it on |
//! |---|---|
//! | Init | the pool, then the spawner |
//! | Runnable | whoever made it so, until it is published in one place; then that place |
//! | Running | its worker |
//! | Parking | its worker: the fiber is still on its stack, about to wait |
//! | Parked | nobody: the first waker or canceller takes it |
//! | Done, Cancelled | the worker it ended on, then whoever takes its result |
//!
//! CANCEL is sticky until the frame is recycled. SHIELD is set and cleared by the running fiber and
//! makes waits blind to CANCEL. PENDING exists in Parking only. The ticket numbers the waits of a
//! frame, over all the fibers it ever holds: 56 bits do not come round.
//!
//! Decided in ADR 100.

use core::fmt;

/// What a fiber is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// In the pool, or being made up.
    Init = 0,
    /// May run: in one queue or slot, or on its way there.
    Runnable = 1,
    /// On a worker.
    Running = 2,
    /// Still on its own stack, about to wait.
    Parking = 3,
    /// Waiting, off every stack.
    Parked = 4,
    /// Ended.
    Done = 5,
    /// Cancelled before it ran; ended.
    Cancelled = 6,
}

/// The number of one wait of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

impl Ticket {
    /// The ticket with this number; bits beyond a ticket's 56 do not count.
    pub const fn new(number: u64) -> Self {
        Self(number & (u64::MAX >> TICKET_SHIFT))
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A state word's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

const STATE_MASK: u64 = 0b111;
const CANCEL: u64 = 1 << 3;
const PENDING: u64 = 1 << 4;
const SHIELD: u64 = 1 << 5;
const TICKET_SHIFT: u32 = 8;

/// The wait that was meant is over. Nothing changed, and nothing is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

/// An operation was called by someone who does not own the fiber: a defect of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// The state the fiber was in.
    pub found: State,
    /// The state the operation is for.
    pub wanted: State,
}

impl fmt::Display for Misuse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a fiber is {:?} where it has to be {:?}", self.found, self.wanted)
    }
}

/// What a waker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum WakeVerdict {
    /// The fiber is the waker's: publish it in one place, once.
    Enqueue,
    /// It was about to wait and will not; nothing to do.
    Noted,
}

/// What a canceller does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum CancelVerdict {
    /// The fiber was parked and is the canceller's: publish it in one place, once.
    Enqueue,
    /// It sees the cancellation at its next wait; nothing to do.
    Noted,
    /// It was cancelled before or has ended; nothing to do.
    Already,
}

/// What a fiber that wants to wait does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ParkVerdict {
    /// Publish the wait under this ticket, then switch away and let the worker commit, or call
    /// `abort_park`.
    Parking(Ticket),
    /// It has been cancelled: do not wait.
    Cancelled,
}

/// What a worker does after the fiber it ran went to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum CommitVerdict {
    /// The fiber waits. Touch nothing of it any more: it may run elsewhere.
    Parked,
    /// A wake or a cancellation came first: run it again, at once.
    Resume,
}

type Step<V> = Result<(Word, V), Misuse>;

impl Word {
    /// A frame that has never held a fiber; zeroed memory is one.
    pub const UNUSED: Self = Self(0);

    /// A word with the given parts, as tests and dumps need it.
    pub const fn compose(state: State, ticket: Ticket, cancel: bool, pending: bool) -> Self {
        let mut bits = state as u64 | ticket.0 << TICKET_SHIFT;
        if cancel {
            bits |= CANCEL;
        }
        if pending {
            bits |= PENDING;
        }
        Self(bits)
    }

    /// The word with these bits.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its bits.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// What the fiber is doing.
    #[inline]
    pub const fn state(self) -> State {
        match self.0 & STATE_MASK {
            0 => State::Init,
            1 => State::Runnable,
            2 => State::Running,
            3 => State::Parking,
            4 => State::Parked,
            5 => State::Done,
            _ => State::Cancelled,
        }
    }

    /// The number of its latest wait.
    #[inline]
    pub const fn ticket(self) -> Ticket {
        Ticket(self.0 >> TICKET_SHIFT)
    }

    /// Whether it has been cancelled, shielded or not.
    #[inline]
    pub const fn is_cancelled(self) -> bool {
        self.0 & CANCEL != 0
    }

    /// Whether its waits are blind to cancellation.
    #[inline]
    pub const fn is_shielded(self) -> bool {
        self.0 & SHIELD != 0
    }

    /// Whether a wake arrived before the wait was committed.
    #[inline]
    pub const fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    /// Whether a wait has to end because of a cancellation.
    #[inline]
    pub const fn sees_cancel(self) -> bool {
        self.0 & (CANCEL | SHIELD) == CANCEL
    }

    #[inline]
    const fn with_state(self, state: State) -> Self {
        Self(self.0 & !(STATE_MASK | PENDING) | state as u64)
    }

    #[inline]
    const fn owned_in(self, wanted: State) -> Result<(), Misuse> {
        let found = self.state();
        if found as u8 == wanted as u8 { Ok(()) } else { Err(Misuse { found, wanted }) }
    }

    /// Init → Runnable. A fiber cancelled before is published too, and ends when picked.
    #[inline]
    pub fn start(self) -> Step<()> {
        self.owned_in(State::Init)?;
        Ok((self.with_state(State::Runnable), ()))
    }

    /// Runnable → Running.
    #[inline]
    pub fn dispatch(self) -> Step<()> {
        self.owned_in(State::Runnable)?;
        Ok((self.with_state(State::Running), ()))
    }

    /// Running → Runnable.
    #[inline]
    pub fn requeue(self) -> Step<()> {
        self.owned_in(State::Running)?;
        Ok((self.with_state(State::Runnable), ()))
    }

    /// Running → Parking, with the next ticket; a fiber that sees its cancellation stays Running.
    #[inline]
    pub fn begin_park(self) -> Step<ParkVerdict> {
        self.owned_in(State::Running)?;
        if self.sees_cancel() {
            return Ok((self, ParkVerdict::Cancelled));
        }
        let next = Self(self.0.wrapping_add(1 << TICKET_SHIFT)).with_state(State::Parking);
        Ok((next, ParkVerdict::Parking(next.ticket())))
    }

    /// Parking → Running, because there is nothing to wait for.
    #[inline]
    pub fn abort_park(self) -> Step<()> {
        self.owned_in(State::Parking)?;
        Ok((self.with_state(State::Running), ()))
    }

    /// Parking → Parked, or back to Running exactly if a wake is pending or a cancellation is seen.
    #[inline]
    pub fn commit_park(self) -> Step<CommitVerdict> {
        self.owned_in(State::Parking)?;
        if self.is_pending() || self.sees_cancel() {
            return Ok((self.with_state(State::Running), CommitVerdict::Resume));
        }
        Ok((self.with_state(State::Parked), CommitVerdict::Parked))
    }

    /// Ends the wait with that ticket: marks Parking, claims Parked.
    #[inline]
    pub fn wake(self, ticket: Ticket) -> Result<(Self, WakeVerdict), Stale> {
        if self.ticket() != ticket {
            return Err(Stale);
        }
        match self.state() {
            State::Parking => Ok((Self(self.0 | PENDING), WakeVerdict::Noted)),
            State::Parked => Ok((self.with_state(State::Runnable), WakeVerdict::Enqueue)),
            _ => Err(Stale),
        }
    }

    /// Sets CANCEL; claims a parked fiber that is not shielded.
    #[inline]
    pub fn cancel(self) -> (Self, CancelVerdict) {
        if self.is_cancelled() || matches!(self.state(), State::Done | State::Cancelled) {
            return (self, CancelVerdict::Already);
        }
        let marked = Self(self.0 | CANCEL);
        if matches!(self.state(), State::Parked) && !self.is_shielded() {
            return (marked.with_state(State::Runnable), CancelVerdict::Enqueue);
        }
        (marked, CancelVerdict::Noted)
    }

    /// Sets or clears SHIELD and says how it was before.
    #[inline]
    pub fn set_shield(self, is_shielded: bool) -> Step<bool> {
        self.owned_in(State::Running)?;
        let bits = if is_shielded { self.0 | SHIELD } else { self.0 & !SHIELD };
        Ok((Self(bits), self.is_shielded()))
    }

    /// Running → Done, or Cancelled for a fiber that did not run.
    #[inline]
    pub fn finish(self, has_run: bool) -> Step<()> {
        self.owned_in(State::Running)?;
        Ok((self.with_state(if has_run { State::Done } else { State::Cancelled }), ()))
    }

    /// Done or Cancelled → Init; the ticket stays.
    #[inline]
    pub fn recycle(self) -> Step<()> {
        if !matches!(self.state(), State::Cancelled) {
            self.owned_in(State::Done)?;
        }
        Ok((Self::compose(State::Init, self.ticket(), false, false), ()))
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} #{}", self.state(), self.ticket().number())?;
        for (is_set, name) in [
            (self.is_cancelled(), " CANCEL"),
            (self.is_pending(), " PENDING"),
            (self.is_shielded(), " SHIELD"),
        ] {
            if is_set {
                out.write_str(name)?;
            }
        }
        Ok(())
    }
}
