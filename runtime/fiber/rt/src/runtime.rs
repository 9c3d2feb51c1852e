//! A runtime: its workers, what they share, and how it begins and ends.

use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use fiber_core::scaling::{self, Limits, Telemetry};
use fiber_core::{Idle, MAX_WORKERS, Watch};

use crate::frame::Frame;
use crate::global_queue::GlobalQueue;
use crate::lock::SpinLock;
use crate::observe::Stall;
use crate::pool::Pool;
use crate::substrate::{Substrate, Sys, SystemError};
use crate::timer::{Timer, Timers};
use crate::trace::TraceNames;
use crate::worker::{self, Mode, Worker};

const DEFAULT_STALL: Duration = Duration::from_millis(10);

/// What the workers of a runtime share.
pub(crate) struct Shared {
    pub workers: Box<[Worker]>,
    pub limits: Limits,
    pub idle: Idle,
    pub global: GlobalQueue,
    pub timers: Timers,
    pub pool: Pool,
    pub live_workers: AtomicU32,
    pub blocked: AtomicU32,
    pub is_shutdown: AtomicBool,
    pub watch: Watch,
    pub monitor_word: AtomicU32,
    pub stall_ns: u64,
    pub on_stall: fn(&Stall),
    pub telemetry: SpinLock<Telemetry>,
    pub injected: AtomicU64,
    pub next_id: AtomicU64,
    pub stalls: AtomicU64,
    /// For the trace.
    pub names: TraceNames,
    /// Threads with the worker they serve; the monitor's has none.
    threads: SpinLock<Vec<(Option<usize>, <Sys as Substrate>::Thread)>>,
    pub began_ns: u64,
}

/// Why a runtime was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// The number of workers is not from 1 to the most there can be.
    Workers {
        /// What was asked for.
        asked: usize,
        /// The most, so that twice as many fit.
        most: usize,
    },
    /// The system refused.
    System(SystemError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers { asked, most } => {
                write!(out, "{asked} workers were asked for; a runtime has from 1 to {most}")
            }
            Self::System(error) => error.fmt(out),
        }
    }
}

impl core::error::Error for BuildError {}

/// How a runtime is to be.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    workers: Option<usize>,
    is_elastic: bool,
    stack_bytes: Option<usize>,
    stall: Duration,
    trace_events: usize,
    on_stall: fn(&Stall),
}

impl Builder {
    /// How many workers run when nothing blocks; by default one for each CPU.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = Some(count);
        self
    }

    /// Whether up to as many again are started while workers are blocked or stalled; by default so.
    pub fn elastic(mut self, is_elastic: bool) -> Self {
        self.is_elastic = is_elastic;
        self
    }

    /// The size fibers' stacks have at least. On Linux it is rounded up to whole pages, and by default
    /// 128 KiB, of which only the pages that are used take memory. On capOS all stacks have the size
    /// the program declares with [`stacks!`](crate::stacks); to ask for more is an error.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = Some(bytes);
        self
    }

    /// How long a fiber may run before others take over what its worker has queued; 10 ms by default.
    pub fn stall_after(mut self, limit: Duration) -> Self {
        self.stall = limit;
        self
    }

    /// What is called for a fiber that runs for ten times that long; by default a line on the error
    /// output.
    pub fn on_stall(mut self, report: fn(&Stall)) -> Self {
        self.on_stall = report;
        self
    }

    /// How many events each worker keeps for [`Runtime::trace`]; none by default.
    pub fn trace_events(mut self, per_worker: usize) -> Self {
        self.trace_events = per_worker;
        self
    }

    /// What workers share, before there are any.
    pub(crate) fn shared(&self, base: usize, stack_bytes: usize) -> Shared {
        let most = if self.is_elastic { base * 2 } else { base };
        Shared {
            workers: (0..most).map(|index| Worker::new(index, self.trace_events)).collect(),
            limits: Limits { base: base as u32, most: most as u32 },
            idle: Idle::new(),
            global: GlobalQueue::new(),
            timers: Timers::new(most, Sys::now_ns()),
            pool: Pool::new(stack_bytes),
            live_workers: AtomicU32::new(0),
            blocked: AtomicU32::new(0),
            is_shutdown: AtomicBool::new(false),
            watch: Watch::new(),
            monitor_word: AtomicU32::new(0),
            stall_ns: u64::try_from(self.stall.as_nanos()).unwrap_or(u64::MAX).max(1_000),
            on_stall: self.on_stall,
            telemetry: SpinLock::new(Telemetry::default()),
            injected: AtomicU64::new(0),
            next_id: AtomicU64::new(1),
            stalls: AtomicU64::new(0),
            names: TraceNames::new(self.trace_events * most),
            threads: SpinLock::new(Vec::new()),
            began_ns: Sys::now_ns(),
        }
    }

    /// Starts the workers.
    pub fn build(self) -> Result<Runtime, BuildError> {
        let base = self.workers.unwrap_or_else(|| Sys::cpus().min(MAX_WORKERS / 2));
        if base == 0 || base > MAX_WORKERS / 2 {
            return Err(BuildError::Workers { asked: base, most: MAX_WORKERS / 2 });
        }
        Sys::admit().map_err(BuildError::System)?;
        let stack_bytes = Sys::stack_bytes(self.stack_bytes).map_err(BuildError::System)?;
        let shared = Arc::new(self.shared(base, stack_bytes));
        let runtime = Runtime { shared: shared.clone() };
        for _ in 0..base {
            shared.start_worker().map_err(BuildError::System)?;
        }
        let monitored = shared.clone();
        let monitor = Sys::spawn("fiber-monitor", Box::new(move || monitored.monitor()))
            .map_err(BuildError::System)?;
        shared.threads.with(|threads| threads.push((None, monitor)));
        Ok(runtime)
    }
}

