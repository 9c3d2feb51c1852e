//! What the driver finds under it: CPUs, time, interrupts and stacks that exist only as events.

use crate::cpu::Left;
use crate::event::Event;
use crate::machine::World;
use crate::{Config, Rule};
use core_sched::{Charge, CpuId, CpuSet, Entity, Error};
use core_sched_policy::{LatencyClass, Policy, Share, Weight};
use core_thread::{StateWord, ThreadKey};
use core_timer::Timer;
use kernel_dispatch::{self as dispatch, After, Defect, Here, Machine, Record, Saw};
use smp_ipi::{IdleSet, Requests};
use smp_rq::{Node, RunQueue};
use std::cell::RefCell;

/// A thread's record, as much of it as the driver reaches.
pub(crate) struct Slot {
    pub(crate) node: Node,
    pub(crate) word: StateWord,
    pub(crate) slot: u32,
}

impl Record for Slot {
    fn node(&self) -> &Node {
        &self.node
    }

    fn state(&self) -> &StateWord {
        &self.word
    }
}

/// All of a machine.
pub(crate) struct Parts<P: Policy + 'static> {
    pub(crate) config: Config,
    pub(crate) cpus: Box<[dispatch::Cpu<Sim<P>>]>,
    pub(crate) idle: IdleSet,
    pub(crate) slots: Box<[Slot]>,
    pub(crate) timers: Box<[Timer]>,
    world: RefCell<World>,
}

pub(crate) fn id(cpu: usize) -> CpuId {
    CpuId::new(cpu).expect("a CPU of the machine")
}

impl<P: Policy + 'static> Parts<P> {
    pub(crate) fn new(config: Config, room: usize, policy: impl Fn() -> P) -> Self {
        let share = Share::new(Weight::DEFAULT, LatencyClass::Normal);
        let node = |slot: u32| {
            let key = ThreadKey { slot, generation: 1 };
            Node::new(key.to_bits(), share, id(0))
        };
        let queue = |cpu| RunQueue::ordered_by(id(cpu), policy(), 0);
        Self {
            config,
            cpus: (0..config.cpus).map(|cpu| dispatch::Cpu::new(queue(cpu), ())).collect(),
            idle: IdleSet::new(),
            slots: (0..room as u32)
                .map(|slot| Slot { node: node(slot), word: StateWord::new(), slot })
                .collect(),
            timers: (0..room).map(|_| Timer::new()).collect(),
            world: RefCell::new(World::new(&config, room)),
        }
    }
}

/// A machine by its place in memory.
pub(crate) struct Sim<P: Policy + 'static>(pub(crate) &'static Parts<P>);

impl<P: Policy + 'static> Clone for Sim<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Policy + 'static> Copy for Sim<P> {}

