//! Handles to threads: waiting for an end, asking for a code, letting go.

use crate::machine::Machine;
use crate::records::Records;
use crate::thread::Thread;
use abi_ring::{INLINE_WORDS, Outcome};
use abi_types::Status;
use core_thread::{JoinError, JoinVerdict, Joiner, RecycleVerdict, ThreadKey};
use kernel_ops::complete::complete_words;
use kernel_ops::object::Calling;
use kernel_ops::party::{Fit, Party};
use schema::thread_handle::JoinResults;
use schema_wire::Encode;
use smp_pending::Target;
use zerocopy::IntoBytes;

/// Waits for a thread's end with the call in hand.
pub fn join<M: Machine>(
    calling: &mut Calling<'_, M>,
    thread: ThreadKey,
) -> Result<JoinVerdict, JoinError> {
    let m = calling.caller.m;
    let target = m.records().thread_named(thread).ok_or(JoinError::Detached)?;
    let joined = Target::Join { thread: thread.to_bits() };
    let Some(party) = calling.keep(joined) else { return Err(JoinError::SecondWaiter) };
    // All under the lock: the record may be another thread's before it is taken, and after.
    let mut life = target.lifecycle.lock();
    let life_of = life.as_mut().filter(|life| life.is(thread));
    let (verdict, paid) = match life_of {
        Some(life) => {
            let verdict = life.join(joiner(party));
            let is_done = matches!(verdict, Ok(JoinVerdict::Done { .. }));
            (verdict, is_done.then(|| life.end_charge(m)))
        }
        None => (Err(JoinError::Detached), None),
    };
    drop(life);
    drop(paid);
    if verdict != Ok(JoinVerdict::Pending) {
        calling.unkeep(party);
    }
    verdict
}

/// What a thread exited with, if it has.
pub fn exit_code<M: Machine>(m: M, thread: ThreadKey) -> Result<Option<i64>, JoinError> {
    let target = m.records().thread_named(thread).ok_or(JoinError::Detached)?;
    match target.lifecycle.lock().as_ref().filter(|life| life.is(thread)) {
        Some(lifecycle) => lifecycle.exit_code(),
        None => Err(JoinError::Detached),
    }
}

/// A pending join as the joined thread's lifecycle keeps it.
fn joiner(party: Party) -> Joiner {
    Joiner { thread: party.thread, user_data: u64::from(party.cell) }
}

/// A join that waited is over.
pub(crate) fn complete<M: Machine>(m: M, joiner: Joiner, code: i64) {
    let party = Party { thread: joiner.thread, cell: joiner.user_data as u32, room: Fit::NONE };
    let mut words = [0; INLINE_WORDS];
    let outcome = match (JoinResults { exit_code: code }).encode(words.as_mut_bytes()) {
        Ok(bytes) => Outcome { length: bytes as u32, ..Outcome::plain(Status::Ok) },
        Err(_) => Outcome::plain(Status::ResultTooLarge),
    };
    complete_words(m, party, &outcome, &words);
}

/// Claims a pending join for its cancel or end.
pub fn give_up<M: Machine>(m: M, joined: ThreadKey, party: Party) -> bool {
    let Some(target) = m.records().thread_named(joined) else { return false };
    let mut life = target.lifecycle.lock();
    let life = life.as_mut().filter(|life| life.is(joined));
    life.is_some_and(|life| life.cancel_join(joiner(party)).is_ok())
}

/// A handle left its slot.
pub fn handle_released<M: Machine>(m: M, key: ThreadKey) {
    let Some(thread) = m.records().thread_named(key) else { return };
    let mut life = thread.lifecycle.lock();
    let Some(lifecycle) = life.as_mut().filter(|life| life.is(key)) else { return };
    let Ok(verdict) = lifecycle.release_handle() else {
        m.defect("a thread has fewer handles than were released");
    };
    let is_over = lifecycle.is_over();
    let paid = verdict.ends_charge.then(|| lifecycle.end_charge(m));
    if is_over {
        *life = None;
    }
    drop(life);
    drop(paid);
    if is_over {
        recycle(m, m.records(), thread, key);
    }
}

/// Gives the record of a thread back that nobody refers to any more; its lifecycle is taken out.
pub(crate) fn recycle<M: Machine>(
    m: M,
    records: &'static Records<M>,
    thread: &'static Thread<M>,
    key: ThreadKey,
) {
    debug_assert!(thread.key() == key, "a record is recycled once");
    match thread.state.recycle() {
        Ok(RecycleVerdict::Free) => records.give_thread(thread),
        Ok(RecycleVerdict::Retired) => {}
        Err(_) => m.defect("a thread record is recycled while it is in use"),
    }
}
