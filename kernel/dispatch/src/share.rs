//! The share of a thread, and its account: changed and read by others than the CPU it runs on.
//!
//! Weight, class and counters are in the thread's scheduling state, which belongs to the queue of its home and is
//! reached under that queue's lock alone, wherever the one who asks is. So there is no word that two CPUs write: the
//! CPU that runs the thread reads what is wanted when it next queues it, under the same lock, and a thread that moves
//! meanwhile is followed (`smp_rq::lock_home_by`). A key never changes while the thread is linked, because what is in use
//! changes only where a thread becomes a competitor (`core_sched::Entity::set_share`). Decided in ADR 330.

use crate::machine::{Defect, Here, Machine, Record, lock, lock_home};
use core_sched::{Activity, CpuId, Snapshot};
use core_sched_policy::Share;
use core_thread::ThreadKey;
use smp_rq::QueueGuard;

/// What a thread has counted, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its counters, the interval that is open included, and the share in use.
    pub counted: Snapshot,
    /// The CPU it belongs to: where it runs, waits, or ran last.
    pub cpu: CpuId,
    /// Whether it runs or wants to.
    pub is_runnable: bool,
}

/// Locks the queue of a thread, if the record is still that of the thread of this name and it has not ended. Both stay
/// so while the lock is held.
fn lock_live<M: Machine>(
    m: M,
    thread: &'static M::Thread,
    key: ThreadKey,
) -> Option<QueueGuard<'static, 'static, M::Policy>> {
    let here = Here::now(m);
    let mut queue = match thread.node().home() {
        Some(home) if m.is_planted(Defect::ShareNotFollowed) => lock(m, &here, home),
        _ => lock_home(m, &here, thread),
    };
    let is_its = thread.node().thread() == key.to_bits();
    let activity = m.agreed(queue.with(thread.node(), |_, _, entity| Ok(entity.activity())));
    (is_its && activity != Activity::Dead).then_some(queue)
}

/// Gives the thread of that name another share, made of the one that was last asked for; it counts from its next
/// enqueue on. `false`, and nothing happens, if the thread is gone or `is_meant` says no, which is asked while the
/// thread cannot end.
pub fn set_share<M: Machine>(
    m: M,
    thread: &'static M::Thread,
    key: ThreadKey,
    is_meant: impl FnOnce() -> bool,
    change: impl FnOnce(Share) -> Share,
) -> bool {
    let Some(mut queue) = lock_live(m, thread, key) else { return false };
    if !is_meant() {
        return false;
    }
    m.agreed(queue.with(thread.node(), |_, _, entity| {
        let share = change(entity.wanted());
        entity.set_share(share);
        Ok(())
    }));
    true
}

/// What the thread of that name has counted up to now; `None` if it is gone or `is_meant` says no, as above.
pub fn account<M: Machine>(
    m: M,
    thread: &'static M::Thread,
    key: ThreadKey,
    is_meant: impl FnOnce() -> bool,
) -> Option<Account> {
    let mut queue = lock_live(m, thread, key)?;
    if !is_meant() {
        return None;
    }
    // After the lock: nothing of the queue's is later than this.
    let now = m.clock();
    let cpu = queue.view().cpu();
    Some(m.agreed(queue.with(thread.node(), |queue, item, entity| {
        let is_runnable = !matches!(entity.activity(), Activity::Resting | Activity::Dead);
        Ok(Account { counted: queue.snapshot(item, entity, now), cpu, is_runnable })
    })))
}
