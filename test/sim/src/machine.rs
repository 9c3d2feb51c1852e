//! The machine: its parts, its clock, and what each event does.

use crate::cpu::Cpu;
use crate::event::{Event, Events};
use crate::ipc::{Gate, Server};
use crate::thread::Thread;
use crate::{Config, Done, Failure, Rng, Rule, Step, Trace};
use core_sched::{CpuId, CpuSet, Entity, Error, Requeue, Snapshot};
use core_sched_policy::{LatencyClass, Policy, Share, Weight};
use core_thread::{CommitVerdict, RequeueVerdict, StateWord};
use core_timer::{DeadlineQueue, Timer};
use smp_ipi::{IdleSet, Pending, Requests};
use smp_rq::{Node, RunQueue, lock_home};

/// A full walk over everything is made every so many events.
const EVENTS_PER_WALK: u64 = 1_000;

/// Memory of threads that outlives a machine: nodes, words and timers by slot.
pub struct Slab {
    pub(crate) nodes: Box<[Node]>,
    pub(crate) words: Box<[StateWord]>,
    pub(crate) timers: Box<[Timer]>,
}

impl Slab {
    /// Room for that many threads at a time.
    pub fn new(threads: usize) -> Self {
        let share = Share::new(Weight::DEFAULT, LatencyClass::Normal);
        let node = |slot| Node::new(slot as u64, share, CpuId::new(0).unwrap());
        Self {
            nodes: (0..threads).map(node).collect(),
            words: (0..threads).map(|_| StateWord::new()).collect(),
            timers: (0..threads).map(|_| Timer::new()).collect(),
        }
    }
}

/// What a run counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Events handled.
    pub events: u64,
    /// Threads started on a CPU, from the queue.
    pub starts: u64,
    /// Yields that changed places with the first that waited.
    pub exchanges: u64,
    /// Hand-offs taken, and refused.
    pub hand_offs: u64,
    /// Hand-offs that went through the queue instead.
    pub missed_hand_offs: u64,
    /// Threads taken by idle CPUs.
    pub steals: u64,
    /// Threads given away at slice ends.
    pub pushes: u64,
    /// Wakes that went to another CPU than the thread's last.
    pub moved_wakes: u64,
    /// Interrupts sent.
    pub ipis: u64,
    /// Wakes that arrived before the wait was real.
    pub early_wakes: u64,
    /// Threads that ended.
    pub exits: u64,
    /// The longest wait of a runnable thread, in ns.
    pub worst_wait_ns: u64,
    /// The same as a part of what it may wait, in per mille.
    pub worst_wait_per_mille: u64,
    /// A number that differs if anything else did.
    pub fingerprint: u64,
}

/// A machine; `P` is the policy of its queues.
pub struct Machine<'n, P: Policy> {
    /// What it was made with.
    pub config: Config,
    pub(crate) slab: &'n Slab,
    pub(crate) queues: Vec<RunQueue<'n, P>>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) idle: IdleSet,
    pub(crate) deadlines: Vec<DeadlineQueue>,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) free: Vec<u32>,
    pub(crate) servers: Vec<Server>,
    pub(crate) gates: Vec<Gate>,
    /// Numbers that programs share.
    pub shared: Vec<u64>,
    pub(crate) events: Events,
    pub(crate) rng: Rng,
    /// The time.
    pub now_ns: u64,
    /// Sum of weights of all live threads, and what it was before each change, when.
    pub(crate) weights: u64,
    pub(crate) weight_changes: Vec<(u64, u64)>,
    /// The same for the load of each queue, and the queues the event used.
    pub(crate) loads: Vec<u64>,
    pub(crate) load_changes: Vec<Vec<(u64, u64)>>,
    pub(crate) used_queues: Vec<usize>,
    pub(crate) touched: Vec<u32>,
    /// What it counted.
    pub report: Report,
    /// The timeline, if it is kept.
    pub trace: Option<Trace>,
}

pub(crate) fn id(cpu: usize) -> CpuId {
    CpuId::new(cpu).expect("a CPU of the machine")
}

