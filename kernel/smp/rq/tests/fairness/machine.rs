//! The machine: queues, threads that run and sleep, and time that goes from event to event.

use core_sched::place::{Situation, woken};
use core_sched::{CpuId, CpuSet, Entity, MayRun, Requeue, Snapshot, balance};
use core_sched_policy::{Lag, LatencyClass, PolicyKind, QUANTUM_NS, Share, Weight};
use smp_rq::{Next, Node, RunQueue, lock_home};

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000 * MS;

pub fn cpu(n: usize) -> CpuId {
    CpuId::new(n).unwrap()
}

pub fn share(weight: u16, class: LatencyClass) -> Share {
    Share::new(Weight::new(weight).unwrap(), class)
}

pub fn normal(weight: u16) -> Share {
    share(weight, LatencyClass::Normal)
}

/// What a thread does, for ever.
#[derive(Clone, Copy)]
pub enum Does {
    Run,
    RunThenSleep {
        run_ns: u64,
        sleep_ns: u64,
    },
    /// Runs, then hands the CPU to its peer and waits for it to hand back.
    CallPeer {
        run_ns: u64,
        peer: usize,
    },
}

pub struct Thread {
    pub node: &'static Node,
    pub does: Does,
    pub weight: u64,
    /// Running time left in this burst.
    pub burst_ns: u64,
    pub wake_at_ns: Option<u64>,
    pub ready_at_ns: u64,
    pub waits_ns: Vec<u64>,
}

pub struct Machine {
    pub queues: Vec<RunQueue<'static>>,
    pub current: Vec<Option<(usize, u64)>>,
    pub slice_end_ns: Vec<Option<u64>>,
    pub threads: Vec<Thread>,
    pub now_ns: u64,
    pub balances: bool,
}

impl Machine {
    pub fn new(kind: PolicyKind, cpus: usize) -> Self {
        Self {
            queues: (0..cpus).map(|n| RunQueue::with_policy(cpu(n), kind, 0)).collect(),
            current: vec![None; cpus],
            slice_end_ns: vec![None; cpus],
            threads: Vec::new(),
            now_ns: 0,
            balances: true,
        }
    }

    pub fn spawn(&mut self, on: usize, share: Share, does: Does) -> usize {
        let id = self.threads.len();
        let node = Box::leak(Box::new(Node::new(id as u64, share, cpu(on))));
        let burst_ns = match does {
            Does::Run => u64::MAX,
            Does::RunThenSleep { run_ns, .. } | Does::CallPeer { run_ns, .. } => run_ns,
        };
        self.threads.push(Thread {
            node,
            does,
            weight: u64::from(share.weight().get()),
            burst_ns,
            wake_at_ns: None,
            ready_at_ns: self.now_ns,
            waits_ns: Vec::new(),
        });
        id
    }

    pub fn start(&mut self, id: usize) {
        let on = self.threads[id].node.home().unwrap().index();
        self.arrive(id, on, Lag::ZERO);
    }

    pub fn hogs(&mut self, on: usize, shares: &[Share]) -> Vec<usize> {
        shares
            .iter()
            .map(|&s| {
                let id = self.spawn(on, s, Does::Run);
                self.start(id);
                id
            })
            .collect()
    }

    pub fn entity(&self, id: usize) -> Entity {
        let node = self.threads[id].node;
        lock_home(&self.queues, node).unwrap().with(node, |_, _, e| Ok(*e)).unwrap()
    }

    pub fn snapshot(&self, id: usize) -> Snapshot {
        self.entity(id).snapshot()
    }

    pub fn runtimes(&mut self, ids: &[usize]) -> Vec<u64> {
        for on in 0..self.queues.len() {
            if let Some((id, _)) = self.current[on] {
                self.settle_burst(on);
                let node = self.threads[id].node;
                let now_ns = self.now_ns;
                let _ = self.queues[on]
                    .lock()
                    .with(node, |q, i, e| q.charge(i, e, e.authority(), now_ns))
                    .unwrap();
            }
        }
        ids.iter().map(|&id| self.snapshot(id).runtime_ns).collect()
    }

