//! A machine whose CPUs are threads of a model: the real driver, queues and state words between them.
//!
//! A thread of the machine is a list of steps and has no stack; its stack is a flag that the CPU raises
//! while it is on it. A CPU that halts waits for the flag that an interrupt raises, and sees nothing else.

use abi_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use abi_sync::thread;
use core_sched::{Charge, CpuId, CpuSet, Error};
use core_sched_policy::{AnyPolicy, PolicyKind, QUANTUM_NS, Share, Weight};
use core_thread::{ResumeVerdict, StateWord, ThreadKey, WaitVerdict};
use kernel_dispatch::{self as dispatch, After, Cpu, Defect, Here, Machine, Record, Saw, WayOut};
use smp_ipi::{IdleSet, Requests};
use smp_rq::{Node, RunQueue};
use std::sync::Mutex;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Waits for a token.
    Wait,
    /// Gives a token to a thread and wakes it.
    Wake(usize),
    /// The same, and asks for it to run next here.
    WakeDirectly(usize),
    /// Gives a token to a thread, which runs in its place if it waits, and waits for one itself.
    HandOver(usize),
    /// Lets another run.
    Yield,
    /// The slice ends.
    Tick,
    /// Keeps its CPU until all tokens of a thread have been taken.
    SpinFor(usize),
    /// Kills a thread.
    Kill(usize),
    /// Gives a thread that weight.
    Weigh(usize, u16),
}

/// A thread's record.
pub struct Slot {
    node: Node,
    word: StateWord,
    slot: usize,
    steps: Mutex<Vec<Step>>,
    /// Tokens that were given and not taken, and how many were taken.
    tokens: AtomicU32,
    taken: AtomicU32,
    /// A CPU is on its stack; a CPU runs its steps.
    is_on_stack: AtomicBool,
    is_running: AtomicBool,
    is_dead: AtomicBool,
}

impl Record for Slot {
    fn node(&self) -> &Node {
        &self.node
    }

    fn state(&self) -> &StateWord {
        &self.word
    }
}

/// What a CPU keeps.
pub struct Own {
    /// An interrupt is on its way.
    is_interrupted: AtomicBool,
    left: Mutex<Option<(After, &'static Slot)>>,
}

/// The machine.
pub struct World {
    cpus: Vec<Cpu<Model>>,
    idle: IdleSet,
    slots: Vec<Slot>,
    /// Threads that have not ended.
    live: AtomicUsize,
    clock: AtomicU64,
    defect: Option<Defect>,
}

/// The machine by its place in memory.
#[derive(Clone, Copy)]
pub struct Model(&'static World);

abi_sync::thread_local! {
    static HERE: std::cell::Cell<usize> = std::cell::Cell::new(0);
}

/// Runs threads with these steps on so many CPUs until all of them have ended.
pub fn run(cpus: usize, kind: PolicyKind, threads: &[&[Step]], defect: Option<Defect>) {
    let id = |cpu| CpuId::new(cpu).unwrap();
    let slot = |(slot, steps): (usize, &&[Step])| Slot {
        node: Node::new(
            ThreadKey { slot: slot as u32, generation: 1 }.to_bits(),
            Share::default(),
            id(slot % cpus),
        ),
        word: StateWord::new(),
        slot,
        steps: Mutex::new(steps.iter().rev().copied().collect()),
        tokens: AtomicU32::new(0),
        taken: AtomicU32::new(0),
        is_on_stack: AtomicBool::new(false),
        is_running: AtomicBool::new(false),
        is_dead: AtomicBool::new(false),
    };
    let own = || Own { is_interrupted: AtomicBool::new(false), left: Mutex::new(None) };
    let policy = || AnyPolicy::new(kind, Default::default());
    let world: &'static World = Box::leak(Box::new(World {
        cpus: (0..cpus)
            .map(|cpu| Cpu::new(RunQueue::ordered_by(id(cpu), policy(), 0), own()))
            .collect(),
        idle: IdleSet::new(),
        slots: threads.iter().enumerate().map(slot).collect(),
        live: AtomicUsize::new(threads.len()),
        clock: AtomicU64::new(0),
        defect,
    }));
    let m = Model(world);
    let others: Vec<_> = (1..cpus).map(|cpu| thread::spawn(move || m.cpu(cpu))).collect();
    // The first CPU makes the threads, as a kernel that boots does.
    m.cpu(0);
    others.into_iter().for_each(|other| other.join().unwrap());
    for slot in &world.slots {
        let is_dead = slot.is_dead.load(SeqCst);
        assert!(is_dead && !slot.is_on_stack.load(SeqCst), "a thread is left: {}", slot.slot);
    }
    for cpu in &world.cpus {
        let guard = cpu.queue.lock();
        guard.check_invariants().unwrap();
        assert_eq!(guard.view().hint().waiting, 0, "a dead thread is left in a queue");
    }
}

