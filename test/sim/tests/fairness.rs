//! Who gets how much, who waits how long: the bars, on the simulated machine, under both
//! policies. How long a thread waits and whether a CPU idles beside work is checked at every
//! event of every run.
use core_sched::CpuSet;
use core_sched_policy::{AnyPolicy, LatencyClass, PolicyKind, Share, VirtualTime, Weight};
use kernel_dispatch::MAX_SLEEP_NS;
use test_sim::{Config, MS, Machine, Program, S, Step, US};

type M = Machine<AnyPolicy>;

fn with<R>(kind: PolicyKind, config: Config, f: impl FnOnce(&mut M) -> R) -> R {
    let room = 64 + 5 * config.cpus;
    f(&mut Machine::new(config, room, || AnyPolicy::new(kind, VirtualTime::default())))
}

fn share(weight: u16, class: LatencyClass) -> Share {
    Share::new(Weight::new(weight).unwrap(), class)
}

fn normal(weight: u16) -> Share {
    share(weight, LatencyClass::Normal)
}

fn hog() -> Program {
    Box::new(|_| Step::Run(u64::MAX / 4))
}

fn hogs(m: &mut M, shares: &[Share]) -> Vec<u32> {
    let cpus = m.config.cpus;
    let spawn = |(n, &s)| m.spawn(n % cpus, s, 0, hog()).unwrap();
    shares.iter().enumerate().map(spawn).collect()
}

fn assert_within(got: u64, want: u64, per_mille: u64, what: &str) {
    let allowed = want * per_mille / 1000;
    assert!(got.abs_diff(want) <= allowed, "{what}: {got} is not {want} ± {per_mille} ‰");
}

