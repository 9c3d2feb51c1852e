//! The driver over a machine whose threads have stacks: what happens in the middle of an operation.
//!
//! One CPU, and a host thread as the stack of each thread; the stack whose turn it is runs, all
//! others stand in [`Machine::switch`]. So code behind a switch runs when the thread does again, which
//! machines of events and models of steps cannot show.

use core_sched::{Charge, CpuId, CpuSet, Error};
use core_sched_policy::{AnyPolicy, PolicyKind, QUANTUM_NS, Share};
use core_thread::{StateWord, ThreadKey, WaitVerdict};
use kernel_dispatch::{self as dispatch, After, Cpu, Here, IdlePath, Machine, Record, Saw, WayOut};
use smp_ipi::{IdleSet, Requests};
use smp_rq::{Node, RunQueue};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex};
use std::thread;

/// What a thread does in the kernel before it goes out to user mode.
type Operation = fn(Stacked, &'static Slot);

/// A thread's record.
struct Slot {
    node: Node,
    word: StateWord,
    number: usize,
}

impl Record for Slot {
    fn node(&self) -> &Node {
        &self.node
    }

    fn state(&self) -> &StateWord {
        &self.word
    }
}

/// Whose stack the CPU is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stack {
    Idle,
    Of(usize),
    /// A thread's operation has panicked: nothing goes on.
    Broken,
    /// All threads have ended, some of them before they ran.
    Over,
}

/// The payload with which the host thread of a stack that is never entered again ends.
struct Gone;

struct World {
    cpus: Vec<Cpu<Stacked>>,
    idle: IdleSet,
    slots: Vec<Slot>,
    turn: Mutex<Stack>,
    has_changed: Condvar,
    /// Whom the CPU left last, and what is to be done for it.
    left: Mutex<Option<(After, &'static Slot)>>,
    live: AtomicUsize,
    clock: AtomicU64,
    is_tick_pending: AtomicBool,
    notes: Mutex<Vec<String>>,
    /// Why it was left for the idle loop each time.
    paths: Mutex<Vec<IdlePath>>,
}

#[derive(Clone, Copy)]
struct Stacked(&'static World);

/// Runs a thread for each operation to its end, and returns what they noted.
fn run(kind: PolicyKind, operations: &[Operation]) -> Vec<String> {
    run_and_idle(kind, operations).0
}

/// The same, with the reasons for which the CPU was left for the idle loop.
fn run_and_idle(kind: PolicyKind, operations: &[Operation]) -> (Vec<String>, Vec<IdlePath>) {
    let cpu = CpuId::new(0).unwrap();
    let slot = |number| Slot {
        node: Node::new(
            ThreadKey { slot: number as u32, generation: 1 }.to_bits(),
            Share::default(),
            cpu,
        ),
        word: StateWord::new(),
        number,
    };
    let queue = RunQueue::ordered_by(cpu, AnyPolicy::new(kind, Default::default()), 0);
    let m = Stacked(Box::leak(Box::new(World {
        cpus: vec![Cpu::new(queue, "the only one")],
        idle: IdleSet::new(),
        slots: (0..operations.len()).map(slot).collect(),
        turn: Mutex::new(Stack::Idle),
        has_changed: Condvar::new(),
        left: Mutex::new(None),
        live: AtomicUsize::new(operations.len()),
        clock: AtomicU64::new(0),
        is_tick_pending: AtomicBool::new(false),
        notes: Mutex::new(Vec::new()),
        paths: Mutex::new(Vec::new()),
    })));
    let start = |(slot, operation): (&'static Slot, &Operation)| {
        slot.word.create().unwrap();
        slot.word.start().unwrap();
        dispatch::enqueue_new(m, slot);
        let operation = *operation;
        thread::spawn(move || m.live_on(slot, operation))
    };
    let stacks: Vec<_> = m.0.slots.iter().zip(operations).map(start).collect();
    while m.0.live.load(SeqCst) > 0 {
        dispatch::turn_of_idle(m);
    }
    m.go(Stack::Over);
    stacks.into_iter().for_each(|stack| stack.join().unwrap());
    m.0.cpus[0].queue.lock().check_invariants().unwrap();
    (m.0.notes.lock().unwrap().clone(), m.0.paths.lock().unwrap().clone())
}

impl Stacked {
    fn note(self, what: impl ToString) {
        self.0.notes.lock().unwrap().push(what.to_string());
    }

    /// The slice is over, and the timer's interrupt waits for interrupts to come on.
    fn tick(self) {
        self.0.clock.fetch_add(2 * QUANTUM_NS, SeqCst);
        self.0.is_tick_pending.store(true, SeqCst);
    }

    /// A stack from its first instruction on.
    fn live_on(self, slot: &'static Slot, operation: Operation) {
        let body = || {
            self.come_back_to(Stack::Of(slot.number));
            operation(self, slot);
            while dispatch::way_out(self, slot) == WayOut::Again {}
            self.note(format!("{} is in user mode", slot.number));
            dispatch::end(self, slot);
        };
        let Err(payload) = catch_unwind(AssertUnwindSafe(body)) else { return };
        if !payload.is::<Gone>() {
            self.go(Stack::Broken);
            resume_unwind(payload);
        }
    }

    fn go(self, to: Stack) {
        *self.0.turn.lock().unwrap() = to;
        self.0.has_changed.notify_all();
    }

    /// Waits until the CPU is on this stack, and finishes the switch that brought it here.
    fn come_back_to(self, own: Stack) {
        let turn = self.0.turn.lock().unwrap();
        let is_not_ours =
            |turn: &mut Stack| *turn != own && !matches!(turn, Stack::Broken | Stack::Over);
        let turn = self.0.has_changed.wait_while(turn, is_not_ours).unwrap();
        if *turn == Stack::Over {
            drop(turn);
            resume_unwind(Box::new(Gone));
        }
        assert_eq!(*turn, own, "another thread's operation has panicked");
        drop(turn);
        let left = self.0.left.lock().unwrap().take();
        if let Some((after, of)) = left {
            dispatch::finish_switch(self, after, of);
        }
    }

    fn leave(self, after: After, of: &'static Slot, next: Option<&'static Slot>) {
        let before = self.0.left.lock().unwrap().replace((after, of));
        assert!(before.is_none(), "a switch within a switch");
        self.go(next.map_or(Stack::Idle, |next| Stack::Of(next.number)));
    }
}

impl Machine for Stacked {
    type Policy = AnyPolicy;
    type Thread = Slot;
    type Own = &'static str;
    type Gone = ();

    fn cpus(self) -> &'static [Cpu<Self>] {
        &self.0.cpus
    }

    fn cpu_here(self) -> &'static Cpu<Self> {
        &self.0.cpus[0]
    }

