//! Fairness of the queues over simulated seconds: a small discrete-event machine that drives
//! the real tree and the real decisions, with every invariant checked at every event. Every test
//! is run under both policies.
use core_sched::place::{Situation, woken};
use core_sched::{CpuId, CpuSet, Entity, MayRun, Requeue, Snapshot, balance};
use core_sched_policy::{Lag, LatencyClass, PolicyKind, QUANTUM_NS, Share, Weight};
use smp_rq::{Next, Node, RunQueue, lock_home};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

fn cpu(n: usize) -> CpuId {
    CpuId::new(n).unwrap()
}

fn share(weight: u16, class: LatencyClass) -> Share {
    Share::new(Weight::new(weight).unwrap(), class)
}

fn normal(weight: u16) -> Share {
    share(weight, LatencyClass::Normal)
}

/// What a thread does, for ever.
#[derive(Clone, Copy)]
enum Does {
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

struct Thread {
    node: &'static Node,
    does: Does,
    weight: u64,
    /// Running time left in this burst.
    burst_ns: u64,
    wake_at_ns: Option<u64>,
    ready_at_ns: u64,
    waits_ns: Vec<u64>,
}

struct Machine {
    queues: Vec<RunQueue<'static>>,
    current: Vec<Option<(usize, u64)>>,
    slice_end_ns: Vec<Option<u64>>,
    threads: Vec<Thread>,
    now_ns: u64,
    balances: bool,
}

impl Machine {
    fn new(kind: PolicyKind, cpus: usize) -> Self {
        Self {
            queues: (0..cpus).map(|n| RunQueue::with_policy(cpu(n), kind, 0)).collect(),
            current: vec![None; cpus],
            slice_end_ns: vec![None; cpus],
            threads: Vec::new(),
            now_ns: 0,
            balances: true,
        }
    }

