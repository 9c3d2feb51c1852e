//! The thread that asks, as its operations see it; and what an operation comes to.
//!
//! Every operation of a ring has one shape: it is given the [`Caller`], the credit of its SQE and the
//! request, and answers a [`Finish`]. Either the dispatcher completes it then, in one place
//! ([`Caller::finish`]), or the credit lies in a cell of the caller's and another thread, a deadline or a
//! device completes it later. An operation that is refused gives its credit back with the status; there
//! is no other credit (ADR 206).

use crate::complete::{end_buffers, leave_buffers};
use crate::deadlines;
use crate::machine::{Machine, OwnRing, Record, key_of};
use crate::party::{Fit, Party};
use abi_ring::{Credit, INLINE_WORDS, Outcome, Payload, Room};
use abi_types::Status;
use kernel_dispatch::Record as _;
use smp_pending::{Buffers, Operation, Target};

/// A thread in the kernel on its own behalf, with its ring.
pub struct Caller<'r, M: Machine> {
    /// The machine it runs on.
    pub m: M,
    /// The thread.
    pub thread: &'static M::Thread,
    /// Its ring.
    pub ring: &'r OwnRing<M>,
}

impl<M: Machine> Clone for Caller<'_, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Caller<'_, M> {}

/// What an operation comes to.
#[must_use = "a credit that is not spent is a completion that never comes"]
pub enum Finish {
    /// It completes now, and says nothing but how it ended. Most do: a register less to fill than for
    /// each word of an outcome that is zero.
    Plain(Credit, Status),
    /// It completes now, with no more than this.
    Now(Credit, Outcome),
    /// It completes now, with the words of an inline payload.
    Words(Credit, Outcome, [u64; INLINE_WORDS]),
    /// It is kept in a cell, and completed by whoever claims its outcome.
    Later,
}

/// An operation that is refused: why, and the right to say so.
pub type Refused = (Status, Credit);

impl From<Result<Self, Refused>> for Finish {
    #[inline]
    fn from(made: Result<Self, Refused>) -> Self {
        made.unwrap_or_else(|(status, credit)| Self::Plain(credit, status))
    }
}

/// The message of an operation that sends none.
pub const NOTHING: Payload = Payload::Inline { slot: 0, length: 0 };

impl<M: Machine> Caller<'_, M> {
    /// Completes an operation of the caller if it is to be completed now. A thread that runs does not wait,
    /// so this wakes nobody.
    #[inline(always)]
    pub fn finish(self, finish: Finish) {
        match finish {
            Finish::Plain(credit, status) => self.post(credit, &Outcome::plain(status)),
            Finish::Now(credit, outcome) => self.post(credit, &outcome),
            Finish::Words(credit, outcome, words) => self.finish_words(credit, &outcome, &words),
            Finish::Later => {}
        }
    }

    #[inline(always)]
    fn post(self, credit: Credit, outcome: &Outcome) {
        if let Some(mut completions) = self.thread.ops().home.completions()
            && let Some((ring, cq)) = completions.parts()
        {
            debug_assert!(!self.thread.state().load().is_waiting(), "a thread that runs waits");
            ring.kernel.post_unawaited(cq, credit, outcome);
        }
    }

    #[inline(never)]
    fn finish_words(self, credit: Credit, outcome: &Outcome, words: &[u64; INLINE_WORDS]) {
        if let Some(mut completions) = self.thread.ops().home.completions()
            && let Some((ring, cq)) = completions.parts()
        {
            let posted = ring.kernel.post_words(cq, credit, outcome, words);
            // Nobody is woken: the thread is here.
            debug_assert!(posted.count > 0, "what was posted waits");
        }
    }

    /// Keeps an operation that cannot complete yet; how others name it.
    #[inline]
    pub fn keep(self, credit: Credit, operation: &Operation) -> Party {
        let Ok((cell, _)) = self.ring.shared.cells.keep(credit, operation) else {
            self.m.defect("more operations are pending than completions are owed");
        };
        let mut room = Fit::from(operation.room);
        if operation.buffers() != Buffers::NONE {
            self.hold_more(operation.buffers());
            // Who completes it has more to do than to copy a slot.
            room = room.bounded();
        }
        Party { thread: key_of::<M>(self.thread), cell, room }
    }

    /// An operation that is kept names buffers, which its caller holds meanwhile.
    #[inline(never)]
    fn hold_more(self, Buffers { payload, room }: Buffers) {
        let table = &self.ring.shared.process.buffers;
        for place in [payload, room].into_iter().flatten().filter_map(|n| table.get(n)) {
            place.hold_more();
        }
    }

    /// Keeps an operation that sends nothing, until what it receives comes to `room`.
    #[inline]
    pub fn keep_for(self, credit: Credit, room: Room) -> Party {
        self.keep(credit, &Operation::receiving(room, 0))
    }

    /// Says what a kept operation waits for.
    #[inline]
    pub fn aim(self, party: Party, target: Target) {
        if let Some(cell) = self.ring.shared.cells.get(party.cell) {
            cell.set_target(target);
        }
    }

    /// Takes back a kept operation that nobody else knows of, to complete it at once.
    pub fn unkeep(self, party: Party) -> Credit {
        let cells = &self.ring.shared.cells;
        deadlines::settle(self.m, cells, party.cell);
        let named = cells.get(party.cell).map_or(Buffers::NONE, smp_pending::Cell::buffers);
        match cells.finish(party.cell) {
            Some(credit) => {
                if named != Buffers::NONE {
                    let process = self.ring.shared.process;
                    end_buffers(self.m, process, leave_buffers(process, named));
                }
                credit
            }
            None => self.m.defect("an operation that nobody else knew of was completed"),
        }
    }
}
