//! The machine: its parts, its clock, and what each event does.

use crate::cpu::Cpu;
use crate::event::{Event, Events};
use crate::gate::Gate;
use crate::kernel::keep_rings;
use crate::peaks::Peaks;
use crate::process::{Home, Offer};
use crate::sim::Sim;
use crate::thread::Thread;
use crate::{Config, Done, Failure, Rng, Rule, Trace};
use core_sched::{Entity, Snapshot};
use core_sched_policy::Policy;
use kernel_dispatch as dispatch;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A full walk over everything is made every so many events.
const EVENTS_PER_WALK: u64 = 1_000;

/// What a run counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Events handled.
    pub events: u64,
    /// Threads started on a CPU.
    pub starts: u64,
    /// Yields that changed places with the first that waited.
    pub exchanges: u64,
    /// Hand-overs taken.
    pub hand_offs: u64,
    /// Hand-overs that went through the queue instead.
    pub missed_hand_offs: u64,
    /// Threads taken by idle CPUs.
    pub steals: u64,
    /// Threads given away by crowded CPUs.
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

/// What changes as a machine runs, beside what the driver keeps.
pub(crate) struct World {
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) threads: Vec<Thread>,
    /// Threads that ended and are not accounted for yet.
    pub(crate) dead: Vec<u32>,
    /// Processes by number.
    pub(crate) homes: BTreeMap<u32, Home>,
    pub(crate) offers: Vec<Offer>,
    pub(crate) gates: Vec<Gate>,
    /// Numbers that programs share.
    pub(crate) shared: Vec<u64>,
    pub(crate) events: Events,
    pub(crate) rng: Rng,
    /// The time, and the CPU whose step it is.
    pub(crate) now_ns: u64,
    pub(crate) here: usize,
    /// Sum of weights of all live threads, and what it was.
    pub(crate) weights: u64,
    pub(crate) weight_peaks: Peaks,
    /// The same for the load of each queue, and the queues the event used.
    pub(crate) loads: Vec<u64>,
    pub(crate) load_peaks: Vec<Peaks>,
    pub(crate) used_queues: Vec<usize>,
    pub(crate) touched: Vec<u32>,
    pub(crate) report: Report,
    pub(crate) trace: Option<Trace>,
}

impl World {
    pub(crate) fn new(config: &Config, room: usize) -> Self {
        Self {
            cpus: vec![Cpu::idle(); config.cpus],
            threads: (0..room).map(|_| Thread::empty()).collect(),
            dead: Vec::new(),
            homes: BTreeMap::new(),
            offers: Vec::new(),
            gates: Vec::new(),
            shared: Vec::new(),
            events: Events::default(),
            rng: Rng::new(config.seed),
            now_ns: 0,
            here: 0,
            weights: 0,
            weight_peaks: Peaks::default(),
            loads: vec![0; config.cpus],
            load_peaks: vec![Peaks::default(); config.cpus],
            used_queues: Vec::new(),
            touched: Vec::new(),
            report: Report::default(),
            trace: config.traces.then(Trace::default),
        }
    }

    pub(crate) fn push(&mut self, at_ns: u64, event: Event) {
        self.events.push(at_ns, event, &mut self.rng);
    }

    pub(crate) fn thread(&mut self, slot: u32) -> &mut Thread {
        &mut self.threads[slot as usize]
    }

    /// Kernel time of the CPU whose step it is.
    pub(crate) fn pay(&mut self, ns: u64) {
        self.cpus[self.here].overhead_ns += ns;
    }

    /// Takes a queue's lock for one operation; the time that takes is the CPU's.
    pub(crate) fn pay_lock(&mut self, queue: usize, lock_ns: u64) {
        self.used_queues.push(queue);
        let at_ns = self.now_ns + self.cpus[self.here].overhead_ns;
        let got_ns = at_ns.max(self.cpus[queue].lock_free_ns);
        let end_ns = got_ns + lock_ns;
        self.cpus[queue].lock_free_ns = end_ns;
        self.cpus[self.here].overhead_ns = end_ns - self.now_ns;
    }

    /// What ran on a CPU up to now is a span of the timeline.
    pub(crate) fn end_span(&mut self, cpu: usize) {
        if let (Some((slot, from_ns)), Some(trace)) = (self.cpus[cpu].span.take(), &mut self.trace)
        {
            trace.span(cpu, slot, from_ns, self.now_ns);
        }
    }

    /// A thread can run from now on.
    pub(crate) fn ready(&mut self, slot: u32) {
        self.touched.push(slot);
        let now_ns = self.now_ns;
        let thread = self.thread(slot);
        thread.ready_ns = now_ns;
        thread.arrived_ns = now_ns;
        let weight = thread.weight;
        thread.least_weight = weight;
        self.count_weight(slot, weight);
    }

    /// A thread counts with that weight from now on.
    pub(crate) fn count_weight(&mut self, slot: u32, weight: u64) {
        let old = std::mem::replace(&mut self.thread(slot).counted_weight, weight);
        if old != weight {
            self.weight_peaks.changes(self.now_ns, self.weights);
            self.weights = self.weights + weight - old;
        }
    }

