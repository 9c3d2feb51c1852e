//! Deadlines: a wheel for each worker, so that whoever sleeps is woken where it ran.
//!
//! A timer is due when its tick has begun, never before its deadline. Who looks: a worker on every
//! 61st pick, at its own wheel and for what is overdue at one other in turn, whose worker may be stuck
//! or gone; a worker that has nothing to do, at all of them; the one idle worker that is the keeper
//! sleeps no longer than to the next deadline of any; the monitor as a last resort. Who looks fires a
//! batch. What is left stays due, for the next who looks: a worker that has run what the batch woke, or
//! another one that has nothing to do.
//!
//! Decided in ADR 169.

use alloc::boxed::Box;

use abi_sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use fiber_core::Outcome;

use crate::lock::SpinLock;
use crate::planted::{Defect, is_planted};
use crate::wait::{Wait, Waker};
pub use crate::wheel::Timer;
use crate::wheel::{BATCH, Due, Wheel};

/// A tick is 2¹⁵ ns, about 33 µs: a timer is late by that at most, before scheduling.
const TICK_SHIFT: u32 = 15;

/// After so long others fire what a busy worker has not.
const OVERDUE_NS: u64 = 200_000;

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

/// When a tick begins. The clock never comes to the last of them, which hold what has no end.
fn begin_ns(tick: u64) -> u64 {
    tick.saturating_mul(1 << TICK_SHIFT)
}

/// A worker's timers, on cache lines of their own.
#[repr(align(128))]
struct Shard {
    wheel: SpinLock<Wheel>,
    /// When to look next, or NEVER.
    next_ns: AtomicU64,
}

/// The timers of a runtime.
pub struct Timers {
    shards: Box<[Shard]>,
    /// The sleeping worker that looks, plus one.
    keeper: AtomicUsize,
}

impl Timers {
    /// None, for so many workers.
    pub fn new(workers: usize, now_ns: u64) -> Self {
        let shard = |_| Shard {
            wheel: SpinLock::new(Wheel::new(now_ns >> TICK_SHIFT)),
            next_ns: AtomicU64::new(NEVER),
        };
        Self { shards: (0..workers).map(shard).collect(), keeper: AtomicUsize::new(0) }
    }

