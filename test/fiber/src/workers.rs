//! Workers: elasticity, stalls, blocking regions, draining, fairness, sleep, figures.
use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;

use fiber_chan::{Select, bounded};
use fiber_core::State;
use fiber_rt::{
    Condvar, Dump, FiberInfo, Instant, Mutex, Runtime, Scope, Thread, What, blocking, name, scope,
    sleep, yield_now,
};

use crate::{runtime, scaled, settle};

/// No case takes this long unless something is stuck: then it is red by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nobody sleeps so long to the end.
const LONG: Duration = Duration::from_secs(1000);

/// Keeps its thread until then: a fiber that calls this does not give its worker up.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        Thread::pause();
    }
}

fn spawn<'scope>(s: &'scope Scope<'scope, '_>, f: impl FnOnce() + Send + 'scope) {
    drop(s.spawn(f).unwrap());
}

pub fn workers_grow_to_twice_as_many_under_blocking_load_and_shrink_back() {
    // A worker that loses its CPU before its region begins is taken for stalled, and helped for that reason.
    let runtime = never_stalls(2);
    assert_eq!(runtime.stats().live_workers, 2);
    let release = AtomicBool::new(false);
    let (ran, most) = (AtomicUsize::new(0), AtomicU32::new(0));
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
                until("three are blocked, and as many run as may", || {
                    let stats = runtime.stats();
                    most.fetch_max(stats.live_workers, Ordering::Relaxed);
                    stats.blocked_workers == 3 && stats.live_workers == 4
                });
                until("substitutes run the rest", || {
                    most.fetch_max(runtime.stats().live_workers, Ordering::Relaxed);
                    ran.load(Ordering::Relaxed) == 100
                });
            });
            release.store(true, Ordering::Release);
        });
    });
    assert_eq!(most.load(Ordering::Relaxed), 4, "twice as many, and never more");
    until("the surplus drains itself", || runtime.stats().live_workers == 2);
    let stats = runtime.stats();
    assert!(stats.scaling.substitutes > 0 && stats.scaling.retirements > 0, "{:?}", stats.scaling);
    assert_eq!(stats.blocked_workers, 0);
    // And it is as good as before.
    assert_eq!(runtime.run(|| 5), 5);
}

/// A runtime in which nobody ever counts as stalled: who is blocked has to say so.
fn never_stalls(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).stall_after(PATIENCE * 1000).build().unwrap()
}

pub fn what_a_blocking_region_spawns_and_wakes_runs_meanwhile() {
    for workers in [1, 2] {
        let runtime = never_stalls(workers);
        let (spawned, woken) = (AtomicBool::new(false), AtomicBool::new(false));
        runtime.run(|| {
            let (tx, rx) = bounded(1);
            scope(|s| {
                spawn(s, || {
                    assert_eq!(rx.recv(), Ok(5));
                    woken.store(true, Ordering::Relaxed);
                });
                while !runtime.dump().fibers.iter().any(|f| f.waits_for == What::Receive) {
                    yield_now().unwrap();
                }
                blocking(|| {
                    tx.send(5).unwrap();
                    until("the woken one runs", || woken.load(Ordering::Relaxed));
                    spawn(s, || spawned.store(true, Ordering::Relaxed));
                    until("the spawned one runs", || spawned.load(Ordering::Relaxed));
                });
                assert_eq!(runtime.stats().blocked_workers, 0);
            });
        });
    }
}