    fn idle_set(self) -> &'static IdleSet {
        &self.0.idle
    }

    fn online(self) -> CpuSet {
        CpuSet::first_n(1)
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

    fn send_ipi(self, _: &'static Cpu<Self>) {}

    fn serve(self, _: &Here<Self>, _: Requests) {}

    fn has_work(self, _: &Here<Self>) -> bool {
        false
    }

    fn let_interrupts_in(self) {
        if self.0.is_tick_pending.swap(false, SeqCst) {
            dispatch::timer(self, false);
        }
    }

    fn halt(self, _: Here<Self>) {
        panic!("the CPU halts, and {} threads are left", self.0.live.load(SeqCst));
    }

    fn relax(self, _: Here<Self>) {}

    fn switch(self, _: Here<Self>, next: Option<&'static Slot>, after: After, of: &'static Slot) {
        self.leave(after, of, next);
        self.come_back_to(Stack::Of(of.number));
    }

    fn switch_for_good(self, _: Here<Self>, next: Option<&'static Slot>, of: &'static Slot) {
        self.leave(After::End, of, next);
        resume_unwind(Box::new(Gone));
    }

    fn leave_idle(self, _: Here<Self>, next: &'static Slot) {
        self.go(Stack::Of(next.number));
        self.come_back_to(Stack::Idle);
    }

    fn timer_pass(self, _: Here<Self>, _: &'static Slot) {}

    fn reap(self, _: &'static Slot) {
        self.0.live.fetch_sub(1, SeqCst);
    }

    fn charge(self, _: &'static Slot, _: Charge) {}

    fn saw(self, _: &Here<Self>, what: Saw<Slot>) {
        if let Saw::WentIdle(path) = what {
            self.0.paths.lock().unwrap().push(path);
        }
    }

    fn defect(self, what: &'static str) -> ! {
        panic!("defect: {what}")
    }

    fn refused(self, error: Error) -> ! {
        panic!("a queue refuses: {error:?}")
    }
}

/// The operations under both policies leave these notes.
fn expect(operations: &[Operation], notes: &[&str]) {
    for kind in PolicyKind::ALL {
        assert_eq!(run(kind, operations), notes, "{kind:?}");
    }
}

fn other(m: Stacked, _: &'static Slot) {
    m.note("the other");
}

#[test]
fn an_operation_gives_way_at_its_preemption_point_once_its_slice_is_over() {
    let long: Operation = |m, _| {
        dispatch::preemption_point(m);
        m.note("not yet");
        m.tick();
        m.note("over");
        dispatch::preemption_point(m);
        m.note("goes on");
        dispatch::preemption_point(m);
    };
    let notes =
        ["not yet", "over", "the other", "1 is in user mode", "goes on", "0 is in user mode"];
    expect(&[long, other], &notes);
}

#[test]
fn a_preemption_point_of_a_thread_that_is_alone_changes_nothing() {
    let long: Operation = |m, _| {
        m.tick();
        dispatch::preemption_point(m);
        m.note("goes on");
    };
    expect(&[long], &["goes on", "0 is in user mode"]);
}

#[test]
fn a_thread_killed_at_its_preemption_point_ends_its_operation_and_dies_on_its_way_out() {
    let long: Operation = |m, _| {
        m.tick();
        dispatch::preemption_point(m);
        m.note("ends its operation");
    };
    let killer: Operation = |m, _| dispatch::kill(m, &m.0.slots[0], 1);
    expect(&[long, killer], &["1 is in user mode", "ends its operation"]);
}

#[test]
fn before_user_mode_those_go_first_that_are_owed_the_cpu() {
    let owing: Operation = |m, slot| {
        assert!(!dispatch::owes(&Here::now(m)));
        dispatch::before_user(m, Here::now(m), slot);
        m.note("owes nothing");
        m.tick();
        m.let_interrupts_in();
        assert!(dispatch::owes(&Here::now(m)));
        dispatch::before_user(m, Here::now(m), slot);
        assert!(!dispatch::owes(&Here::now(m)));
    };
    let notes = ["owes nothing", "the other", "1 is in user mode", "0 is in user mode"];
    expect(&[owing, other], &notes);
}

#[test]
fn a_thread_that_was_woken_for_this_cpu_is_owed_it() {
    let waits: Operation = |m, slot| {
        assert!(matches!(slot.word.begin_wait().unwrap(), WaitVerdict::AboutToWait(_)));
        dispatch::block(m, slot);
        m.note("woken");
    };
    let wakes: Operation = |m, slot| {
        let waiter = &m.0.slots[0];
        let word = waiter.word.observe();
        assert!(word.is_waiting());
        dispatch::wake(m, waiter, word.generation(), word.ticket(), true);
        assert!(dispatch::owes(&Here::now(m)));
        dispatch::before_user(m, Here::now(m), slot);
        assert!(!dispatch::owes(&Here::now(m)));
        m.note("has woken");
    };
    for kind in PolicyKind::ALL {
        // Which of the two runs first is the policy's to say.
        let mut notes = run(kind, &[waits, wakes]);
        notes.sort();
        assert_eq!(notes, ["0 is in user mode", "1 is in user mode", "has woken", "woken"]);
    }
}

#[test]
fn a_thread_that_yields_goes_behind_the_first_that_waits() {
    let yields: Operation = |m, slot| {
        dispatch::yield_cpu(m, Here::now(m), slot);
        m.note("again");
    };
    expect(&[yields, other], &["the other", "1 is in user mode", "again", "0 is in user mode"]);
    expect(&[yields], &["again", "0 is in user mode"]);
}

/// Kills those that wait behind it, more than a choice takes out of the queue at once: the idle loop goes on with
/// them.
fn kill_four(m: Stacked) {
    (1..=4).for_each(|number| dispatch::kill(m, &m.0.slots[number], 1));
}

#[test]
fn a_cpu_is_idle_by_the_thread_that_left_it() {
    let preempted: Operation = |m, _| {
        kill_four(m);
        m.tick();
        dispatch::preemption_point(m);
    };
    let waits: Operation = |m, slot| {
        kill_four(m);
        assert!(matches!(slot.word.begin_wait().unwrap(), WaitVerdict::AboutToWait(_)));
        dispatch::block(m, slot);
    };
    let wakes: Operation = |m, _| {
        let waiter = &m.0.slots[0];
        let word = waiter.word.observe();
        dispatch::wake(m, waiter, word.generation(), word.ticket(), false);
    };
    for kind in PolicyKind::ALL {
        let ends = run_and_idle(kind, &[other]);
        assert_eq!(ends.1, [IdlePath::Exit]);
        let put_back = run_and_idle(kind, &[preempted, other, other, other, other]);
        assert_eq!(
            put_back,
            (vec!["0 is in user mode".into()], vec![IdlePath::Timer, IdlePath::Exit])
        );
        let (notes, paths) = run_and_idle(kind, &[waits, other, other, other, other, wakes]);
        assert_eq!(notes, ["5 is in user mode", "0 is in user mode"]);
        assert_eq!(paths, [IdlePath::Block, IdlePath::Exit]);
    }
}

#[test]
fn the_machine_finds_its_own_part_of_a_cpu() {
    let looks: Operation = |m, _| m.note(Here::on(m.cpu_here()).own());
    expect(&[looks], &["the only one", "0 is in user mode"]);
}