impl<'n, P: Policy> Machine<'n, P> {
    /// An idle machine whose queues have the policy that `policy` makes.
    pub fn new(slab: &'n Slab, config: Config, policy: impl Fn() -> P) -> Self {
        let queue = |cpu| RunQueue::ordered_by(id(cpu), policy(), 0);
        let idle = IdleSet::new();
        (0..config.cpus).for_each(|cpu| idle.announce(cpu));
        let idle_cpu = Cpu { idle_since_ns: Some(0), ..Cpu::default() };
        Self {
            config,
            slab,
            queues: (0..config.cpus).map(queue).collect(),
            pending: (0..config.cpus).map(|_| Pending::new()).collect(),
            idle,
            deadlines: (0..config.cpus as u32).map(DeadlineQueue::new).collect(),
            cpus: vec![idle_cpu; config.cpus],
            threads: slab.nodes.iter().map(|_| Thread::empty()).collect(),
            free: (0..slab.nodes.len() as u32).rev().collect(),
            servers: Vec::new(),
            gates: Vec::new(),
            shared: Vec::new(),
            events: Events::default(),
            rng: Rng::new(config.seed),
            now_ns: 0,
            weights: 0,
            weight_changes: Vec::new(),
            loads: vec![0; config.cpus],
            load_changes: vec![Vec::new(); config.cpus],
            used_queues: Vec::new(),
            touched: Vec::new(),
            report: Report::default(),
            trace: config.traces.then(Trace::default),
        }
    }

    pub(crate) fn fail<T>(&self, rule: Rule, detail: impl Into<String>) -> Done<T> {
        let (at_ns, detail) = (self.now_ns, detail.into());
        Err(Failure { rule, at_ns, detail, replay: String::new() })
    }

    /// What a core said; a refusal is a failure.
    pub(crate) fn must<T, E: std::fmt::Debug>(&self, what: &str, said: Result<T, E>) -> Done<T> {
        said.or_else(|error| self.fail(Rule::Refused, format!("{what}: {error:?}")))
    }

