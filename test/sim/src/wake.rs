//! Waking: the claim, where the thread goes, and who is told.

use crate::event::Event;
use crate::machine::id;
use crate::{Done, Fault, Machine, Rule};
use core_sched::place::{self, Situation};
use core_sched::{CpuSet, Enqueued};
use core_sched_policy::{Lag, Policy};
use core_thread::{Ticket, WakeVerdict};
use smp_ipi::Requests;

impl<P: Policy> Machine<'_, P> {
    /// Ends a thread's wait. A stale name is no failure: the wait is over already.
    pub(crate) fn wake(&mut self, by: usize, slot: u32, generation: u32, ticket: Ticket) -> Done {
        self.pay(by, self.config.costs.wake_ns);
        self.touched.push(slot);
        let said = self.word(slot).wake(generation, ticket);
        if let Fault::DoubleEnqueue(n) = self.config.fault
            && self.rng.one_in(n)
            && said.is_ok()
        {
            self.enqueue_woken(by, slot)?;
        }
        match said {
            Ok(WakeVerdict::Enqueue) => self.enqueue_woken(by, slot),
            Ok(WakeVerdict::Noted) => {
                self.report.early_wakes += 1;
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn situation(&self, allowed: CpuSet) -> Situation {
        let idle = CpuSet::from_bits(self.idle.seek());
        Situation { allowed, idle, pending: self.pending_set() }
    }

    /// Queues a thread whose wake was claimed.
    pub(crate) fn enqueue_woken(&mut self, by: usize, slot: u32) -> Done {
        self.ready(slot);
        self.threads[slot as usize].ticket = None;
        let home = self.home(slot);
        let at = self.situation(self.allowed(slot));
        let Some(to) = place::woken(id(home), &at) else {
            return self.fail(Rule::Stuck, format!("thread {slot} may run nowhere"));
        };
        let now_ns = self.now_ns;
        if to.index() == home {
            self.pay_lock(by, home);
            let said = self.queues[home].lock().wake(self.node(slot), now_ns);
            let enqueued = self.must("waking a thread at home", said)?;
            self.tell(by, home, enqueued);
            return Ok(());
        }
        self.report.moved_wakes += 1;
        self.pay_lock(by, home);
        let sent = self.queues[home].lock().send(self.node(slot), to, now_ns);
        let lag = self.must("moving a woken thread", sent)?;
        self.arrive(by, slot, to.index(), lag)
    }

    /// Queues a thread that has left its last queue.
    pub(crate) fn arrive(&mut self, by: usize, slot: u32, to: usize, lag: Lag) -> Done {
        self.pay_lock(by, to);
        let (node, now_ns) = (self.node(slot), self.now_ns);
        let said = self.queues[to].lock().with(node, |q, item, e| q.enqueue(item, e, lag, now_ns));
        let enqueued = self.must("queueing a moved thread", said)?;
        let thread = self.thread(slot);
        thread.arrived_ns = now_ns;
        thread.least_weight = thread.least_weight.min(thread.weight);
        self.tell(by, to, enqueued);
        Ok(())
    }

    /// Tells a CPU that something changed in its queue.
    pub(crate) fn tell(&mut self, by: usize, to: usize, enqueued: Enqueued) {
        if let Some(end_ns) = enqueued.arm_slice_ns {
            self.cpus[to].slice_end_ns = Some(end_ns);
        }
        if to == by {
            self.cpus[to].resched |= enqueued.resched;
            return;
        }
        let mut requests = Requests::NONE;
        if enqueued.resched {
            requests = requests.and(Requests::RESCHEDULE);
        }
        if enqueued.arm_slice_ns.is_some() {
            requests = requests.and(Requests::TIMER);
        }
        if requests.is_empty() {
            return;
        }
        if !self.post(to, requests) && enqueued.resched {
            // A wake is on its way there already: an idle CPU may come for the second.
            let at = self.situation(self.config.all());
            if let Some(other) = place::second_wake(id(to), &at) {
                self.post(other.index(), Requests::RESCHEDULE);
            }
        }
    }

    /// Posts requests and sends the interrupt if they are fresh; whether they were.
    pub(crate) fn post(&mut self, to: usize, requests: Requests) -> bool {
        if !self.pending[to].post(requests) {
            return false;
        }
        if let Fault::LostIpi(n) = self.config.fault
            && self.rng.one_in(n)
        {
            return true;
        }
        self.report.ipis += 1;
        let ipi_ns = self.config.costs.ipi_ns;
        let at_ns = self.now_ns + ipi_ns + self.rng.below(ipi_ns + 1);
        self.events.push(at_ns, Event::Ipi { cpu: to }, &mut self.rng);
        true
    }
}
