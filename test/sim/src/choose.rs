//! What a CPU runs next: its own queue, then another's, else it is idle.

use crate::event::Event;
use crate::machine::id;
use crate::{Done, Machine, Rule};
use core_sched::{CpuId, CpuSet, MayRun, Refusal, Requeue, balance};
use core_sched_policy::Policy;
use core_thread::{DispatchVerdict, RequeueVerdict};
use smp_ipi::Requests;
use smp_rq::{Next, Node};
use std::cell::Cell;

/// What an idle CPU found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loot {
    Thread,
    /// A thread that is still on its way off another CPU.
    Later,
    Nothing,
}

/// How many CPUs an idle one tries to take a thread from before it halts.
const STEAL_TRIES: usize = 4;

impl<'n, P: Policy> Machine<'n, P> {
    /// Chooses and starts a thread; false if there is none, and the CPU is idle.
    pub(crate) fn choose(&mut self, cpu: usize) -> Done<bool> {
        self.balance(cpu, 0)?;
        loop {
            self.pay_lock(cpu, cpu);
            let now_ns = self.now_ns;
            let next = self.queues[cpu].lock().next(now_ns, |node| self.may_run(cpu, node));
            match self.must("choosing", next)? {
                Next::Run(item, started) => {
                    let slot = item.0.thread() as u32;
                    self.touched.push(slot);
                    let generation = self.thread(slot).generation;
                    let claimed = self.word(slot).dispatch(generation);
                    match self.must("claiming a chosen thread", claimed)? {
                        DispatchVerdict::Run => {
                            self.cpus[cpu].slice_end_ns = started.slice_end_ns;
                            self.pay(cpu, self.config.costs.switch_ns);
                            self.began(cpu, slot)?;
                            return Ok(true);
                        }
                        DispatchVerdict::Finalise => {
                            return self.fail(Rule::Invariant, "a killed thread was chosen");
                        }
                    }
                }
                Next::Refused(item, Refusal::Dead) => {
                    let slot = item.0.thread() as u32;
                    let said = self.queues[cpu]
                        .lock()
                        .with(item.0, |q, item, e| q.drop_dead(item, e, now_ns));
                    self.must("taking a dead thread out", said)?;
                    let generation = self.thread(slot).generation;
                    let claimed = self.word(slot).dispatch(generation);
                    let _ = self.must("claiming a dead thread", claimed)?;
                    self.bury(cpu, slot)?;
                }
                Next::Refused(item, _) => {
                    let slot = item.0.thread() as u32;
                    self.leave_if_excluded(cpu, slot)?;
                }
                Next::Idle => match self.steal(cpu)? {
                    Loot::Thread => {}
                    loot => {
                        self.go_idle(cpu, loot);
                        return Ok(false);
                    }
                },
            }
        }
    }

    /// The current thread yields: it changes places with the first that waits, if that one may run
    /// and the queue knows that it is its turn; otherwise it is requeued and the next one chosen.
    pub(crate) fn yield_cpu(&mut self, cpu: usize, slot: u32) -> Done {
        // The thread that yields is one more to wait, though it is not in the queue yet.
        self.balance(cpu, 1)?;
        let (node, now_ns) = (self.node(slot), self.now_ns);
        if self.word(slot).is_killed() || !self.threads[slot as usize].mask.contains(id(cpu)) {
            return self.give_up(cpu, Requeue::Yielded);
        }
        self.pay_lock(cpu, cpu);
        let mut guard = self.queues[cpu].lock();
        let turn = guard.turn(node).ok().filter(|turn| {
            let slot = turn.node().thread() as usize;
            let word = &self.slab.words[slot];
            self.may_run(cpu, turn.node()) == MayRun::Yes
                && word.dispatch(self.threads[slot].generation) == Ok(DispatchVerdict::Run)
        });
        let Some(turn) = turn else {
            drop(guard);
            return self.give_up(cpu, Requeue::Yielded);
        };
        let to = turn.node().thread() as u32;
        let started = turn.take(now_ns);
        drop(guard);
        let verdict = self.must("giving up a running thread", self.word(slot).requeue())?;
        if verdict == RequeueVerdict::Finalise {
            return self.fail(Rule::Invariant, "a thread died between two steps of one event");
        }
        self.left(cpu, slot);
        self.ready(slot);
        self.touched.push(to);
        self.cpus[cpu].slice_end_ns = Some(started.slice_end_ns);
        self.pay(cpu, self.config.costs.switch_ns);
        self.report.exchanges += 1;
        self.began(cpu, to)
    }

