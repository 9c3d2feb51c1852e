//! The thread state word as a value: its layout and every transition it may take.
//!
//! Nothing here is shared or atomic; [`StateWord`](crate::StateWord) puts each of these
//! transitions into one compare-and-swap. Keeping them apart lets the whole
//! (state × event) table be tested without threads.
//!
//! ```text
//!  63        32 31         8 76    5      4      3    2   0
//!  generation  │  ticket    │0│INSIDE│PENDING│KILL│ state
//! ```
//!
//! The owner of a thread in each state, who may move it on:
//!
//! | state | owner | registers |
//! |---|---|---|
//! | Free, Retired | the allocator of records | none |
//! | New | its creator | being made up |
//! | Runnable | the CPU that made it so, until it is published in one place; then that place | in memory |
//! | Running | the CPU it runs on | in that CPU |
//! | AboutToWait | the CPU whose stack it still is, then the next context there | on the way |
//! | Waiting | nobody: the first waker or killer takes it | in memory |
//! | Dead | the CPU that made it so, until it is finalised | none |
//!
//! KILL is sticky until the record is recycled. PENDING exists in AboutToWait only. Waiting never
//! carries either: they keep it from being entered, and setting KILL there claims the thread.
//!
//! INSIDE is the thread's own: it gives way at a preemption point of the kernel, in the middle of
//! something. Only Running and Runnable carry it. A kill waits for it: what is half done (a call that is
//! matched and not delivered, memory that only its stack knows of) has nobody else to finish it. The
//! thread runs on and dies on its way out.
//!
//! The ticket numbers a thread's waits, so that a waker of an earlier wait is refused. It has
//! 24 bits; a waker holds one only while its wait is registered, and what wakes a thread is a
//! condition it looks at again, so even a number that came round would cost one extra look.
//!
//! Decided in ADRs 55 and 155.

use core::fmt;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// The record holds no thread.
    Free = 0,
    /// Created, not started.
    New = 1,
    /// May run: in one queue or hand-off slot, or on its way there.
    Runnable = 2,
    /// On a CPU.
    Running = 3,
    /// Still on its own stack, about to wait.
    AboutToWait = 4,
    /// Waiting, off every stack.
    Waiting = 5,
    /// Ended; its record waits to be finalised and recycled.
    Dead = 6,
    /// The record has used up its generations and is never used again.
    Retired = 7,
}

/// The number of one wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u32);

impl Ticket {
    const BITS: u32 = 24;
    const MASK: u32 = (1 << Self::BITS) - 1;

    /// The ticket with this number; bits beyond a ticket's size do not count.
    pub const fn new(number: u32) -> Self {
        Self(number & Self::MASK)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A state word's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

const STATE_MASK: u64 = 0b111;
const KILL: u64 = 1 << 3;
const PENDING: u64 = 1 << 4;
const INSIDE: u64 = 1 << 5;
const TICKET_SHIFT: u32 = 8;
const GENERATION_SHIFT: u32 = 32;
const TICKET_FIELD: u64 = (Ticket::MASK as u64) << TICKET_SHIFT;
const GENERATION_FIELD: u64 = u64::MAX << GENERATION_SHIFT;

/// The thread or the wait that was meant is over. Nothing changed, and nothing is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

/// An operation was called by another than the thread's owner: a defect of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// The state the thread was in.
    pub found: State,
    /// The state the operation is for.
    pub wanted: State,
}

impl fmt::Display for Misuse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a thread is {:?} where it has to be {:?}", self.found, self.wanted)
    }
}

/// What a waker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum WakeVerdict {
    /// The thread is the waker's: put it into one queue, once.
    Enqueue,
    /// The thread was about to wait and will not; nothing to do.
    Noted,
}