    pub fn settle_burst(&mut self, on: usize) {
        if let Some((id, since_ns)) = &mut self.current[on] {
            let ran_ns = self.now_ns - *since_ns;
            *since_ns = self.now_ns;
            let thread = &mut self.threads[*id];
            if thread.burst_ns != u64::MAX {
                thread.burst_ns -= ran_ns;
            }
        }
    }

    pub fn arrive(&mut self, id: usize, on: usize, lag: Lag) {
        let node = self.threads[id].node;
        let now_ns = self.now_ns;
        let verdict = self.queues[on]
            .lock()
            .with(node, |q, item, e| q.enqueue(item, e, lag, now_ns))
            .unwrap();
        if let Some(end) = verdict.arm_slice_ns {
            self.slice_end_ns[on] = Some(end);
        }
        if verdict.resched {
            self.preempt(on);
        }
    }

    pub fn wake(&mut self, id: usize) {
        self.threads[id].ready_at_ns = self.now_ns;
        self.threads[id].wake_at_ns = None;
        let node = self.threads[id].node;
        let home = node.home().unwrap();
        let mut idle = CpuSet::EMPTY;
        for (n, current) in self.current.iter().enumerate() {
            if current.is_none() {
                idle = idle.with(cpu(n));
            }
        }
        let allowed = CpuSet::first_n(self.queues.len());
        let to = woken(home, &Situation { allowed, idle, pending: CpuSet::EMPTY }).unwrap();
        let lag = lock_home(&self.queues, node).unwrap().send(node, to, self.now_ns).unwrap();
        self.arrive(id, to.index(), lag);
    }

    pub fn preempt(&mut self, on: usize) {
        self.settle_burst(on);
        if let Some((id, _)) = self.current[on].take() {
            let node = self.threads[id].node;
            let now_ns = self.now_ns;
            let _ = self.queues[on]
                .lock()
                .with(node, |q, i, e| q.requeue(i, e, Requeue::Preempted, now_ns))
                .unwrap();
            self.threads[id].ready_at_ns = now_ns;
        }
        self.choose(on);
    }

    pub fn choose(&mut self, on: usize) {
        for _ in 0..2 {
            let next = self.queues[on].lock().next(self.now_ns, |_| MayRun::Yes).unwrap();
            match next {
                Next::Run(item, started) => {
                    let id = item.0.thread() as usize;
                    self.began(on, id);
                    self.slice_end_ns[on] = started.slice_end_ns;
                    return;
                }
                Next::Refused(..) => unreachable!(),
                Next::Idle => {
                    self.slice_end_ns[on] = None;
                    if !self.steal(on) {
                        return;
                    }
                }
            }
        }
    }

    pub fn began(&mut self, on: usize, id: usize) {
        self.current[on] = Some((id, self.now_ns));
        let total: u64 = self.threads.iter().map(|t| t.weight).sum();
        let thread = &mut self.threads[id];
        let waited_ns = self.now_ns - thread.ready_at_ns;
        thread.waits_ns.push(waited_ns);
        let bound_ns = total * QUANTUM_NS * 8 / thread.weight;
        assert!(waited_ns <= bound_ns, "thread {id} waited {waited_ns} ns, bound {bound_ns}");
    }

    pub fn steal(&mut self, thief: usize) -> bool {
        let cpus = CpuSet::first_n(self.queues.len());
        let hint = |c: CpuId| self.queues[c.index()].hint();
        let Some(victim) = balance::victim(cpu(thief), cpus, hint) else { return false };
        let mut source = self.queues[victim.index()].lock();
        let Some(item) = source.view().to_steal(|_| true) else { return false };
        let lag = source.send(item.0, cpu(thief), self.now_ns).unwrap();
        drop(source);
        let now_ns = self.now_ns;
        let _ =
            self.queues[thief].lock().with(item.0, |q, i, e| q.enqueue(i, e, lag, now_ns)).unwrap();
        true
    }