    fn may_run(&self, cpu: usize, node: &Node) -> MayRun {
        let slot = node.thread() as usize;
        let thread = &self.threads[slot];
        if self.slab.words[slot].is_killed() {
            MayRun::No(Refusal::Dead)
        } else if !thread.mask.contains(id(cpu)) {
            MayRun::No(Refusal::Elsewhere)
        } else if thread.off_cpu_ns > self.now_ns && thread.last_cpu != cpu {
            MayRun::Later
        } else {
            MayRun::Yes
        }
    }

    /// A thread is on the CPU from now on.
    pub(crate) fn began(&mut self, cpu: usize, slot: u32) -> Done {
        if let Some(since_ns) = self.cpus[cpu].idle_since_ns.take() {
            self.cpus[cpu].was_idle_ns = (since_ns, self.now_ns);
        }
        // Also after a halt that ended in nothing to run.
        self.idle.retract(cpu);
        self.check_wait(slot)?;
        let thread = &mut self.threads[slot as usize];
        thread.starts += 1;
        let mut extra_ns = 0;
        if thread.last_cpu != cpu {
            extra_ns += self.config.costs.migration_ns;
        }
        if thread.process != self.cpus[cpu].process {
            extra_ns += self.config.costs.space_ns;
        }
        thread.last_cpu = cpu;
        let process = thread.process;
        let now_ns = self.now_ns;
        let state = &mut self.cpus[cpu];
        state.process = process;
        state.overhead_ns += extra_ns;
        state.current = Some(slot);
        state.since_ns = now_ns;
        state.span_ns = now_ns;
        self.report.starts += 1;
        self.report.fingerprint ^= (cpu as u64) << 32 | u64::from(slot);
        Ok(())
    }

    /// Announces that the CPU is idle. If threads wait that are on their way off other CPUs, it
    /// looks again when they are.
    fn go_idle(&mut self, cpu: usize, loot: Loot) {
        self.idle.announce(cpu);
        self.cpus[cpu].idle_since_ns.get_or_insert(self.now_ns);
        self.cpus[cpu].slice_end_ns = None;
        let waits = loot == Loot::Later || self.queues[cpu].hint().waiting > 0;
        if waits && !self.cpus[cpu].looks {
            self.cpus[cpu].looks = true;
            let at_ns = self.now_ns + self.config.costs.switch_ns;
            self.events.push(at_ns, Event::Look { cpu }, &mut self.rng);
        }
    }

    /// An idle CPU takes a thread from the CPU whose first is latest.
    fn steal(&mut self, thief: usize) -> Done<Loot> {
        let mut cpus = self.config.all();
        let later = Cell::new(false);
        for _ in 0..STEAL_TRIES {
            self.pay(thief, self.config.costs.glance_ns * self.config.cpus as u64);
            let hint = |cpu: CpuId| self.queues[cpu.index()].hint();
            let Some(victim) = balance::victim(id(thief), cpus, hint) else { break };
            self.pay_lock(thief, victim.index());
            let mut source = self.queues[victim.index()].lock();
            let now_ns = self.now_ns;
            let may_go = |node: &Node| {
                let verdict = self.may_run(thief, node);
                later.set(later.get() || verdict == MayRun::Later);
                verdict == MayRun::Yes
            };
            let Some(item) = source.look().to_steal(|item| may_go(item.0)) else {
                drop(source);
                cpus = cpus.without(victim);
                continue;
            };
            let sent = source.send(item.0, id(thief), now_ns);
            drop(source);
            let lag = self.must("taking a thread", sent)?;
            self.pay_lock(thief, thief);
            let said = self.queues[thief]
                .lock()
                .with(item.0, |q, item, e| q.enqueue(item, e, lag, now_ns));
            let _ = self.must("queueing a stolen thread", said)?;
            self.report.steals += 1;
            self.thread(item.0.thread() as u32).arrived_ns = now_ns;
            self.touched.push(item.0.thread() as u32);
            return Ok(Loot::Thread);
        }
        Ok(if later.get() { Loot::Later } else { Loot::Nothing })
    }