/// What a killer does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum KillVerdict {
    /// The thread waited and is the killer's: put it into one queue, once; it dies when
    /// picked.
    Enqueue,
    /// It is running: interrupt its CPU, so that it dies on its way back to user mode.
    Interrupt,
    /// It is not running and meets its end where it is next looked at; nothing to do.
    Noted,
    /// It was killed before; nothing to do.
    Already,
}

/// What a thread that wants to wait does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum WaitVerdict {
    /// Register the wait under this ticket, look at the condition again, then switch away and
    /// let the next context commit, or call `cancel_wait`.
    AboutToWait(Ticket),
    /// It has been killed: do not wait, switch away for the last time.
    Die,
}

/// What a thread that decided not to wait after all does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ResumeVerdict {
    /// Go on.
    Resume,
    /// It has been killed: switch away for the last time.
    Die,
}

/// What the context after a waiting thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum CommitVerdict {
    /// The thread waits. Touch nothing of it any more: it may be running elsewhere.
    Waits,
    /// A wake came first: put it into one queue, once.
    Enqueue,
    /// A kill came first: finalise it.
    Finalise,
}

/// What the context after a preempted thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RequeueVerdict {
    /// Put it into one queue, once.
    Enqueue,
    /// It has been killed: finalise it.
    Finalise,
}

/// What the CPU that picked a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum DispatchVerdict {
    /// Run it.
    Run,
    /// It has been killed: finalise it and pick another.
    Finalise,
}

/// What became of a finalised record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RecycleVerdict {
    /// It can hold another thread.
    Free,
    /// It has used up its generations: never put it on a free list.
    Retired,
}

impl Word {
    /// A record that has never held a thread; zeroed memory is one.
    pub const UNUSED: Self = Self(0);

