//! The timers of all operations, by position: one per thread for the time limit of `cap_enter`, one per
//! thread for the time limit of PARK, then a pool for sleeps and deadlines of calls.

use crate::party::{Fit, Party};
use abi_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core_fallible::{OutOfMemory, try_collect, try_leak};
use core_thread::ThreadKey;
use core_timer::Timer;
use smp_lock::{LockClass, TicketLock};

/// What a timer of the pool is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// `Timer.sleep`.
    Sleep = 0,
    /// A call's deadline.
    CallDeadline = 1,
}

impl Purpose {
    const fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::Sleep,
            _ => Self::CallDeadline,
        }
    }
}

/// One timer of the pool.
#[derive(Debug)]
struct Pooled {
    thread: AtomicU64,
    cell: AtomicU32,
    purpose: AtomicU32,
    /// One more than the position of the next free one; 0 after the last.
    next: AtomicU32,
}

/// Whose a timer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The `cap_enter` of the thread at this position.
    Enter(u32),
    /// The PARK of the thread at this position.
    Park(u32),
    /// An operation's, from the pool.
    Pooled(Purpose, Party),
}

/// The timers.
#[derive(Debug)]
pub struct Timers {
    cells: &'static [Timer],
    pool: &'static [Pooled],
    threads: u32,
    /// One more than the position of the first free timer of the pool.
    free: TicketLock<u32>,
}

impl Timers {
    /// Timers for so many threads, and so many sleeps and deadlines of calls.
    pub fn new(threads: u32, pooled: u32) -> Result<Self, OutOfMemory> {
        let count = 2 * threads + pooled;
        let cells = try_leak(try_collect((0..count).map(|_| Timer::new()))?)?;
        let free_one = |n| Pooled {
            thread: AtomicU64::new(0),
            cell: AtomicU32::new(0),
            purpose: AtomicU32::new(0),
            next: AtomicU32::new(if n == pooled { 0 } else { n + 1 }),
        };
        let pool = try_leak(try_collect((1..=pooled).map(free_one))?)?;
        let free = TicketLock::with_class(LockClass::TimerPool, u32::from(pooled > 0));
        Ok(Self { cells, pool, threads, free })
    }

    /// All of them, as the queues of deadlines link them.
    #[inline]
    pub fn cells(&self) -> &'static [Timer] {
        self.cells
    }

    /// Position of the timer for a thread's `cap_enter`.
    #[inline]
    pub const fn of_enter(slot: u32) -> u32 {
        slot
    }

    /// Position of the timer for a thread's PARK.
    #[inline]
    pub const fn of_park(&self, slot: u32) -> u32 {
        self.threads + slot
    }

    /// Takes a timer of the pool, for an operation of `party`; its position.
    pub(crate) fn take(&self, purpose: Purpose, party: Party) -> Option<u32> {
        let mut first = self.free.lock();
        let index = first.checked_sub(1)?;
        let pooled = self.pool.get(index as usize)?;
        *first = pooled.next.load(Ordering::Relaxed);
        pooled.thread.store(party.thread.to_bits(), Ordering::Relaxed);
        pooled.cell.store(party.cell, Ordering::Relaxed);
        pooled.purpose.store(purpose as u32, Ordering::Relaxed);
        Some(2 * self.threads + index)
    }

    /// Gives a timer of the pool back: by whoever disarmed it, or by who serves it once its cell does not
    /// name it any more.
    pub(crate) fn give_back(&self, timer: u32) {
        let index = timer.wrapping_sub(2 * self.threads);
        if let Some(pooled) = self.pool.get(index as usize) {
            let mut first = self.free.lock();
            pooled.next.store(*first, Ordering::Relaxed);
            *first = index + 1;
        }
    }

    /// Whose the timer at a position is.
    pub(crate) fn whose(&self, timer: u32) -> Option<Whose> {
        if timer < self.threads {
            return Some(Whose::Enter(timer));
        }
        if timer < 2 * self.threads {
            return Some(Whose::Park(timer - self.threads));
        }
        let pooled = self.pool.get((timer - 2 * self.threads) as usize)?;
        let thread = ThreadKey::from_bits(pooled.thread.load(Ordering::Relaxed));
        let party = Party { thread, cell: pooled.cell.load(Ordering::Relaxed), room: Fit::NONE };
        Some(Whose::Pooled(Purpose::from_bits(pooled.purpose.load(Ordering::Relaxed)), party))
    }

    /// How many timers of the pool are free.
    pub fn free(&self) -> u32 {
        let first = self.free.lock();
        let mut count = 0;
        let mut at = *first;
        while let Some(pooled) = at.checked_sub(1).and_then(|index| self.pool.get(index as usize)) {
            count += 1;
            at = pooled.next.load(Ordering::Relaxed);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_position_has_one_owner_and_the_pool_comes_round() {
        let timers = Timers::new(3, 2).unwrap();
        assert_eq!(timers.cells().len(), 8);
        assert_eq!(timers.whose(2), Some(Whose::Enter(2)));
        assert_eq!(timers.whose(timers.of_park(0)), Some(Whose::Park(0)));
        let thread = ThreadKey { slot: 1, generation: 5 };
        let party = Party { thread, cell: 9, room: Fit::NONE };
        let first = timers.take(Purpose::Sleep, party).unwrap();
        let second = timers.take(Purpose::CallDeadline, party).unwrap();
        assert_eq!((first, second, timers.free()), (6, 7, 0));
        assert_eq!(timers.take(Purpose::Sleep, party), None);
        assert_eq!(timers.whose(second), Some(Whose::Pooled(Purpose::CallDeadline, party)));
        timers.give_back(first);
        assert_eq!((timers.take(Purpose::Sleep, party), timers.free()), (Some(first), 0));
        assert_eq!(timers.whose(8), None);
    }
}
