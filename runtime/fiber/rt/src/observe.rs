//! What the runtime tells of itself: figures, a dump of all fibers, stalls.

use core::fmt;
use core::sync::atomic::Ordering;

use alloc::vec::Vec;

use fiber_core::State;
use fiber_core::scaling::Telemetry;

use crate::pool::for_each_fiber;
use crate::runtime::Runtime;
use crate::substrate::{Substrate, Sys};
use crate::trace::Trace;
use crate::what::What;
use crate::worker::{Mode, Worker};

/// The counters of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerStats {
    /// Which worker.
    pub index: usize,
    /// dead, active, searching, sleeping or draining.
    pub mode: &'static str,
    /// Whether it is in a blocking region.
    pub is_blocked: bool,
    /// Fibers run, each time counted.
    pub dispatches: u64,
    /// Fibers spawned on it.
    pub spawns: u64,
    /// Fibers that ended on it.
    pub finishes: u64,
    /// Waits committed on it.
    pub parks: u64,
    /// Yields.
    pub yields: u64,
    /// Runs out of its LIFO slot.
    pub lifo_picks: u64,
    /// Successful thefts.
    pub steals: u64,
    /// Fibers stolen by them.
    pub stolen: u64,
    /// Times it went to sleep.
    pub sleeps: u64,
}

/// The figures of a runtime.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Each worker there can be.
    pub workers: Vec<WorkerStats>,
    /// Worker threads there are.
    pub live_workers: u32,
    /// Of them, in blocking regions.
    pub blocked_workers: u32,
    /// Pressure and scaling decisions.
    pub scaling: Telemetry,
    /// Fibers that wait in the global queue.
    pub global_queue: usize,
    /// Fibers that came in from outside the workers.
    pub injected: u64,
    /// Timers outstanding.
    pub timers: usize,
    /// Stacks mapped.
    pub stacks: usize,
    /// The size of each.
    pub stack_bytes: usize,
    /// What the deepest has ever used, in whole pages.
    pub stack_high_water_bytes: usize,
    /// Fibers reported as stalled.
    pub stalls: u64,
}

/// A fiber, at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiberInfo {
    /// Its number.
    pub id: u64,
    /// What it called itself.
    pub name: &'static str,
    /// What it does.
    pub state: State,
    /// What it waits for, if it does.
    pub waits_for: What,
    /// The address of that.
    pub waits_at: usize,
    /// The worker it ran on last.
    pub worker: usize,
    /// Whether it has been cancelled.
    pub is_cancelled: bool,
}

/// All fibers of a runtime, each as it was when looked at.
#[derive(Clone, Debug)]
pub struct Dump {
    /// The fibers.
    pub fibers: Vec<FiberInfo>,
}

/// A fiber that has run for long without giving its worker up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// On which worker.
    pub worker: usize,
    /// Its number.
    pub fiber: u64,
    /// For how long.
    pub ran_ns: u64,
}

impl Stall {
    /// Says so on the error output.
    pub(crate) fn warn(&self) {
        let (worker, fiber, ms) = (self.worker, self.fiber, self.ran_ns / 1_000_000);
        Sys::warn(format_args!(
            "fiber {fiber:x} has run for {ms} ms on worker {worker} without a wait or yield; long \
             work belongs into fiber::blocking"
        ));
    }
}

fn mode_name(mode: u8) -> &'static str {
    let names = [
        (Mode::Active, "active"),
        (Mode::Searching, "searching"),
        (Mode::Sleeping, "sleeping"),
        (Mode::Draining, "draining"),
    ];
    names.into_iter().find(|(m, _)| *m as u8 == mode).map_or("dead", |(_, name)| name)
}

fn stats_of(worker: &Worker) -> WorkerStats {
    let c = &worker.counters;
    let load = |counter: &core::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    WorkerStats {
        index: worker.index,
        mode: mode_name(worker.mode()),
        is_blocked: worker.is_blocked.load(Ordering::Relaxed),
        dispatches: load(&c.dispatches),
        spawns: load(&c.spawns),
        finishes: load(&c.finishes),
        parks: load(&c.parks),
        yields: load(&c.yields),
        lifo_picks: load(&c.lifo_picks),
        steals: load(&c.steals),
        stolen: load(&c.stolen),
        sleeps: load(&c.sleeps),
    }
}

impl Runtime {
    /// The figures now. Looks at every stack, so not for a hot path.
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        let (stacks, stack_high_water_bytes) = shared.pool.high_water();
        Stats {
            workers: shared.workers.iter().map(stats_of).collect(),
            live_workers: shared.live_workers.load(Ordering::Relaxed),
            blocked_workers: shared.blocked.load(Ordering::Relaxed),
            scaling: shared.telemetry.with(|figures| *figures),
            global_queue: shared.global.len(),
            injected: shared.injected.load(Ordering::Relaxed),
            timers: shared.timers.len(),
            stacks,
            stack_bytes: shared.pool.stack_bytes,
            stack_high_water_bytes,
            stalls: shared.stalls.load(Ordering::Relaxed),
        }
    }

    /// Every fiber there is now.
    pub fn dump(&self) -> Dump {
        let mut fibers = Vec::new();
        for_each_fiber(&self.shared, |frame| {
            let word = frame.word.load();
            fibers.push(FiberInfo {
                id: frame.id.load(Ordering::Relaxed),
                name: frame.name.with(|name| *name),
                state: word.state(),
                waits_for: What::of(frame.waits_for.load(Ordering::Relaxed)),
                waits_at: frame.waits_at.load(Ordering::Relaxed),
                worker: frame.worker.load(Ordering::Relaxed),
                is_cancelled: word.is_cancelled(),
            });
        });
        Dump { fibers }
    }

    /// What the workers did, if [`trace_events`](crate::Builder::trace_events) was set.
    pub fn trace(&self) -> Trace {
        Trace::of(self)
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{} fibers", self.fibers.len())?;
        for fiber in &self.fibers {
            write!(out, "{:>16x} {:<9?} on worker {}", fiber.id, fiber.state, fiber.worker)?;
            if fiber.waits_for != What::Nothing {
                write!(out, ", waits for {:?} at {:#x}", fiber.waits_for, fiber.waits_at)?;
            }
            if fiber.is_cancelled {
                out.write_str(", cancelled")?;
            }
            if !fiber.name.is_empty() {
                write!(out, ", {}", fiber.name)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