impl Model {
    fn is_over(self) -> bool {
        self.0.live.load(SeqCst) == 0
    }

    fn cpu(self, cpu: usize) {
        HERE.with(|here| here.set(cpu));
        if cpu == 0 {
            for slot in &self.0.slots {
                slot.word.create().unwrap();
                slot.word.start().unwrap();
                dispatch::enqueue_new(self, slot);
            }
        }
        while !self.is_over() {
            let left = self.0.cpus[cpu].own.left.lock().unwrap().take();
            if let Some((after, of)) = left {
                of.is_on_stack.store(false, SeqCst);
                dispatch::finish_switch(self, after, of);
            }
            match self.0.cpus[cpu].current() {
                Some(slot) => self.go_on(slot),
                None => dispatch::turn_of_idle(self),
            }
        }
    }

    /// The current thread does its next step, if nothing is in its way.
    fn go_on(self, slot: &'static Slot) {
        if self.cpu_here().own.is_interrupted.swap(false, SeqCst) {
            dispatch::interrupt(self);
        }
        if dispatch::way_out(self, slot) == WayOut::Again {
            return;
        }
        assert!(!slot.is_running.swap(true, SeqCst), "a thread runs on two CPUs");
        let step = slot.steps.lock().unwrap().pop();
        slot.is_running.store(false, SeqCst);
        match step {
            None => dispatch::end(self, slot),
            Some(Step::Wait) => self.wait(slot),
            Some(Step::Wake(whom)) => self.wake(whom, false),
            Some(Step::WakeDirectly(whom)) => self.wake(whom, true),
            Some(Step::HandOver(whom)) => self.hand_over(slot, whom),
            Some(Step::Yield) => dispatch::yield_to_first(self, Here::now(self), slot),
            Some(Step::Tick) => {
                self.0.clock.fetch_add(2 * QUANTUM_NS, SeqCst);
                dispatch::timer(self, true);
            }
            Some(Step::SpinFor(whom)) => {
                let other = &self.0.slots[whom];
                if !other.is_dead.load(SeqCst) {
                    slot.steps.lock().unwrap().push(Step::SpinFor(whom));
                    thread::yield_now();
                }
            }
            Some(Step::Kill(whom)) => dispatch::kill(self, &self.0.slots[whom], 1),
            Some(Step::Weigh(whom, weight)) => self.weigh(whom, weight),
        }
    }

    /// Takes a token, if there is one.
    fn take(slot: &'static Slot) -> bool {
        let tokens = slot.tokens.load(SeqCst);
        if tokens == 0 {
            return false;
        }
        // Only the thread itself takes.
        slot.tokens.fetch_sub(1, SeqCst);
        slot.taken.fetch_add(1, SeqCst);
        true
    }

    fn wait(self, slot: &'static Slot) {
        if !self.announce(slot) {
            return;
        }
        slot.steps.lock().unwrap().push(Step::Wait);
        dispatch::block(self, slot);
    }

    /// The thread announces a wait; whether it has to wait: it may have a token, or be dead.
    fn announce(self, slot: &'static Slot) -> bool {
        match slot.word.begin_wait().unwrap() {
            WaitVerdict::AboutToWait(_) => {}
            WaitVerdict::Die => {
                dispatch::end(self, slot);
                return false;
            }
        }
        if !Self::take(slot) {
            return true;
        }
        match slot.word.cancel_wait().unwrap() {
            ResumeVerdict::Resume => {}
            ResumeVerdict::Die => dispatch::end(self, slot),
        }
        false
    }

    /// Gives a token, then looks whether the thread waits.
    fn wake(self, whom: usize, directly: bool) {
        let slot = &self.0.slots[whom];
        slot.tokens.fetch_add(1, SeqCst);
        let word = slot.word.observe();
        if word.is_waiting() {
            dispatch::wake(self, slot, word.generation(), word.ticket(), directly);
        }
    }

    /// Gives a thread a weight, if it is there still; its account then says so, sooner or later, and never goes back.
    fn weigh(self, whom: usize, weight: u16) {
        let (slot, key) = (&self.0.slots[whom], ThreadKey { slot: whom as u32, generation: 1 });
        let weight = Weight::new(weight).unwrap();
        let before = dispatch::account(self, slot, key, || true);
        let change = |share: Share| Share::new(weight, share.class());
        let is_there = dispatch::set_share(self, slot, key, || true, change);
        let after = dispatch::account(self, slot, key, || true);
        assert!(!is_there || before.is_some(), "a thread came back");
        if let (Some(before), Some(after)) = (before, after) {
            let (before, after) = (before.counted, after.counted);
            assert!(after.runtime_ns >= before.runtime_ns, "{before:?} {after:?}");
            assert!(after.virtual_runtime_ns >= before.virtual_runtime_ns);
            assert!(after.runnable_accumulated_ns >= before.runnable_accumulated_ns);
        }
        let stale = ThreadKey { generation: 2, ..key };
        assert!(!dispatch::set_share(self, slot, stale, || true, |share| share));
        assert!(!dispatch::set_share(self, slot, key, || false, |_| unreachable!()));
    }