    /// When the next one is due, about: never later.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        let next = |shard: &Shard| shard.next_ns.load(Ordering::Relaxed);
        self.shards.iter().map(next).min().unwrap_or(NEVER)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.wheel.with(|wheel| wheel.len)).sum()
    }

    /// Makes `worker`, which goes to sleep, the keeper if there is none, and says until when it may
    /// sleep.
    pub fn keep(&self, worker: usize) -> Option<u64> {
        let is_keeper =
            self.keeper.compare_exchange(0, worker + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if !is_keeper {
            return None;
        }
        // Pairs with the fence in `insert_quietly`: either it sees the keeper or this sees its deadline.
        if !is_planted(Defect::KeepsWithoutAFence) {
            fence(Ordering::SeqCst);
        }
        match self.next_ns() {
            NEVER => None,
            next => Some(next),
        }
    }

    /// Ends the keeping of `worker`, which is awake.
    pub fn unkeep(&self, worker: usize) {
        if self.keeper.load(Ordering::Relaxed) == worker + 1 {
            self.keeper.store(0, Ordering::SeqCst);
        }
    }

    /// Puts `timer` into the wheel of `worker`, and returns the worker to wake because it sleeps past
    /// the deadline.
    ///
    /// # Safety
    /// The timer stays where it is until it is removed.
    #[must_use]
    pub unsafe fn insert_quietly(
        &self,
        worker: usize,
        timer: &Timer,
        deadline_ns: u64,
    ) -> Option<usize> {
        // Rounded up: never early.
        let tick = (deadline_ns >> TICK_SHIFT).saturating_add(1);
        let worker = worker % self.shards.len().max(1);
        let shard = self.shard(worker)?;
        // Fits: there are no more workers than `MAX_WORKERS`, 256.
        timer.0.value.of.set(worker as u8);
        let is_first = shard.wheel.with(|wheel| {
            // SAFETY: by the caller.
            let due_ns = begin_ns(unsafe { wheel.link(timer, tick) });
            let is_first = due_ns < shard.next_ns.load(Ordering::Relaxed);
            if is_first {
                shard.next_ns.store(due_ns, Ordering::Relaxed);
            }
            is_first
        });
        if !is_first {
            return None;
        }
        // Pairs with the fence in `keep`.
        fence(Ordering::SeqCst);
        self.keeper.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Takes `timer` out, if it is in. After that nobody touches it. By whoever inserted it.
    pub fn remove(&self, timer: &Timer) {
        if let Some(shard) = self.shard(usize::from(timer.0.value.of.get())) {
            shard.wheel.with(|wheel| wheel.remove(timer));
        }
    }

    /// Takes `timer` out, if it is in, and waits for its function to return if it is being called. By
    /// whoever inserted it, with no lock held.
    pub fn remove_and_wait(&self, timer: &Timer) {
        self.remove(timer);
        while timer.0.value.is_firing() && !is_planted(Defect::WaitsForNoTimer) {
            relax();
        }
    }

    /// Parks the caller by `park` until `wait` is ended, with `timer`, its own, in a wheel meanwhile:
    /// `insert` puts it there. Out of it again, nobody looks at the wait because of the timer.
    #[inline]
    pub fn park_until(
        &self,
        timer: &'static Timer,
        wait: &Wait,
        insert: impl FnOnce(),
        park: impl FnOnce(),
    ) {
        timer.set_wake(wait);
        insert();
        park();
        // Whoever fired it took it out of the wheel before deciding so.
        if !wait.has_timed_out() && !is_planted(Defect::LeavesItsTimer) {
            self.remove(timer);
        }
    }

    fn shard(&self, worker: usize) -> Option<&Shard> {
        self.shards.get(worker % self.shards.len().max(1))
    }

    /// When busy `worker` has to look for the first time, about: for a timer of its own, or an
    /// overdue one of the worker whose turn it is.
    #[inline]
    pub fn soonest_ns(&self, worker: usize, turn: usize) -> u64 {
        let next = |shard: &Shard| shard.next_ns.load(Ordering::Relaxed);
        let own_ns = self.shard(worker).map_or(NEVER, next);
        own_ns.min(self.shard(turn).map_or(NEVER, next).saturating_add(OVERDUE_NS))
    }

    /// Fires a batch of what [`soonest_ns`](Self::soonest_ns) spoke of.
    #[cold]
    pub fn fire_soonest(&self, worker: usize, turn: usize, now_ns: u64) {
        self.fire_of(worker, now_ns);
        self.fire_of(turn, now_ns.saturating_sub(OVERDUE_NS));
    }

    /// Fires a batch of what is due in the wheel of `worker`; false if nothing is.
    pub fn fire_of(&self, worker: usize, now_ns: u64) -> bool {
        let due = |shard: &&Shard| now_ns >= shard.next_ns.load(Ordering::Relaxed);
        self.shard(worker).filter(due).is_some_and(|shard| {
            shard.fire(now_ns >> TICK_SHIFT);
            true
        })
    }

    /// Fires all there are, due or not. By a runtime that has ended, for futures that outlive it.
    pub fn end(&self) {
        for shard in &self.shards {
            while shard.wheel.with(|wheel| wheel.len) > 0 {
                shard.fire(u64::MAX);
            }
        }
    }

    /// Fires a batch of what is due in each wheel.
    pub fn fire(&self, now_ns: u64) {
        for worker in 0..self.shards.len() {
            self.fire_of(worker, now_ns);
        }
    }
}

/// Lets others run, for whoever waits for another one to be done.
fn relax() {
    #[cfg(not(loom))]
    <crate::substrate::Sys as crate::substrate::Substrate>::relax();
    #[cfg(loom)]
    abi_sync::spin_hint();
}

/// Ends the waits that are due. Under the lock of their wheel.
fn end_waits(due: &[Due; BATCH], wakers: &mut [Option<Waker>; BATCH]) {
    for (due, waker) in due.iter().zip(wakers) {
        let Due::Wait(wait) = due else { continue };
        // SAFETY: null, or a wait whose waiter takes its timer out before the wait ends, which needs
        // the lock.
        let Some(wait) = (unsafe { wait.as_ref() }) else { continue };
        let its = wait.waker();
        its.prefetch();
        if wait.decide(Outcome::Timeout) {
            *waker = Some(its);
        }
    }
}

impl core::fmt::Debug for Timers {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "timers of {} workers", self.shards.len())
    }
}

