//! What has to hold, at every event and at every walk.

use crate::sim::{Sim, id};
use crate::{MS, Rule};
use core_ledger::Line;
use core_sched::{Activity, Ordered};
use core_sched_policy::{Policy, QUANTUM_NS};
use core_thread::State;
use kernel_dispatch::After;
use kernel_ops::machine::CpuPart;
use kernel_process::Process;

/// A thread may wait while a CPU it may run on is idle for at most so long: an idle CPU tries a few
/// others and may miss the one to take from; the crowded CPU looks around within a slice.
const IDLE_BOUND_NS: u64 = QUANTUM_NS + MS;

/// How many quanta times the sum of weights over its own a thread may wait.
const WAIT_QUANTA: u64 = 8;

/// No thread has to start sooner than this.
const LEAST_BOUND_NS: u64 = WAIT_QUANTA * QUANTUM_NS;

impl<P: Policy + 'static> Sim<P> {
    /// How long a thread may wait now, by the greatest sum of weights since it could run.
    fn bound_ns(self, slot: u32) -> u64 {
        let applied = u64::from(self.entity(slot).share().weight().get());
        self.with(|w| {
            let thread = w.thread(slot);
            let (weight, ready_ns) = (applied.min(thread.least_weight), thread.ready_ns);
            let weights = w.weight_peaks.most_since(ready_ns, w.weights).max(applied);
            weights * QUANTUM_NS * WAIT_QUANTA / weight
        })
    }

    /// The same for the time in the queue it is in now, by what that queue had to do. A thread
    /// comes with no more debt than one request, so a queue it has just come to counts anew.
    fn queue_bound_ns(self, slot: u32) -> u64 {
        let weight = u64::from(self.entity(slot).share().weight().get());
        let home = self.home(slot);
        let load = self.with(|w| {
            let arrived_ns = w.thread(slot).arrived_ns;
            w.load_peaks[home].most_since(arrived_ns, w.loads[home])
        });
        load.max(weight) * QUANTUM_NS * WAIT_QUANTA / weight
    }

    /// Notes what the queues have to do after an event.
    pub(crate) fn note_loads(self) {
        self.with(|w| {
            while let Some(cpu) = w.used_queues.pop() {
                let load = self.0.cpus[cpu].queue.hint().load;
                if load != w.loads[cpu] {
                    w.load_peaks[cpu].changes(w.now_ns, w.loads[cpu]);
                    w.loads[cpu] = load;
                }
            }
        });
    }

    /// A thread is about to run: no CPU is on its stack any more.
    pub(crate) fn check_stack(self, slot: u32) {
        let cpu =
            self.with(|w| w.cpus.iter().position(|cpu| cpu.left.is_some_and(|l| l.slot == slot)));
        if let Some(cpu) = cpu {
            self.fail(
                Rule::Invariant,
                format!("thread {slot} runs while CPU {cpu} leaves its stack"),
            );
        }
    }

    /// What a thread was charged for is what it ran.
    pub(crate) fn check_charged(self, slot: u32) {
        let charged_ns = self.with(|w| w.thread(slot).charged_ns);
        let ran_ns = self.entity(slot).snapshot().runtime_ns;
        if charged_ns != ran_ns {
            let detail = format!("thread {slot} ran {ran_ns} ns and was charged for {charged_ns}");
            self.fail(Rule::Invariant, detail);
        }
    }

    /// Nothing of a process is left but its record.
    pub(crate) fn check_reaped(self, process: &'static Process<Self>) {
        let charged = process.ops.ledger.reading(Line::Threads).used;
        let sleeps = process.ops.sleeps();
        if (sleeps, charged) != (0, 0) {
            let detail = format!("{process:?} leaves {sleeps} sleeps and {charged} threads");
            self.fail(Rule::Invariant, detail);
        }
    }

    /// A thread starts after having waited.
    pub(crate) fn check_wait(self, slot: u32) {
        let waited_ns = self.with(|w| {
            let waited_ns = w.now_ns - w.thread(slot).ready_ns;
            let thread = w.thread(slot);
            thread.worst_wait_ns = thread.worst_wait_ns.max(waited_ns);
            w.report.worst_wait_ns = w.report.worst_wait_ns.max(waited_ns);
            waited_ns
        });
        if waited_ns > LEAST_BOUND_NS {
            let per_mille = waited_ns.saturating_mul(1000) / self.bound_ns(slot);
            self.with(|w| {
                w.report.worst_wait_per_mille = w.report.worst_wait_per_mille.max(per_mille);
            });
        }
        self.check_waiting(slot);
    }

    fn check_waiting(self, slot: u32) {
        let (waited_ns, queued_ns, since_ns) = self.with(|w| {
            let now_ns = w.now_ns;
            let thread = w.thread(slot);
            let since_ns = thread.ready_ns.max(thread.confined_ns);
            (now_ns - thread.ready_ns, now_ns - thread.arrived_ns, since_ns)
        });
        if waited_ns > LEAST_BOUND_NS && waited_ns > self.bound_ns(slot) {
            let (who, bound_ns) = (self.describe(slot), self.bound_ns(slot));
            self.fail(Rule::Starved, format!("{who} waited {waited_ns} ns, it may {bound_ns}"));
        }
        if queued_ns > LEAST_BOUND_NS && queued_ns > self.queue_bound_ns(slot) {
            let (who, home, bound_ns) =
                (self.describe(slot), self.home(slot), self.queue_bound_ns(slot));
            let detail = format!("{who} waited {queued_ns} ns in queue {home}, it may {bound_ns}");
            self.fail(Rule::Starved, detail);
        }
        if waited_ns <= IDLE_BOUND_NS {
            return;
        }
        let idle = self.with(|w| {
            let (now_ns, mask) = (w.now_ns, w.thread(slot).mask);
            w.cpus.iter().enumerate().find_map(|(n, cpu)| {
                let (from_ns, to_ns) = match cpu.idle_since_ns {
                    Some(since_ns) => (since_ns, now_ns),
                    None => cpu.was_idle_ns,
                };
                let both_ns = to_ns.saturating_sub(from_ns.max(since_ns));
                (both_ns > IDLE_BOUND_NS && mask.contains(id(n))).then_some((n, both_ns))
            })
        });
        if let Some((cpu, both_ns)) = idle {
            let detail = format!("CPU {cpu} was idle {both_ns} ns while thread {slot} waited");
            self.fail(Rule::Idle, detail);
        }
    }

    /// A thread, and what it is owed, for a person to read.
    fn describe(self, slot: u32) -> String {
        let share = self.entity(slot).share();
        let (weight, class) = (share.weight().get(), share.class());
        format!("thread {slot} (weight {weight}, {class:?})")
    }

    /// A queue in its order, for a person to read: where each request starts and ends, from
    /// where virtual time stands.
    pub(crate) fn queue_text(self, cpu: usize) -> String {
        let mut text = format!("queue {cpu}, current {:?}:\n", self.current(cpu));
        let guard = self.0.cpus[cpu].queue.lock();
        let queue = guard.view();
        let now = queue.virtual_now();
        text += &format!("  pulls {} load {}\n", queue.policy().pulls(), queue.hint().load);
        let mut next = queue.order().first();
        while let Some((item, entry)) = next {
            let (start, finish) = (entry.tag.start.since(now), entry.tag.finish.since(now));
            let (slot, weight) = (item.0.thread() as u32, entry.weight.get());
            text += &format!("  thread {slot} (weight {weight}): {start} to {finish} ns\n");
            next = queue.order().after(item);
        }
        text
    }

    /// Checks the threads the last event touched.
    pub(crate) fn check_touched(self) {
        let mut touched = self.with(|w| std::mem::take(&mut w.touched));
        touched.sort_unstable();
        touched.dedup();
        touched.iter().for_each(|&slot| self.check_thread(slot));
        touched.clear();
        self.with(|w| w.touched = touched);
    }

    /// State word, scheduling state, CPU and bookkeeping agree about a thread.
    fn check_thread(self, slot: u32) {
        let word = self.record(slot).state.load();
        if let Err(rule) = word.check_invariants() {
            self.fail(Rule::Invariant, format!("thread {slot}: {rule}"));
        }
        let entity = self.entity(slot);
        let home = self.home(slot);
        let is_current = self.current(home) == Some(slot);
        let (is_alive, leaving) = self.with(|w| {
            let leaving = w.cpus.iter().find_map(|cpu| cpu.left.filter(|left| left.slot == slot));
            (w.thread(slot).is_alive(), leaving.map(|left| left.after))
        });
        let agree = match (entity.activity(), leaving) {
            // Stopped, and its stack is not free yet.
            (Activity::Queued, Some(After::Requeue)) => word.state() == State::Running,
            (Activity::Resting, Some(After::Wait)) => word.state() == State::AboutToWait,
            (Activity::Dead, Some(After::End)) => word.state() == State::Running,
            (_, Some(_)) => false,
            (Activity::Resting, None) => word.state() == State::Waiting,
            (Activity::Queued | Activity::Direct, None) => word.state() == State::Runnable,
            (Activity::Running, None) => word.state() == State::Running && is_current,
            (Activity::Moving, None) => false,
            (Activity::Dead, None) => {
                matches!(word.state(), State::Dead | State::Free | State::Retired) && !is_alive
            }
        };
        let is_running = entity.activity() == Activity::Running;
        if !agree || is_current != is_running {
            let activity = entity.activity();
            let detail = format!("thread {slot} on {home}: {activity:?}, {leaving:?}, {word:?}");
            self.fail(Rule::Invariant, detail);
        }
        if word.state() == State::Waiting {
            self.check_wake(slot);
        }
        if matches!(entity.activity(), Activity::Queued | Activity::Direct) {
            if !self.may_run_on(slot, home) {
                self.fail(Rule::Invariant, format!("thread {slot} queued on {home}"));
            }
            self.check_waiting(slot);
        }
    }

    /// A thread that waits in its ring has not got what it waits for.
    fn check_wake(self, slot: u32) {
        let thread = self.record(slot);
        let Some(held) = thread.ops.home.completions() else { return };
        let count = held.ring().kernel.count();
        drop(held);
        if thread.ops.want.due(&thread.state, count).is_some() {
            self.fail(Rule::Stuck, format!("thread {slot} waits, and has {count} completions"));
        }
    }

    /// Walks over everything.
    pub(crate) fn check_all(self) {
        let mut current = 0;
        for (n, cpu) in self.0.cpus.iter().enumerate() {
            let guard = cpu.queue.lock();
            if let Err(rule) = guard.check_invariants() {
                self.fail(Rule::Invariant, format!("queue {n}: {rule}"));
            }
            let runs = guard.view().current().map(|item| item.0.thread() as u32);
            if runs != self.current(n) {
                let detail = format!("CPU {n} runs {:?}, its queue says {runs:?}", self.current(n));
                self.fail(Rule::Invariant, detail);
            }
            current += usize::from(runs.is_some());
            let (busy_ns, idle_ns) = guard.view().busy_and_idle_ns();
            if busy_ns + idle_ns > self.now_ns() {
                self.fail(
                    Rule::Invariant,
                    format!("CPU {n} accounts for more time than there was"),
                );
            }
            if let Err(rule) = cpu.own.deadlines().check_invariants() {
                self.fail(Rule::Invariant, format!("deadlines of {n}: {rule}"));
            }
        }
        if let Err(rule) = self.0.tables.park.check_invariants() {
            self.fail(Rule::Invariant, format!("words that threads wait at: {rule}"));
        }
        for process in self.0.records.processes() {
            let service = process.ops.service.lock();
            if let Some(Err(rule)) = service.as_ref().map(|s| s.calls.check_invariants()) {
                self.fail(Rule::Invariant, format!("what {process:?} serves: {rule}"));
            }
        }
        (0..self.0.records.threads().len() as u32).for_each(|slot| self.check_thread(slot));
        let is_leaving = |slot: u32| {
            self.with(|w| w.cpus.iter().any(|cpu| cpu.left.is_some_and(|left| left.slot == slot)))
        };
        let runs = |slot: &u32| {
            self.record(*slot).state.load().state() == State::Running && !is_leaving(*slot)
        };
        let running = (0..self.0.records.threads().len() as u32).filter(runs).count();
        if running != current {
            self.fail(Rule::Invariant, format!("{running} threads run on {current} CPUs"));
        }
    }
}
