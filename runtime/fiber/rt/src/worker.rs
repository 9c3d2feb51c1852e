//! A worker: picks fibers, runs them, and does for them what they cannot do on their own stacks.
//!
//! Decided in ADR 103.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use fiber_core::{CommitVerdict, LifoSlot, RunQueue, WakeWord};

use crate::frame::{Frame, Switch, frame_at};
use crate::lock::SpinLock;
use crate::pool::Pool;
use crate::runtime::Shared;
use crate::scope;
use crate::substrate::{Substrate, Sys};
use crate::timer::NEVER;
use crate::trace::{Event, Stop, TraceBuffer};
use crate::wait::check;

/// A worker's own queue.
pub(crate) const QUEUE: usize = 256;
/// Every so many picks the global queue and the timers come first.
const GLOBAL_INTERVAL: u64 = 61;
/// Runs out of the LIFO slot in a row before the queue has its turn.
const LIFO_RUNS: u32 = 3;
/// Channel operations of a fiber before it has to yield.
const BUDGET: u32 = 128;
/// Frames a worker keeps for its next spawns; half goes back when there are more.
const CACHE: u32 = 64;
/// A queue that is emptied sooner than this is left to its own worker: to wake another one costs
/// more, and takes longer.
const WORTH_WAKING_NS: u64 = 20_000;
/// What a slice is taken to last before any was measured.
const FIRST_SLICE_NS: u64 = 500;

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    Dead = 0,
    Active = 1,
    Searching = 2,
    Sleeping = 3,
    Draining = 4,
}

/// Counters only the worker writes; anyone may read.
#[derive(Default)]
pub(crate) struct Counters {
    /// Fibers picked, each out of a queue or slot.
    pub dispatches: AtomicU64,
    /// Fibers published, without those that yielded.
    pub enqueues: AtomicU64,
    pub spawns: AtomicU64,
    pub finishes: AtomicU64,
    pub parks: AtomicU64,
    pub yields: AtomicU64,
    pub lifo_picks: AtomicU64,
    pub steals: AtomicU64,
    pub stolen: AtomicU64,
    pub sleeps: AtomicU64,
}

/// Adds to a counter that has one writer.
#[inline]
pub(crate) fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

pub(crate) struct Worker {
    pub index: usize,
    shared: Cell<*const Shared>,
    /// The runtime whose fibers are published here when they become runnable on this thread: its own;
    /// none while the worker is blocked, and would leave them alone.
    publishes_for: Cell<*const Shared>,
    pub queue: RunQueue<Frame, QUEUE>,
    pub lifo: LifoSlot<Frame>,
    /// Why the worker has to wake up.
    pub wake_word: WakeWord,
    pub mode: AtomicU8,
    pub is_blocked: AtomicBool,
    pub counters: Counters,
    /// The fiber it runs or ran last, for others to look at; 0 while it has none to run.
    pub running: AtomicU64,
    current: Cell<*const Frame>,
    budget: Cell<u32>,
    lifo_runs: Cell<u32>,
    cache: Cell<*mut Frame>,
    cached: Cell<u32>,
    cache_lock: SpinLock<()>,
    lone_yields: Cell<u64>,
    slice_ns: Cell<u64>,
    /// When the pace was measured, and the picks by then.
    pub(crate) measured: Cell<(u64, u64)>,
    random: Cell<u64>,
    pub trace: TraceBuffer,
    /// What the system has for this worker alone.
    pub port: <Sys as Substrate>::Port,
}

// SAFETY: cells are touched by the worker's own thread only, but for those of the cache where stacks are
// few: there its lock is held. The rest is shared by protocol.
unsafe impl Sync for Worker {}
// SAFETY: as for Sync.
unsafe impl Send for Worker {}

/// The worker this thread is.
#[inline]
pub(crate) fn current() -> Option<&'static Worker> {
    // SAFETY: set by `run` to a worker that outlives the thread's use of it.
    unsafe { Sys::current().cast::<Worker>().as_ref() }
}

/// The fiber that runs on this thread.
#[inline]
pub(crate) fn current_fiber() -> Option<&'static Frame> {
    // SAFETY: null or a frame.
    current().and_then(|worker| unsafe { worker.current.get().as_ref() })
}