    fn spawn(&mut self, on: usize, share: Share, does: Does) -> usize {
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

    fn start(&mut self, id: usize) {
        let on = self.threads[id].node.home().unwrap().index();
        self.arrive(id, on, Lag::ZERO);
    }

    fn hogs(&mut self, on: usize, shares: &[Share]) -> Vec<usize> {
        shares
            .iter()
            .map(|&s| {
                let id = self.spawn(on, s, Does::Run);
                self.start(id);
                id
            })
            .collect()
    }

    fn entity(&self, id: usize) -> Entity {
        let node = self.threads[id].node;
        lock_home(&self.queues, node).unwrap().with(node, |_, _, e| Ok(*e)).unwrap()
    }

    fn snapshot(&self, id: usize) -> Snapshot {
        self.entity(id).snapshot()
    }

    fn runtimes(&mut self, ids: &[usize]) -> Vec<u64> {
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

    fn settle_burst(&mut self, on: usize) {
        if let Some((id, since_ns)) = &mut self.current[on] {
            let ran_ns = self.now_ns - *since_ns;
            *since_ns = self.now_ns;
            let thread = &mut self.threads[*id];
            if thread.burst_ns != u64::MAX {
                thread.burst_ns -= ran_ns;
            }
        }
    }

    fn arrive(&mut self, id: usize, on: usize, lag: Lag) {
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

    fn wake(&mut self, id: usize) {
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

    fn preempt(&mut self, on: usize) {
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

    fn choose(&mut self, on: usize) {
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

    fn began(&mut self, on: usize, id: usize) {
        self.current[on] = Some((id, self.now_ns));
        let total: u64 = self.threads.iter().map(|t| t.weight).sum();
        let thread = &mut self.threads[id];
        let waited_ns = self.now_ns - thread.ready_at_ns;
        thread.waits_ns.push(waited_ns);
        let bound_ns = total * QUANTUM_NS * 8 / thread.weight;
        assert!(waited_ns <= bound_ns, "thread {id} waited {waited_ns} ns, bound {bound_ns}");
    }

    fn steal(&mut self, thief: usize) -> bool {
        let cpus = CpuSet::first_n(self.queues.len());
        let hint = |c: CpuId| self.queues[c.index()].hint();
        let Some(victim) = balance::victim(cpu(thief), cpus, hint) else { return false };
        let mut source = self.queues[victim.index()].lock();
        let Some(item) = source.look().to_steal(|_| true) else { return false };
        let lag = source.send(item.0, cpu(thief), self.now_ns).unwrap();
        drop(source);
        let now_ns = self.now_ns;
        let _ =
            self.queues[thief].lock().with(item.0, |q, i, e| q.enqueue(i, e, lag, now_ns)).unwrap();
        true
    }

    fn slice_end(&mut self, on: usize) {
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
            true => guard.look().surplus(now_ns, cpus, hint, |_, _| true),
            false => None,
        };
        let moved = surplus.map(|s| (s, guard.send(s.item.0, s.to, now_ns).unwrap()));
        drop(guard);
        self.choose(on);
        if let Some((surplus, lag)) = moved {
            self.arrive(surplus.item.0.thread() as usize, surplus.to.index(), lag);
        }
    }

    fn burst_end(&mut self, on: usize) {
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

    fn run_until(&mut self, end_ns: u64) {
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
    fn measure(&mut self, ids: &[usize], for_ns: u64) -> Vec<u64> {
        let before = self.runtimes(ids);
        self.run_until(self.now_ns + for_ns);
        let after = self.runtimes(ids);
        after.iter().zip(before).map(|(a, b)| a - b).collect()
    }
}

fn assert_within(got: u64, want: u64, per_mille: u64, what: &str) {
    let allowed = want * per_mille / 1000;
    assert!(got.abs_diff(want) <= allowed, "{what}: {got} is not {want} ± {per_mille} ‰");
}

fn equal_weights_share_equally(kind: PolicyKind) {
    for n in [2, 3, 10, 40] {
        let mut m = Machine::new(kind, 1);
        let ids = m.hogs(0, &vec![normal(64); n]);
        m.run_until(S);
        for ran in m.measure(&ids, 10 * S) {
            assert_within(ran, 10 * S / n as u64, 10, "equal share");
        }
    }
}

fn weights_divide_the_cpu(kind: PolicyKind) {
    for (heavy, light) in [(128, 64), (192, 64), (640, 64), (2, 1), (1000, 100), (1024, 1)] {
        let mut m = Machine::new(kind, 1);
        let ids = m.hogs(0, &[normal(heavy), normal(light)]);
        m.run_until(S);
        let window_ns = if light == 1 { 200 * S } else { 10 * S };
        let ran = m.measure(&ids, window_ns);
        let (heavy, light) = (u64::from(heavy), u64::from(light));
        let slack = if heavy / light > 100 { 50 } else { 20 };
        assert_within(ran[1], window_ns * light / (heavy + light), slack, "light share");
        assert_within(ran[0], window_ns * heavy / (heavy + light), 20, "heavy share");
        let heavy_thread = m.snapshot(ids[0]);
        let scaled = heavy_thread.runtime_ns * 64 / heavy;
        assert!(heavy_thread.virtual_runtime_ns.abs_diff(scaled) <= 2);
    }
}

fn a_thread_made_heavy_does_not_pay_at_its_old_price(kind: PolicyKind) {
    let mut m = Machine::new(kind, 1);
    let ids = m.hogs(0, &[normal(64), normal(1)]);
    // The light one has just begun a slice, which will cost it 64 slices of virtual time.
    while m.current[0].is_none_or(|c| c.0 != ids[1]) {
        m.run_until(m.now_ns + QUANTUM_NS / 2);
    }
    let node = m.threads[ids[1]].node;
    m.queues[0].lock().with(node, |_, _, e| Ok(e.set_share(normal(1024)))).unwrap();
    m.threads[ids[1]].weight = 1024;
    // How long it waits is checked at every start.
    let ran = m.measure(&ids, 10 * S);
    assert_within(ran[0], 10 * S * 64 / 1088, 50, "the other");
    assert_within(ran[1], 10 * S * 1024 / 1088, 20, "the thread made heavy");
}

fn classes_change_no_share(kind: PolicyKind) {
    let mut m = Machine::new(kind, 1);
    let ids = m.hogs(0, &LatencyClass::ALL.map(|c| share(64, c)));
    m.run_until(S);
    for ran in m.measure(&ids, 10 * S) {
        assert_within(ran, 10 * S / 4, 15, "share of a class");
    }
}

fn a_hog_moved_after_100_s_alone_gets_its_share_at_once(kind: PolicyKind) {
    let mut m = Machine::new(kind, 2);
    m.balances = false;
    let moved = m.hogs(0, &[normal(64)])[0];
    let ids = m.hogs(1, &vec![normal(64); 10]);
    m.current[0].unwrap();
    // Keep the ten where they are: CPU 0 must not be idle when they come.
    m.run_until(100 * S);
    m.settle_burst(0);
    let node = m.threads[moved].node;
    m.current[0] = None;
    let now_ns = m.now_ns;
    let mut guard = m.queues[0].lock();
    let _ = guard.with(node, |q, i, e| q.requeue(i, e, Requeue::Preempted, now_ns)).unwrap();
    let lag = guard.send(node, cpu(1), now_ns).unwrap();
    drop(guard);
    m.threads[moved].ready_at_ns = now_ns;
    m.arrive(moved, 1, lag);
    let all: Vec<_> = ids.iter().copied().chain([moved]).collect();
    for ran in m.measure(&all, 11 * S / 10) {
        assert!(ran.abs_diff(S / 10) <= 10 * MS, "{ran} of 100 ms in the first 1.1 s");
    }
    // What it is owed elsewhere never shows in its account.
    assert!(m.snapshot(moved).virtual_runtime_ns == m.snapshot(moved).runtime_ns);
}

fn a_long_sleeper_neither_starves_others_nor_is_starved(kind: PolicyKind) {
    for class in LatencyClass::ALL {
        let mut m = Machine::new(kind, 1);
        let hog = m.hogs(0, &[normal(64)])[0];
        let does = Does::RunThenSleep { run_ns: MS, sleep_ns: 100 * S };
        let sleeper = m.spawn(0, share(64, class), does);
        m.start(sleeper);
        m.run_until(100 * S);
        m.threads[sleeper].does = Does::Run;
        m.threads[sleeper].burst_ns = u64::MAX;
        m.run_until(100 * S + 200 * MS);
        m.threads[sleeper].waits_ns.clear();
        let ran = m.measure(&[hog, sleeper], S);
        assert_within(ran[0], S / 2, 60, "hog after the sleeper woke");
        assert_within(ran[1], S / 2, 60, "sleeper after it woke");
    }
}

fn hogs_on_fewer_cpus_get_equal_time(kind: PolicyKind) {
    for (hogs, cpus) in [(3, 2), (5, 4), (33, 32), (9, 2), (7, 4), (130, 32)] {
        let mut m = Machine::new(kind, cpus);
        let ids = m.hogs(0, &vec![normal(64); hogs]);
        m.run_until(S);
        let ran = m.measure(&ids, 10 * S);
        let fair = 10 * S * cpus as u64 / hogs as u64;
        for &r in &ran {
            assert_within(r, fair, 50, &format!("{hogs} hogs on {cpus} CPUs: {ran:?}"));
        }
        assert_eq!(ran.iter().sum::<u64>(), 10 * S * cpus as u64, "no CPU idles");
    }
}

fn without_balancing_three_hogs_on_two_cpus_are_unfair(kind: PolicyKind) {
    let mut m = Machine::new(kind, 2);
    m.balances = false;
    let mut ids = m.hogs(0, &[normal(64); 2]);
    ids.extend(m.hogs(1, &[normal(64)]));
    m.run_until(S);
    let ran = m.measure(&ids, 10 * S);
    assert!(ran.iter().max().unwrap() > &(9 * S), "{ran:?}");
}

fn median_wait_ns(kind: PolicyKind, class: LatencyClass) -> (u64, u64) {
    let mut m = Machine::new(kind, 1);
    m.hogs(0, &[normal(64)]);
    let does = Does::RunThenSleep { run_ns: 300_000, sleep_ns: 47_300_000 };
    let waker = m.spawn(0, share(64, class), does);
    m.start(waker);
    m.run_until(10 * S);
    let mut waits = std::mem::take(&mut m.threads[waker].waits_ns);
    waits.sort_unstable();
    (waits[waits.len() / 2], *waits.last().unwrap())
}

fn waking_threads_run_soon_and_in_order_of_class(kind: PolicyKind) {
    let (interactive, interactive_worst) = median_wait_ns(kind, LatencyClass::Interactive);
    let (normal, normal_worst) = median_wait_ns(kind, LatencyClass::Normal);
    let (batch, _) = median_wait_ns(kind, LatencyClass::Batch);
    let line = format!("{kind:?}: median waits {interactive} < {normal} < {batch} ns\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
    assert!(interactive < normal && normal < batch, "{interactive} {normal} {batch}");
    assert!(interactive_worst <= QUANTUM_NS && normal_worst <= QUANTUM_NS);
}

fn a_pair_that_hands_off_starves_nobody(kind: PolicyKind) {
    for run_ns in [5_000, 3 * MS, 25 * MS] {
        let mut m = Machine::new(kind, 1);
        let a = m.spawn(0, normal(64), Does::CallPeer { run_ns, peer: 1 });
        let b = m.spawn(0, normal(64), Does::CallPeer { run_ns, peer: 0 });
        let third = m.hogs(0, &[normal(64)])[0];
        m.start(a);
        m.run_until(S);
        let ran = m.measure(&[a, b, third], 4 * S);
        // Two of three equal weights own two thirds at most.
        assert!(ran[0] + ran[1] <= 4 * S * 2 / 3 * 102 / 100, "{run_ns}: {ran:?}");
        assert!(ran[2] >= 4 * S / 3 * 98 / 100, "{run_ns}: {ran:?}");
        let longest = m.threads[third].waits_ns.iter().max().unwrap();
        assert!(*longest <= 4 * QUANTUM_NS, "the third waited {longest}");
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn random_mixes_keep_the_wait_bound_and_account_for_every_nanosecond(kind: PolicyKind) {
    for seed in 0..12 {
        let mut dice = Dice(seed);
        let cpus = [1, 1, 2, 4, 8][dice.below(5) as usize];
        let mut m = Machine::new(kind, cpus);
        let mut ids = Vec::new();
        for _ in 0..2 + dice.below(20) {
            let weight = [1, 16, 64, 64, 64, 200, 1024][dice.below(7) as usize];
            let class = LatencyClass::ALL[dice.below(4) as usize];
            let does = match dice.below(3) {
                0 => Does::Run,
                _ => Does::RunThenSleep {
                    run_ns: 1 + dice.below(20 * MS),
                    sleep_ns: 1 + dice.below(50 * MS),
                },
            };
            let on = dice.below(cpus as u64) as usize;
            let id = m.spawn(on, share(weight, class), does);
            m.start(id);
            ids.push(id);
        }
        let end_ns = 3 * S + dice.below(S);
        m.run_until(end_ns);
        let ran: u64 = m.runtimes(&ids).iter().sum();
        let mut busy_sum = 0;
        for (on, queue) in m.queues.iter().enumerate() {
            let (busy, idle) = queue.lock().look().busy_and_idle_ns();
            busy_sum += busy;
            match m.current[on] {
                Some(_) => assert_eq!(busy + idle, end_ns, "seed {seed}"),
                None => assert!(busy + idle <= end_ns, "seed {seed}"),
            }
        }
        assert_eq!(ran, busy_sum, "seed {seed}: every running interval is charged once");
        // Runnable, running and asleep are all of a hog's life.
        for &id in &ids {
            if matches!(m.threads[id].does, Does::Run) {
                let s = m.snapshot(id);
                let lived = s.runtime_ns + s.runnable_accumulated_ns;
                let open = m.now_ns - m.threads[id].ready_at_ns;
                let is_running = m.current.iter().flatten().any(|c| c.0 == id);
                let want = if is_running { end_ns } else { end_ns - open };
                assert_eq!(lived, want, "seed {seed} thread {id}");
            }
        }
    }
}

/// Each test under each policy.
macro_rules! suite {
    ($($policy:ident: $kind:expr),+; $tests:tt) => { $(suite!(@one $policy, $kind, $tests);)+ };
    (@one $policy:ident, $kind:expr, [$($test:ident),+ $(,)?]) => {
        mod $policy {
            use super::PolicyKind;
            $(#[test]
            fn $test() {
                super::$test($kind);
            })+
        }
    };
}

suite! {
    wfq: PolicyKind::Wfq, eevdf: PolicyKind::Eevdf;
    [
        equal_weights_share_equally,
        weights_divide_the_cpu,
        a_thread_made_heavy_does_not_pay_at_its_old_price,
        classes_change_no_share,
        a_hog_moved_after_100_s_alone_gets_its_share_at_once,
        a_long_sleeper_neither_starves_others_nor_is_starved,
        hogs_on_fewer_cpus_get_equal_time,
        without_balancing_three_hogs_on_two_cpus_are_unfair,
        waking_threads_run_soon_and_in_order_of_class,
        a_pair_that_hands_off_starves_nobody,
        random_mixes_keep_the_wait_bound_and_account_for_every_nanosecond,
    ]
}
