//! Threads by their full names, for who sets shares and reads accounts; and how busy CPUs are.
//!
//! A name is believed under the lock of the thread's queue: while that is held the thread does not end, so its record
//! is not another's and its process is not another either. Threads of the kernel's own have no process and so no name:
//! nobody weighs the reaper. Decided in ADR 330.

use crate::machine::Machine;
use crate::thread::Thread;
use abi_sync::mask_below;
use abi_types::{Pid, ThreadRef};
use core_sched_policy::Share;
use core_thread::{State, ThreadKey};
use kernel_dispatch as dispatch;
pub use kernel_dispatch::Account;

/// How busy a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Threads that run or want to.
    pub runnable: u32,
    /// Time it was idle, up to now.
    pub idle_ns: u64,
}

/// The record at a name's position, if it is that thread's.
fn record_of<M: Machine>(m: M, name: ThreadRef) -> Option<&'static Thread<M>> {
    let key = ThreadKey::from_reference(name);
    // A program chose the number: it stays within the table even where the check is only guessed.
    let (at, count) = (key.slot as usize, m.records().threads().len());
    let slot = key.slot & mask_below(at, count) as u32;
    m.records().thread_named(ThreadKey { slot, ..key }).filter(|_| at < count)
}

/// Whether the thread in a record, which is `name`'s by number and generation, is of the process that `name` says.
fn is_of_its_process<M: Machine>(m: M, thread: &'static Thread<M>, name: ThreadRef) -> bool {
    let process = m.records().process(thread.ops.process_slot());
    process.is_some_and(|process| {
        let key = process.key();
        (key.slot, key.generation) == (name.pid.0, name.process_generation)
    })
}

/// Gives the thread of that name another share, made of the one that was last asked for; it counts from its next
/// enqueue on. `false`, and nothing happens, if there is no such thread any more.
pub fn set_share<M: Machine>(m: M, name: ThreadRef, change: impl FnOnce(Share) -> Share) -> bool {
    record_of(m, name).is_some_and(|thread| {
        let key = ThreadKey::from_reference(name);
        dispatch::set_share(m, thread, key, || is_of_its_process(m, thread, name), change)
    })
}

/// What the thread of that name has counted up to now.
pub fn account<M: Machine>(m: M, name: ThreadRef) -> Option<Account> {
    let thread = record_of(m, name)?;
    let key = ThreadKey::from_reference(name);
    dispatch::account(m, thread, key, || is_of_its_process(m, thread, name))
}

/// The full name of a thread that lives.
pub fn name_of<M: Machine>(m: M, thread: &'static Thread<M>) -> Option<ThreadRef> {
    let word = thread.state.load();
    if matches!(word.state(), State::Free | State::Dead | State::Retired) {
        return None;
    }
    let process = m.records().process(thread.ops.process_slot())?.key();
    // It is the thread's process if the thread is there still.
    if thread.state.load().generation() != word.generation() {
        return None;
    }
    let key = ThreadKey { slot: thread.slot(), generation: word.generation() };
    Some(key.reference(Pid(process.slot), process.generation))
}

/// The full name of the thread in the record at a position, if one lives in it.
pub fn name_at<M: Machine>(m: M, slot: u32) -> Option<ThreadRef> {
    name_of(m, m.records().thread(slot)?)
}

/// How busy the CPU of that number is.
pub fn load<M: Machine>(m: M, cpu: u32) -> Option<Load> {
    let (at, count) = (cpu as usize, m.cpus().len());
    if at >= count {
        return None;
    }
    // As above.
    let cpu = m.cpus().get(at & mask_below(at, count) as usize)?;
    let mut queue = cpu.queue.lock();
    // After the lock: nothing of the queue's is later than this.
    let now = m.clock();
    Some(Load { runnable: queue.view().runnable(), idle_ns: queue.idle_ns_until(now) })
}
