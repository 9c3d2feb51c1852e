//! The park table of the whole machine: `core_park`'s buckets, each with its own lock.
//!
//! A park, an unpark, a timeout or an exit locks one bucket. Two threads that wait at different
//! places meet only if their keys share one.
#![cfg_attr(not(loom), no_std)]

use abi_sync::{GrowSlice, Room};
use core_park::{Bucket, Hash, Key, ParkError, Parked, Unparked, Waiter, WaiterRef};
use smp_lock::{LockClass, TicketLock};

/// `1 << BITS` buckets over one table of waiters, which grows; `COUNT` is `1 << BITS`.
#[derive(Debug)]
pub struct ParkTable<const COUNT: usize> {
    buckets: [TicketLock<Bucket>; COUNT],
    waiters: GrowSlice<Waiter>,
    hash: Hash,
}

impl<const COUNT: usize> ParkTable<COUNT> {
    const BITS: u32 = {
        assert!(COUNT.is_power_of_two(), "the number of buckets is a power of two");
        COUNT.trailing_zeros()
    };

    /// A table that has no waiters yet, and places for as many threads as `room` has; `secret` is random.
    pub fn new(room: Room<Waiter>, secret: [u64; 2]) -> Self {
        let buckets = core::array::from_fn(|n| {
            TicketLock::with_class(LockClass::Endpoint, Bucket::new(n as u32))
        });
        let waiters = GrowSlice::new();
        waiters.set_room(room);
        Self { buckets, waiters, hash: Hash::new(secret) }
    }

    /// Makes waiters up to that of thread `index`; `false` without memory or places. By one at a time.
    pub fn reach(&self, index: u32) -> bool {
        while self.waiters.as_slice().len() <= index as usize {
            if self.waiters.grow(|_| Waiter::new()).is_err() {
                return false;
            }
        }
        true
    }

    /// Parks thread `index` at `key` unless `is_expected`, told the wait's name under the key's lock, denies.
    /// `None` as `deadline_ns` waits for ever.
    #[inline]
    pub fn park<E>(
        &self,
        index: u32,
        key: Key,
        deadline_ns: Option<u64>,
        now_ns: u64,
        is_expected: impl FnOnce(WaiterRef) -> Result<bool, E>,
    ) -> Result<Parked, ParkError<E>> {
        match self.buckets.get(self.hash.bucket(key, Self::BITS)) {
            Some(bucket) => {
                let mut bucket = bucket.lock();
                bucket.park(self.waiters.as_slice(), index, key, deadline_ns, now_ns, is_expected)
            }
            None => Err(ParkError::NoSuchWaiter),
        }
    }

    /// Takes out at most `limit` waiters of `key` in order of arrival. `wake` runs under the
    /// key's lock: it claims the thread and takes no lock that a parking thread may hold.
    #[inline]
    pub fn unpark(&self, key: Key, limit: u32, wake: impl FnMut(WaiterRef)) -> Unparked {
        match self.buckets.get(self.hash.bucket(key, Self::BITS)) {
            Some(bucket) => bucket.lock().unpark(self.waiters.as_slice(), key, limit, wake),
            None => Unparked { woken: 0, probes: 0 },
        }
    }

    /// Takes out the first waiter of `key`.
    #[inline(always)]
    pub fn unpark_one(&self, key: Key) -> Option<WaiterRef> {
        let bucket = self.buckets.get(self.hash.bucket(key, Self::BITS))?;
        bucket.lock().unpark_one(self.waiters.as_slice(), key)
    }

    /// Takes out one wait for its timeout, cancel or thread's end; `false` if it was claimed
    /// before.
    #[inline]
    #[must_use = "only a claimed wait may be completed"]
    pub fn unlink(&self, waiter: WaiterRef) -> bool {
        // The cell's bucket is that of the named wait, or of a later one with another ticket.
        let bucket = self.waiters.get(waiter.index as usize).map(Waiter::bucket);
        match bucket.and_then(|bucket| self.buckets.get(bucket)) {
            Some(bucket) => bucket.lock().unlink(self.waiters.as_slice(), waiter),
            None => false,
        }
    }

    /// Walks every bucket; says which rule is broken.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        let waiters = self.waiters.as_slice();
        self.buckets.iter().try_for_each(|bucket| bucket.lock().check_invariants(waiters))
    }
}
