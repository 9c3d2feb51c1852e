//! The monitor: sees to what no worker can when all of them are busy or stuck.
//!
//! It looks now and then at each worker's counters. A worker that runs one fiber from one look to the
//! next is stalled: the fiber in its LIFO slot goes to the global queue, a sleeper is woken for its
//! queue, and if all are stuck one more worker is started. It fires timers that are overdue. While
//! every worker sleeps it sleeps as well.

use core::sync::atomic::{AtomicU64, Ordering};

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use fiber_core::scaling::{self, Decision, Sample};

use crate::frame::frame_at;
use crate::observe::Stall;
use crate::runtime::Shared;
use crate::substrate::{Substrate, Sys};
use crate::worker::Mode;

/// A fiber that has run for so many times the stall limit is reported.
const REPORT_AFTER: u64 = 10;

/// The longest time between two looks while something runs: so long may work wait in the queue of a
/// worker whose pace has changed, while another one sleeps.
const LONGEST_PERIOD_NS: u64 = 1_000_000;

/// The same with a single worker: there is no other to wake, so only stalls are looked for.
const LONGEST_PERIOD_ALONE_NS: u64 = 5_000_000;

/// What the monitor remembers of a worker from look to look.
#[derive(Clone, Copy, Default)]
struct Seen {
    dispatches: u64,
    since_ns: u64,
    is_reported: bool,
}

impl Shared {
    /// The monitor's thread.
    pub fn monitor(self: Arc<Self>) {
        let mut seen = vec![Seen::default(); self.workers.len()];
        let mut is_refused = false;
        let mut is_quiet = false;
        while !self.is_shutdown.load(Ordering::Acquire) {
            let is_alone = self.live_workers.load(Ordering::Relaxed) == 1;
            let longest_ns = if is_alone { LONGEST_PERIOD_ALONE_NS } else { LONGEST_PERIOD_NS };
            let period_ns = (self.stall_ns / 2).clamp(1, longest_ns);
            self.rest(is_quiet, period_ns);
            if self.is_shutdown.load(Ordering::Acquire) {
                break;
            }
            is_quiet = self.look(&mut seen, &mut is_refused);
        }
    }

    /// Sleeps for a period; while all workers sleep, until one of them wakes.
    fn rest(&self, is_quiet: bool, period_ns: u64) {
        if is_quiet {
            self.watch.announce();
        }
        let is_still_quiet = is_quiet && self.are_all_asleep();
        let deadline_ns = (!is_still_quiet).then(|| Sys::now_ns().saturating_add(period_ns));
        if self.monitor_word.load(Ordering::Acquire) == 0 {
            Sys::park(&self.monitor_word, 0, deadline_ns);
        }
        self.watch.withdraw();
        self.monitor_word.store(0, Ordering::Relaxed);
    }

    fn are_all_asleep(&self) -> bool {
        let live = self.live_workers.load(Ordering::SeqCst);
        self.idle.sleepers() >= live as usize
    }

    /// One look at everything; true if all workers sleep. `is_refused`: the system had no thread for
    /// another worker the last time, and that has been told.
    fn look(self: &Arc<Self>, seen: &mut [Seen], is_refused: &mut bool) -> bool {
        let now_ns = Sys::now_ns();
        let stalled = self.look_at_workers(seen, now_ns);
        // A last resort: a worker that sleeps for the timers has been gone for a whole period.
        if self.timers.next_ns().saturating_add(1_000_000) < now_ns {
            self.timers.fire(now_ns);
        }
        if self.has_work() && self.idle.could_help() {
            self.notify();
        }
        let sample = self.sample(stalled);
        let decision = scaling::decide(sample, self.limits);
        self.telemetry.with(|figures| figures.record(sample, decision));
        let needs_substitute =
            scaling::needs_substitute(sample.workers, sample.blocked, self.limits);
        if (decision == Decision::Promote || needs_substitute)
            && !self.is_shutdown.load(Ordering::Acquire)
        {
            let started = self.start_worker();
            let was_refused = core::mem::replace(is_refused, started.is_err());
            match started {
                Ok(true) if needs_substitute => {
                    self.telemetry.with(|figures| figures.substitutes += 1);
                }
                // Told once, and tried again at every look.
                Err(error) if !was_refused => Sys::warn(format_args!("{error}")),
                Ok(_) | Err(_) => {}
            }
        }
        self.are_all_asleep()
    }

    fn look_at_workers(&self, seen: &mut [Seen], now_ns: u64) -> u32 {
        let mut stalled = 0;
        for (worker, seen) in self.workers.iter().zip(seen) {
            let dispatches = worker.counters.dispatches.load(Ordering::Relaxed);
            let fiber = worker.running.load(Ordering::Relaxed);
            if dispatches == seen.dispatches && fiber != 0 {
                // What comes for others while the worker does not look.
                Sys::poll(&worker.port);
            }
            if dispatches != seen.dispatches || fiber == 0 {
                *seen = Seen { dispatches, since_ns: now_ns, is_reported: false };
                continue;
            }
            let ran_ns = now_ns.saturating_sub(seen.since_ns);
            if ran_ns < self.stall_ns {
                continue;
            }
            let is_blocked = worker.is_blocked.load(Ordering::Relaxed);
            stalled += u32::from(!is_blocked);
            if let Some(frame) = worker.lifo.take() {
                // SAFETY: only frames are in the slot.
                self.global.push(unsafe { frame_at(frame) });
                self.notify();
            }
            if !is_blocked
                && !seen.is_reported
                && ran_ns >= self.stall_ns.saturating_mul(REPORT_AFTER)
            {
                seen.is_reported = true;
                self.stalls.fetch_add(1, Ordering::Relaxed);
                let report = || (self.on_stall)(&Stall { worker: worker.index, fiber, ran_ns });
                if Sys::catch(report).is_err() {
                    Sys::warn(format_args!("the report of a stall panicked"));
                }
            }
        }
        stalled
    }

    fn sample(&self, stalled: u32) -> Sample {
        let sum = |f: &dyn Fn(&crate::worker::Counters) -> u64| -> i64 {
            self.workers.iter().map(|w| f(&w.counters).cast_signed()).sum()
        };
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let enqueued = sum(&|c| load(&c.enqueues) + load(&c.yields))
            + self.injected.load(Ordering::Relaxed).cast_signed();
        let dequeued = sum(&|c| load(&c.dispatches));
        let modes: Vec<u8> = self.workers.iter().map(crate::worker::Worker::mode).collect();
        let count = |mode: Mode| modes.iter().filter(|m| **m == mode as u8).count() as u32;
        Sample {
            pressure: enqueued - dequeued,
            has_work: self.has_work(),
            workers: self.live_workers.load(Ordering::Relaxed),
            sleeping: count(Mode::Sleeping),
            searching: count(Mode::Searching),
            blocked: self.blocked.load(Ordering::Relaxed),
            stalled,
        }
    }
}
