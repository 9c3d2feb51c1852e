//! Fairness of the queues over simulated seconds: a small discrete-event machine that drives
//! the real tree and the real decisions, with every invariant checked at every event. Every test
//! is run under both policies.
#[path = "fairness/machine.rs"]
mod machine;

use core_sched::Requeue;
use core_sched_policy::{LatencyClass, PolicyKind, QUANTUM_NS};
use machine::{Does, MS, Machine, S, cpu, normal, share};

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
            let (busy, idle) = queue.lock().view().busy_and_idle_ns();
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