impl<P: Policy + 'static> Sim<P> {
    /// Looks at or changes the world; nothing of the driver runs meanwhile.
    pub(crate) fn with<R>(self, f: impl FnOnce(&mut World) -> R) -> R {
        f(&mut self.0.world.borrow_mut())
    }

    pub(crate) fn now_ns(self) -> u64 {
        self.with(|w| w.now_ns)
    }

    pub(crate) fn record(self, slot: u32) -> &'static Slot {
        &self.0.slots[slot as usize]
    }

    pub(crate) fn current(self, cpu: usize) -> Option<u32> {
        self.0.cpus[cpu].current().map(|record| record.slot)
    }

    pub(crate) fn home(self, slot: u32) -> usize {
        self.record(slot).node.home().expect("a node has a home").index()
    }

    pub(crate) fn entity(self, slot: u32) -> Entity {
        let node = &self.record(slot).node;
        let queue_of = |cpu: CpuId| self.0.cpus.get(cpu.index()).map(|cpu| &cpu.queue);
        let guard = smp_rq::lock_home_by(queue_of, node);
        let read = guard
            .ok_or(Error::NotHere)
            .and_then(|mut guard| guard.with(node, |_, _, entity| Ok(*entity)));
        self.must("reading a thread at its home", read)
    }

    /// A thread leaves the CPU whose step it is; what follows for it comes when the stack is left.
    fn leave(self, after: After, of: &'static Slot) {
        let at_ns = self.0.config.costs.switch_ns / 2;
        self.with(|w| {
            let (cpu, slot, now_ns) = (w.here, of.slot, w.now_ns);
            w.touched.push(slot);
            if let Some(trace) = &mut w.trace {
                trace.span(cpu, slot, w.cpus[cpu].span_ns, now_ns);
            }
            let state = &mut w.cpus[cpu];
            state.lefts += 1;
            state.left = Some(Left { slot, after, epoch: state.lefts });
            let epoch = state.lefts;
            w.thread(slot).last_cpu = cpu;
            w.push(now_ns + at_ns, Event::Left { cpu, epoch });
        });
    }

    /// A thread is on the CPU whose step it is from now on.
    fn began(self, slot: u32) {
        self.check_stack(slot);
        self.check_wait(slot);
        let costs = self.0.config.costs;
        self.with(|w| {
            let cpu = w.here;
            let now_ns = w.now_ns;
            if let Some(since_ns) = w.cpus[cpu].idle_since_ns.take() {
                w.cpus[cpu].was_idle_ns = (since_ns, now_ns);
            }
            let thread = &mut w.threads[slot as usize];
            thread.starts += 1;
            let mut extra_ns = 0;
            if thread.last_cpu != cpu {
                extra_ns += costs.migration_ns;
            }
            if thread.process != w.cpus[cpu].process {
                extra_ns += costs.space_ns;
            }
            thread.last_cpu = cpu;
            let state = &mut w.cpus[cpu];
            state.process = thread.process;
            state.overhead_ns += extra_ns;
            state.since_ns = now_ns;
            state.span_ns = now_ns;
            w.touched.push(slot);
            w.report.starts += 1;
            w.report.fingerprint ^= (cpu as u64) << 32 | u64::from(slot);
        });
    }
}