    pub fn slice_end(&mut self, on: usize) {
        self.slice_end_ns[on] = None;
        self.settle_burst(on);
        let Some((id, _)) = self.current[on].take() else { return };
        let node = self.threads[id].node;
        let now_ns = self.now_ns;
        let mut guard = self.queues[on].lock();
        let _ = guard.with(node, |q, i, e| q.requeue(i, e, Requeue::Preempted, now_ns)).unwrap();
        self.threads[id].ready_at_ns = now_ns;
        let cpus = CpuSet::first_n(self.queues.len());
        let hint = |c: CpuId| self.queues[c.index()].hint();
        let surplus = match self.balances {
            true => guard.view().surplus(now_ns, cpus, hint, |_, _| core_sched::MayRun::Yes),
            false => None,
        };
        let moved = surplus.map(|s| (s, guard.send(s.item.0, s.to, now_ns).unwrap()));
        drop(guard);
        self.choose(on);
        if let Some((surplus, lag)) = moved {
            self.arrive(surplus.item.0.thread() as usize, surplus.to.index(), lag);
        }
    }

    pub fn burst_end(&mut self, on: usize) {
        let (id, _) = self.current[on].take().unwrap();
        let node = self.threads[id].node;
        let now_ns = self.now_ns;
        match self.threads[id].does {
            Does::Run => unreachable!(),
            Does::RunThenSleep { run_ns, sleep_ns } => {
                self.threads[id].burst_ns = run_ns;
                self.threads[id].wake_at_ns = Some(now_ns + sleep_ns);
                let _ = self.queues[on].lock().with(node, |q, i, e| q.block(i, e, now_ns)).unwrap();
                self.choose(on);
            }
            Does::CallPeer { run_ns, peer } => {
                self.threads[id].burst_ns = run_ns;
                self.threads[peer].ready_at_ns = now_ns;
                let to = self.threads[peer].node;
                let handed = self.queues[on].lock().hand_off(node, to, now_ns);
                match handed {
                    Ok(handed) => {
                        self.began(on, peer);
                        self.slice_end_ns[on] = handed.slice_end_ns;
                    }
                    Err(_) => {
                        let mut guard = self.queues[on].lock();
                        let _ = guard.with(node, |q, i, e| q.block(i, e, now_ns)).unwrap();
                        let _ = guard.wake(to, now_ns).unwrap();
                        drop(guard);
                        self.choose(on);
                    }
                }
            }
        }
    }

    pub fn run_until(&mut self, end_ns: u64) {
        loop {
            let mut next: Option<(u64, u8, usize)> = None;
            let mut consider = |at: u64, kind: u8, who: usize| {
                if next.is_none_or(|n| (at, kind, who) < n) {
                    next = Some((at, kind, who));
                }
            };
            for (on, current) in self.current.iter().enumerate() {
                if let Some((id, since_ns)) = current {
                    let burst_ns = self.threads[*id].burst_ns;
                    if burst_ns != u64::MAX {
                        consider(since_ns + burst_ns, 0, on);
                    }
                    if let Some(at) = self.slice_end_ns[on] {
                        consider(at.max(self.now_ns), 1, on);
                    }
                }
            }
            for (id, thread) in self.threads.iter().enumerate() {
                if let Some(at) = thread.wake_at_ns {
                    consider(at, 2, id);
                }
            }
            let Some((at, kind, who)) = next.filter(|n| n.0 <= end_ns) else {
                self.now_ns = end_ns;
                return;
            };
            self.now_ns = at;
            match kind {
                0 => {
                    self.settle_burst(who);
                    self.burst_end(who);
                }
                1 => self.slice_end(who),
                _ => self.wake(who),
            }
            for queue in &self.queues {
                queue.lock().check_invariants().unwrap();
            }
        }
    }

    /// Running time of each of `ids` over `for_ns` from now.
    pub fn measure(&mut self, ids: &[usize], for_ns: u64) -> Vec<u64> {
        let before = self.runtimes(ids);
        self.run_until(self.now_ns + for_ns);
        let after = self.runtimes(ids);
        after.iter().zip(before).map(|(a, b)| a - b).collect()
    }
}
