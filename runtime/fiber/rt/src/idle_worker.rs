//! A worker with nothing of its own to run: searches, sleeps, and ends if it is one too many.

use core::sync::atomic::{Ordering, fence};

use fiber_core::Withdrawal;

use crate::frame::{Frame, frame_at};
use crate::substrate::{Substrate, Sys};
use crate::timer::NEVER;
use crate::trace::Event;
use crate::worker::{Mode, QUEUE, Worker, bump};

/// How long a surplus worker stays before it drains itself: a worker in and out of blocking regions
/// does not start a thread each time.
const LINGER_NS: u64 = 50_000_000;

impl Worker {
    fn take_global(&self) -> Option<&'static Frame> {
        // The queue is empty here, so half of it is room enough.
        self.shared().global.pop(QUEUE / 2 - 1, |frame| {
            let _ = self.queue.push(frame.as_ptr());
        })
    }

    fn steal(&self) -> Option<&'static Frame> {
        let shared = self.shared();
        let count = shared.workers.len();
        let start = self.random() as usize % count;
        for victim in shared.workers.iter().cycle().skip(start).take(count) {
            if victim.index == self.index || victim.queue.is_empty() {
                continue;
            }
            let mut first = None;
            let stolen = victim.queue.take_half(|frame| match first {
                None => first = Some(frame),
                // The queue is empty and as large as the victim's: there is room for half.
                Some(_) => {
                    let _ = self.queue.push(frame);
                }
            });
            if let Some(frame) = first {
                bump(&self.counters.steals, 1);
                bump(&self.counters.stolen, stolen as u64);
                self.trace.record(Event::Steal, stolen as u64);
                // SAFETY: only frames are in the queue.
                return Some(unsafe { frame_at(frame) });
            }
        }
        None
    }

    /// Fires due timers if there may be any: its own, and only if none of these is due all others.
    fn poll_timers(&self) {
        let timers = &self.shared().timers;
        let next_ns = timers.next_ns();
        if next_ns == NEVER {
            return;
        }
        let now_ns = Sys::now_ns();
        if now_ns >= next_ns && !timers.fire_of(self.index, now_ns) {
            timers.fire(now_ns);
        }
    }

    /// The other workers, if this one's port has room for what waits at theirs.
    fn to_relieve(&self) -> impl Iterator<Item = &Self> {
        let others = if Sys::has_room(&self.port) { &*self.shared().workers } else { &[] };
        others.iter().filter(|other| other.index != self.index)
    }

    /// Has one fiber come here that waits until another worker's port has room, if this one's has.
    pub(crate) fn relieve(&self) {
        let _ = self.to_relieve().any(|other| Sys::hand_over_first(&other.port));
    }

    /// Looks everywhere else, and sleeps if there is nothing; `None` ends the worker.
    #[cold]
    pub(crate) fn pick_elsewhere(&self) -> Option<&'static Frame> {
        self.forget_last();
        let shared = self.shared();
        // A claimed worker counts as searching already.
        let mut is_searching = false;
        let mut linger_until = None;
        loop {
            if shared.is_shutdown.load(Ordering::Relaxed) {
                if is_searching {
                    let _ = shared.idle.end_search();
                }
                return None;
            }
            self.poll_timers();
            Sys::poll(&self.port);
            self.relieve();
            let mut found = self.lifo.take().or_else(|| self.queue.pop());
            // SAFETY: only frames are in slot and queue.
            let mut found = found.take().map(|frame| unsafe { frame_at(frame) });
            if found.is_none() {
                found = self.take_global();
            }
            if found.is_none() {
                is_searching = is_searching || shared.idle.begin_search(shared.search_limit());
                if is_searching {
                    self.set_mode(Mode::Searching);
                    found = self.steal().or_else(|| self.take_global());
                }
            }
            if found.is_some() {
                self.set_mode(Mode::Active);
                Sys::flush(&self.port);
                if is_searching && shared.idle.end_search() && shared.has_work() {
                    shared.notify();
                }
                return found;
            }
            let is_surplus = shared.is_surplus() && !Sys::is_awaited(&self.port);
            if is_surplus {
                let until = *linger_until.get_or_insert_with(|| Sys::now_ns() + LINGER_NS);
                if Sys::now_ns() >= until && shared.retire() {
                    if is_searching {
                        let _ = shared.idle.end_search();
                    }
                    return None;
                }
            } else {
                linger_until = None;
            }
            is_searching = self.sleep(is_searching, linger_until);
        }
    }

    /// Sleeps unless there is work after all; true if the worker was claimed and counts as searching.
    fn sleep(&self, is_searching: bool, until_ns: Option<u64>) -> bool {
        let shared = self.shared();
        self.set_mode(Mode::Sleeping);
        shared.idle.announce_sleep(self.index, is_searching);
        let deadline_ns = shared.timers.keep(self.index);
        let is_due = deadline_ns.is_some_and(|deadline| deadline <= Sys::now_ns());
        let is_wanted = shared.has_work() || self.to_relieve().any(|it| Sys::is_crowded(&it.port));
        let stays = !is_due && !is_wanted && !shared.is_shutdown.load(Ordering::SeqCst);
        if stays {
            bump(&self.counters.sleeps, 1);
            self.trace.record(Event::Sleep, 0);
            let deadline_ns = match (deadline_ns, until_ns) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            while !self.wake_word.is_claimed() && !Sys::has_come(&self.port) {
                Sys::sleep(&self.port, self.wake_word.word(), deadline_ns);
                if deadline_ns.is_some_and(|deadline| Sys::now_ns() >= deadline) {
                    break;
                }
            }
            self.trace.record(Event::Wake, 0);
        }
        shared.timers.unkeep(self.index);
        let is_claimed = match shared.idle.withdraw(self.index) {
            Withdrawal::Mine => false,
            Withdrawal::Claimed => {
                // The wake-up is under way: taken here, so that the next sleep does not find it.
                while !self.wake_word.take_claim() {
                    core::hint::spin_loop();
                }
                true
            }
        };
        self.set_mode(Mode::Active);
        // Time asleep is no measure of the pace.
        self.measured.set((Sys::now_ns(), self.counters.dispatches.load(Ordering::Relaxed)));
        shared.wake_monitor();
        is_claimed
    }

    /// Hands everything to the global queue. By a worker that ends.
    pub(crate) fn drain(&self) {
        self.set_mode(Mode::Draining);
        let shared = self.shared();
        while let Some(frame) = self.lifo.take().or_else(|| self.queue.pop()) {
            // SAFETY: only frames are in slot and queue.
            shared.global.push(unsafe { frame_at(frame) });
        }
        // Pairs with the fence of a publisher who saw this worker search, and left its work to it: either
        // the work is seen here, or the end of the search was there.
        fence(Ordering::SeqCst);
        // It may have looked at the clock for all.
        if shared.has_work() || shared.timers.next_ns() != NEVER {
            shared.notify();
        }
        self.give_up_cache(&shared.pool);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::sync::Arc;
    use std::vec::Vec;

    use super::*;
    use crate::runtime::Runtime;
    use crate::timer::Timer;

    /// Slot and queue are full of fibers; the other worker sleeps, and is the only one who could come.
    #[test]
    fn a_worker_that_ends_hands_everything_over_and_wakes_another() {
        let shared = Runtime::builder().elastic(false).shared(2, 64 << 10);
        let [worker, sleeper] = &*shared.workers else { unreachable!() };
        worker.adopt(&shared);
        let frames: Vec<_> = (0..5)
            .map(|_| {
                let frame = Frame::runnable(&raw const shared);
                worker.enqueue_next(frame);
                frame.as_ptr()
            })
            .collect();
        assert_eq!((worker.lifo.is_empty(), worker.queue.len()), (false, 4));
        shared.idle.announce_sleep(sleeper.index, false);
        worker.drain();
        assert_eq!((worker.lifo.is_empty(), worker.queue.len()), (true, 0));
        assert_eq!(worker.mode(), Mode::Draining as u8);
        assert_eq!(shared.idle.sleepers(), 0, "the sleeper is claimed");
        assert!(sleeper.wake_word.is_claimed(), "and woken");
        let mut handed = Vec::new();
        while let Some(frame) = shared.global.pop(0, |_| {}) {
            handed.push(frame.as_ptr());
            frame.end_queued();
        }
        // The slot's first, then the queue in order.
        assert_eq!(handed, [frames[4], frames[0], frames[1], frames[2], frames[3]]);
        // With nothing to hand over nobody is woken.
        shared.idle.announce_sleep(sleeper.index, false);
        worker.drain();
        assert_eq!(shared.idle.sleepers(), 1);
    }

    /// Whoever publishes while a worker searches leaves it to that one, which ends at this moment.
    #[test]
    fn a_worker_that_ends_leaves_nothing_it_was_relied_on_for() {
        let shared = Arc::new(Runtime::builder().elastic(false).shared(2, 64 << 10));
        let [worker, sleeper] = &*shared.workers else { unreachable!() };
        worker.adopt(&shared);
        shared.idle.announce_sleep(sleeper.index, false);
        assert!(shared.idle.begin_search(shared.search_limit()));
        let frame = Frame::runnable(Arc::as_ptr(&shared));
        shared.inject(frame);
        assert_eq!(shared.idle.sleepers(), 1, "the other one searches");
        assert!(shared.idle.end_search());
        worker.drain();
        assert_eq!(shared.idle.sleepers(), 0, "nobody comes for the fiber");
        assert!(shared.global.pop(0, |_| {}).is_some());
        frame.end_queued();
    }

    /// The one that sleeps does not look at the clock, because another one did.
    #[test]
    fn a_worker_that_ends_leaves_its_timers_to_another() {
        unsafe fn nothing(_: *const ()) {}
        let shared = Runtime::builder().elastic(false).shared(2, 64 << 10);
        let [worker, sleeper] = &*shared.workers else { unreachable!() };
        worker.adopt(&shared);
        let timer = Timer::call(nothing, core::ptr::null());
        // SAFETY: it is taken out below.
        unsafe { shared.insert_timer(&timer, u64::MAX / 2) };
        assert!(shared.timers.keep(worker.index).is_some());
        shared.idle.announce_sleep(sleeper.index, false);
        assert!(shared.timers.keep(sleeper.index).is_none());
        shared.timers.unkeep(worker.index);
        worker.drain();
        assert_eq!(shared.idle.sleepers(), 0, "nobody looks at the clock");
        shared.timers.remove(&timer);
    }
}