impl<P: Policy + 'static> Machine for Sim<P> {
    type Policy = P;
    type Thread = Slot;
    type Own = ();
    type Gone = ();

    fn cpus(self) -> &'static [dispatch::Cpu<Self>] {
        &self.0.cpus
    }

    fn cpu_here(self) -> &'static dispatch::Cpu<Self> {
        &self.0.cpus[self.with(|w| w.here)]
    }

    fn idle_set(self) -> &'static IdleSet {
        &self.0.idle
    }

    fn online(self) -> CpuSet {
        self.0.config.all()
    }

    fn siblings(self, of: CpuId) -> CpuSet {
        self.0.config.siblings(of)
    }

    fn thread(self, slot: u32) -> Option<&'static Slot> {
        self.0.slots.get(slot as usize)
    }

    fn allowed(self, thread: &'static Slot) -> CpuSet {
        self.with(|w| w.thread(thread.slot).mask)
    }

    fn balances(self) -> bool {
        self.0.config.balances
    }

    fn clock(self) -> u64 {
        self.now_ns()
    }

    fn arm(self, here: &Here<Self>, now_ns: u64, at_ns: u64) {
        let cpu = here.id().index();
        self.with(|w| {
            let state = &mut w.cpus[cpu];
            if state.armed_ns.is_none_or(|armed_ns| at_ns < armed_ns) {
                state.timer_epoch += 1;
                state.armed_ns = Some(at_ns);
                let epoch = state.timer_epoch;
                w.push(at_ns.max(now_ns), Event::OneShot { cpu, epoch });
            }
        });
    }

    fn expire(self, here: &Here<Self>, now_ns: u64) {
        let cpu = here.id().index();
        while let Some(expired) =
            self.with(|w| w.deadlines[cpu].pop_expired(&self.0.timers, now_ns))
        {
            let slot = expired.index;
            let (generation, ticket) =
                self.with(|w| (w.thread(slot).generation, w.thread(slot).ticket));
            if let Some(ticket) = ticket {
                self.wake(slot, generation, ticket);
            }
        }
        if let Some(at_ns) = self.next_deadline(here) {
            self.arm(here, now_ns, at_ns);
        }
    }

    fn next_deadline(self, here: &Here<Self>) -> Option<u64> {
        self.with(|w| w.deadlines[here.id().index()].next_deadline_ns(&self.0.timers))
    }

    fn send_ipi(self, to: &'static dispatch::Cpu<Self>) {
        let ipi_ns = self.0.config.costs.ipi_ns;
        self.with(|w| {
            let at_ns = w.now_ns + ipi_ns + w.rng.below(ipi_ns + 1);
            w.push(at_ns, Event::Ipi { cpu: to.id().index() });
        });
    }

    fn serve(self, _: &Here<Self>, _: Requests) {}

    fn has_work(self, _: &Here<Self>) -> bool {
        false
    }

    fn let_interrupts_in(self) {}

    fn max_sleep_ns(self) -> Option<u64> {
        self.0.config.max_sleep_ns
    }

    fn halt(self, here: Here<Self>) {
        let latest_ns = self.max_sleep_ns().map_or(u64::MAX, |most_ns| self.now_ns() + most_ns);
        let wakes_ns = self.with(|w| w.cpus[here.id().index()].armed_ns.unwrap_or(u64::MAX));
        if wakes_ns > latest_ns {
            self.fail(Rule::Asleep, format!("until {wakes_ns} ns, it may until {latest_ns}"));
        }
        self.with(|w| {
            let now_ns = w.now_ns;
            let state = &mut w.cpus[here.id().index()];
            state.rests = true;
            state.idle_since_ns.get_or_insert(now_ns);
        });
    }

    fn relax(self, here: Here<Self>) {
        let cpu = here.id().index();
        let at_ns = self.0.config.costs.switch_ns;
        self.with(|w| {
            let now_ns = w.now_ns;
            let state = &mut w.cpus[cpu];
            state.rests = true;
            state.idle_since_ns.get_or_insert(now_ns);
            if !std::mem::replace(&mut state.looks, true) {
                w.push(now_ns + at_ns, Event::Look { cpu });
            }
        });
    }

    fn switch(self, _: Here<Self>, _: Option<&'static Slot>, after: After, of: &'static Slot) {
        self.leave(after, of);
    }

    fn switch_for_good(self, _: Here<Self>, _: Option<&'static Slot>, of: &'static Slot) {
        self.leave(After::End, of);
    }

    fn leave_idle(self, _: Here<Self>, _: &'static Slot) {}

    fn timer_pass(self, _: Here<Self>, _: &'static Slot) {}

    fn reap(self, thread: &'static Slot) {
        self.with(|w| w.dead.push(thread.slot));
    }

    fn charge(self, thread: &'static Slot, charge: Charge) {
        self.with(|w| w.thread(thread.slot).charged_ns += charge.elapsed_ns);
    }

    fn saw(self, _: &Here<Self>, what: Saw<Slot>) {
        let costs = self.0.config.costs;
        if let Saw::Runs(thread) = what {
            return self.began(thread.slot);
        }
        self.with(|w| match what {
            Saw::Locked(cpu) => w.pay_lock(cpu.index(), costs.lock_ns),
            Saw::Glanced(cpus) => w.pay(costs.glance_ns * cpus as u64),
            Saw::Ready(thread) | Saw::Requeued(thread) => w.ready(thread.slot),
            Saw::Queued(thread, _) => {
                let now_ns = w.now_ns;
                w.touched.push(thread.slot);
                let thread = w.thread(thread.slot);
                thread.arrived_ns = now_ns;
                thread.least_weight = thread.least_weight.min(thread.weight);
            }
            Saw::Exchanged => w.report.exchanges += 1,
            Saw::Switched => w.pay(costs.switch_ns),
            Saw::Stole(_) => w.report.steals += 1,
            Saw::Balanced(_) => w.report.pushes += 1,
            Saw::PlacedElsewhere => w.report.moved_wakes += 1,
            Saw::WokeEarly => w.report.early_wakes += 1,
            Saw::HandedOver => {
                w.pay(costs.switch_ns / 2);
                w.report.hand_offs += 1;
            }
            Saw::Offered => w.report.hand_offs += 1,
            Saw::HandOverMissed => w.report.missed_hand_offs += 1,
            Saw::SentIpi => w.report.ipis += 1,
            Saw::Runs(_)
            | Saw::Waiting(_)
            | Saw::Preempted
            | Saw::PlacedBusy
            | Saw::SkippedIpi
            | Saw::TimerFired
            | Saw::Halts => {}
        });
    }

    fn is_planted(self, defect: Defect) -> bool {
        self.0.config.fault.is(defect) && self.with(|w| w.rng.one_in(self.0.config.fault.one_in()))
    }

    fn defect(self, what: &'static str) -> ! {
        self.fail(Rule::Invariant, what)
    }

    fn refused(self, error: Error) -> ! {
        self.fail(Rule::Refused, format!("a queue refuses: {error:?}"))
    }
}
