//! Completing an operation: the CQE is posted to the ring of the thread that asked, and the thread is
//! woken if it waits for it.
//!
//! Whoever claimed an operation's outcome completes it, once. If the thread is gone, nothing happens.

use crate::deadlines;
use crate::machine::{Defect, Machine, OwnRing, ProcessPart, Record, Space};
use crate::party::Party;
use crate::registered::Registered;
use abi_ring::{CqProducer, Credit, INLINE_WORDS, Outcome, Posted};
use abi_types::Status;
use core_endpoint::Ended;
use kernel_dispatch::{self as dispatch, Record as _};
use smp_buffers::Left;
use smp_pending::{Buffers, Operation, Target};

/// Completes an operation without a payload.
pub fn complete<M: Machine>(m: M, party: Party, outcome: &Outcome) {
    complete_with(m, party, false, |ring, cq, credit| ring.kernel.post(cq, credit, outcome));
}

/// Completes an operation that a service ended by the way.
pub fn complete_ended<M: Machine>(m: M, what: Ended<Party, Party>) {
    match what {
        Ended::Call { end, status } => complete(m, end.caller, &Outcome::plain(status)),
        Ended::Recv { receiver, status } => complete(m, receiver, &Outcome::plain(status)),
    }
}

/// Completes an operation with the words of a payload, at most a slot.
pub fn complete_words<M: Machine>(
    m: M,
    party: Party,
    outcome: &Outcome,
    words: &[u64; INLINE_WORDS],
) {
    complete_with(m, party, false, |ring, cq, credit| {
        ring.kernel.post_words(cq, credit, outcome, words)
    });
}

/// Completes an operation as `post` does it, under the completion lock; `post` is not called if the
/// thread is gone. `directly` asks for the thread to run next on this CPU.
#[inline]
pub fn complete_with<M: Machine>(
    m: M,
    party: Party,
    directly: bool,
    post: impl FnOnce(&OwnRing<M>, &mut CqProducer, Credit) -> Posted,
) {
    if let Some(due) = post_with(m, party, post) {
        due.wake(m, directly);
    }
}

/// A completion that was posted, and the wait that it ends, if it ends one.
#[must_use = "the thread may wait for this"]
pub struct Due<M: Machine> {
    thread: &'static M::Thread,
    wait: Option<core_thread::Due>,
    /// Buffers of a process that the operation was the last to use.
    closed: Option<(&'static ProcessPart<M>, Buffers)>,
}

impl<M: Machine> Due<M> {
    /// Wakes the thread that waited for it. `directly` as in [`complete_with`].
    #[inline]
    pub fn wake(self, m: M, directly: bool) {
        if let Some((process, closed)) = self.closed {
            end_buffers(m, process, closed);
        }
        if let Some(wait) = self.wait
            && !m.plants(Defect::LostWake)
        {
            dispatch::wake(m, self.thread, wait.generation, wait.ticket, directly);
        }
    }
}

/// As [`complete_with`], but for the wake, which is the caller's to do; `None` if the thread is gone and
/// `post` was not called.
#[inline(always)]
pub fn post_with<M: Machine>(
    m: M,
    party: Party,
    post: impl FnOnce(&OwnRing<M>, &mut CqProducer, Credit) -> Posted,
) -> Option<Due<M>> {
    let thread = m.thread(party.thread.slot)?;
    let completions = if m.plants(Defect::StaleGeneration) {
        thread.ops().home.completions()
    } else {
        thread.ops().completions_of(party.thread.generation)
    };
    let mut completions = completions?;
    let (ring, cq) = completions.parts()?;
    if !m.plants(Defect::TimerKept) {
        deadlines::settle(m, &ring.shared.cells, party.cell);
    }
    // Before the completion can be seen: a thread that sees it, on another CPU, may submit again at
    // once and needs the cell.
    let named = ring.shared.cells.get(party.cell)?.buffers();
    let credit = ring.shared.cells.finish(party.cell)?;
    let process = ring.shared.process;
    let posted = post(ring, cq, credit);
    let wait = thread.ops().want.due(thread.state(), posted.count);
    let closed = match named {
        Buffers::NONE => None,
        named => Some((process, leave_buffers(process, named))),
    };
    Some(Due { thread, wait, closed })
}

/// Changes what a pending operation waits for; under the lock of what it waits for, or the operation may
/// have ended and its cell be another's.
pub fn retarget<M: Machine>(m: M, party: Party, target: Target) {
    if let Some(thread) = m.thread(party.thread.slot)
        && let Some(completions) = thread.ops().completions_of(party.thread.generation)
        && let Some(cell) = completions.ring().shared.cells.get(party.cell)
    {
        cell.set_target(target);
    }
}

/// What an operation of a thread that is still there asked for.
pub fn operation_of<M: Machine>(m: M, party: Party) -> Option<Operation> {
    let thread = m.thread(party.thread.slot)?;
    let completions = thread.ops().completions_of(party.thread.generation)?;
    Some(completions.ring().shared.cells.get(party.cell)?.operation())
}

/// What an operation of a thread that is still there waits for.
pub fn target_of<M: Machine>(m: M, party: Party) -> Option<Target> {
    let thread = m.thread(party.thread.slot)?;
    let completions = thread.ops().completions_of(party.thread.generation)?;
    Some(completions.ring().shared.cells.get(party.cell)?.target())
}

/// An operation that named buffers is over: those that it was the last to use, which are to be [ended](end_buffers) by a
/// caller without a lock of a completion queue.
#[inline(never)]
#[must_use = "a buffer that nobody uses ends"]
pub fn leave_buffers<M: Machine>(process: &ProcessPart<M>, buffers: Buffers) -> Buffers {
    let was_last = |number: Option<u16>| {
        let place = process.buffers.get(number?)?;
        if place.leave() == Left::Last { number } else { None }
    };
    // In this order: both may be one buffer, which ends with the second.
    let payload = was_last(buffers.payload);
    Buffers { payload, room: was_last(buffers.room) }
}

/// Ends buffers that nobody uses any more.
pub fn end_buffers<M: Machine>(m: M, process: &'static ProcessPart<M>, closed: Buffers) {
    for number in [closed.payload, closed.room].into_iter().flatten() {
        end_buffer(m, process, number);
    }
}

/// Ends a buffer that nobody uses any more, and tells who waits for that.
#[cold]
pub fn end_buffer<M: Machine>(m: M, process: &'static ProcessPart<M>, number: u16) {
    let Some(place) = process.buffers.get(number) else { return };
    // Not found: the process has ended meanwhile.
    let Some((buffer, waiter)) = place.take() else { return };
    put_away(process, *buffer);
    place.free();
    // From here on the process may be gone.
    if let Some(waiter) = waiter {
        complete(m, waiter, &Outcome::plain(Status::Ok));
    }
}

/// Lets go of the pages of a buffer that is in no place.
pub fn put_away<M: Machine>(
    process: &ProcessPart<M>,
    buffer: Registered<<M::Space as Space>::Pages>,
) {
    let Registered { pages, range, paid, record, .. } = buffer;
    // Before the pages may be anybody's.
    drop(pages);
    process.map.unregister(range);
    paid.release();
    record.release();
}
