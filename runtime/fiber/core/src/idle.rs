//! Who sleeps and who searches, so that work in a queue is never left alone.
//!
//! The rule: after work is in a queue, a worker runs, searches, or is being woken. A publisher puts
//! the work in its queue, fences, and looks for a searcher or else claims a sleeper. A worker that
//! goes to sleep announces it, stops searching, fences, and looks at every queue again. One of the
//! two fences comes first, so one of the two sees the other.
//!
//! A sleeper is claimed by whoever clears its bit. The claimed worker is counted as searching from
//! that moment, before it runs: so one wake-up is under way at a time, and the worker that ends its
//! search with work in hand wakes the next.

use abi_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::planted::{Defect, is_planted};

/// Workers that can sleep.
pub const MAX_WORKERS: usize = 64 * GROUPS;

const GROUPS: usize = 4;

/// How a worker that announced its sleep found itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Withdrawal {
    /// Nobody claimed it: it is awake and not searching.
    Mine,
    /// It was claimed: a wake-up is under way, which it has to take, and it counts as searching.
    Claimed,
}

/// Sleepers and searchers of a runtime.
#[derive(Debug)]
pub struct Idle {
    searching: AtomicU32,
    sleeping: [AtomicU64; GROUPS],
}

impl Default for Idle {
    fn default() -> Self {
        Self::new()
    }
}

impl Idle {
    /// Nobody sleeps or searches.
    pub fn new() -> Self {
        Self { searching: AtomicU32::new(0), sleeping: core::array::from_fn(|_| AtomicU64::new(0)) }
    }

    fn group(&self, worker: usize) -> Option<(&AtomicU64, u64)> {
        self.sleeping.get(worker / 64).map(|group| (group, 1 << (worker % 64)))
    }

    /// Starts a search unless `limit` workers search already.
    #[inline]
    #[must_use]
    pub fn begin_search(&self, limit: u32) -> bool {
        if self.searching.load(Ordering::Relaxed) >= limit {
            return false;
        }
        // SeqCst: a publisher that sees the count relies on this worker's looks that follow.
        self.searching.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// Ends a search that found work; true if nobody searches any more: then the caller calls
    /// [`claim_after_publish`](Self::claim_after_publish), because there may be more.
    #[inline]
    #[must_use]
    pub fn end_search(&self) -> bool {
        // SeqCst: as in `begin_search`.
        self.searching.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// Announces that `worker` is about to sleep; `is_searching` ends its search. It then looks at
    /// every queue once more, and either withdraws or parks until it is claimed.
    pub fn announce_sleep(&self, worker: usize, is_searching: bool) {
        if let Some((group, bit)) = self.group(worker) {
            // SeqCst: comes before the looks at the queues; pairs with the fence of a publisher.
            group.fetch_or(bit, Ordering::SeqCst);
        }
        let is_late = is_planted(Defect::SearchesInItsSleep);
        if is_searching && !is_late {
            // SeqCst: as above. A publisher that saw the old count relied on the looks that follow.
            self.searching.fetch_sub(1, Ordering::SeqCst);
        }
        // Pairs with the fence in `claim_after_publish`.
        if !is_planted(Defect::SleepsWithoutAFence) {
            fence(Ordering::SeqCst);
        }
        if is_searching && is_late {
            self.searching.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Takes the announcement back.
    pub fn withdraw(&self, worker: usize) -> Withdrawal {
        let Some((group, bit)) = self.group(worker) else { return Withdrawal::Mine };
        // SeqCst: against `claim`, who clears the bit in the same way.
        if group.fetch_and(!bit, Ordering::SeqCst) & bit != 0 {
            Withdrawal::Mine
        } else {
            Withdrawal::Claimed
        }
    }

    /// Whether `worker` has announced its sleep and was not claimed since.
    pub fn is_sleeping(&self, worker: usize) -> bool {
        self.group(worker).is_some_and(|(group, bit)| group.load(Ordering::SeqCst) & bit != 0)
    }

    /// For whoever has just put work into a queue: the worker to wake, if one has to be.
    #[inline]
    #[must_use]
    pub fn claim_after_publish(&self) -> Option<usize> {
        // Pairs with the fence in `announce_sleep`: the work is visible before the look, so either
        // the sleeper finds it or its bit is seen here.
        if !is_planted(Defect::PublishesWithoutAFence) {
            fence(Ordering::SeqCst);
        }
        if self.searching.load(Ordering::Relaxed) > 0 {
            return None;
        }
        self.claim()
    }

    /// Whether somebody sleeps and nobody searches, without a fence: a hint for whoever has more
    /// work than one worker needs at once.
    #[inline]
    pub fn could_help(&self) -> bool {
        self.searching.load(Ordering::Relaxed) == 0 && self.has_sleepers()
    }

    /// Whether somebody sleeps; old as soon as it is read.
    #[inline]
    pub fn has_sleepers(&self) -> bool {
        self.sleeping.iter().any(|group| group.load(Ordering::Relaxed) != 0)
    }

    /// How many sleep; old as soon as it is read.
    pub fn sleepers(&self) -> usize {
        self.sleeping.iter().map(|group| group.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// How many search; old as soon as it is read.
    pub fn searchers(&self) -> usize {
        self.searching.load(Ordering::Relaxed) as usize
    }

    /// Claims a sleeper, if there is one, and counts it as searching. The caller unparks it.
    #[must_use]
    pub fn claim(&self) -> Option<usize> {
        for (number, group) in self.sleeping.iter().enumerate() {
            let mut bits = group.load(Ordering::Relaxed);
            while bits != 0 {
                let lowest = bits.trailing_zeros();
                if self.take(group, 1 << lowest) {
                    return Some(number * 64 + lowest as usize);
                }
                bits = group.load(Ordering::Relaxed);
            }
        }
        None
    }

    /// Claims `worker` if it sleeps, and counts it as searching. The caller unparks it.
    #[must_use]
    pub fn claim_this(&self, worker: usize) -> bool {
        self.group(worker).is_some_and(|(group, bit)| self.take(group, bit))
    }

    /// Clears a sleeper's bit. Between the bit and the count the worker is in neither, which is no
    /// gap: it looks at every queue after it is unparked, and so after anything that was published
    /// in between.
    fn take(&self, group: &AtomicU64, bit: u64) -> bool {
        let claimed = if is_planted(Defect::ClaimStores) {
            let bits = group.load(Ordering::SeqCst);
            group.store(bits & !bit, Ordering::SeqCst);
            bits & bit != 0
        } else {
            // SeqCst: against `withdraw`, who clears the bit in the same way.
            group.fetch_and(!bit, Ordering::SeqCst) & bit != 0
        };
        if claimed {
            // SeqCst: before the unpark, so before the worker's own `end_search`.
            self.searching.fetch_add(1, Ordering::SeqCst);
        }
        claimed
    }
}