    /// Counts what the thread `slot`, which runs on the CPU, did up to now.
    fn settle(&mut self, cpu: usize, slot: Option<u32>) {
        let state = &mut self.cpus[cpu];
        let ran_ns = self.now_ns - state.since_ns;
        state.since_ns = self.now_ns;
        if let Some(slot) = slot {
            let thread = &mut self.threads[slot as usize];
            let overhead_ns = ran_ns.min(thread.overhead_ns);
            thread.overhead_ns -= overhead_ns;
            let work_ns = (ran_ns - overhead_ns).min(thread.left_ns);
            thread.left_ns -= work_ns;
            thread.done_ns += work_ns;
        }
    }
}

/// A machine; `P` is the policy of its queues.
///
/// Like a kernel's, its tables are made once and never given back; stacks and rings are, with the machine.
pub struct Machine<P: Policy + 'static> {
    /// What it was made with.
    pub config: Config,
    pub(crate) sim: Sim<P>,
}

impl<P: Policy + 'static> Drop for Machine<P> {
    /// Threads end where they are, and their stacks and rings are kept for the next machine.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let records = &self.sim.0.records;
        for thread in records.threads() {
            // Refused by a record without a thread.
            let _remains = thread.ops.home.retire();
        }
        for process in records.processes() {
            keep_rings(&process.ops.space);
            if process.key().generation % 2 == 1 {
                // Cut off in the middle: its account is what it is.
                let _ = process.ops.vacate();
            }
        }
    }
}

/// Runs something that may find a broken rule, which unwinds from wherever it is found.
pub(crate) fn guarded<R>(f: impl FnOnce() -> R) -> Done<R> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| match payload.downcast::<Failure>() {
        Ok(failure) => *failure,
        Err(other) => resume_unwind(other),
    })
}

impl<P: Policy + 'static> Machine<P> {
    /// An idle machine with room for so many threads, whose queues have the policy that `policy` makes.
    pub fn new(config: Config, room: usize, policy: impl Fn() -> P) -> Self {
        let sim = Sim::new(config, room, policy);
        // Every CPU comes to its idle loop, the first by way of the reaper, which finds nothing to do.
        (0..config.cpus).for_each(|cpu| sim.drive(cpu));
        sim.interrupt(0);
        // A run begins without a past: no time has gone by, and nothing was left to chance.
        sim.with(|w| {
            w.cpus = vec![Cpu::idle(); config.cpus];
            (w.events, w.rng) = (Events::default(), Rng::new(config.seed));
            (w.report, w.trace) = (Report::default(), config.traces.then(Trace::default));
        });
        Self { config, sim }
    }

    /// The time.
    pub fn now_ns(&self) -> u64 {
        self.sim.now_ns()
    }

    /// What it counted.
    pub fn report(&self) -> Report {
        self.sim.with(|w| w.report)
    }

    /// The timeline up to now, if it is kept; it is not kept any more.
    pub fn take_trace(&mut self) -> Option<Trace> {
        self.sim.with(|w| {
            (0..w.cpus.len()).for_each(|cpu| w.end_span(cpu));
            w.trace.take()
        })
    }

    /// Sets the numbers that programs share.
    pub fn share(&mut self, numbers: Vec<u64>) {
        self.sim.with(|w| w.shared = numbers);
    }

    pub(crate) fn fail<T>(&self, rule: Rule, detail: impl Into<String>) -> Done<T> {
        guarded(|| self.sim.fail(rule, detail))
    }

    /// A thread's scheduling state.
    pub fn entity(&self, slot: u32) -> Done<Entity> {
        guarded(|| self.sim.entity(slot))
    }

    /// A thread's counters, brought up to date if it runs.
    pub fn snapshot(&mut self, slot: u32) -> Done<Snapshot> {
        guarded(|| self.sim.snapshot(slot))
    }

    /// Running time of each, over `for_ns` from now.
    pub fn measure(&mut self, slots: &[u32], for_ns: u64) -> Done<Vec<u64>> {
        let before: Vec<_> =
            slots.iter().map(|&s| Ok(self.snapshot(s)?.runtime_ns)).collect::<Done<_>>()?;
        self.run_until(self.now_ns() + for_ns)?;
        let after: Vec<_> =
            slots.iter().map(|&s| Ok(self.snapshot(s)?.runtime_ns)).collect::<Done<_>>()?;
        Ok(after.iter().zip(before).map(|(a, b)| a - b).collect())
    }

    /// Useful computing done by all live threads and those that ended.
    pub fn work_done_ns(&mut self) -> u64 {
        (0..self.config.cpus).for_each(|cpu| self.sim.settle(cpu));
        self.sim.with(|w| w.threads.iter().map(|t| t.done_ns).sum())
    }

    /// Handles events up to a time.
    pub fn run_until(&mut self, end_ns: u64) -> Done {
        self.run_while(end_ns, |_| true)
    }

    /// Handles events up to a time or while a condition holds.
    pub fn run_while(&mut self, end_ns: u64, goes_on: impl Fn(&Report) -> bool) -> Done {
        guarded(|| self.sim.run_while(end_ns, goes_on))
    }

    /// A queue in its order, for a person to read.
    pub fn queue_text(&self, cpu: usize) -> String {
        self.sim.queue_text(cpu)
    }
}