    /// A word with the given parts, as tests and dumps need it.
    pub const fn compose(
        state: State,
        generation: u32,
        ticket: Ticket,
        killed: bool,
        pending: bool,
    ) -> Self {
        let mut bits = state as u64
            | (ticket.0 as u64) << TICKET_SHIFT
            | (generation as u64) << GENERATION_SHIFT;
        if killed {
            bits |= KILL;
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

    /// What the thread is doing.
    #[inline]
    pub const fn state(self) -> State {
        match self.0 & STATE_MASK {
            0 => State::Free,
            1 => State::New,
            2 => State::Runnable,
            3 => State::Running,
            4 => State::AboutToWait,
            5 => State::Waiting,
            6 => State::Dead,
            _ => State::Retired,
        }
    }

    /// Which thread of this record it is.
    #[inline]
    pub const fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32
    }

    /// The number of its latest wait.
    #[inline]
    pub const fn ticket(self) -> Ticket {
        Ticket::new((self.0 >> TICKET_SHIFT) as u32)
    }

    /// Whether it has been killed.
    #[inline]
    pub const fn is_killed(self) -> bool {
        self.0 & KILL != 0
    }

    /// Whether a wake arrived before the wait was committed.
    #[inline]
    pub const fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    /// Whether it is at a preemption point inside the kernel.
    #[inline]
    pub const fn is_inside(self) -> bool {
        self.0 & INSIDE != 0
    }

    /// Whether it can be ended where it is.
    #[inline]
    const fn is_to_die(self) -> bool {
        self.0 & (KILL | INSIDE) == KILL
    }

    /// Whether it waits, or is about to and nothing has ended the wait yet.
    #[inline]
    pub const fn is_waiting(self) -> bool {
        let (about_to_wait, waiting) = (State::AboutToWait as u64, State::Waiting as u64);
        let now = self.0 & (STATE_MASK | PENDING);
        now == about_to_wait || now == waiting
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

    /// Free → New, with the next generation.
    pub fn create(self) -> Result<(Self, u32), Misuse> {
        self.owned_in(State::Free)?;
        let generation = self.generation().wrapping_add(1);
        Ok((Self::compose(State::New, generation, self.ticket(), false, false), generation))
    }

    /// New → Runnable. A thread killed before its start is published too, and dies when picked.
    pub fn start(self) -> Result<Self, Misuse> {
        self.owned_in(State::New)?;
        Ok(self.with_state(State::Runnable))
    }

    /// New → Dead: the creation is undone.
    pub fn abandon(self) -> Result<Self, Misuse> {
        self.owned_in(State::New)?;
        Ok(self.with_state(State::Dead))
    }

    /// Running → Running, at a preemption point inside the kernel.
    #[inline]
    pub fn pause(self) -> Result<Self, Misuse> {
        self.owned_in(State::Running)?;
        Ok(Self(self.0 | INSIDE))
    }

    /// Running → Running, past the preemption point.
    #[inline]
    pub fn resume(self) -> Result<Self, Misuse> {
        self.owned_in(State::Running)?;
        Ok(Self(self.0 & !INSIDE))
    }

    /// Runnable → Running, or → Dead if it was killed and is not inside.
    #[inline]
    pub fn dispatch(self, generation: u32) -> Result<(Self, DispatchVerdict), Stale> {
        if self.generation() != generation || self.state() != State::Runnable {
            return Err(Stale);
        }
        if self.is_to_die() {
            return Ok((self.with_state(State::Dead), DispatchVerdict::Finalise));
        }
        Ok((self.with_state(State::Running), DispatchVerdict::Run))
    }

    /// Running → Runnable, or → Dead if it was killed and is not inside.
    #[inline]
    pub fn requeue(self) -> Result<(Self, RequeueVerdict), Misuse> {
        self.owned_in(State::Running)?;
        if self.is_to_die() {
            return Ok((self.with_state(State::Dead), RequeueVerdict::Finalise));
        }
        Ok((self.with_state(State::Runnable), RequeueVerdict::Enqueue))
    }

    /// Running → AboutToWait with the next ticket; stays Running if it was killed.
    #[inline]
    pub fn begin_wait(self) -> Result<(Self, WaitVerdict), Misuse> {
        self.owned_in(State::Running)?;
        if self.is_killed() {
            return Ok((self, WaitVerdict::Die));
        }
        let next = self.with_ticket_after(State::AboutToWait);
        Ok((next, WaitVerdict::AboutToWait(next.ticket())))
    }

    /// In another state, with the next ticket and no marks.
    #[inline(always)]
    const fn with_ticket_after(self, state: State) -> Self {
        let ticket = self.0.wrapping_add(1 << TICKET_SHIFT) & TICKET_FIELD;
        Self(self.0 & GENERATION_FIELD | ticket | state as u64)
    }

    /// Running → AboutToWait with the next ticket, if nobody has killed it: what
    /// [`begin_wait`](Self::begin_wait) does of a thread that goes on living.
    #[inline(always)]
    pub const fn begins_at_once(self) -> Option<Self> {
        if self.0 & (STATE_MASK | KILL | PENDING) != State::Running as u64 {
            return None;
        }
        Some(self.with_ticket_after(State::AboutToWait))
    }

    /// AboutToWait → Running.
    #[inline]
    pub fn cancel_wait(self) -> Result<(Self, ResumeVerdict), Misuse> {
        self.owned_in(State::AboutToWait)?;
        let verdict = if self.is_killed() { ResumeVerdict::Die } else { ResumeVerdict::Resume };
        Ok((self.with_state(State::Running), verdict))
    }

    /// AboutToWait → Waiting, or → Runnable if a wake came first, or → Dead if a kill did.
    #[inline]
    pub fn commit_wait(self) -> Result<(Self, CommitVerdict), Misuse> {
        self.owned_in(State::AboutToWait)?;
        Ok(if self.is_killed() {
            (self.with_state(State::Dead), CommitVerdict::Finalise)
        } else if self.is_pending() {
            (self.with_state(State::Runnable), CommitVerdict::Enqueue)
        } else {
            (self.with_state(State::Waiting), CommitVerdict::Waits)
        })
    }

    /// AboutToWait → Waiting, if nothing came in between: what [`commit_wait`](Self::commit_wait) does of a
    /// wait that is made.
    #[inline]
    pub const fn waits_at_once(self) -> Option<Self> {
        if self.0 & (STATE_MASK | KILL | PENDING) != State::AboutToWait as u64 {
            return None;
        }
        Some(self.with_state(State::Waiting))
    }

    /// Waiting → Runnable, or marks an AboutToWait thread; refused unless it is in that very wait.
    #[inline]
    pub fn wake(self, generation: u32, ticket: Ticket) -> Result<(Self, WakeVerdict), Stale> {
        if self.generation() != generation || self.ticket() != ticket {
            return Err(Stale);
        }
        match self.state() {
            State::Waiting => Ok((self.with_state(State::Runnable), WakeVerdict::Enqueue)),
            State::AboutToWait => Ok((Self(self.0 | PENDING), WakeVerdict::Noted)),
            _ => Err(Stale),
        }
    }

    /// Waiting → Running, for a waker that runs the thread itself, now and here; whichever wait it
    /// is in.
    #[inline]
    pub const fn claim(self, generation: u32) -> Result<Self, Stale> {
        let waiting = (generation as u64) << GENERATION_SHIFT | State::Waiting as u64;
        if self.0 & !TICKET_FIELD == waiting {
            Ok(self.with_state(State::Running))
        } else {
            Err(Stale)
        }
    }

    /// Sets KILL; a Waiting thread becomes Runnable with it.
    pub fn kill(self, generation: u32) -> Result<(Self, KillVerdict), Stale> {
        if self.generation() != generation {
            return Err(Stale);
        }
        let killed = Self(self.0 | KILL);
        match self.state() {
            State::Free | State::Dead | State::Retired => Err(Stale),
            _ if self.is_killed() => Ok((self, KillVerdict::Already)),
            State::Waiting => Ok((killed.with_state(State::Runnable), KillVerdict::Enqueue)),
            State::Running => Ok((killed, KillVerdict::Interrupt)),
            State::New | State::Runnable | State::AboutToWait => Ok((killed, KillVerdict::Noted)),
        }
    }

    /// Running → Dead: its last switch is done.
    pub fn finish(self) -> Result<Self, Misuse> {
        self.owned_in(State::Running)?;
        Ok(Self(self.0 & !INSIDE).with_state(State::Dead))
    }

    /// Dead → Free, or → Retired after the last generation.
    pub fn recycle(self) -> Result<(Self, RecycleVerdict), Misuse> {
        self.owned_in(State::Dead)?;
        let clean = Self(self.0 & !KILL);
        Ok(if self.generation() == u32::MAX {
            (clean.with_state(State::Retired), RecycleVerdict::Retired)
        } else {
            (clean.with_state(State::Free), RecycleVerdict::Free)
        })
    }

    /// Checks what holds of every word at every moment.
    pub fn check_invariants(self) -> Result<(), &'static str> {
        let spare = self.0 & 0xc0;
        if spare != 0 {
            return Err("bits without a meaning are set");
        }
        if self.is_inside() && !matches!(self.state(), State::Running | State::Runnable) {
            return Err("a thread is inside the kernel and not on its way through it");
        }
        match self.state() {
            State::Waiting if self.is_killed() => Err("a killed thread stayed waiting"),
            State::Free | State::Retired if self.is_killed() => Err("a kill outlived its thread"),
            State::AboutToWait => Ok(()),
            _ if self.is_pending() => Err("a pending wake outside AboutToWait"),
            State::Free | State::Retired => Ok(()),
            _ if self.generation() == 0 => Err("a thread with generation 0"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} g{} t{}", self.state(), self.generation(), self.ticket().0)?;
        if self.is_killed() {
            out.write_str(" KILL")?;
        }
        if self.is_pending() {
            out.write_str(" PENDING")?;
        }
        if self.is_inside() {
            out.write_str(" INSIDE")?;
        }
        Ok(())
    }
}