    /// The slice is over: the thread goes back.
    pub(crate) fn slice_end(&mut self, cpu: usize) -> Done {
        let Some(slot) = self.cpus[cpu].current else { return Ok(()) };
        if self.word(slot).is_killed() {
            return Ok(());
        }
        self.cpus[cpu].slice_end_ns = None;
        self.give_up(cpu, Requeue::Preempted)
    }

    /// A crowded CPU gives threads away, if it is time to look; `joining` are about to wait too.
    fn balance(&mut self, cpu: usize, joining: u32) -> Done {
        let now_ns = self.now_ns;
        if !self.config.balances || !self.queues[cpu].lock().look_due(now_ns) {
            return Ok(());
        }
        let waiting = self.queues[cpu].hint().waiting + joining;
        let helpers = balance::helpers(&self.situation(self.config.all()), waiting - 1);
        for helper in helpers.without(id(cpu)).iter() {
            self.pay(cpu, self.config.costs.wake_ns);
            self.post(helper.index(), Requests::RESCHEDULE);
        }
        if !helpers.is_empty() {
            return Ok(());
        }
        for _ in 0..balance::MOVES_PER_LOOK {
            self.pay(cpu, self.config.costs.glance_ns * self.config.cpus as u64);
            self.pay_lock(cpu, cpu);
            let mut guard = self.queues[cpu].lock();
            let hint = |other: CpuId| self.queues[other.index()].hint();
            let surplus = guard.look().surplus(now_ns, self.config.all(), hint, |item, to| {
                self.threads[item.0.thread() as usize].mask.contains(to)
            });
            let Some(surplus) = surplus else { return Ok(()) };
            let sent = guard.send(surplus.item.0, surplus.to, now_ns);
            drop(guard);
            let lag = self.must("giving a thread away", sent)?;
            self.report.pushes += 1;
            let moved = surplus.item.0.thread() as u32;
            self.touched.push(moved);
            self.arrive(cpu, moved, surplus.to.index(), lag)?;
        }
        Ok(())
    }

    /// A queued thread whose CPUs do not include this one any more goes to one of them.
    pub(crate) fn leave_if_excluded(&mut self, by: usize, slot: u32) -> Done {
        let home = self.home(slot);
        let allowed = self.allowed(slot);
        if allowed.contains(id(home)) {
            return Ok(());
        }
        let at = self.situation(allowed);
        let Some(to) = core_sched::place::woken(id(home), &at) else {
            return self.fail(Rule::Stuck, format!("thread {slot} may run nowhere"));
        };
        self.pay_lock(by, home);
        let sent = self.queues[home].lock().send(self.node(slot), to, self.now_ns);
        let lag = self.must("moving an excluded thread", sent)?;
        self.touched.push(slot);
        self.arrive(by, slot, to.index(), lag)
    }

    /// CPUs with an interrupt on its way.
    pub(crate) fn pending_set(&self) -> CpuSet {
        let is_pending = |set: CpuSet, cpu: usize| match self.pending[cpu].is_pending() {
            true => set.with(id(cpu)),
            false => set,
        };
        (0..self.config.cpus).fold(CpuSet::EMPTY, is_pending)
    }
}
