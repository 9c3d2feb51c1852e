//! Queues, places and virtual time: what a switch, a wake and a look around cost.

use core_sched::place::{Situation, new_thread, woken};
use core_sched::{CpuId, CpuSet, MayRun, Requeue, balance};
use core_sched_policy::{PolicyKind, Share, Weight};
use smp_ipi::{IdleSet, Pending, Requests};
use smp_rq::{Next, Node, RunQueue};
use std::hint::black_box;

use crate::Bench;

/// Time between two operations, in ns: a slice, so that whoever runs has had its turn.
const STEP_NS: u64 = 10_000_000;

fn cpu(number: usize) -> CpuId {
    CpuId::new(number).unwrap()
}

fn node(number: u64) -> &'static Node {
    let weight = Weight::new(1 + (number * 37 % 1024) as u16).unwrap();
    Box::leak(Box::new(Node::new(number, Share::new(weight, Default::default()), cpu(0))))
}

/// Times each.
pub fn run(bench: &Bench) {
    for kind in PolicyKind::ALL {
        for threads in [10, 10_000] {
            queue(bench, kind, threads);
        }
        hand_off(bench, kind);
    }
    look_around(bench);
    place(bench);
    share(bench);
}

fn queue(bench: &Bench, kind: PolicyKind, threads: u64) {
    let queue = RunQueue::with_policy(cpu(0), kind, 0);
    for number in 0..threads {
        let _ = queue.lock().wake(node(number), 0).unwrap();
    }
    let mut now_ns = 0;
    let kind = kind.name();
    bench.run(&format!("sched ({kind}): requeue and choose beside {threads}"), |_| {
        now_ns += STEP_NS;
        let mut guard = queue.lock();
        if let Some(current) = guard.view().current() {
            let requeued =
                guard.with(current.0, |q, i, e| q.requeue(i, e, Requeue::Preempted, now_ns));
            let _ = black_box(requeued.unwrap());
        }
        let Next::Run(..) = black_box(guard.next(now_ns, |_| MayRun::Yes).unwrap()) else {
            panic!("there is always one to run")
        };
    });
    let sleeper = node(threads);
    bench.run(&format!("sched ({kind}): wake and set aside beside {threads}"), |_| {
        now_ns += 1;
        let mut guard = queue.lock();
        let _ = black_box(guard.wake(sleeper, now_ns).unwrap());
        let aside = guard.with(sleeper, |q, i, e| q.set_aside(i, e, now_ns));
        black_box(aside).unwrap();
    });
}

fn hand_off(bench: &Bench, kind: PolicyKind) {
    let queue = RunQueue::with_policy(cpu(0), kind, 0);
    let (mut client, mut server) = (node(0), node(1));
    let _ = queue.lock().wake(client, 0).unwrap();
    let Next::Run(..) = queue.lock().next(0, |_| MayRun::Yes).unwrap() else { panic!("one waits") };
    let mut now_ns = 0;
    bench.run(&format!("sched ({}): hand off to a peer", kind.name()), |_| {
        now_ns += 1;
        let _ = black_box(queue.lock().hand_off(client, server, now_ns).unwrap());
        std::mem::swap(&mut client, &mut server);
    });
}

fn look_around(bench: &Bench) {
    for cpus in [2, 128] {
        let queues: Vec<RunQueue<'static>> =
            (0..cpus).map(|number| RunQueue::new(cpu(number), 0)).collect();
        let last = cpu(cpus - 1);
        let crowd: &'static Node = Box::leak(Box::new(Node::new(7, Share::default(), last)));
        let _ = queues[last.index()].lock().wake(crowd, 0).unwrap();
        let set = CpuSet::first_n(cpus);
        bench.run(&format!("sched: look for a victim among {cpus} CPUs"), |_| {
            let _ = black_box(balance::victim(cpu(0), set, |at| queues[at.index()].hint()));
        });
    }
}

fn place(bench: &Bench) {
    let at = |idle| Situation {
        allowed: CpuSet::first_n(128),
        idle: CpuSet::from_bits(idle),
        pending: CpuSet::EMPTY,
    };
    for (name, idle) in [("its own CPU is idle", 2), ("another one is", 1 << 100), ("none is", 0)] {
        let situation = at(idle);
        bench.run(&format!("sched: place a woken thread, {name}"), |_| {
            let _ = black_box(woken(cpu(1), black_box(&situation)));
        });
    }
    let siblings = |cpu: CpuId| CpuSet::from_bits(3 << (cpu.index() / 2 * 2));
    let situation = at(u128::MAX / 3);
    bench.run("sched: place a new thread, half of each core idle", |_| {
        let _ = black_box(new_thread(cpu(1), black_box(&situation), siblings));
    });
    let (pending, idle) = (Pending::new(), IdleSet::new());
    bench.run("ipi: post a request and take it", |_| {
        black_box(pending.post(Requests::RESCHEDULE));
        let _ = black_box(pending.take());
    });
    bench.run("ipi: announce an idle CPU, look for it, retract", |n| {
        idle.announce(n as usize % 128);
        let _ = black_box(idle.seek());
        idle.retract(n as usize % 128);
    });
}

fn share(bench: &Bench) {
    let share = Share::new(Weight::new(100).unwrap(), Default::default());
    bench.run("sched_policy: virtual time of a slice", |n| {
        let _ = black_box(black_box(&share).step(STEP_NS + n, 7));
    });
}
