//! A thread's steps, its beginning and its end.

use crate::event::Event;
use crate::machine::guarded;
use crate::program::Program;
use crate::sim::{Sim, id};
use crate::thread::{Thread, Wait};
use crate::{Done, Machine, Rule, Step};
use core_sched::CpuSet;
use core_sched_policy::{Policy, Share};
use core_thread::{RecycleVerdict, ThreadKey, Ticket};
use kernel_dispatch::{self as dispatch, Here, Machine as _};

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
            self.sim.with(|w| w.here = by);
            let slot = self.sim.spawn(share, process, mask, program);
            // Made from outside: a CPU that halts has nothing else to notice it by.
            if self.sim.current(by).is_none() {
                self.sim.with(|w| w.push(w.now_ns, Event::Look { cpu: by }));
            }
            slot
        })
    }
}

impl<P: Policy + 'static> Sim<P> {
    /// The current thread does the next thing.
    pub(crate) fn step(self, cpu: usize, slot: u32) {
        let step = self.next_step(slot);
        self.with(|w| {
            w.touched.push(slot);
            if !matches!(step, Step::Run(_)) {
                w.pay(self.0.config.costs.call_ns);
            }
        });
        match step {
            Step::Run(ns) => self.with(|w| w.thread(slot).left_ns = ns.max(1)),
            Step::Sleep(ns) => self.sleep(cpu, slot, ns),
            Step::Yield => dispatch::yield_to_first(self, Here::now(self), self.record(slot)),
            Step::Call { service, work_ns } => self.call(slot, service, work_ns),
            Step::Serve { service } => self.serve_next(slot, service),
            Step::Meet { gate } => self.meet(slot, gate),
            Step::CountDown { gate } => {
                self.come(gate);
            }
            Step::Spawn { share, process, program } => {
                let process = process.unwrap_or(self.with(|w| w.thread(slot).process));
                self.spawn(share, process, CpuSet::ALL, program);
            }
            Step::Reweigh { slot: whose, share } => self.reweigh(whose, share),
            Step::Confine { slot: whose, mask } => self.confine(whose, mask),
            Step::Kill { slot: whom } => self.kill(whom),
            Step::Exit => dispatch::end(self, self.record(slot)),
        }
    }

    fn sleep(self, cpu: usize, slot: u32, ns: u64) {
        let Some(_) = self.begin_wait(slot) else { return };
        let at_ns = self.now_ns() + ns;
        let said = self.with(|w| {
            w.thread(slot).wait = Wait::Timer;
            w.deadlines[cpu].arm(&self.0.timers, slot, at_ns)
        });
        if self.must("arming a timer", said).is_nearest {
            self.arm(&Here::now(self), self.now_ns(), at_ns);
        }
        dispatch::block(self, self.record(slot));
    }

    /// Ends a thread's wait.
    pub(crate) fn wake(self, slot: u32, generation: u32, ticket: Ticket) {
        self.with(|w| {
            w.pay(self.0.config.costs.wake_ns);
            w.touched.push(slot);
        });
        dispatch::wake(self, self.record(slot), generation, ticket, false);
    }

    fn spawn(self, share: Share, process: u32, mask: CpuSet, program: Program) -> Option<u32> {
        let slot = self.with(|w| w.free.pop())?;
        let record = self.record(slot);
        let generation = self.must("taking a record", record.word.create());
        let key = ThreadKey { slot, generation };
        let queue = &self.0.cpus[self.home(slot)].queue;
        let said = if generation > 1 {
            queue.lock().renew(&record.node, key.to_bits(), share)
        } else {
            queue.lock().with(&record.node, |_, _, entity| {
                entity.set_share(share);
                Ok(())
            })
        };
        self.must("giving a new thread its share", said);
        self.with(|w| {
            let (done_ns, by) = (w.thread(slot).done_ns, w.here);
            *w.thread(slot) = Thread {
                generation,
                process,
                mask,
                program: Some(program),
                last_cpu: by,
                done_ns,
                weight: u64::from(share.weight().get()),
                ..Thread::empty()
            };
            w.touched.push(slot);
        });
        self.must("starting a thread", record.word.start());
        dispatch::enqueue_new(self, record);
        Some(slot)
    }

    fn reweigh(self, slot: u32, share: Share) {
        if !self.with(|w| w.thread(slot).is_alive()) {
            return;
        }
        let record = self.record(slot);
        let queue = &self.0.cpus[self.home(slot)].queue;
        let said = queue.lock().with(&record.node, |_, _, entity| {
            entity.set_share(share);
            Ok(())
        });
        self.must("changing a share", said);
        self.with(|w| {
            w.touched.push(slot);
            let weight = u64::from(share.weight().get());
            w.thread(slot).weight = weight;
            let counted = w.thread(slot).counted_weight.max(weight);
            w.count_weight(slot, counted);
        });
    }

    fn confine(self, slot: u32, mask: CpuSet) {
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

    fn kill(self, slot: u32) {
        let (generation, is_alive) = self.with(|w| {
            w.touched.push(slot);
            (w.thread(slot).generation, w.thread(slot).is_alive())
        });
        if is_alive {
            dispatch::kill(self, self.record(slot), generation);
        }
    }

    /// What is left of a dead thread is given back.
    pub(crate) fn bury(self, slot: u32) {
        self.forget_wait(slot);
        self.check_charged(slot);
        let said = self.record(slot).word.recycle();
        let verdict = self.must("giving a record back", said);
        self.with(|w| {
            w.count_weight(slot, 0);
            w.thread(slot).program = None;
            w.thread(slot).ticket = None;
            if verdict == RecycleVerdict::Free {
                w.free.push(slot);
            }
            w.report.exits += 1;
            w.touched.push(slot);
        });
    }

    /// Whether a thread may run on a CPU at all.
    pub(crate) fn may_run_on(self, slot: u32, cpu: usize) -> bool {
        self.with(|w| w.thread(slot).mask.contains(id(cpu)))
    }
}
