//! What enqueue and pick cost as the queue grows, in instructions executed.
//!
//! The CPU's single-step flag traps after each instruction (Intel SDM vol. 3, 18.3.1.4), and
//! the handler counts: the figure is exact and the same on every run.
use core_sched::{CpuId, CpuSet, MayRun, Requeue, balance};
use core_sched_policy::{AnyPolicy, Eevdf, Policy, PolicyKind, Share, Weight, Wfq};
use smp_rq::{Next, Node, RunQueue};
use std::arch::asm;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);
/// One count at a time.
static COUNTING: Mutex<()> = Mutex::new(());

unsafe extern "C" {
    fn signal(number: i32, handler: usize) -> usize;
}

extern "C" fn count_one(_: i32) {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

fn instructions(f: impl FnOnce()) -> u64 {
    const SIGTRAP: i32 = 5;
    let _alone = COUNTING.lock().unwrap();
    COUNT.store(0, Ordering::Relaxed);
    // SAFETY: the handler only adds to an atomic.
    unsafe { signal(SIGTRAP, count_one as *const () as usize) };
    // SAFETY: sets the single-step flag, which changes no register and no memory of ours.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    f();
    // SAFETY: clears it.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
    COUNT.load(Ordering::Relaxed)
}

/// Mean over many switches (requeue the current thread, choose the next) with `threads` queued.
fn switch_cost<P: Policy>(threads: u64, policy: P) -> u64 {
    let home = CpuId::new(0).unwrap();
    let queue = RunQueue::ordered_by(home, policy, 0);
    let mut now_ns = 0;
    for n in 0..=threads {
        let weight = Weight::new(1 + (n * 37 % 1024) as u16).unwrap();
        let share = Share::new(weight, Default::default());
        let node: &'static Node = Box::leak(Box::new(Node::new(n, share, home)));
        let _ = queue.lock().wake(node, now_ns).unwrap();
    }
    let switch = |now_ns: u64| {
        let mut guard = queue.lock();
        if let Some(current) = guard.view().current() {
            let _ = guard
                .with(current.0, |q, i, e| q.requeue(i, e, Requeue::Preempted, now_ns))
                .unwrap();
        }
        let Next::Run(..) = guard.next(now_ns, |_| MayRun::Yes).unwrap() else {
            panic!("there is always one to run")
        };
    };
    const SWITCHES: u64 = 12;
    for _ in 0..3 * threads.min(1000) {
        now_ns += 10_000_000;
        switch(now_ns);
    }
    let mut sum = 0;
    for _ in 0..SWITCHES {
        now_ns += 10_000_000;
        sum += instructions(|| switch(now_ns));
    }
    queue.lock().check_invariants().unwrap();
    sum / SWITCHES
}

/// An idle CPU looks for a victim among `cpus` and takes a thread, with `threads` waiting there.
fn steal_cost(cpus: usize, threads: u64) -> u64 {
    let id = |n| CpuId::new(n).unwrap();
    let queues: Vec<RunQueue<'static>> = (0..cpus).map(|n| RunQueue::new(id(n), 0)).collect();
    let victim = cpus - 1;
    for n in 0..threads {
        let node: &'static Node = Box::leak(Box::new(Node::new(n, Share::default(), id(victim))));
        let _ = queues[victim].lock().wake(node, n).unwrap();
    }
    instructions(|| {
        let hint = |cpu: CpuId| queues[cpu.index()].hint();
        let from = balance::victim(id(0), CpuSet::first_n(cpus), hint).unwrap();
        let mut source = queues[from.index()].lock();
        let item = source.view().to_steal(|_| true).unwrap();
        let lag = source.send(item.0, id(0), threads).unwrap();
        drop(source);
        let _ = queues[0].lock().with(item.0, |q, i, e| q.enqueue(i, e, lag, threads)).unwrap();
    })
}

/// A caller hands the CPU to its server and back, with `threads` waiting; one way.
fn hand_off_cost(threads: u64, kind: PolicyKind) -> u64 {
    let home = CpuId::new(0).unwrap();
    let queue = RunQueue::with_policy(home, kind, 0);
    let node = |n| -> &'static Node { Box::leak(Box::new(Node::new(n, Share::default(), home))) };
    let (client, server) = (node(0), node(1));
    let _ = queue.lock().wake(client, 0).unwrap();
    let Next::Run(..) = queue.lock().next(0, |_| MayRun::Yes).unwrap() else { panic!("one waits") };
    for n in 0..threads {
        let _ = queue.lock().wake(node(2 + n), 0).unwrap();
    }
    let _ = queue.lock().hand_off(client, server, 1_000).unwrap();
    instructions(|| {
        let _ = queue.lock().hand_off(server, client, 2_000).unwrap();
    })
}

/// The current thread yields to the first of `threads` that wait.
fn yield_cost(threads: u64) -> u64 {
    let home = CpuId::new(0).unwrap();
    let queue = RunQueue::new(home, 0);
    for n in 0..=threads {
        let node: &'static Node = Box::leak(Box::new(Node::new(n, Share::default(), home)));
        let _ = queue.lock().wake(node, n).unwrap();
    }
    let mut now_ns = threads;
    let Next::Run(first, _) = queue.lock().next(now_ns, |_| MayRun::Yes).unwrap() else {
        panic!("they wait");
    };
    let mut current = first.0;
    let mut most = 0;
    for _ in 0..12 {
        now_ns += 1_000;
        let from = current;
        most = most.max(instructions(|| {
            let mut guard = queue.lock();
            let turn = guard.turn(from).unwrap();
            current = turn.node();
            let _ = turn.take(now_ns);
        }));
    }
    queue.lock().check_invariants().unwrap();
    most
}

fn say(line: String) {
    // Not by println, which a passing test swallows.
    std::io::stderr().write_all((line + "\n").as_bytes()).unwrap();
}

#[test]
fn a_steal_depends_on_cpus_and_not_on_threads() {
    let [few, many, wide] = [steal_cost(2, 10), steal_cost(2, 10_000), steal_cost(128, 10)];
    say(format!("steal: {few} instructions, {many} of 10,000 threads, {wide} of 128 CPUs"));
    assert!(many <= 2 * few, "{many} > 2 × {few}");
    assert!(wide <= few + 126 * 50, "a look at a CPU costs little: {wide}");
}

#[test]
fn a_hand_off_does_not_depend_on_threads() {
    for kind in PolicyKind::ALL {
        let (few, many) = (hand_off_cost(10, kind), hand_off_cost(10_000, kind));
        say(format!("hand-off, {}: {few} instructions, {many} at 10,000", kind.name()));
        assert!(many <= few + few / 10, "{many} for {few}");
    }
}

#[test]
fn a_yield_to_one_other_touches_no_tree() {
    let [one, ten, many] = [1, 10, 10_000].map(|n| yield_cost(n));
    say(format!("yield to one: {one} instructions, to one of 10: {ten}, of 10,000: {many}"));
    assert!(one > 50, "the count works: {one}");
    assert!(one < ten, "{one} for one, {ten} for ten");
    assert!(many <= 2 * ten, "{many} > 2 × {ten}");
}

fn any(kind: PolicyKind) -> AnyPolicy {
    AnyPolicy::new(kind, Default::default())
}

fn check(what: &str, ten: u64, many: u64) {
    say(format!("switch, {what}: {ten} instructions at 10 threads, {many} at 10,000"));
    assert!(ten > 50, "the count works: {ten}");
    assert!(many <= 2 * ten, "{what}: {many} > 2 × {ten}");
}

#[test]
fn ten_thousand_threads_cost_at_most_twice_what_ten_do() {
    check("wfq alone", switch_cost(10, Wfq::default()), switch_cost(10_000, Wfq::default()));
    check("eevdf alone", switch_cost(10, Eevdf::default()), switch_cost(10_000, Eevdf::default()));
    for kind in PolicyKind::ALL {
        check(kind.name(), switch_cost(10, any(kind)), switch_cost(10_000, any(kind)));
    }
}
