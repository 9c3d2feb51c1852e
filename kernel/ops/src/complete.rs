//! Completing an operation: the CQE is posted to the ring of the thread that asked, and the thread is
//! woken if it waits for it.
//!
//! Whoever claimed an operation's outcome completes it, once. If the thread is gone, nothing happens.

use crate::deadlines;
use crate::machine::{Defect, Machine, OwnRing, Record};
use crate::party::Party;
use abi_ring::{CqProducer, Credit, INLINE_WORDS, Outcome, Posted};
use core_endpoint::Ended;
use kernel_dispatch::{self as dispatch, Record as _};
use smp_pending::{Operation, Target};

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
    let Some(thread) = m.thread(party.thread.slot) else { return };
    let completions = if m.plants(Defect::StaleGeneration) {
        thread.ops().home.completions()
    } else {
        thread.ops().completions_of(party.thread.generation)
    };
    let Some(mut completions) = completions else { return };
    let Some((ring, cq)) = completions.parts() else { return };
    if !m.plants(Defect::TimerKept) {
        deadlines::settle(m, &ring.shared.cells, party.cell);
    }
    // Before the completion can be seen: a thread that sees it, on another CPU, may submit again at
    // once and needs the cell.
    let Some(credit) = ring.shared.cells.finish(party.cell) else { return };
    let posted = post(ring, cq, credit);
    let due = thread.ops().want.due(thread.state(), posted.count);
    drop(completions);
    if let Some(due) = due
        && !m.plants(Defect::LostWake)
    {
        dispatch::wake(m, thread, due.generation, due.ticket, directly);
    }
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
