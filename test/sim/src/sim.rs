//! What the driver finds under it: CPUs, time and interrupts that exist only as events.

use crate::cpu::Left;
use crate::event::Event;
use crate::machine::World;
use crate::{Config, Rule};
use abi_sync::Room;
use core_sched::{Charge, CpuId, CpuSet, Entity, Error};
use core_sched_policy::Policy;
use kernel_dispatch::{self as dispatch, After, Defect, Here, Machine, Saw};
use kernel_ops::lines::Lines;
use kernel_ops::machine::{CpuPart, Tables};
use kernel_ops::outlets::Outputs;
use kernel_ops::trace_owner::TraceOwner;
use kernel_ops::{deadlines, enter, expire};
use kernel_process::machine::Worker;
use kernel_process::{Records, Thread, end, spawn};
use smp_ipi::{IdleSet, Requests};
use smp_park::ParkTable;
use smp_ring::Context as _;
use smp_ring_testing::CoroutineContext;
use smp_rq::RunQueue;
use smp_timer::Deadlines;
use std::cell::RefCell;
use std::convert::Infallible;

/// A thread's record.
pub(crate) type Record<P> = Thread<Sim<P>>;

/// Process records beside one for each thread: of those that are being taken apart.
const ENDING_PROCESSES: usize = 32;

/// What the machine keeps of a CPU that the kernel reaches.
pub(crate) struct Own {
    deadlines: Deadlines,
}

impl CpuPart for Own {
    fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }
}

/// All of a machine.
pub(crate) struct Parts<P: Policy + 'static> {
    pub(crate) config: Config,
    pub(crate) cpus: Box<[dispatch::Cpu<Sim<P>>]>,
    pub(crate) idle: IdleSet,
    pub(crate) records: Records<Sim<P>>,
    pub(crate) tables: Tables,
    world: RefCell<World>,
}

pub(crate) fn id(cpu: usize) -> CpuId {
    CpuId::new(cpu).expect("a CPU of the machine")
}

/// Places for so many items.
fn places<T>(most: usize) -> Room<T> {
    Room::of(Box::leak(Box::new_uninit_slice(most)))
}

impl<P: Policy + 'static> Sim<P> {
    /// A machine with room for so many threads beside the reaper, whose CPUs have not begun.
    pub(crate) fn new(config: Config, room: usize, policy: impl Fn() -> P) -> Self {
        let queue = |cpu| RunQueue::ordered_by(id(cpu), policy(), 0);
        let own = |cpu| Own { deadlines: Deadlines::new(cpu as u16) };
        let room = room + 1;
        let parts = Parts {
            config,
            cpus: (0..config.cpus).map(|n| dispatch::Cpu::new(queue(n), own(n))).collect(),
            idle: IdleSet::new(),
            records: Records::new(),
            tables: Tables {
                park: ParkTable::new(places(room), [config.seed, 1]),
                has_fast_path: true,
                outputs: Outputs::new(room + ENDING_PROCESSES).expect("memory for outputs"),
                lines: Lines::new(),
                trace: TraceOwner::new(),
            },
            world: RefCell::new(World::new(&config, room)),
        };
        let sim = Self(Box::leak(Box::new(parts)));
        let processes = places(room + ENDING_PROCESSES);
        assert!(
            sim.0.records.set_rooms(places(room), processes, places(room)),
            "tables get places once"
        );
        // All at once: what the simulator keeps of a thread is by the position of its record.
        let records = &sim.0.records;
        let made: Vec<_> = (0..room).filter_map(|_| records.take_thread(sim)).collect();
        made.into_iter().rev().for_each(|thread| records.give_thread(thread));
        spawn::spawn_worker(sim, Worker::Reaper).expect("memory for a reaper");
        sim
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

    pub(crate) fn record(self, slot: u32) -> &'static Record<P> {
        self.0.records.thread(slot).expect("a record of the machine")
    }

    pub(crate) fn current(self, cpu: usize) -> Option<u32> {
        self.0.cpus[cpu].current().map(Thread::slot)
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
    fn leave(self, after: After, of: &'static Record<P>) {
        let at_ns = self.0.config.costs.switch_ns / 2;
        self.with(|w| {
            let (cpu, slot, now_ns) = (w.here, of.slot(), w.now_ns);
            w.touched.push(slot);
            if w.cpus[cpu].span.is_some_and(|span| span.0 == slot) {
                w.end_span(cpu);
            }
            let state = &mut w.cpus[cpu];
            state.lefts += 1;
            state.left = Some(Left { slot, after, epoch: state.lefts });
            let epoch = state.lefts;
            w.thread(slot).last_cpu = cpu;
            w.push(now_ns + at_ns, Event::Left { cpu, epoch });
        });
    }

    /// First of all on a stack: the CPU has left the one before, if it is about to.
    pub(crate) fn arrive(self) {
        if let Some(left) = self.with(|w| w.cpus[w.here].left.take()) {
            self.with(|w| w.touched.push(left.slot));
            dispatch::finish_switch(self, left.after, self.record(left.slot));
        }
    }

    /// A thread that did not run can run from now on.
    fn ready(self, slot: u32) {
        let newborn = self.with(|w| {
            w.ready(slot);
            let thread = w.thread(slot);
            thread.wakes = thread.newborn.is_none();
            thread.newborn.take()
        });
        // The kernel gives a new thread its weight; its class is the simulator's.
        if let Some(share) = newborn {
            self.set_share(slot, share);
        }
    }

    /// Takes an interrupt, if one is pending; `from_user` says that it interrupts user mode. Others may have come
    /// once the thread is back.
    pub(crate) fn take_interrupt(self, from_user: bool) -> bool {
        let interrupt_ns = self.0.config.costs.interrupt_ns;
        let (is_interrupted, is_late) = self.with(|w| {
            let cpu = &mut w.cpus[w.here];
            let is_interrupted = std::mem::take(&mut cpu.is_interrupted);
            // The timer's comes after the other, if nothing else runs in between.
            let is_late = !is_interrupted && std::mem::take(&mut cpu.timer_fired);
            if is_interrupted || is_late {
                w.pay(interrupt_ns);
            }
            (is_interrupted, is_late)
        });
        if is_interrupted {
            dispatch::interrupt(self);
        }
        if is_late {
            dispatch::timer(self, from_user);
        }
        is_interrupted || is_late
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
            w.end_span(cpu);
            w.cpus[cpu].span = Some((slot, now_ns));
            let thread = &mut w.threads[slot as usize];
            thread.starts += 1;
            thread.wakes = false;
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
            w.touched.push(slot);
            w.report.starts += 1;
            w.report.fingerprint ^= (cpu as u64) << 32 | u64::from(slot);
        });
    }
}