impl<P: Policy + 'static> Sim<P> {
    /// Ends the run: a rule is broken.
    pub(crate) fn fail(self, rule: Rule, detail: impl Into<String>) -> ! {
        let (at_ns, detail) = (self.now_ns(), detail.into());
        resume_unwind(Box::new(Failure { rule, at_ns, detail, replay: String::new() }))
    }

    /// What a core said; a refusal is a failure.
    pub(crate) fn must<T, E: std::fmt::Debug>(self, what: &str, said: Result<T, E>) -> T {
        said.unwrap_or_else(|error| self.fail(Rule::Refused, format!("{what}: {error:?}")))
    }

    fn snapshot(self, slot: u32) -> Snapshot {
        let record = self.record(slot);
        let (cpu, now_ns) = (self.home(slot), self.now_ns());
        if self.current(cpu) == Some(slot) {
            let charged = self.0.cpus[cpu]
                .queue
                .lock()
                .with(&record.node, |q, item, e| q.charge(item, e, e.authority(), now_ns));
            let _ = self.must("charging the current thread", charged);
        }
        self.entity(slot).snapshot()
    }

    fn run_while(self, end_ns: u64, goes_on: impl Fn(&Report) -> bool) {
        while goes_on(&self.with(|w| w.report)) {
            let event = self.with(|w| match w.events.next_at() {
                Some(at_ns) if at_ns <= end_ns => {
                    w.now_ns = at_ns;
                    w.events.pop()
                }
                _ => {
                    w.now_ns = end_ns;
                    None
                }
            });
            let Some(event) = event else { break };
            self.handle(event);
            let events = self.with(|w| {
                w.report.events += 1;
                w.report.events
            });
            self.note_loads();
            self.check_touched();
            if events.is_multiple_of(EVENTS_PER_WALK) {
                self.check_all();
            }
        }
        self.check_all();
    }

    fn handle(self, event: Event) {
        let cpu = event.cpu();
        let is_meant = self.with(|w| {
            let mark = w.report.fingerprint ^ w.now_ns;
            w.report.fingerprint = mark.wrapping_mul(0x100_0000_01b3).rotate_left(17);
            let state = &mut w.cpus[cpu];
            match event {
                Event::Finish { epoch, .. } => state.epoch == epoch,
                Event::OneShot { epoch, .. } => {
                    let is_meant = state.timer_epoch == epoch;
                    if is_meant {
                        state.armed_ns = None;
                        state.timer_fired = true;
                    }
                    is_meant
                }
                Event::Left { epoch, .. } => state.left.is_some_and(|left| left.epoch == epoch),
                Event::Look { .. } => {
                    state.looks = false;
                    true
                }
                Event::Ipi { .. } => {
                    state.is_interrupted = true;
                    true
                }
            }
        });
        if !is_meant {
            return;
        }
        self.interrupt(cpu);
    }

    /// The CPU's thread stops computing, or its idle loop resting, to see what there is to do.
    pub(crate) fn interrupt(self, cpu: usize) {
        self.with(|w| w.here = cpu);
        self.settle(cpu);
        self.drive(cpu);
        self.account_for_the_dead();
    }

    /// Counts what the current thread did up to now.
    pub(crate) fn settle(self, cpu: usize) {
        let slot = self.current(cpu);
        self.with(|w| w.settle(cpu, slot));
    }

    /// Lets a CPU do what there is to do at this moment: until its thread computes, it is between two stacks,
    /// or it rests.
    pub(crate) fn drive(self, cpu: usize) {
        self.with(|w| w.here = cpu);
        loop {
            // Its code runs on its own stack, whether it was computing, in the kernel, or has never run.
            if let Some(thread) = self.0.cpus[cpu].current() {
                thread.ops.home.context().resume();
                break;
            }
            self.arrive();
            self.with(|w| w.cpus[cpu].rests = false);
            while self.take_interrupt(false) {}
            dispatch::turn_of_idle(self);
            if self.with(|w| w.cpus[cpu].rests) {
                break;
            }
        }
        let current = self.current(cpu);
        self.with(|w| {
            w.cpus[cpu].epoch += 1;
            let overhead_ns = std::mem::take(&mut w.cpus[cpu].overhead_ns);
            let Some(slot) = current else { return };
            let thread = &mut w.threads[slot as usize];
            thread.overhead_ns += overhead_ns;
            let end_ns = w.now_ns.saturating_add(thread.overhead_ns + thread.left_ns);
            if thread.left_ns < u64::MAX / 8 && w.cpus[cpu].left.is_none() {
                let epoch = w.cpus[cpu].epoch;
                w.push(end_ns, Event::Finish { cpu, epoch });
            }
        });
    }
}