/// Runs fibers. Dropping it ends its workers.
pub struct Runtime {
    pub(crate) shared: Arc<Shared>,
}

impl Runtime {
    /// A runtime with the settings one usually wants, which can be changed.
    pub fn builder() -> Builder {
        Builder {
            workers: None,
            is_elastic: true,
            stack_bytes: None,
            stall: DEFAULT_STALL,
            trace_events: 0,
            on_stall: Stall::warn,
        }
    }

    /// Runs `f` as a fiber and blocks the caller until it, and everything it spawned into the root,
    /// has ended. A panic of `f` goes on in the caller.
    pub fn run<R: Send, F: FnOnce() -> R + Send>(&self, f: F) -> R {
        crate::root::run_root(&self.shared, f)
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Runtime of {} workers", self.shared.limits.base)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let shared = &self.shared;
        // SeqCst: before the looks at who sleeps; pairs with the look in `Worker::sleep`.
        shared.is_shutdown.store(true, Ordering::SeqCst);
        shared.monitor_word.store(1, Ordering::Release);
        Sys::unpark(&shared.monitor_word);
        // A worker that starts meanwhile sees the flag; one that ends was joined or will be.
        loop {
            for worker in &shared.workers {
                if shared.idle.claim_this(worker.index) {
                    shared.unpark(worker.index);
                }
            }
            let Some((_, thread)) = shared.threads.with(Vec::pop) else { break };
            // A waker that it called may have had the runtime; then it ends after this.
            if !Sys::is_current(&thread) {
                Sys::join(thread);
            }
        }
        shared.timers.end();
        // Whoever else has the runtime, for a moment or with a future that sleeps, has none of its stacks.
        shared.pool.release();
    }
}