impl Shard {
    fn fire(&self, tick: u64) {
        let mut wakers: [Option<Waker>; BATCH] = [None; BATCH];
        let mut due = [Due::Nothing; BATCH];
        self.wheel.with(|wheel| {
            wheel.advance(tick, &mut due);
            if !is_planted(Defect::EndsWaitsUnlocked) {
                end_waits(&due, &mut wakers);
            }
            let next = wheel.next_tick().map_or(NEVER, begin_ns);
            self.next_ns.store(next, Ordering::Relaxed);
        });
        if is_planted(Defect::EndsWaitsUnlocked) {
            end_waits(&due, &mut wakers);
        }
        wakers.into_iter().flatten().for_each(Waker::wake);
        for due in due {
            if let Due::Call(entry) = due {
                // SAFETY: whoever owns the timer waits for it to have fired.
                unsafe { &*entry }.fire();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::substrate::{Substrate, Sys};

    const MS: u64 = 1_000_000;

    unsafe fn count(counter: *const ()) {
        // SAFETY: what `counting` was given.
        unsafe { &*counter.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
    }

    fn counting(counter: &AtomicUsize) -> Timer {
        Timer::call(count, core::ptr::from_ref(counter).cast())
    }

    #[test]
    fn a_busy_worker_fires_its_own_and_what_is_overdue_elsewhere() {
        let (fired, timers) = (AtomicUsize::new(0), Timers::new(4, 0));
        let (own, other) = (counting(&fired), counting(&fired));
        assert_eq!(timers.soonest_ns(1, 3), NEVER);
        // SAFETY: both stay here until they have fired.
        unsafe {
            assert_eq!(timers.insert_quietly(1, &own, 2 * MS), None);
            assert_eq!(timers.insert_quietly(3, &other, MS), None);
        }
        assert_eq!(timers.len(), 2);
        let due_ns = timers.next_ns();
        assert!(due_ns >= MS, "early");
        // Not its own and not overdue: left to worker 3, which it is due for.
        timers.fire_soonest(1, 3, due_ns);
        assert_eq!(fired.load(Ordering::Relaxed), 0);
        // Overdue, but not its turn.
        timers.fire_soonest(1, 2, due_ns + OVERDUE_NS);
        assert_eq!(fired.load(Ordering::Relaxed), 0);
        assert_eq!(timers.soonest_ns(1, 3), due_ns + OVERDUE_NS);
        timers.fire_soonest(1, 3, due_ns + OVERDUE_NS);
        assert_eq!(fired.load(Ordering::Relaxed), 1);
        timers.fire_soonest(1, 0, timers.soonest_ns(1, 0));
        assert_eq!((fired.load(Ordering::Relaxed), timers.len()), (2, 0));
        assert_eq!(timers.next_ns(), NEVER);
    }

    #[test]
    fn the_keeper_is_named_to_whoever_is_earlier() {
        let (fired, timers) = (AtomicUsize::new(0), Timers::new(2, 0));
        let (late, early) = (counting(&fired), counting(&fired));
        assert_eq!(timers.keep(1), None);
        // SAFETY: both are taken out below.
        unsafe {
            assert_eq!(timers.insert_quietly(0, &late, 9 * MS), Some(1));
            assert_eq!(timers.insert_quietly(0, &early, 8 * MS), Some(1));
        }
        // Somebody keeps already.
        assert_eq!(timers.keep(0), None);
        timers.unkeep(1);
        assert!(timers.keep(0).is_some_and(|until_ns| (8 * MS..9 * MS).contains(&until_ns)));
        timers.remove(&early);
        timers.remove(&early);
        timers.remove(&late);
        timers.fire(100 * MS);
        assert_eq!((fired.load(Ordering::Relaxed), timers.len()), (0, 0));
    }

    /// A deadline that the clock never comes to leaves everybody asleep.
    #[test]
    fn a_timer_at_the_end_of_time_is_never_due() {
        let (fired, timers) = (AtomicUsize::new(0), Timers::new(1, 0));
        let (last, near) = (counting(&fired), counting(&fired));
        // SAFETY: the one has fired and the other is taken out below.
        unsafe {
            assert_eq!(timers.insert_quietly(0, &last, u64::MAX), None);
            assert_eq!(timers.insert_quietly(0, &near, MS), None);
        }
        timers.fire(2 * MS);
        assert_eq!(fired.load(Ordering::Relaxed), 1);
        assert_eq!(timers.next_ns(), NEVER);
        assert_eq!(timers.keep(0), None);
        timers.remove(&last);
    }

    /// Whoever takes a timer out while its function runs waits for that.
    #[test]
    fn a_function_that_is_called_has_returned_when_its_timer_is_out() {
        extern crate std;
        static STAGE: AtomicUsize = AtomicUsize::new(0);
        unsafe fn slow(timers: *const ()) {
            // SAFETY: what the timer was made with. No lock is held: the wheel can be asked.
            assert_eq!(unsafe { &*timers.cast::<Timers>() }.len(), 0);
            STAGE.store(1, Ordering::SeqCst);
            while STAGE.load(Ordering::SeqCst) == 1 {
                Sys::relax();
            }
            STAGE.store(3, Ordering::SeqCst);
        }
        let timers = Timers::new(1, 0);
        let timer = Timer::call(slow, core::ptr::from_ref(&timers).cast());
        // SAFETY: it is taken out below.
        assert_eq!(unsafe { timers.insert_quietly(0, &timer, MS) }, None);
        std::thread::scope(|scope| {
            scope.spawn(|| timers.fire(9 * MS));
            while STAGE.load(Ordering::SeqCst) == 0 {
                Sys::relax();
            }
            scope.spawn(|| STAGE.store(2, Ordering::SeqCst));
            timers.remove_and_wait(&timer);
            assert_eq!(STAGE.load(Ordering::SeqCst), 3);
        });
    }
}
