//! A thread's steps, its beginning and its end.

use crate::event::Event;
use crate::machine::id;
use crate::program::Program;
use crate::thread::{Thread, Wait};
use crate::{Done, Machine, Rule, Step};
use core_sched::{CpuSet, place};
use core_sched_policy::{Policy, Share};
use core_thread::KillVerdict;
use smp_ipi::Requests;

impl<P: Policy> Machine<'_, P> {
    /// The current thread does the next thing.
    pub(crate) fn step(&mut self, cpu: usize, slot: u32) -> Done {
        self.touched.push(slot);
        let step = self.next_step(slot);
        if !matches!(step, Step::Run(_)) {
            self.pay(cpu, self.config.costs.call_ns);
        }
        match step {
            Step::Run(ns) => {
                self.thread(slot).left_ns = ns.max(1);
                Ok(())
            }
            Step::Sleep(ns) => {
                let Some(_) = self.begin_wait(cpu, slot)? else { return Ok(()) };
                let (timers, at_ns) = (&self.slab.timers, self.now_ns + ns);
                let said = self.deadlines[cpu].arm(timers, slot, at_ns, None);
                let _ = self.must("arming a timer", said)?;
                self.thread(slot).wait = Wait::Timer;
                self.block(cpu, slot)
            }
            Step::Yield => self.yield_cpu(cpu, slot),
            Step::Call { service, work_ns } => self.call(cpu, slot, service, work_ns),
            Step::Serve { service } => self.serve(cpu, slot, service),
            Step::Meet { gate } => self.meet(cpu, slot, gate),
            Step::CountDown { gate } => self.come(cpu, gate).map(|_| ()),
            Step::Spawn { share, process, program } => {
                let process = process.unwrap_or(self.threads[slot as usize].process);
                self.spawn_by(cpu, share, process, CpuSet::ALL, program).map(|_| ())
            }
            Step::Reweigh { slot: whose, share } => self.reweigh(whose, share),
            Step::Confine { slot: whose, mask } => self.confine(cpu, whose, mask),
            Step::Kill { slot: whom } => self.kill(cpu, whom),
            Step::Exit => self.die(cpu, slot),
        }
    }

    /// Makes a thread of a process and makes it runnable; its number, or `None` if there is no
    /// room for it.
    pub fn spawn(&mut self, on: usize, share: Share, process: u32, program: Program) -> Done<u32> {
        match self.spawn_by(on, share, process, CpuSet::ALL, program)? {
            Some(slot) => Ok(slot),
            None => self.fail(Rule::Stuck, "no room for a thread"),
        }
    }

    /// The same, by a CPU, with the CPUs it may run on.
    pub fn spawn_by(
        &mut self,
        by: usize,
        share: Share,
        process: u32,
        mask: CpuSet,
        program: Program,
    ) -> Done<Option<u32>> {
        let Some(slot) = self.free.pop() else { return Ok(None) };
        self.touched.push(slot);
        let generation = self.must("taking a record", self.word(slot).create())?;
        let node = self.node(slot);
        let home = self.home(slot);
        if generation > 1 {
            let said = self.queues[home].lock().renew(node, u64::from(slot), share);
            self.must("renewing a node", said)?;
        } else {
            let said = self.queues[home].lock().with(node, |_, _, entity| {
                entity.set_share(share);
                Ok(())
            });
            self.must("setting a new thread's share", said)?;
        }
        let done_ns = self.threads[slot as usize].done_ns;
        *self.thread(slot) = Thread {
            generation,
            process,
            mask,
            program: Some(program),
            last_cpu: by,
            done_ns,
            ..Thread::empty()
        };
        self.thread(slot).weight = u64::from(share.weight().get());
        self.must("starting a thread", self.word(slot).start())?;
        self.ready(slot);
        let at = self.situation(self.allowed(slot));
        let config = self.config;
        let Some(to) = place::new_thread(id(by), &at, |cpu| config.siblings(cpu)) else {
            return self.fail(Rule::Stuck, "a new thread may run nowhere");
        };
        let sent = self.queues[home].lock().send(node, to, self.now_ns);
        let lag = self.must("sending a new thread to its first CPU", sent)?;
        self.arrive(by, slot, to.index(), lag)?;
        if self.cpus[by].current.is_none() && by == to.index() {
            // Nobody runs there who would notice.
            self.events.push(self.now_ns, Event::Look { cpu: by }, &mut self.rng);
        } else if by == to.index() {
            self.arm(by);
        }
        Ok(Some(slot))
    }

    /// A thread counts with that weight from now on.
    pub(crate) fn count_weight(&mut self, slot: u32, weight: u64) {
        let old = std::mem::replace(&mut self.thread(slot).counted_weight, weight);
        if old != weight {
            self.weight_changes.push((self.now_ns, self.weights));
            self.weights = self.weights + weight - old;
        }
    }

    fn reweigh(&mut self, slot: u32, share: Share) -> Done {
        if !self.thread(slot).is_alive() {
            return Ok(());
        }
        self.touched.push(slot);
        let home = self.home(slot);
        let said = self.queues[home].lock().with(self.node(slot), |_, _, entity| {
            entity.set_share(share);
            Ok(())
        });
        self.must("changing a share", said)?;
        let weight = u64::from(share.weight().get());
        self.thread(slot).weight = weight;
        let counted = self.thread(slot).counted_weight.max(weight);
        self.count_weight(slot, counted);
        Ok(())
    }

    fn confine(&mut self, by: usize, slot: u32, mask: CpuSet) -> Done {
        if !self.thread(slot).is_alive() || mask.and(self.config.all()).is_empty() {
            return Ok(());
        }
        self.touched.push(slot);
        self.thread(slot).mask = mask;
        self.thread(slot).confined_ns = self.now_ns;
        let home = self.home(slot);
        match self.entity(slot)?.activity() {
            core_sched::Activity::Queued | core_sched::Activity::Direct => {
                self.leave_if_excluded(by, slot)
            }
            core_sched::Activity::Running if !mask.contains(id(home)) && home != by => {
                self.post(home, Requests::RESCHEDULE);
                Ok(())
            }
            core_sched::Activity::Running if !mask.contains(id(home)) => {
                self.cpus[by].resched = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn kill(&mut self, by: usize, slot: u32) -> Done {
        let generation = self.thread(slot).generation;
        if !self.thread(slot).is_alive() {
            return Ok(());
        }
        self.touched.push(slot);
        match self.word(slot).kill(generation) {
            Ok(KillVerdict::Enqueue) => self.enqueue_woken(by, slot),
            Ok(KillVerdict::Interrupt) => {
                let on = self.home(slot);
                if on != by {
                    self.post(on, Requests::RESCHEDULE);
                }
                Ok(())
            }
            Ok(KillVerdict::Noted | KillVerdict::Already) | Err(_) => Ok(()),
        }
    }

    /// The current thread ends.
    pub(crate) fn die(&mut self, cpu: usize, slot: u32) -> Done {
        let (node, now_ns) = (self.node(slot), self.now_ns);
        self.pay_lock(cpu, cpu);
        let said = self.queues[cpu].lock().with(node, |q, item, e| q.exit(item, e, now_ns));
        let _ = self.must("ending the current thread", said)?;
        self.left(cpu, slot);
        self.must("finishing a thread", self.word(slot).finish())?;
        self.bury(cpu, slot)
    }

    /// A thread that was killed while it was about to wait is in no queue.
    pub(crate) fn bury_resting(&mut self, by: usize, slot: u32) -> Done {
        let (node, home) = (self.node(slot), self.home(slot));
        let said = self.queues[home].lock().with(node, |q, _, e| q.drop_resting(e));
        self.must("taking a resting thread out", said)?;
        self.bury(by, slot)
    }

    /// What is left of a dead thread is given back.
    pub(crate) fn bury(&mut self, by: usize, slot: u32) -> Done {
        self.forget_wait(by, slot)?;
        self.count_weight(slot, 0);
        self.thread(slot).program = None;
        self.thread(slot).ticket = None;
        let _ = self.must("giving a record back", self.word(slot).recycle())?;
        self.free.push(slot);
        self.report.exits += 1;
        self.touched.push(slot);
        Ok(())
    }
}
