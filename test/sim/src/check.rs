//! What has to hold, at every event and at every walk.

use crate::machine::id;
use crate::{Done, MS, Machine, Rule};
use core_sched::{Activity, Ordered};
use core_sched_policy::{Policy, QUANTUM_NS};
use core_thread::State;

/// A thread may wait while a CPU it may run on is idle for at most so long: the crowded CPU
/// looks around at the end of its slice, and an interrupt takes its time.
const IDLE_BOUND_NS: u64 = QUANTUM_NS + MS;

/// How many quanta times the sum of weights over its own a thread may wait.
const WAIT_QUANTA: u64 = 8;

/// The greatest of a number now and before each change since a time.
fn most_since(changes: &[(u64, u64)], now: u64, from_ns: u64) -> u64 {
    let recent = changes.iter().rev().take_while(|change| change.0 >= from_ns);
    recent.map(|change| change.1).fold(now, u64::max)
}

/// No thread has to start sooner than this.
const LEAST_BOUND_NS: u64 = WAIT_QUANTA * QUANTUM_NS;

impl<P: Policy> Machine<'_, P> {
    /// How long a thread may wait now, by the greatest sum of weights since it could run.
    fn bound_ns(&self, slot: u32) -> Done<u64> {
        let applied = u64::from(self.entity(slot)?.share().weight().get());
        let weight = applied.min(self.threads[slot as usize].least_weight);
        let weights = self.weights_since(self.threads[slot as usize].ready_ns).max(applied);
        Ok(weights * QUANTUM_NS * WAIT_QUANTA / weight)
    }

    fn weights_since(&self, from_ns: u64) -> u64 {
        most_since(&self.weight_changes, self.weights, from_ns)
    }

    /// The same for the time in the queue it is in now, by what that queue had to do. A thread
    /// comes with no more debt than one request, so a queue it has just come to counts anew.
    fn queue_bound_ns(&self, slot: u32) -> Done<u64> {
        let entity = self.entity(slot)?;
        let home = self.home(slot);
        let arrived_ns = self.threads[slot as usize].arrived_ns;
        let load = most_since(&self.load_changes[home], self.loads[home], arrived_ns);
        let weight = u64::from(entity.share().weight().get());
        Ok(load.max(weight) * QUANTUM_NS * WAIT_QUANTA / weight)
    }

    /// Notes what the queues have to do after an event.
    pub(crate) fn note_loads(&mut self) {
        while let Some(cpu) = self.used_queues.pop() {
            let load = self.queues[cpu].hint().load;
            if load != self.loads[cpu] {
                self.load_changes[cpu].push((self.now_ns, self.loads[cpu]));
                self.loads[cpu] = load;
            }
        }
    }

    /// A thread starts after having waited.
    pub(crate) fn check_wait(&mut self, slot: u32) -> Done {
        let waited_ns = self.now_ns - self.threads[slot as usize].ready_ns;
        let thread = self.thread(slot);
        thread.worst_wait_ns = thread.worst_wait_ns.max(waited_ns);
        self.report.worst_wait_ns = self.report.worst_wait_ns.max(waited_ns);
        if waited_ns > LEAST_BOUND_NS {
            let per_mille = waited_ns.saturating_mul(1000) / self.bound_ns(slot)?;
            self.report.worst_wait_per_mille = self.report.worst_wait_per_mille.max(per_mille);
        }
        self.check_waiting(slot)
    }

    fn check_waiting(&self, slot: u32) -> Done {
        let thread = &self.threads[slot as usize];
        let waited_ns = self.now_ns - thread.ready_ns;
        if waited_ns > LEAST_BOUND_NS && waited_ns > self.bound_ns(slot)? {
            let bound_ns = self.bound_ns(slot)?;
            let who = self.describe(slot)?;
            let detail = format!("{who} waited {waited_ns} ns, it may {bound_ns}");
            return self.fail(Rule::Starved, detail);
        }
        let queued_ns = self.now_ns - thread.arrived_ns;
        if queued_ns > LEAST_BOUND_NS {
            let bound_ns = self.queue_bound_ns(slot)?;
            if queued_ns > bound_ns {
                let (who, home) = (self.describe(slot)?, self.home(slot));
                let detail =
                    format!("{who} waited {queued_ns} ns in queue {home}, it may {bound_ns}");
                return self.fail(Rule::Starved, detail);
            }
        }
        if waited_ns <= IDLE_BOUND_NS {
            return Ok(());
        }
        let allowed = self.allowed(slot);
        let since_ns = thread.ready_ns.max(thread.confined_ns);
        for (n, cpu) in self.cpus.iter().enumerate() {
            let (from_ns, to_ns) = match cpu.idle_since_ns {
                Some(since_ns) => (since_ns, self.now_ns),
                None => cpu.was_idle_ns,
            };
            let both_ns = to_ns.saturating_sub(from_ns.max(since_ns));
            if both_ns > IDLE_BOUND_NS && allowed.contains(id(n)) {
                let detail = format!("CPU {n} was idle {both_ns} ns while thread {slot} waited");
                return self.fail(Rule::Idle, detail);
            }
        }
        Ok(())
    }

    /// A thread, and what it is owed, for a person to read.
    fn describe(&self, slot: u32) -> Done<String> {
        let share = self.entity(slot)?.share();
        let (weight, class) = (share.weight().get(), share.class());
        Ok(format!("thread {slot} (weight {weight}, {class:?})"))
    }

    /// A queue in its order, for a person to read: where each request starts and ends, from
    /// where virtual time stands.
    pub fn queue_text(&self, cpu: usize) -> String {
        let guard = self.queues[cpu].lock();
        let now = guard.look().virtual_now();
        let mut text = format!("queue {cpu}, current {:?}:\n", self.cpus[cpu].current);
        text += &format!(
            "  pulls {} load {}\n",
            guard.look().policy().pulls(),
            guard.look().hint().load
        );
        let mut next = guard.look().order().first();
        while let Some((item, entry)) = next {
            let (start, finish) = (entry.tag.start.since(now), entry.tag.finish.since(now));
            let (slot, weight) = (item.0.thread(), entry.weight.get());
            text += &format!("  thread {slot} (weight {weight}): {start} to {finish} ns\n");
            next = guard.look().order().after(item);
        }
        text
    }

    /// Checks the threads the last event touched.
    pub(crate) fn check_touched(&mut self) -> Done {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for &slot in &touched {
            self.check_thread(slot)?;
        }
        touched.clear();
        self.touched = touched;
        Ok(())
    }

    /// State word, scheduling state, CPU and bookkeeping agree about a thread.
    fn check_thread(&self, slot: u32) -> Done {
        let word = self.word(slot).load();
        if let Err(rule) = word.check_invariants() {
            return self.fail(Rule::Invariant, format!("thread {slot}: {rule}"));
        }
        let entity = self.entity(slot)?;
        let home = self.home(slot);
        let thread = &self.threads[slot as usize];
        let is_current = self.cpus[home].current == Some(slot);
        let agree = match entity.activity() {
            Activity::Resting => {
                matches!(word.state(), State::Parking | State::Parked)
                    || word.state() == State::Free && !thread.is_alive()
            }
            Activity::Queued | Activity::Direct => word.state() == State::Runnable,
            Activity::Running => word.state() == State::Running && is_current,
            Activity::Moving => false,
            Activity::Dead => matches!(word.state(), State::Free | State::Retired),
        };
        let is_running = entity.activity() == Activity::Running;
        if !agree || is_current != is_running {
            let detail = format!("thread {slot} on {home}: {:?}, {word:?}", entity.activity());
            return self.fail(Rule::Invariant, detail);
        }
        if matches!(entity.activity(), Activity::Queued | Activity::Direct) {
            if !self.allowed(slot).contains(id(home)) {
                return self.fail(Rule::Invariant, format!("thread {slot} queued on {home}"));
            }
            self.check_waiting(slot)?;
        }
        Ok(())
    }

    /// Walks over everything.
    pub(crate) fn check_all(&mut self) -> Done {
        let mut current = 0;
        for cpu in 0..self.config.cpus {
            let guard = self.queues[cpu].lock();
            if let Err(rule) = guard.check_invariants() {
                return self.fail(Rule::Invariant, format!("queue {cpu}: {rule}"));
            }
            let runs = guard.look().current().map(|item| item.0.thread() as u32);
            if runs != self.cpus[cpu].current {
                let detail = format!("CPU {cpu} runs {:?}, its queue says {runs:?}", {
                    self.cpus[cpu].current
                });
                return self.fail(Rule::Invariant, detail);
            }
            current += usize::from(runs.is_some());
            let (busy_ns, idle_ns) = guard.look().busy_and_idle_ns();
            if busy_ns + idle_ns > self.now_ns {
                let detail = format!("CPU {cpu} accounts for more time than there was");
                return self.fail(Rule::Invariant, detail);
            }
            if let Err(rule) = self.deadlines[cpu].check_invariants(&self.slab.timers) {
                return self.fail(Rule::Invariant, format!("deadlines of {cpu}: {rule}"));
            }
        }
        for (n, server) in self.servers.iter().enumerate() {
            if let Err(rule) = server.service.check_invariants() {
                return self.fail(Rule::Invariant, format!("service {n}: {rule}"));
            }
        }
        let mut running = 0;
        for slot in 0..self.threads.len() as u32 {
            self.check_thread(slot)?;
            running += usize::from(self.word(slot).load().state() == State::Running);
        }
        if running != current {
            let detail = format!("{running} threads run on {current} CPUs");
            return self.fail(Rule::Invariant, detail);
        }
        Ok(())
    }
}
