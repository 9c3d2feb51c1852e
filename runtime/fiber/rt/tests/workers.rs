//! Workers: elasticity, stalls, blocking regions, draining, fairness, sleep, figures.
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use fiber_rt::{Runtime, Scope, blocking, name, scope, sleep, yield_now};

/// No test takes this long unless something is stuck: then it is red by itself.
const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn spawn<'scope>(s: &'scope Scope<'scope, '_>, f: impl FnOnce() + Send + 'scope) {
    drop(s.spawn(f).unwrap());
}

#[test]
fn workers_grow_to_twice_as_many_under_blocking_load_and_shrink_back() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    assert_eq!(runtime.stats().live_workers, 2);
    let release = AtomicBool::new(false);
    let (ran, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    runtime.run(|| {
        scope(|s| {
            for _ in 0..2 {
                spawn(s, || blocking(|| until("released", || release.load(Ordering::Acquire))));
            }
            // With three of four workers blocked the rest still gets done.
            for _ in 0..100 {
                spawn(s, || {
                    yield_now().unwrap();
                    ran.fetch_add(1, Ordering::Relaxed);
                });
            }
            blocking(|| {
                until("substitutes run the rest", || {
                    most.fetch_max(runtime.stats().live_workers as usize, Ordering::Relaxed);
                    ran.load(Ordering::Relaxed) == 100
                });
            });
            release.store(true, Ordering::Release);
        });
    });
    let most = most.load(Ordering::Relaxed);
    assert!((3..=4).contains(&most), "{most} workers at most");
    until("the surplus drains itself", || runtime.stats().live_workers == 2);
    let stats = runtime.stats();
    assert!(stats.scaling.substitutes > 0 && stats.scaling.retirements > 0, "{:?}", stats.scaling);
    assert_eq!(stats.blocked_workers, 0);
    // And it is as good as before.
    assert_eq!(runtime.run(|| 5), 5);
}

#[test]
fn a_stalled_workers_fibers_are_taken_over() {
    let runtime = Runtime::builder()
        .workers(1)
        .stall_after(Duration::from_millis(2))
        .on_stall(|_| {})
        .build()
        .unwrap();
    let ran = AtomicUsize::new(0);
    runtime.run(|| {
        scope(|s| {
            for _ in 0..50 {
                spawn(s, || {
                    ran.fetch_add(1, Ordering::Relaxed);
                });
            }
            // This fiber never waits; the others are behind it in its worker's queue and slot.
            until("taken over", || ran.load(Ordering::Relaxed) == 50);
        });
    });
    let stats = runtime.stats();
    assert!(stats.scaling.promotions > 0, "{:?}", stats.scaling);
    until("the surplus drains itself", || runtime.stats().live_workers == 1);
}

#[test]
fn a_pool_that_is_not_elastic_stays_as_it_is() {
    let runtime = Runtime::builder()
        .workers(1)
        .elastic(false)
        .stall_after(Duration::from_millis(1))
        .on_stall(|_| {})
        .build()
        .unwrap();
    let ran = AtomicBool::new(false);
    runtime.run(|| {
        scope(|s| {
            spawn(s, || ran.store(true, Ordering::Relaxed));
            until("held at the limit", || {
                assert!(!ran.load(Ordering::Relaxed));
                runtime.stats().scaling.gate_at_limit > 0
            });
        });
    });
    assert_eq!(runtime.stats().live_workers, 1);
}

#[test]
fn a_stall_is_reported() {
    static REPORTS: AtomicUsize = AtomicUsize::new(0);
    let runtime = Runtime::builder()
        .workers(1)
        .stall_after(Duration::from_millis(1))
        .on_stall(|stall| {
            assert!(stall.ran_ns >= 10_000_000 && stall.fiber != 0);
            REPORTS.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    runtime.run(|| until("reported", || REPORTS.load(Ordering::Relaxed) > 0));
    assert!(runtime.stats().stalls > 0);
}

#[test]
fn long_fibers_are_spread_over_the_workers() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let threads = Mutex::new(HashSet::<ThreadId>::new());
    runtime.run(|| {
        scope(|s| {
            for _ in 0..4 {
                spawn(s, || {
                    until("another worker came", || {
                        threads.lock().unwrap().insert(std::thread::current().id());
                        let _ = yield_now();
                        threads.lock().unwrap().len() >= 2
                    });
                });
            }
        });
    });
}

#[test]
fn a_yielding_fiber_lets_outsiders_and_timers_in() {
    let runtime = Runtime::builder().workers(1).elastic(false).build().unwrap();
    let done = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            runtime.run(|| {
                scope(|s| {
                    spawn(s, || {
                        sleep(Duration::from_millis(2)).unwrap();
                        done.fetch_add(1, Ordering::Relaxed);
                    });
                    // Two that yield to each other for ever, but for the others.
                    for _ in 0..2 {
                        spawn(s, || {
                            let began = Instant::now();
                            while done.load(Ordering::Relaxed) < 2 && began.elapsed() < PATIENCE {
                                yield_now().unwrap();
                            }
                        });
                    }
                });
            });
        });
        threads.spawn(|| {
            runtime.run(|| done.fetch_add(1, Ordering::Relaxed));
        });
    });
    assert_eq!(done.load(Ordering::Relaxed), 2);
}