fn measured(m: &mut M, slots: &[u32], from_ns: u64, for_ns: u64) -> Vec<u64> {
    m.run_until(from_ns).unwrap_or_else(|failure| panic!("{failure}"));
    m.measure(slots, for_ns).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Ends after so long, having made its successor.
fn relay(run_ns: u64, s: Share) -> Program {
    let mut turn = 0;
    Box::new(move |_| {
        turn += 1;
        match turn {
            1 => Step::Run(run_ns),
            2 => Step::Spawn { share: s, process: None, program: relay(run_ns, s) },
            _ => Step::Exit,
        }
    })
}

fn a_stream_of_short_threads_starves_nobody(kind: PolicyKind) {
    for class in LatencyClass::ALL {
        for (weight, run_ns, streams) in
            [(64, 3 * MS, 1), (64, 3 * MS, 4), (200, 2 * MS, 1), (1, MS, 2), (1024, 100 * US, 3)]
        {
            with(kind, Config::new(1, 1), |m| {
                let slots = hogs(m, &[normal(64)]);
                for _ in 0..streams {
                    let s = share(weight, class);
                    m.spawn(0, s, 0, relay(run_ns, s)).unwrap();
                }
                let ran = measured(m, &slots, S, 4 * S)[0];
                let fair = 4 * S * 64 / (64 + streams * u64::from(weight));
                // New threads owe nothing, so a stream of them gets somewhat more.
                assert!(
                    ran >= fair / 3,
                    "{streams} streams of {weight} {class:?} {run_ns}: {ran} of {fair}"
                );
            });
        }
    }
}

fn equal_weights_on_one_cpu(kind: PolicyKind) {
    for n in [2, 3, 10, 40] {
        with(kind, Config::new(1, n), |m| {
            let slots = hogs(m, &vec![normal(64); n as usize]);
            for ran in measured(m, &slots, S, 10 * S) {
                assert_within(ran, 10 * S / n, 10, "equal weights");
            }
        });
    }
}

fn weights_on_one_cpu(kind: PolicyKind) {
    for ratio in [2u16, 3, 10] {
        with(kind, Config::new(1, 1), |m| {
            let slots = hogs(m, &[normal(64 * ratio), normal(64)]);
            let ran = measured(m, &slots, S, 10 * S);
            let (part, all) = (u64::from(ratio), u64::from(ratio) + 1);
            assert_within(ran[0], 10 * S * part / all, 20, "heavy");
            assert_within(ran[1], 10 * S / all, 20, "light");
            let heavy = m.snapshot(slots[0]).unwrap();
            let slope = heavy.runtime_ns / (heavy.virtual_runtime_ns / 1000);
            assert!(slope.abs_diff(1000 * part) <= 5 * part, "{slope}");
        });
    }
}

fn a_few_more_hogs_than_cpus(kind: PolicyKind) {
    for (threads, cpus) in [(3, 2), (5, 4), (33, 32)] {
        with(kind, Config::new(cpus, 3), |m| {
            let slots = hogs(m, &vec![normal(64); threads]);
            let ran = measured(m, &slots, S, 10 * S);
            let fair = 10 * S * cpus as u64 / threads as u64;
            for &r in &ran {
                assert_within(r, fair, 50, &format!("{threads} on {cpus}: {ran:?}"));
            }
        });
    }
}

fn saturated_cpus(kind: PolicyKind) {
    for cpus in [1usize, 2, 4, 8, 16, 32, 64] {
        for extra in [0, 1] {
            with(kind, Config::new(cpus, 5), |m| {
                let threads = 4 * cpus + extra;
                let slots = hogs(m, &vec![normal(64); threads]);
                let ran = measured(m, &slots, S, 10 * S);
                let fair = 10 * S * cpus as u64 / threads as u64;
                for &r in &ran {
                    assert_within(r, fair, 50, &format!("{threads} on {cpus}"));
                }
                assert_eq!(ran.iter().sum::<u64>(), 10 * S * cpus as u64, "no CPU idles");
            });
        }
    }
}

fn all_threads_start_on_one_cpu(kind: PolicyKind) {
    for cpus in [4usize, 16] {
        with(kind, Config::new(cpus, 9), |m| {
            let first = CpuSet::from_bits(1);
            let spawn = |_| m.spawn_by(0, normal(64), 0, first, hog()).unwrap().unwrap();
            let slots: Vec<u32> = (0..4 * cpus).map(spawn).collect();
            m.run_until(S / 2).unwrap_or_else(|failure| panic!("{failure}"));
            // From now on they may run anywhere.
            let mut left = slots.clone();
            let free: Program = Box::new(move |_| match left.pop() {
                Some(slot) => Step::Confine { slot, mask: CpuSet::ALL },
                None => Step::Exit,
            });
            m.spawn(1, normal(64), 0, free).unwrap();
            let ran = measured(m, &slots, S + S / 2, 10 * S);
            for &r in &ran {
                assert_within(r, 10 * S / 4, 50, &format!("4 on each of {cpus}"));
            }
        });
    }
}

fn a_hog_moved_after_100_s_alone(kind: PolicyKind) {
    let mut config = Config::new(2, 1);
    config.balances = false;
    with(kind, config, |m| {
        let [here, there] = [CpuSet::from_bits(1), CpuSet::from_bits(2)];
        let alone = m.spawn_by(0, normal(64), 0, here, hog()).unwrap().unwrap();
        let spawn = |_| m.spawn_by(1, normal(64), 0, there, hog()).unwrap().unwrap();
        let mut slots: Vec<u32> = (0..10).map(spawn).collect();
        m.run_until(100 * S).unwrap_or_else(|failure| panic!("{failure}"));
        let mut moved = false;
        let mover: Program = Box::new(move |_| match std::mem::replace(&mut moved, true) {
            false => Step::Confine { slot: alone, mask: there },
            true => Step::Exit,
        });
        m.spawn_by(1, share(1024, LatencyClass::Interactive), 0, there, mover).unwrap();
        m.run_until(100 * S + 20 * MS).unwrap_or_else(|failure| panic!("{failure}"));
        slots.push(alone);
        for ran in m.measure(&slots, 11 * S / 10).unwrap() {
            assert!(ran.abs_diff(S / 10) <= 11 * MS, "{ran} of 100 ms in 1.1 s");
        }
    });
}

fn a_sleeper_banks_no_credit(kind: PolicyKind) {
    for class in LatencyClass::ALL {
        with(kind, Config::new(1, 1), |m| {
            let hog_slot = hogs(m, &[normal(64)])[0];
            let mut turn = 0;
            let sleeper: Program = Box::new(move |_| {
                turn += 1;
                if turn == 1 { Step::Sleep(100 * S) } else { Step::Run(u64::MAX / 4) }
            });
            let slot = m.spawn(0, share(64, class), 0, sleeper).unwrap();
            let ran = measured(m, &[hog_slot, slot], 100 * S + 200 * MS, S);
            assert_within(ran[0], S / 2, 60, "the hog after the sleeper woke");
            assert_within(ran[1], S / 2, 60, "the sleeper after it woke");
        });
    }
}

fn weights_across_cpus(kind: PolicyKind) {
    for cpus in [2usize, 4, 8] {
        with(kind, Config::new(cpus, 2), |m| {
            let mut shares = vec![normal(64); 4 * cpus];
            shares.extend(vec![normal(128); 2 * cpus]);
            let slots = hogs(m, &shares);
            let ran = measured(m, &slots, S, 10 * S);
            // Two of weight 128 and four of 64 for each CPU.
            for (&r, s) in ran.iter().zip(&shares) {
                let fair = 10 * S * u64::from(s.weight().get()) / 512;
                assert_within(r, fair, 100, &format!("weight {} on {cpus}", s.weight().get()));
            }
        });
    }
}

/// An idle CPU looks around ten times a second and no oftener, whatever its threads wait for.
fn idle_cpus_look_around(kind: PolicyKind) {
    let naps = || -> Program { Box::new(|_| Step::Sleep(3 * S)) };
    for cpus in [1, 2, 8] {
        let config = Config { max_sleep_ns: Some(MAX_SLEEP_NS), ..Config::new(cpus, 5) };
        let looks = with(kind, config, |m| {
            for cpu in 0..cpus {
                m.spawn(cpu, normal(64), 0, naps()).unwrap();
            }
            m.run_until(2 * S).unwrap_or_else(|failure| panic!("{failure}"));
            let before = m.report().events;
            m.run_until(3 * S - MS).unwrap_or_else(|failure| panic!("{failure}"));
            m.report().events - before
        });
        // The end of a second may cut one off.
        let looks_each = looks / cpus as u64;
        assert!((9..=10).contains(&looks_each), "{looks} events of {cpus} CPUs in 1 s");
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
        equal_weights_on_one_cpu,
        weights_on_one_cpu,
        a_few_more_hogs_than_cpus,
        saturated_cpus,
        all_threads_start_on_one_cpu,
        a_hog_moved_after_100_s_alone,
        a_sleeper_banks_no_credit,
        weights_across_cpus,
        a_stream_of_short_threads_starves_nobody,
        idle_cpus_look_around,
    ]
}
