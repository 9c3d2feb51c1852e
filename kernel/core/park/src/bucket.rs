//! One bucket: the waiters of the keys that hash to it.

use crate::waiter::NONE;
use crate::{Key, Waiter, WaiterRef};

/// Waiters of some keys. Every call is made under the lock that guards it; `waiters` is the one
/// table of cells all buckets share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its number, kept in the cells.
    pub(crate) number: u32,
    /// First waiter of the first key.
    pub(crate) first_key: u32,
    /// Threads waiting here.
    pub(crate) waiting: u32,
}

/// What a park came to.
#[must_use = "a parked thread has to block, the others complete at once"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// The word is as expected: the thread is linked and waits.
    Waiting {
        /// Names this wait for a timeout or a cancel.
        waiter: WaiterRef,
        /// When to time it out.
        deadline_ns: Option<u64>,
        /// Keys looked at: what the bucket's sharing cost.
        probes: u32,
    },
    /// The word is not as expected.
    Mismatch,
    /// The word is as expected, and the deadline is already past.
    TimedOut,
}

/// Why nothing was parked; no state changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkError<E> {
    /// There is no cell of that index.
    NoSuchWaiter,
    /// That thread waits already; it can wait at one place at a time.
    Waits,
    /// The word could not be read.
    Word(E),
}

/// What an unpark came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unparked {
    /// Waiters taken out, each to be completed as woken.
    pub woken: u32,
    /// Keys looked at: what the bucket's sharing cost.
    pub probes: u32,
}

impl Bucket {
    /// The empty bucket `number`.
    pub const fn new(number: u32) -> Self {
        Self { number, first_key: NONE, waiting: 0 }
    }

    /// Whether nobody waits here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Parks thread `index` at `key` if `is_expected`, told the name that the wait is to have, says that the
    /// word there still has the expected value, and if `deadline_ns` (none: never) is not past.
    #[inline]
    pub fn park<E>(
        &mut self,
        waiters: &[Waiter],
        index: u32,
        key: Key,
        deadline_ns: Option<u64>,
        now_ns: u64,
        is_expected: impl FnOnce(WaiterRef) -> Result<bool, E>,
    ) -> Result<Parked, ParkError<E>> {
        let waiter = waiters.get(index as usize).ok_or(ParkError::NoSuchWaiter)?;
        if waiter.is_waiting() {
            return Err(ParkError::Waits);
        }
        let named = WaiterRef { index, ticket: waiter.next_ticket() };
        if !is_expected(named).map_err(ParkError::Word)? {
            return Ok(Parked::Mismatch);
        }
        if deadline_ns.is_some_and(|deadline| deadline <= now_ns) {
            return Ok(Parked::TimedOut);
        }
        let (first, probes) = self.find(waiters, key);
        let ticket = waiter.begin(key, self.number);
        match waiters.get(first as usize) {
            Some(first_waiter) => {
                let last = first_waiter.before.get();
                link(waiters, last, index);
                link(waiters, index, first);
                waiter.set_first(false);
            }
            None => {
                link(waiters, index, index);
                waiter.set_first(true);
                chain(waiters, index, self.first_key);
                waiter.before_key.set(NONE);
                self.first_key = index;
            }
        }
        self.waiting += 1;
        debug_assert!(ticket == named.ticket, "a wait has the name that was told");
        let waiter = WaiterRef { index, ticket };
        Ok(Parked::Waiting { waiter, deadline_ns, probes })
    }

    /// Takes out at most `limit` waiters of `key`, first come first, and hands each to `wake`.
    #[inline]
    pub fn unpark(
        &mut self,
        waiters: &[Waiter],
        key: Key,
        limit: u32,
        mut wake: impl FnMut(WaiterRef),
    ) -> Unparked {
        if limit == 0 || self.is_empty() {
            return Unparked { woken: 0, probes: 0 };
        }
        let (mut first, probes) = self.find(waiters, key);
        let mut woken = 0;
        while woken < limit {
            let Some(waiter) = waiters.get(first as usize) else { break };
            let next = if waiter.next.get() == first { NONE } else { waiter.next.get() };
            let claimed = WaiterRef { index: first, ticket: waiter.ticket() };
            self.take_out(waiters, first, waiter);
            woken += 1;
            wake(claimed);
            first = next;
        }
        Unparked { woken, probes }
    }

    /// Takes out the first waiter of `key`: what [`unpark`](Self::unpark) does with a limit of 1.
    #[inline(always)]
    pub fn unpark_one(&mut self, waiters: &[Waiter], key: Key) -> Option<WaiterRef> {
        if self.is_empty() { None } else { self.take_first(waiters, key) }
    }

    #[inline(never)]
    fn take_first(&mut self, waiters: &[Waiter], key: Key) -> Option<WaiterRef> {
        let (first, _) = self.find(waiters, key);
        let waiter = waiters.get(first as usize)?;
        let claimed = WaiterRef { index: first, ticket: waiter.ticket() };
        self.take_out(waiters, first, waiter);
        Some(claimed)
    }

    /// Takes out one wait, for its timeout, its cancel or its thread's end. `false` if somebody
    /// else claimed it before: then there is nothing to complete.
    #[inline]
    #[must_use = "only a claimed wait may be completed"]
    pub fn unlink(&mut self, waiters: &[Waiter], waiter: WaiterRef) -> bool {
        let Some(cell) = waiters.get(waiter.index as usize) else { return false };
        let is_it = cell.is_waiting()
            && cell.ticket() == waiter.ticket
            && cell.bucket() == self.number as usize;
        if is_it {
            self.take_out(waiters, waiter.index, cell);
        }
        is_it
    }

    /// The first waiter of a key, and how many keys were looked at.
    #[inline]
    fn find(&self, waiters: &[Waiter], key: Key) -> (u32, u32) {
        let mut probes = 0;
        let mut first = self.first_key;
        while let Some(waiter) = waiters.get(first as usize) {
            probes += 1;
            if waiter.key() == key {
                break;
            }
            first = waiter.next_key.get();
        }
        (first, probes)
    }

    fn take_out(&mut self, waiters: &[Waiter], index: u32, waiter: &Waiter) {
        let (before, next) = (waiter.before.get(), waiter.next.get());
        if waiter.is_first() {
            // The next of the ring takes its place in the chain; the last of a ring leaves none.
            let (before_key, next_key) = (waiter.before_key.get(), waiter.next_key.get());
            let heir = if next == index { next_key } else { next };
            if let Some(heir) = waiters.get(next as usize).filter(|_| next != index) {
                heir.set_first(true);
                chain(waiters, next, next_key);
            }
            match waiters.get(before_key as usize) {
                Some(_) => chain(waiters, before_key, heir),
                None => {
                    self.first_key = heir;
                    if let Some(heir) = waiters.get(heir as usize) {
                        heir.before_key.set(NONE);
                    }
                }
            }
        }
        if next != index {
            link(waiters, before, next);
        }
        waiter.end();
        self.waiting -= 1;
    }
}

/// Makes `b` the one after `a` in their ring.
#[inline]
fn link(waiters: &[Waiter], a: u32, b: u32) {
    if let (Some(first), Some(second)) = (waiters.get(a as usize), waiters.get(b as usize)) {
        first.next.set(b);
        second.before.set(a);
    }
}

/// Makes `b`, or nothing, the key after `a` in the chain.
#[inline]
fn chain(waiters: &[Waiter], a: u32, b: u32) {
    if let Some(first) = waiters.get(a as usize) {
        first.next_key.set(b);
    }
    if let Some(second) = waiters.get(b as usize) {
        second.before_key.set(a);
    }
}