/// Publishes a runnable fiber: to the worker that asks if it is of the same runtime and not blocked,
/// else to the global queue. By the one who made it runnable.
#[inline]
pub(crate) fn enqueue(frame: &'static Frame) {
    let shared = frame.shared.load(Ordering::Relaxed);
    match current() {
        Some(worker) if ptr::eq(worker.publishes_for.get(), shared) => worker.enqueue_next(frame),
        // Once it is published it may run to its end, and its runtime may go with it.
        // SAFETY: a runtime lives as long as its fibers, and this one is not published yet.
        _ => unsafe { Shared::kept(shared) }.inject(frame),
    }
}

impl Worker {
    pub fn new(index: usize, trace_events: usize) -> Self {
        Self {
            index,
            shared: Cell::new(ptr::null()),
            publishes_for: Cell::new(ptr::null()),
            queue: RunQueue::new(),
            lifo: LifoSlot::new(),
            wake_word: WakeWord::new(),
            mode: AtomicU8::new(Mode::Dead as u8),
            is_blocked: AtomicBool::new(false),
            counters: Counters::default(),
            running: AtomicU64::new(0),
            current: Cell::new(ptr::null()),
            budget: Cell::new(0),
            lifo_runs: Cell::new(0),
            cache: Cell::new(ptr::null_mut()),
            cached: Cell::new(0),
            cache_lock: SpinLock::new(()),
            lone_yields: Cell::new(0),
            slice_ns: Cell::new(FIRST_SLICE_NS),
            measured: Cell::new((0, 0)),
            random: Cell::new(index as u64 * 2 + 1),
            trace: TraceBuffer::new(trace_events),
            port: Default::default(),
        }
    }

    #[inline]
    pub fn shared(&self) -> &Shared {
        // SAFETY: set by `run` before anything else; the runtime outlives its workers.
        unsafe { &*self.shared.get() }
    }

    pub fn mode(&self) -> u8 {
        self.mode.load(Ordering::Relaxed)
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Counts a channel operation; true if the fiber has had its share and is to yield.
    #[inline]
    pub fn spend(&self) -> bool {
        let left = self.budget.get();
        self.budget.set(left.wrapping_sub(1));
        left == 0
    }

    /// Publishes a fiber that is to run next on this worker.
    #[inline]
    pub fn enqueue_next(&self, frame: &'static Frame) {
        frame.ownership.publish(&frame.word);
        bump(&self.counters.enqueues, 1);
        self.trace.record_fiber(Event::Ready, frame);
        if let Some(displaced) = self.lifo.put(frame.as_ptr()) {
            // SAFETY: only frames are in the slot.
            self.push(unsafe { frame_at(displaced) });
        }
    }

    /// Puts a runnable fiber at the end of the queue, and lets a sleeper help.
    #[inline]
    fn push(&self, frame: &'static Frame) {
        frame.ownership.is_queued(&frame.word);
        if self.queue.push(frame.as_ptr()).is_err() {
            self.overflow(frame);
        }
        // No fence: this worker is awake and will come to the fiber itself. A sleeper that is missed
        // here is a matter of speed, and the monitor looks again.
        if self.shared().idle.could_help() && self.is_behind() {
            self.shared().notify();
        }
    }

    /// Whether the queue is longer than this worker gets through soon, at the pace of its last
    /// slices. A pace that changes is noticed by the monitor.
    fn is_behind(&self) -> bool {
        self.queue.len() as u64 * self.slice_ns.get() > WORTH_WAKING_NS
    }

    /// Measures the pace, once in a while.
    fn measure(&self, now_ns: u64) {
        let picks = self.counters.dispatches.load(Ordering::Relaxed);
        let (since_ns, since_picks) = self.measured.replace((now_ns, picks));
        if let Some(slice_ns) = now_ns.saturating_sub(since_ns).checked_div(picks - since_picks) {
            self.slice_ns.set(slice_ns);
        }
    }

    #[cold]
    fn overflow(&self, frame: &'static Frame) {
        let shared = self.shared();
        // SAFETY: only frames are in the queue.
        self.queue.take_half(|other| shared.global.push(unsafe { frame_at(other) }));
        shared.global.push(frame);
        shared.notify();
    }

    /// A frame for a new fiber.
    #[inline]
    pub fn take_frame(&self) -> Result<&'static Frame, crate::SystemError> {
        let cached = self.with_cache(|| {
            // SAFETY: only frames are in the cache.
            let frame = unsafe { self.cache.get().as_ref() }?;
            self.cache.set(frame.link.load(Ordering::Relaxed));
            self.cached.set(self.cached.get() - 1);
            Some(frame)
        });
        match cached {
            Some(frame) => Ok(frame),
            None => self.shared().pool.take(self.shared()),
        }
    }