#[test]
fn a_fiber_moves_between_workers_and_keeps_its_stack() {
    let runtime = Runtime::builder().workers(3).build().unwrap();
    runtime.run(|| {
        scope(|s| {
            for number in 0..30u64 {
                spawn(s, move || {
                    let mine = [number; 100];
                    for _ in 0..300 {
                        yield_now().unwrap();
                        assert!(mine.iter().all(|value| *value == number));
                    }
                });
            }
        });
    });
}

#[test]
fn sleeps_are_never_early_and_end_in_order() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let order = Mutex::new(Vec::new());
    runtime.run(|| {
        scope(|s| {
            for ms in [40u64, 1, 20, 3, 70, 0] {
                let order = &order;
                spawn(s, move || {
                    let began = Instant::now();
                    sleep(Duration::from_millis(ms)).unwrap();
                    assert!(began.elapsed() >= Duration::from_millis(ms), "{ms} ms was early");
                    order.lock().unwrap().push(ms);
                });
            }
        });
    });
    assert_eq!(order.into_inner().unwrap().len(), 6);
    assert_eq!(runtime.stats().timers, 0);
}

#[test]
fn many_timers_fire() {
    let runtime = Runtime::builder().workers(2).stack_bytes(16 << 10).build().unwrap();
    let fired = AtomicUsize::new(0);
    runtime.run(|| {
        scope(|s| {
            for i in 0..5000u64 {
                let fired = &fired;
                spawn(s, move || {
                    sleep(Duration::from_micros(i * 37 % 20_000)).unwrap();
                    fired.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
    });
    assert_eq!(fired.load(Ordering::Relaxed), 5000);
}

#[test]
fn a_dump_shows_who_waits_for_what() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let dump = runtime.run(|| {
        scope(|s| {
            let sleeper = s
                .spawn(|| {
                    name("the sleeper");
                    let _ = sleep(Duration::from_secs(1000));
                })
                .unwrap();
            while !runtime.dump().fibers.iter().any(|fiber| fiber.name == "the sleeper") {
                yield_now().unwrap();
            }
            sleep(Duration::from_millis(1)).unwrap();
            let dump = runtime.dump();
            sleeper.cancel();
            dump
        })
    });
    let sleeper = dump.fibers.iter().find(|fiber| fiber.name == "the sleeper").unwrap();
    assert_eq!(sleeper.waits_for, fiber_rt::What::Timer);
    assert_eq!(dump.fibers.len(), 2);
    let text = dump.to_string();
    assert!(text.contains("waits for Timer") && text.contains("Running"), "{text}");
    assert!(runtime.dump().fibers.is_empty(), "nobody is left");
}

#[test]
fn a_trace_is_json_with_a_slice_for_every_run() {
    let runtime = Runtime::builder().workers(2).trace_events(4096).build().unwrap();
    runtime.run(|| {
        scope(|s| {
            for _ in 0..20 {
                spawn(s, || (0..5).for_each(|_| yield_now().unwrap()));
            }
        });
    });
    let trace = runtime.trace();
    assert!(!trace.is_empty());
    let json: serde_json::Value = serde_json::from_str(&trace.to_json()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let slices = events.iter().filter(|event| event["ph"] == "X").count();
    assert!(slices >= 20, "{slices} slices");
    assert!(events.iter().all(|event| event["pid"] == 1 && event["tid"].is_u64()));
}

#[test]
fn counters_add_up() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.run(|| {
        scope(|s| {
            for _ in 0..1000 {
                spawn(s, || yield_now().unwrap());
            }
        });
    });
    let stats = runtime.stats();
    let sum = |f: fn(&fiber_rt::WorkerStats) -> u64| stats.workers.iter().map(f).sum::<u64>();
    assert_eq!(sum(|w| w.spawns), 1000);
    assert_eq!(sum(|w| w.finishes), 1001);
    assert_eq!(sum(|w| w.dispatches), sum(|w| w.finishes + w.yields + w.parks));
    assert_eq!(stats.global_queue, 0);
    assert!(stats.stack_high_water_bytes > 0 && stats.stack_high_water_bytes <= stats.stack_bytes);
}

#[test]
fn frames_and_stacks_are_used_again() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let cycle =
        || runtime.run(|| scope(|s| (0..200).for_each(|_| spawn(s, || yield_now().unwrap()))));
    cycle();
    let before = runtime.stats().stacks;
    (0..500).for_each(|_| cycle());
    // Each of the four workers there can be may keep some for itself; more than that is a leak.
    let after = runtime.stats().stacks;
    assert!(after <= before + 4 * 64 + 64, "{before} stacks, then {after}");
}

#[test]
fn runtimes_come_and_go() {
    for _ in 0..50 {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        assert_eq!(runtime.run(|| scope(|s| s.spawn(|| 3).unwrap().join().unwrap())), 3);
    }
}

#[test]
fn a_number_of_workers_that_makes_no_sense_is_refused() {
    let error = Runtime::builder().workers(0).build().unwrap_err();
    assert_eq!(error.to_string(), "0 workers were asked for; a runtime has from 1 to 128");
    assert!(Runtime::builder().workers(1000).build().is_err());
}