pub fn a_wait_in_a_blocking_region_does_not_end_it() {
    let runtime = never_stalls(1);
    let ran = AtomicUsize::new(0);
    runtime.run(|| {
        scope(|s| {
            blocking(|| {
                for rounds in 1..=3 {
                    // Parks, and goes on in the region.
                    sleep(Duration::from_millis(1)).unwrap();
                    assert_eq!(runtime.stats().blocked_workers, 1);
                    for _ in 0..2 {
                        spawn(s, || {
                            ran.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                    until("others run", || ran.load(Ordering::Relaxed) == 2 * rounds);
                    // The same for a yield, and for a region within.
                    spawn(s, || ());
                    let _ = yield_now();
                    assert_eq!(blocking(|| runtime.stats().blocked_workers), 1);
                }
            });
            assert_eq!(runtime.stats().blocked_workers, 0);
        });
    });
    assert_eq!(runtime.stats().blocked_workers, 0);
}

pub fn a_stalled_workers_fibers_are_taken_over() {
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

pub fn a_pool_that_is_not_elastic_stays_as_it_is() {
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

pub fn a_stall_is_reported() {
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

pub fn long_fibers_are_spread_over_the_workers() {
    let runtime = runtime(2);
    let busy = || runtime.stats().workers.iter().filter(|worker| worker.dispatches > 0).count();
    runtime.run(|| {
        scope(|s| {
            for _ in 0..4 {
                spawn(s, || {
                    until("another worker came", || {
                        let _ = yield_now();
                        busy() >= 2
                    });
                });
            }
        });
    });
}

pub fn a_yielding_fiber_lets_outsiders_and_timers_in() {
    let runtime = Arc::new(Runtime::builder().workers(1).elastic(false).build().unwrap());
    let done = Arc::new(AtomicUsize::new(0));
    let (inner, counts) = (runtime.clone(), done.clone());
    let first = Thread::spawn("first", move || {
        inner.run(|| {
            scope(|s| {
                spawn(s, || {
                    sleep(Duration::from_millis(2)).unwrap();
                    counts.fetch_add(1, Ordering::Relaxed);
                });
                // Two that yield to each other for ever, but for the others.
                for _ in 0..2 {
                    spawn(s, || {
                        let began = Instant::now();
                        while counts.load(Ordering::Relaxed) < 2 && began.elapsed() < PATIENCE {
                            yield_now().unwrap();
                        }
                    });
                }
            });
        });
    });
    let (inner, counts) = (runtime.clone(), done.clone());
    let second = Thread::spawn("second", move || {
        inner.run(|| counts.fetch_add(1, Ordering::Relaxed));
    });
    first.unwrap().join();
    second.unwrap().join();
    assert_eq!(done.load(Ordering::Relaxed), 2);
}

pub fn a_fiber_moves_between_workers_and_keeps_its_stack() {
    let runtime = runtime(3);
    runtime.run(|| {
        scope(|s| {
            for number in 0..30 {
                spawn(s, move || {
                    let mine = [number; 100];
                    for _ in 0..scaled(300, 50) {
                        yield_now().unwrap();
                        assert!(mine.iter().all(|value| *value == number));
                    }
                });
            }
        });
    });
}

pub fn sleeps_are_never_early_and_all_end() {
    let runtime = runtime(2);
    let ended = Mutex::new(0);
    runtime.run(|| {
        scope(|s| {
            for ms in [40u64, 1, 20, 3, 70, 0] {
                let ended = &ended;
                spawn(s, move || {
                    let began = Instant::now();
                    sleep(Duration::from_millis(ms)).unwrap();
                    assert!(began.elapsed() >= Duration::from_millis(ms), "{ms} ms was early");
                    *ended.lock() += 1;
                });
            }
        });
    });
    assert_eq!(ended.into_inner(), 6);
    assert_eq!(runtime.stats().timers, 0);
}

pub fn many_timers_fire() {
    const TIMERS: u32 = scaled(5000, 200);
    let runtime = Runtime::builder().workers(2).stack_bytes(16 << 10).build().unwrap();
    let fired = AtomicUsize::new(0);
    runtime.run(|| {
        scope(|s| {
            for i in 0..u64::from(TIMERS) {
                let fired = &fired;
                spawn(s, move || {
                    sleep(Duration::from_micros(i * 37 % 20_000)).unwrap();
                    fired.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
    });
    assert_eq!(fired.load(Ordering::Relaxed), TIMERS as usize);
}

pub fn a_dump_shows_who_waits_for_what() {
    let runtime = runtime(1);
    let dump = runtime.run(|| {
        scope(|s| {
            let sleeper = s
                .spawn(|| {
                    name("the sleeper");
                    let _ = sleep(Duration::from_secs(1000));
                })
                .unwrap();
            settle(&runtime);
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

pub fn a_dump_names_each_kind_of_wait_and_where_it_is() {
    let runtime = runtime(2);
    runtime.run(|| {
        let (full, _full_rx) = bounded(1);
        let (_empty_tx, empty) = bounded::<u32>(1);
        full.send(0).unwrap();
        let (mutex, other, condvar) = (Mutex::new(()), Mutex::new(()), Condvar::new());
        let guard = mutex.lock();
        scope(|s| {
            spawn(s, || {
                name("Send");
                assert!(full.send(1).is_err());
            });
            spawn(s, || {
                name("Receive");
                assert!(empty.recv().is_err());
            });
            spawn(s, || {
                name("Select");
                let mut set = Select::new();
                set.recv(&empty);
                set.send(&full);
                assert!(set.select().is_err());
            });
            spawn(s, || {
                name("Timer");
                assert!(sleep(LONG).is_err());
            });
            spawn(s, || {
                name("Mutex");
                assert!(mutex.lock_cancellable().is_err());
            });
            spawn(s, || {
                name("Condvar");
                assert!(condvar.wait(&mut other.lock()).is_err());
            });
            spawn(s, || {
                scope(|inner| {
                    let sleeper = inner.spawn(|| sleep(LONG)).unwrap();
                    name("Join");
                    assert!(sleeper.join().is_err());
                });
            });
            spawn(s, || {
                scope(|inner| {
                    spawn(inner, || assert!(sleep(LONG).is_err()));
                    name("Scope");
                });
            });
            let kinds = [
                (What::Send, "Send", None),
                (What::Receive, "Receive", None),
                (What::Select, "Select", None),
                (What::Timer, "Timer", Some(0)),
                (What::Mutex, "Mutex", Some(core::ptr::from_ref(&mutex).addr())),
                (What::Condvar, "Condvar", Some(core::ptr::from_ref(&condvar).addr())),
                (What::Join, "Join", None),
                (What::Scope, "Scope", None),
            ];
            for (kind, called, at) in kinds {
                let mut last = None;
                let began = Instant::now();
                let is_shown = |fiber: &FiberInfo| {
                    fiber.name == called
                        && fiber.state == State::Parked
                        && fiber.waits_for == kind
                        && at.map_or(fiber.waits_at != 0, |at| fiber.waits_at == at)
                };
                while !last.as_ref().is_some_and(|dump: &Dump| dump.fibers.iter().any(is_shown)) {
                    assert!(began.elapsed() < PATIENCE, "{called}: {}", last.unwrap());
                    yield_now().unwrap();
                    last = Some(runtime.dump());
                }
                let text = last.unwrap().to_string();
                assert!(text.contains(&format!("waits for {kind:?} at 0x")), "{text}");
            }
            // What two wait for is one place.
            let dump = runtime.dump();
            let at = |called| dump.fibers.iter().find(|f| f.name == called).unwrap().waits_at;
            assert_ne!(at("Send"), at("Receive"));
            s.cancel();
        });
        drop(guard);
    });
    assert!(runtime.dump().fibers.is_empty(), "{}", runtime.dump());
}

pub fn a_name_ends_with_its_fiber() {
    let runtime = runtime(1);
    let dump = runtime.run(|| {
        scope(|s| {
            s.spawn(|| name("the first")).unwrap().join().unwrap();
            let second = s.spawn(|| sleep(Duration::from_secs(1000))).unwrap();
            while runtime.stats().timers == 0 {
                yield_now().unwrap();
            }
            let dump = runtime.dump();
            second.cancel();
            dump
        })
    });
    assert!(dump.fibers.len() == 2 && dump.fibers.iter().all(|f| f.name.is_empty()), "{dump}");
}

pub fn counters_add_up() {
    const FIBERS: u64 = scaled(1000, 200) as u64;
    let runtime = runtime(2);
    runtime.run(|| {
        scope(|s| {
            for _ in 0..FIBERS {
                spawn(s, || yield_now().unwrap());
            }
        });
    });
    let stats = runtime.stats();
    let sum = |f: fn(&fiber_rt::WorkerStats) -> u64| stats.workers.iter().map(f).sum::<u64>();
    assert_eq!(sum(|w| w.spawns), FIBERS);
    assert_eq!(sum(|w| w.finishes), FIBERS + 1);
    assert_eq!(sum(|w| w.dispatches), sum(|w| w.finishes + w.yields + w.parks));
    assert_eq!(stats.global_queue, 0);
}

pub fn the_depth_of_the_deepest_stack_is_told() {
    const DEEP: usize = 20 << 10;
    fn deep(bytes: usize) -> usize {
        let room = core::hint::black_box([1u8; 1024]);
        let below = if bytes > room.len() { deep(bytes - room.len()) } else { 0 };
        usize::from(room[below % room.len()]) + below
    }
    let runtime = runtime(1);
    runtime.run(|| scope(|s| s.spawn(|| ()).unwrap().join().unwrap()));
    let shallow = runtime.stats();
    assert!(shallow.stack_high_water_bytes > 0 && shallow.stack_high_water_bytes < DEEP);
    let depth = runtime.run(|| scope(|s| s.spawn(|| deep(DEEP)).unwrap().join().unwrap()));
    assert_eq!(depth, DEEP / 1024);
    let stats = runtime.stats();
    assert!(stats.stack_high_water_bytes >= DEEP, "{}", stats.stack_high_water_bytes);
    assert!(stats.stack_high_water_bytes <= stats.stack_bytes);
    // It stays when the fiber is gone.
    runtime.run(|| ());
    assert_eq!(runtime.stats().stack_high_water_bytes, stats.stack_high_water_bytes);
}

pub fn runtimes_come_and_go() {
    for _ in 0..scaled(50, 10) {
        let runtime = runtime(2);
        assert_eq!(runtime.run(|| scope(|s| s.spawn(|| 3).unwrap().join().unwrap())), 3);
    }
}

pub fn a_number_of_workers_that_makes_no_sense_is_refused() {
    let error = Runtime::builder().workers(0).build().unwrap_err();
    assert_eq!(error.to_string(), "0 workers were asked for; a runtime has from 1 to 128");
    assert!(Runtime::builder().workers(1000).build().is_err());
}