    /// Runs `f`, which may touch the cache. By the worker's own thread, or where stacks are few by any.
    #[inline(always)]
    fn with_cache<R>(&self, f: impl FnOnce() -> R) -> R {
        if Sys::STACKS_ARE_FEW { self.cache_lock.with(|()| f()) } else { f() }
    }

    /// Keeps a frame for the next spawn.
    #[inline]
    pub fn give_frame(&self, frame: &'static Frame) {
        self.with_cache(|| {
            frame.link.store(self.cache.get(), Ordering::Relaxed);
            self.cache.set(frame.as_ptr());
            self.cached.set(self.cached.get() + 1);
            if self.cached.get() > CACHE {
                self.flush_cache(CACHE / 2, &self.shared().pool);
            }
        });
    }

    /// Gives all frames the worker keeps to the runtime's pool; how many. By who may use `with_cache`.
    pub fn give_up_cache(&self, pool: &Pool) -> u32 {
        self.with_cache(|| {
            let count = self.cached.get();
            if count > 0 {
                self.flush_cache(count, pool);
            }
            count
        })
    }

    /// Within `with_cache`.
    #[cold]
    fn flush_cache(&self, count: u32, pool: &Pool) {
        // SAFETY: only frames are in the cache, and at least `count` of them.
        let Some(first) = (unsafe { self.cache.get().as_ref() }) else { return };
        let mut last = first;
        for _ in 1..count {
            // SAFETY: as above.
            last = unsafe { frame_at(last.link.load(Ordering::Relaxed)) };
        }
        self.cache.set(last.link.load(Ordering::Relaxed));
        self.cached.set(self.cached.get() - count);
        pool.give(first, last);
    }

    /// Makes it a worker of `shared`. On its own thread.
    pub(crate) fn adopt(&self, shared: &Shared) {
        self.shared.set(shared);
        self.publishes_for.set(shared);
    }

    /// The worker's whole life on its thread.
    pub fn run(&'static self, shared: &Shared) {
        self.adopt(shared);
        Sys::set_current(ptr::from_ref(self).cast());
        Sys::watch_overflow();
        self.set_mode(Mode::Active);
        self.measured.set((Sys::now_ns(), self.counters.dispatches.load(Ordering::Relaxed)));
        Sys::attach(&self.port, || {
            while let Some(frame) = self.pick() {
                self.execute(frame);
            }
        });
        self.drain();
        // Release: pairs with the acquire in `start_worker`; the worker's next thread finds its cells so.
        self.mode.store(Mode::Dead as u8, Ordering::Release);
        Sys::set_current(ptr::null());
    }

    /// Runs a fiber until it gives the worker up.
    #[inline]
    fn execute(&self, frame: &'static Frame) {
        bump(&self.counters.dispatches, 1);
        frame.ownership.take(self.index, &frame.word);
        if check(frame.word.dispatch()).is_none() {
            return;
        }
        // Stores before an atomic operation delay it; most fibers stay where they are.
        if frame.worker.load(Ordering::Relaxed) != self.index {
            frame.worker.store(self.index, Ordering::Relaxed);
        }
        let id = frame.id.load(Ordering::Relaxed);
        self.running.store(id, Ordering::Relaxed);
        self.current.set(frame);
        self.trace.record(Event::Run, id);
        let stop;
        loop {
            // The operation that made it yield is still to be done, and is of this slice.
            self.budget.set(BUDGET - 1);
            frame.ownership.touch(self.index);
            // SAFETY: dispatched, so this worker is the fiber's owner, until the state word says
            // otherwise below.
            if unsafe { (*frame.own.get()).is_blocking } {
                // It waited in its blocking region, and goes on in it.
                self.shared().block(self);
            }
            // SAFETY: as above.
            let switch = unsafe { (*frame.own.get()).coroutine.as_mut() }
                .map_or(corosensei::CoroutineResult::Return(()), |coroutine| coroutine.resume(()));
            if self.is_blocked.load(Ordering::Relaxed) {
                // The fiber waits in its blocking region: then the worker is not blocked.
                self.shared().unblock(self);
            }
            match switch {
                corosensei::CoroutineResult::Yield(Switch::Park) => {
                    let parks = self.trace.parks(frame);
                    frame.ownership.leave(self.index);
                    // Counted before anybody can know of it: who has seen all fibers end sees all of
                    // their parks.
                    bump(&self.counters.parks, 1);
                    if check(frame.word.commit_park()) == Some(CommitVerdict::Resume) {
                        bump(&self.counters.parks, 1_u64.wrapping_neg());
                        frame.ownership.own(self.index);
                        continue;
                    }
                    // From here on nothing of the fiber is touched.
                    stop = parks;
                }
                corosensei::CoroutineResult::Yield(Switch::Yield) => {
                    stop = Stop::Yielded;
                    bump(&self.counters.yields, 1);
                    frame.ownership.leave(self.index);
                    let _ = check(frame.word.requeue());
                    frame.ownership.publish(&frame.word);
                    self.push(frame);
                }
                corosensei::CoroutineResult::Return(()) => {
                    self.current.set(ptr::null());
                    if !scope::finish(self, frame) {
                        self.current.set(frame);
                        continue;
                    }
                    stop = Stop::Ended;
                }
            }
            break;
        }
        self.trace.record(Event::Stop, stop.code());
    }