    fn hand_over(self, slot: &'static Slot, whom: usize) {
        let peer = &self.0.slots[whom];
        if peer.word.claim_if(1, || true).is_err() {
            self.wake(whom, false);
            slot.steps.lock().unwrap().push(Step::Wait);
            return;
        }
        peer.tokens.fetch_add(1, SeqCst);
        match slot.word.begin_wait().unwrap() {
            WaitVerdict::AboutToWait(_) => {}
            WaitVerdict::Die => {
                dispatch::give_back(self, peer);
                return dispatch::end(self, slot);
            }
        }
        slot.steps.lock().unwrap().push(Step::Wait);
        if slot.tokens.load(SeqCst) != 0 {
            dispatch::give_back(self, peer);
            if slot.word.cancel_wait().unwrap() == ResumeVerdict::Die {
                dispatch::end(self, slot);
            }
            return;
        }
        dispatch::hand_over(self, Here::now(self), slot, peer);
    }

    /// The CPU leaves a thread's stack; the next thing it does is to finish the switch.
    fn leave(self, after: After, of: &'static Slot, next: Option<&'static Slot>) {
        let cpu = &self.0.cpus[HERE.with(|here| here.get())];
        let before = cpu.own.left.lock().unwrap().replace((after, of));
        assert!(before.is_none(), "a switch within a switch");
        if let Some(next) = next {
            self.enter(next);
        }
    }

    fn enter(self, next: &'static Slot) {
        assert!(!next.is_on_stack.swap(true, SeqCst), "two CPUs are on one stack");
        assert!(!next.is_dead.load(SeqCst), "a dead thread runs");
    }
}

impl Machine for Model {
    type Policy = AnyPolicy;
    type Thread = Slot;
    type Own = Own;
    type Gone = ();

    fn cpus(self) -> &'static [Cpu<Self>] {
        &self.0.cpus
    }

    fn cpu_here(self) -> &'static Cpu<Self> {
        &self.0.cpus[HERE.with(|here| here.get())]
    }

    fn idle_set(self) -> &'static IdleSet {
        &self.0.idle
    }

    fn online(self) -> CpuSet {
        CpuSet::first_n(self.0.cpus.len())
    }

    fn siblings(self, of: CpuId) -> CpuSet {
        CpuSet::only(of)
    }

    fn thread(self, slot: u32) -> Option<&'static Slot> {
        self.0.slots.get(slot as usize)
    }

    fn clock(self) -> u64 {
        self.0.clock.fetch_add(1, SeqCst)
    }

    fn arm(self, _: &Here<Self>, _: u64, _: u64) {}

    fn expire(self, _: &Here<Self>, _: u64) {}

    fn next_deadline(self, _: &Here<Self>) -> Option<u64> {
        None
    }

    fn send_ipi(self, to: &'static Cpu<Self>) {
        to.own.is_interrupted.store(true, SeqCst);
    }

    fn serve(self, _: &Here<Self>, _: Requests) {}

    fn has_work(self, _: &Here<Self>) -> bool {
        self.is_over()
    }

    fn let_interrupts_in(self) {}

    fn max_sleep_ns(self) -> Option<u64> {
        None
    }

    fn halt(self, here: Here<Self>) {
        while !here.own.is_interrupted.swap(false, SeqCst) && !self.is_over() {
            thread::yield_now();
        }
    }

    fn relax(self, _: Here<Self>) {
        thread::yield_now();
    }

    fn switch(self, _: Here<Self>, next: Option<&'static Slot>, after: After, of: &'static Slot) {
        self.leave(after, of, next);
    }

    fn switch_for_good(self, _: Here<Self>, next: Option<&'static Slot>, of: &'static Slot) {
        self.leave(After::End, of, next);
    }

    fn leave_idle(self, _: Here<Self>, next: &'static Slot) {
        self.enter(next);
    }

    fn timer_pass(self, _: Here<Self>, _: &'static Slot) {}

    fn reap(self, thread: &'static Slot) {
        assert!(!thread.is_on_stack.load(SeqCst), "reaped while a CPU is on its stack");
        assert!(!thread.is_dead.swap(true, SeqCst), "reaped twice");
        self.0.live.fetch_sub(1, SeqCst);
    }

    fn charge(self, _: &'static Slot, _: Charge) {}

    fn saw(self, _: &Here<Self>, _: Saw<Slot>) {}

    fn is_planted(self, defect: Defect) -> bool {
        self.0.defect == Some(defect)
    }

    fn defect(self, what: &'static str) -> ! {
        panic!("defect: {what}")
    }

    fn refused(self, error: Error) -> ! {
        panic!("a queue refuses: {error:?}")
    }
}