impl Shared {
    /// Starts a thread for a worker that has none; false if all have.
    pub fn start_worker(self: &Arc<Self>) -> Result<bool, SystemError> {
        let claimed = self.workers.iter().find(|worker| {
            // AcqRel: what the last thread of the worker left is there for the next.
            worker
                .mode
                .compare_exchange(
                    Mode::Dead as u8,
                    Mode::Active as u8,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_ok()
        });
        let Some(worker) = claimed else { return Ok(false) };
        self.live_workers.fetch_add(1, Ordering::AcqRel);
        let shared = self.clone();
        let index = worker.index;
        let run = move || {
            if let Some(worker) = shared.workers.get(index) {
                // SAFETY: the workers are in the runtime's memory, which this thread keeps alive.
                let worker = unsafe { &*ptr::from_ref(worker) };
                worker.run(&shared);
            }
        };
        match Sys::spawn(&format!("fiber-{index}"), Box::new(run)) {
            Ok(thread) => {
                // The worker's last thread, if it had one, has ended or is about to.
                let last = self.threads.with(|threads| {
                    let last = threads.iter().position(|(of, _)| *of == Some(index));
                    let last = last.map(|at| threads.swap_remove(at).1);
                    threads.push((Some(index), thread));
                    last
                });
                if let Some(last) = last {
                    Sys::join(last);
                }
                Ok(true)
            }
            Err(error) => {
                self.live_workers.fetch_sub(1, Ordering::AcqRel);
                worker.mode.store(Mode::Dead as u8, Ordering::Release);
                Err(error)
            }
        }
    }

    /// The runtime, kept from going.
    ///
    /// # Safety
    /// It is there, as [`Builder::build`] made it.
    pub unsafe fn kept(shared: *const Self) -> Arc<Self> {
        // SAFETY: by the caller, it is in an Arc.
        unsafe {
            Arc::increment_strong_count(shared);
            Arc::from_raw(shared)
        }
    }

    /// Puts a runnable fiber into the global queue and sees that somebody comes for it.
    pub fn inject(&self, frame: &'static Frame) {
        frame.ownership.publish(&frame.word);
        self.injected.fetch_add(1, Ordering::Relaxed);
        self.global.push(frame);
        self.notify();
    }

    /// After work was put into a queue: wakes a worker if nobody would come otherwise.
    #[cold]
    pub fn notify(&self) {
        if let Some(worker) = self.idle.claim_after_publish() {
            self.unpark(worker);
        }
    }

    /// Wakes a worker that was claimed.
    pub fn unpark(&self, worker: usize) {
        if let Some(worker) = self.workers.get(worker) {
            worker.wake_word.claim();
            Sys::unpark(worker.wake_word.word());
        }
    }

    /// Whether a queue holds work that any worker may take.
    pub fn has_work(&self) -> bool {
        self.global.len() > 0 || self.workers.iter().any(|worker| !worker.queue.is_empty())
    }

    /// How many may search at once: half of the workers.
    pub fn search_limit(&self) -> u32 {
        (self.live_workers.load(Ordering::Relaxed) / 2).max(1)
    }

    /// Whether there are more workers than are needed.
    pub fn is_surplus(&self) -> bool {
        scaling::is_surplus(
            self.live_workers.load(Ordering::Relaxed),
            self.blocked.load(Ordering::Relaxed),
            self.limits,
        )
    }

    /// Lets one worker go if there are still too many; true for the worker that is to end.
    pub fn retire(&self) -> bool {
        let step = |workers: u32| {
            let blocked = self.blocked.load(Ordering::Relaxed);
            scaling::is_surplus(workers, blocked, self.limits).then(|| workers - 1)
        };
        let goes =
            self.live_workers.fetch_update(Ordering::AcqRel, Ordering::Relaxed, step).is_ok();
        if goes {
            self.telemetry.with(|figures| figures.retirements += 1);
        }
        goes
    }

    /// Puts a timer in and wakes the keeper if it sleeps for too long.
    ///
    /// # Safety
    /// As for `Timers::insert_quietly`.
    pub unsafe fn insert_timer(&self, timer: &Timer, deadline_ns: u64) {
        let worker = worker::current().map_or(0, |worker| worker.index);
        // SAFETY: by the caller.
        if let Some(keeper) = unsafe { self.timers.insert_quietly(worker, timer, deadline_ns) }
            && self.idle.claim_this(keeper)
        {
            self.unpark(keeper);
        }
    }

    /// Marks `worker` as blocked, and starts or wakes another in its place.
    pub fn block(self: &Shared, worker: &Worker) {
        Sys::flush(&worker.port);
        worker.set_blocked();
        Sys::hand_over(&worker.port);
        let blocked = self.blocked.fetch_add(1, Ordering::AcqRel) + 1;
        let workers = self.live_workers.load(Ordering::Relaxed);
        if self.has_work() && self.idle.has_sleepers() {
            self.notify();
        } else if scaling::needs_substitute(workers, blocked, self.limits) {
            // Started by the monitor: this fiber's stack is no place to start a thread from.
            self.monitor_word.store(1, Ordering::Release);
            Sys::unpark(&self.monitor_word);
        }
    }

    /// Takes the mark back.
    pub fn unblock(&self, worker: &Worker) {
        if worker.clear_blocked() {
            self.blocked.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Has a worker look at what has been put into its port, if it sleeps or its thread waits in the kernel;
    /// one that runs will.
    #[cfg(target_os = "none")]
    pub fn kick(&self, worker: usize) {
        if self.idle.claim_this(worker) {
            self.unpark(worker);
        } else if let Some(worker) = self.workers.get(worker)
            && worker.port.is_inside()
            && worker.wake_word.nudge()
        {
            Sys::unpark(worker.wake_word.word());
        }
    }

    /// Wakes a worker that has room in its port, for what waits at that of `crowded`. One that runs looks by
    /// itself (`Worker::relieve`).
    #[cfg(target_os = "none")]
    pub fn offer(&self, crowded: usize) {
        // A sleeper looks for those who wait after it has announced itself, under the locks of their ports: it
        // has seen this one, or is seen here.
        let comes = |worker: &&Worker| {
            worker.index != crowded
                && Sys::has_room(&worker.port)
                && self.idle.claim_this(worker.index)
        };
        if let Some(worker) = self.workers.iter().find(comes) {
            self.unpark(worker.index);
        }
    }

    /// Wakes the monitor if it sleeps because all workers did.
    #[inline]
    pub fn wake_monitor(&self) {
        if self.watch.is_asleep() {
            self.monitor_word.store(1, Ordering::Release);
            Sys::unpark(&self.monitor_word);
        }
    }
}
