//! Threads begin, change and end, by the kernel's own ways.

use crate::event::Event;
use crate::machine::guarded;
use crate::program::Program;
use crate::sim::Sim;
use crate::thread::Thread;
use crate::{Done, Machine, Rule};
use core_sched::CpuSet;
use core_sched_policy::{Policy, Share};
use kernel_dispatch::{self as dispatch, Here};
use kernel_process::machine::process_of;
use kernel_process::process::Reason;
use kernel_process::{end, spawn};

/// What a process that is killed exits with.
const KILLED: i64 = -1;

/// How a thread starts: what it does, with which share, where, and the number of its process.
pub(crate) struct UserStart {
    program: Option<Program>,
    share: Share,
    mask: CpuSet,
    process: u32,
}

impl<P: Policy + 'static> Machine<P> {
    /// Makes a thread of a process and makes it runnable; its number.
    pub fn spawn(&mut self, on: usize, share: Share, process: u32, program: Program) -> Done<u32> {
        match self.spawn_by(on, share, process, CpuSet::ALL, program)? {
            Some(slot) => Ok(slot),
            None => self.fail(Rule::Stuck, "no room for a thread"),
        }
    }

    /// The same, with the CPUs it may run on; `None` if there is no room for it.
    pub fn spawn_by(
        &mut self,
        by: usize,
        share: Share,
        process: u32,
        mask: CpuSet,
        program: Program,
    ) -> Done<Option<u32>> {
        guarded(|| {
            let sim = self.sim;
            sim.with(|w| w.here = by);
            let slot = sim.spawn(share, process, mask, program);
            // Made from outside: nothing else lets the CPU notice.
            if sim.current(by).is_none() {
                sim.with(|w| w.push(w.now_ns, Event::Look { cpu: by }));
            } else if dispatch::owes(&Here::now(sim)) {
                sim.interrupt(by);
            }
            slot
        })
    }
}

impl<P: Policy + 'static> Sim<P> {
    /// Makes a thread of the process of a number; `None` if there is no room for it.
    pub(crate) fn spawn(
        self,
        share: Share,
        process: u32,
        mask: CpuSet,
        program: Program,
    ) -> Option<u32> {
        let record = self.process_numbered(process)?;
        let start = UserStart { program: Some(program), share, mask, process };
        let made = spawn::spawn(self, record, start, share.weight(), false);
        made.ok().map(|key| key.slot)
    }

    /// A thread begins in a record, and is not runnable yet.
    pub(crate) fn begin(self, start: &mut UserStart, slot: u32) {
        let &mut UserStart { ref mut program, share, mask, process } = start;
        self.with(|w| {
            let (done_ns, by) = (w.thread(slot).done_ns, w.here);
            *w.thread(slot) = Thread {
                process,
                mask,
                program: program.take(),
                newborn: Some(share),
                last_cpu: by,
                done_ns,
                weight: u64::from(share.weight().get()),
                ..Thread::empty()
            };
            w.touched.push(slot);
        });
    }

    /// The kernel's own thread begins in a record: it has no program, and nobody reweighs or kills it.
    pub(crate) fn begin_reaper(self, slot: u32) {
        let share = Share::default();
        let weight = u64::from(share.weight().get());
        self.with(|w| *w.thread(slot) = Thread { weight, ..Thread::empty() });
    }

    pub(crate) fn reweigh(self, slot: u32, share: Share) {
        if !self.with(|w| w.thread(slot).is_alive()) {
            return;
        }
        self.set_share(slot, share);
        self.with(|w| {
            w.touched.push(slot);
            let weight = u64::from(share.weight().get());
            w.thread(slot).weight = weight;
            let counted = w.thread(slot).counted_weight.max(weight);
            w.count_weight(slot, counted);
        });
    }

    /// Gives a thread another weight and class, from its next enqueue on.
    pub(crate) fn set_share(self, slot: u32, share: Share) {
        let queue = &self.0.cpus[self.home(slot)].queue;
        let said = queue.lock().with(&self.record(slot).node, |_, _, entity| {
            entity.set_share(share);
            Ok(())
        });
        self.must("changing a share", said);
    }

    pub(crate) fn confine(self, slot: u32, mask: CpuSet) {
        if mask.and(self.0.config.all()).is_empty() {
            return;
        }
        let is_alive = self.with(|w| {
            let now_ns = w.now_ns;
            w.touched.push(slot);
            let thread = w.thread(slot);
            if thread.is_alive() {
                thread.mask = mask;
                thread.confined_ns = now_ns;
            }
            thread.is_alive()
        });
        if is_alive {
            dispatch::allowed_changed(self, self.record(slot));
        }
    }

    /// Ends the process of a thread.
    pub(crate) fn kill(self, slot: u32) {
        let is_alive = self.with(|w| {
            w.touched.push(slot);
            w.thread(slot).is_alive()
        });
        if is_alive {
            let process = process_of(self, self.record(slot));
            end::close(self, process, KILLED, Reason::Killed);
        }
    }

    /// Threads that have ended are judged, and count no more; the reaper wakes after that.
    pub(crate) fn account_for_the_dead(self) {
        while let Some(slot) = self.with(|w| w.dead.pop()) {
            self.check_charged(slot);
            self.with(|w| {
                w.count_weight(slot, 0);
                w.thread(slot).program = None;
                w.report.exits += 1;
                w.touched.push(slot);
            });
        }
    }

    /// Whether a thread may run on a CPU at all.
    pub(crate) fn may_run_on(self, slot: u32, cpu: usize) -> bool {
        self.with(|w| w.thread(slot).mask.contains(crate::sim::id(cpu)))
    }
}