    /// Forgets the fiber that ran last. Between two fibers nobody asks, so it is done when there is
    /// no next one.
    pub(crate) fn forget_last(&self) {
        self.current.set(ptr::null());
        self.running.store(0, Ordering::Relaxed);
    }

    /// Whether something waits to run here beside the fiber that runs; now and then it says so
    /// anyway, so that a fiber that only yields does not keep the worker from its other duties.
    #[inline]
    pub fn has_others(&self) -> bool {
        if !self.lifo.is_empty() || !self.queue.is_empty() || self.shared().global.len() > 0 {
            return true;
        }
        let yields = self.lone_yields.get();
        self.lone_yields.set(yields.wrapping_add(1));
        yields.is_multiple_of(GLOBAL_INTERVAL)
    }

    #[inline]
    fn pick(&self) -> Option<&'static Frame> {
        let picks = self.counters.dispatches.load(Ordering::Relaxed);
        if picks.is_multiple_of(GLOBAL_INTERVAL) {
            let shared = self.shared();
            if shared.is_shutdown.load(Ordering::Relaxed) {
                return None;
            }
            Sys::flush(&self.port);
            self.relieve();
            // The clock is for timers, and for the pace, which only counts if somebody could help.
            let turn = (picks / GLOBAL_INTERVAL) as usize;
            let soonest_ns = shared.timers.soonest_ns(self.index, turn);
            if soonest_ns != NEVER || shared.idle.has_sleepers() {
                let now_ns = Sys::now_ns();
                self.measure(now_ns);
                if now_ns >= soonest_ns {
                    // What a future's waker does is not done by the fiber that ran last.
                    self.current.set(ptr::null());
                    shared.timers.fire_soonest(self.index, turn, now_ns);
                }
            }
            if let Some(frame) = shared.global.pop(0, |_| {}) {
                return Some(frame);
            }
        }
        if self.lifo_runs.get() < LIFO_RUNS
            && let Some(frame) = self.lifo.take()
        {
            bump(&self.counters.lifo_picks, 1);
            self.lifo_runs.set(self.lifo_runs.get() + 1);
            // SAFETY: only frames are in the slot.
            return Some(unsafe { frame_at(frame) });
        }
        if self.lifo_runs.get() != 0 {
            self.lifo_runs.set(0);
        }
        if let Some(frame) = self.queue.pop() {
            // SAFETY: only frames are in the queue.
            return Some(unsafe { frame_at(frame) });
        }
        if let Some(frame) = self.lifo.take() {
            bump(&self.counters.lifo_picks, 1);
            self.lifo_runs.set(1);
            // SAFETY: only frames are in the slot.
            return Some(unsafe { frame_at(frame) });
        }
        self.pick_elsewhere()
    }

    /// Xorshift: which victim or arm comes first.
    pub fn random(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x
    }

    /// Marks the worker as blocked: what is in its LIFO slot goes to where others can take it, and so
    /// does what becomes runnable on its thread. On its own thread.
    pub fn set_blocked(&self) {
        self.is_blocked.store(true, Ordering::Relaxed);
        self.publishes_for.set(ptr::null());
        if let Some(frame) = self.lifo.take() {
            // SAFETY: only frames are in the slot.
            self.push(unsafe { frame_at(frame) });
        }
    }

    /// Takes the mark back; false if there is none. On its own thread.
    pub fn clear_blocked(&self) -> bool {
        self.publishes_for.set(self.shared.get());
        self.is_blocked.swap(false, Ordering::Relaxed)
    }
}
