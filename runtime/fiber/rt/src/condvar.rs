//! A condition variable for the mutex beside it.

use core::cell::Cell;
use core::mem::ManuallyDrop;
use core::ptr;
use core::time::Duration;

use fiber_core::Outcome;

use crate::list::{List, Node};
use crate::lock::SpinLock;
use crate::mutex::{Link, MutexGuard, take_first};
use crate::planted::{Defect, is_planted};
use crate::time::{Cancelled, Instant};
use crate::wait::{Wait, Waker, wait};
use crate::what::What;

/// Wakers collected under the lock before they are issued after it.
const BATCH: usize = 32;

/// Waits for a change to what a mutex protects.
#[derive(Default)]
pub struct Condvar {
    waiters: SpinLock<List<Link>>,
}

impl Condvar {
    /// Nobody waits.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { waiters: SpinLock::new(List::new()) }
    }

    /// Nobody waits.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Unlocks, waits to be notified, and locks again, also when cancelled.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) -> Result<(), Cancelled> {
        self.wait_deadline(guard, None).map(|_| ())
    }

    /// As `wait`, for so long; says whether it was notified.
    pub fn wait_timeout<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> Result<bool, Cancelled> {
        self.wait_deadline(guard, Some((Instant::now() + timeout).as_ns()))
    }

    fn wait_deadline<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline_ns: Option<u64>,
    ) -> Result<bool, Cancelled> {
        let mutex = guard.mutex;
        let node = Node::new(Link(Cell::new(ptr::null())));
        let mut is_unlocked = false;
        let publish = |wait: &Wait| {
            node.value.0.set(wait);
            if is_planted(Defect::UnlocksBeforeLinking) {
                mutex.unlock();
            }
            // SAFETY: the node is out of the list before this function ends: taken out by whoever
            // notifies, or below.
            self.waiters.with(|list| unsafe { list.push(&node) });
            // Linked before it is unlocked: a notification after a change under the lock is seen.
            if !is_planted(Defect::UnlocksBeforeLinking) {
                mutex.unlock();
            }
            is_unlocked = true;
            true
        };
        let unlink = |outcome| {
            if outcome != Outcome::Data(0) {
                // SAFETY: if it is linked, then here.
                self.waiters.with(|list| unsafe { list.remove(&node) });
            }
        };
        let at = ptr::from_ref(self).cast();
        let outcome = wait(What::Condvar, at, deadline_ns, publish, unlink);
        if is_unlocked {
            // The caller's guard stands for this lock.
            let _ = ManuallyDrop::new(mutex.lock());
        }
        match outcome {
            Some(Outcome::Cancelled) => Err(Cancelled),
            Some(Outcome::Timeout) => Ok(false),
            _ => Ok(true),
        }
    }

    /// Wakes one who waits; says whether there was one.
    pub fn notify_one(&self) -> bool {
        let waker = self.waiters.with(take_first);
        waker.map(Waker::wake).is_some()
    }

    /// Wakes all who wait; says how many.
    pub fn notify_all(&self) -> usize {
        let mut count = 0;
        loop {
            let mut batch = [None; BATCH];
            let taken = self.waiters.with(|list| {
                for place in &mut batch {
                    *place = take_first(list);
                    if place.is_none() {
                        break;
                    }
                }
                batch
            });
            let before = count;
            taken.into_iter().flatten().for_each(|waker| {
                waker.wake();
                count += 1;
            });
            if count - before < BATCH {
                return count;
            }
        }
    }
}

impl core::fmt::Debug for Condvar {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("Condvar")
    }
}