impl<P: Policy + 'static> Machine for Sim<P> {
    type Policy = P;
    type Thread = Record<P>;
    type Own = Own;
    type Gone = Infallible;

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

    fn thread(self, slot: u32) -> Option<&'static Record<P>> {
        self.0.records.thread(slot)
    }

    fn allowed(self, thread: &'static Record<P>) -> CpuSet {
        self.with(|w| w.thread(thread.slot()).mask)
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
        expire::expire(self, here, now_ns);
    }

    fn next_deadline(self, here: &Here<Self>) -> Option<u64> {
        deadlines::next(self, here)
    }

    fn send_ipi(self, to: &'static dispatch::Cpu<Self>) {
        let ipi_ns = self.0.config.costs.ipi_ns;
        self.with(|w| {
            let at_ns = w.now_ns + ipi_ns + w.rng.below(ipi_ns + 1);
            w.push(at_ns, Event::Ipi { cpu: to.id().index() });
        });
    }

    fn serve(self, _: &Here<Self>, _: Requests) {
        self.account_for_the_dead();
        end::wake_reaper(self);
    }

    fn has_work(self, _: &Here<Self>) -> bool {
        false
    }

    fn let_interrupts_in(self) {
        // What is done from outside the machine is not interrupted.
        let runs_here = |thread: &'static Record<P>| thread.ops.home.context().runs_here();
        if self.cpu_here().current().is_some_and(runs_here) {
            while self.take_interrupt(false) {}
        }
    }

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

    fn switch(
        self,
        _: Here<Self>,
        _: Option<&'static Record<P>>,
        after: After,
        of: &'static Record<P>,
    ) {
        self.leave(after, of);
        CoroutineContext::suspend();
        self.arrive();
    }

    fn switch_for_good(
        self,
        _: Here<Self>,
        _: Option<&'static Record<P>>,
        of: &'static Record<P>,
    ) -> Infallible {
        self.leave(After::End, of);
        loop {
            CoroutineContext::suspend();
        }
    }

    /// The idle loop is on no stack of its own: the next thread goes on when this has returned.
    fn leave_idle(self, _: Here<Self>, _: &'static Record<P>) {}

    fn timer_pass(self, _: Here<Self>, thread: &'static Record<P>) {
        enter::timer_pass(self, thread);
    }

    fn reap(self, thread: &'static Record<P>) {
        self.with(|w| w.dead.push(thread.slot()));
        end::reap(self, thread);
    }

    fn charge(self, thread: &'static Record<P>, charge: Charge) {
        thread.charge(charge);
        self.with(|w| w.thread(thread.slot()).charged_ns += charge.elapsed_ns);
    }

    fn saw(self, _: &Here<Self>, what: Saw<Record<P>>) {
        let costs = self.0.config.costs;
        match what {
            Saw::Runs(thread) => return self.began(thread.slot()),
            Saw::Ready(thread) => return self.ready(thread.slot()),
            _ => {}
        }
        self.with(|w| match what {
            Saw::Locked(cpu) => w.pay_lock(cpu.index(), costs.lock_ns),
            Saw::Glanced(cpus) => w.pay(costs.glance_ns * cpus as u64),
            Saw::Requeued(thread) => w.ready(thread.slot()),
            Saw::Queued(thread, _) => {
                let now_ns = w.now_ns;
                w.touched.push(thread.slot());
                if std::mem::take(&mut w.thread(thread.slot()).wakes) {
                    w.pay(costs.wake_ns);
                }
                let thread = w.thread(thread.slot());
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
            | Saw::Ready(_)
            | Saw::Preempted
            | Saw::PlacedBusy
            | Saw::SkippedIpi
            | Saw::TimerFired
            | Saw::WentIdle(_)
            | Saw::Halts { .. } => {}
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