    pub(crate) fn node(&self, slot: u32) -> &'n Node {
        &self.slab.nodes[slot as usize]
    }

    pub(crate) fn word(&self, slot: u32) -> &'n StateWord {
        &self.slab.words[slot as usize]
    }

    pub(crate) fn thread(&mut self, slot: u32) -> &mut Thread {
        &mut self.threads[slot as usize]
    }

    pub(crate) fn home(&self, slot: u32) -> usize {
        self.node(slot).home().expect("a node has a home").index()
    }

    /// Takes a queue's lock for one operation; the time that takes is the CPU's.
    pub(crate) fn pay_lock(&mut self, by: usize, queue: usize) {
        self.used_queues.push(queue);
        let at_ns = self.now_ns + self.cpus[by].overhead_ns;
        let got_ns = at_ns.max(self.cpus[queue].lock_free_ns);
        let end_ns = got_ns + self.config.costs.lock_ns;
        self.cpus[queue].lock_free_ns = end_ns;
        self.cpus[by].overhead_ns = end_ns - self.now_ns;
    }

    pub(crate) fn pay(&mut self, by: usize, ns: u64) {
        self.cpus[by].overhead_ns += ns;
    }

    pub(crate) fn entity(&self, slot: u32) -> Done<Entity> {
        let guard = lock_home(&self.queues, self.node(slot));
        let read = guard
            .ok_or(Error::NotHere)
            .and_then(|mut guard| guard.with(self.node(slot), |_, _, entity| Ok(*entity)));
        self.must("reading a thread at its home", read)
    }

    /// A thread's counters, brought up to date if it runs.
    pub fn snapshot(&mut self, slot: u32) -> Done<Snapshot> {
        let cpu = self.home(slot);
        if self.cpus[cpu].current == Some(slot) {
            let (node, now_ns) = (self.node(slot), self.now_ns);
            let charged = self.queues[cpu]
                .lock()
                .with(node, |q, item, e| q.charge(item, e, e.authority(), now_ns));
            let _ = self.must("charging the current thread", charged)?;
        }
        Ok(self.entity(slot)?.snapshot())
    }

    /// Running time of each, over `for_ns` from now.
    pub fn measure(&mut self, slots: &[u32], for_ns: u64) -> Done<Vec<u64>> {
        let before: Vec<_> =
            slots.iter().map(|&s| Ok(self.snapshot(s)?.runtime_ns)).collect::<Done<_>>()?;
        self.run_until(self.now_ns + for_ns)?;
        let after: Vec<_> =
            slots.iter().map(|&s| Ok(self.snapshot(s)?.runtime_ns)).collect::<Done<_>>()?;
        Ok(after.iter().zip(before).map(|(a, b)| a - b).collect())
    }

    /// Useful computing done by all live threads and those that ended.
    pub fn work_done_ns(&mut self) -> u64 {
        (0..self.config.cpus).for_each(|cpu| self.settle(cpu));
        self.threads.iter().map(|t| t.done_ns).sum()
    }

    /// Handles events up to a time.
    pub fn run_until(&mut self, end_ns: u64) -> Done {
        self.run_while(end_ns, |_| true)
    }

    /// Handles events up to a time or while a condition holds.
    pub fn run_while(&mut self, end_ns: u64, goes_on: impl Fn(&Self) -> bool) -> Done {
        while goes_on(self) {
            match self.events.next_at() {
                Some(at_ns) if at_ns <= end_ns => self.now_ns = at_ns,
                _ => {
                    self.now_ns = end_ns;
                    break;
                }
            }
            let Some(event) = self.events.pop() else { break };
            self.handle(event)?;
            self.report.events += 1;
            self.note_loads();
            self.check_touched()?;
            if self.report.events.is_multiple_of(EVENTS_PER_WALK) {
                self.check_all()?;
            }
        }
        self.check_all()
    }

    fn handle(&mut self, event: Event) -> Done {
        let mark = self.report.fingerprint ^ self.now_ns;
        self.report.fingerprint = mark.wrapping_mul(0x100_0000_01b3).rotate_left(17);
        match event {
            Event::Finish { cpu, epoch } if self.cpus[cpu].epoch == epoch => {
                self.settle(cpu);
                self.drive(cpu)
            }
            Event::OneShot { cpu, epoch } if self.cpus[cpu].timer_epoch == epoch => {
                self.cpus[cpu].armed_ns = None;
                self.settle(cpu);
                self.pay(cpu, self.config.costs.interrupt_ns);
                self.one_shot(cpu)?;
                self.drive(cpu)
            }
            Event::Ipi { cpu } => {
                self.settle(cpu);
                self.pay(cpu, self.config.costs.interrupt_ns);
                let requests = self.pending[cpu].take();
                if requests.contains(Requests::RESCHEDULE) {
                    self.cpus[cpu].resched = true;
                }
                self.drive(cpu)
            }
            Event::Commit { slot, generation } => self.commit(slot, generation),
            Event::Look { cpu } => {
                self.cpus[cpu].looks = false;
                self.settle(cpu);
                self.drive(cpu)
            }
            Event::Finish { .. } | Event::OneShot { .. } => Ok(()),
        }
    }

    /// Counts what the current thread did up to now.
    pub(crate) fn settle(&mut self, cpu: usize) {
        let state = &mut self.cpus[cpu];
        let ran_ns = self.now_ns - state.since_ns;
        state.since_ns = self.now_ns;
        if let Some(slot) = state.current {
            let thread = &mut self.threads[slot as usize];
            let overhead_ns = ran_ns.min(thread.overhead_ns);
            thread.overhead_ns -= overhead_ns;
            let work_ns = (ran_ns - overhead_ns).min(thread.left_ns);
            thread.left_ns -= work_ns;
            thread.done_ns += work_ns;
        }
    }

    /// Lets a CPU do what there is to do at this moment, and arms what ends it.
    pub(crate) fn drive(&mut self, cpu: usize) -> Done {
        loop {
            let current = self.cpus[cpu].current;
            match current {
                Some(slot) if self.word(slot).is_killed() => self.die(cpu, slot)?,
                Some(_) if std::mem::take(&mut self.cpus[cpu].resched) => self.preempt(cpu)?,
                Some(slot) if self.threads[slot as usize].left_ns > 0 => break,
                Some(slot) => self.step(cpu, slot)?,
                None => {
                    self.cpus[cpu].resched = false;
                    if !self.choose(cpu)? {
                        break;
                    }
                }
            }
        }
        self.cpus[cpu].epoch += 1;
        let overhead_ns = std::mem::take(&mut self.cpus[cpu].overhead_ns);
        if let Some(slot) = self.cpus[cpu].current {
            let thread = &mut self.threads[slot as usize];
            thread.overhead_ns += overhead_ns;
            let end_ns = self.now_ns.saturating_add(thread.overhead_ns + thread.left_ns);
            if thread.left_ns < u64::MAX / 8 {
                let epoch = self.cpus[cpu].epoch;
                self.events.push(end_ns, Event::Finish { cpu, epoch }, &mut self.rng);
            }
        }
        self.arm(cpu);
        Ok(())
    }

    /// Arms the one-shot for whatever comes first.
    pub(crate) fn arm(&mut self, cpu: usize) {
        let slice_ns = self.cpus[cpu].slice_end_ns.filter(|_| self.cpus[cpu].current.is_some());
        let deadline_ns = self.deadlines[cpu].next_deadline_ns(&self.slab.timers);
        let next_ns = [slice_ns, deadline_ns].into_iter().flatten().min();
        if next_ns != self.cpus[cpu].armed_ns {
            self.cpus[cpu].timer_epoch += 1;
            self.cpus[cpu].armed_ns = next_ns;
            if let Some(at_ns) = next_ns {
                let event = Event::OneShot { cpu, epoch: self.cpus[cpu].timer_epoch };
                self.events.push(at_ns.max(self.now_ns), event, &mut self.rng);
            }
        }
    }

    fn one_shot(&mut self, cpu: usize) -> Done {
        while let Some(expired) = self.deadlines[cpu].pop_expired(&self.slab.timers, self.now_ns) {
            let slot = expired.index;
            let (generation, ticket) = (self.thread(slot).generation, self.thread(slot).ticket);
            self.touched.push(slot);
            if let Some(ticket) = ticket {
                self.wake(cpu, slot, generation, ticket)?;
            }
        }
        if self.cpus[cpu].slice_end_ns.is_some_and(|end_ns| end_ns <= self.now_ns) {
            self.slice_end(cpu)?;
        }
        Ok(())
    }

    /// The wait of a thread that has switched away becomes real, or turns out to be over.
    fn commit(&mut self, slot: u32, generation: u32) -> Done {
        if self.thread(slot).generation != generation {
            return Ok(());
        }
        self.touched.push(slot);
        let cpu = self.thread(slot).last_cpu;
        self.settle(cpu);
        let verdict = self.must("making a wait real", self.word(slot).commit_park())?;
        match verdict {
            CommitVerdict::Parked => {}
            CommitVerdict::Enqueue => self.enqueue_woken(cpu, slot)?,
            CommitVerdict::Finalise => self.bury_resting(cpu, slot)?,
        }
        self.drive(cpu)
    }

    /// The current thread goes back into the queue.
    pub(crate) fn preempt(&mut self, cpu: usize) -> Done {
        self.give_up(cpu, Requeue::Preempted)
    }

    pub(crate) fn give_up(&mut self, cpu: usize, why: Requeue) -> Done {
        let Some(slot) = self.cpus[cpu].current else { return Ok(()) };
        let verdict = self.must("giving up a running thread", self.word(slot).requeue())?;
        let (node, now_ns) = (self.node(slot), self.now_ns);
        self.pay_lock(cpu, cpu);
        match verdict {
            RequeueVerdict::Enqueue => {
                let said = self.queues[cpu]
                    .lock()
                    .with(node, |q, item, e| q.requeue(item, e, why, now_ns));
                let _ = self.must("requeueing the current thread", said)?;
                self.left(cpu, slot);
                self.ready(slot);
                self.leave_if_excluded(cpu, slot)
            }
            RequeueVerdict::Finalise => {
                let said = self.queues[cpu].lock().with(node, |q, item, e| q.exit(item, e, now_ns));
                let _ = self.must("ending the current thread", said)?;
                self.left(cpu, slot);
                self.bury(cpu, slot)
            }
        }
    }

    /// A thread is no longer on the CPU; its registers are in memory after the switch.
    pub(crate) fn left(&mut self, cpu: usize, slot: u32) {
        self.touched.push(slot);
        if let Some(trace) = &mut self.trace {
            trace.span(cpu, slot, self.cpus[cpu].span_ns, self.now_ns);
        }
        self.cpus[cpu].current = None;
        self.cpus[cpu].slice_end_ns = None;
        let off_cpu_ns = self.now_ns + self.config.costs.switch_ns / 2;
        let thread = self.thread(slot);
        thread.off_cpu_ns = off_cpu_ns;
        thread.last_cpu = cpu;
    }

    /// A thread can run from now on.
    pub(crate) fn ready(&mut self, slot: u32) {
        let now_ns = self.now_ns;
        let thread = self.thread(slot);
        thread.ready_ns = now_ns;
        thread.arrived_ns = now_ns;
        let weight = thread.weight;
        thread.least_weight = weight;
        self.count_weight(slot, weight);
    }

    /// Whether a thread may run on a CPU at all.
    pub(crate) fn allowed(&self, slot: u32) -> CpuSet {
        self.config.all().and(self.threads[slot as usize].mask)
    }

    pub(crate) fn next_step(&mut self, slot: u32) -> Step {
        let thread = &mut self.threads[slot as usize];
        let (now_ns, work_ns) = (self.now_ns, thread.work_ns);
        let Some(program) = &mut thread.program else { return Step::Exit };
        let (rng, shared) = (&mut self.rng, &mut self.shared[..]);
        program(&mut crate::Context { rng, shared, now_ns, work_ns, slot })
    }
}
