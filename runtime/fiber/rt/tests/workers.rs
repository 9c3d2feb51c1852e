//! What a trace holds, which needs a reader of JSON; why no worker was added, which takes a machine that is
//! not simulated; and that nothing grows. All else about workers is in //test/fiber.
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};
use std::time::{Duration, Instant};

use fiber_core::scaling::Telemetry;
use fiber_rt::{Runtime, Scope, name, scope, sleep, yield_now};

fn spawn<'scope>(s: &'scope Scope<'scope, '_>, f: impl FnOnce() + Send + 'scope) {
    drop(s.spawn(f).unwrap());
}

#[test]
fn a_trace_is_json_with_a_slice_for_every_run() {
    let runtime = Runtime::builder().workers(2).trace_events(4096).build().unwrap();
    runtime.run(|| {
        scope(|s| {
            for _ in 0..20 {
                spawn(s, || {
                    name("yields");
                    (0..5).for_each(|_| yield_now().unwrap());
                });
            }
        });
    });
    let trace = runtime.trace();
    assert!(!trace.is_empty());
    let json: serde_json::Value = serde_json::from_str(&trace.to_json()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let runs = |then: &str| {
        let runs = events.iter().filter(|event| event["ph"] == "X" && event["name"] == "yields");
        runs.filter(|run| run["args"]["then"] == then).count()
    };
    assert_eq!(runs("ended"), 20);
    // Nobody else yields.
    let yields: u64 = runtime.stats().workers.iter().map(|worker| worker.yields).sum();
    assert!(yields >= 20, "{yields} yields");
    assert_eq!(runs("yielded") as u64, yields);
    // Viewers have a meaning of their own for thread 0, and for one with its process' number.
    let timed = events.iter().filter(|event| event["ph"] != "M");
    for event in timed {
        assert!(event["tid"].as_u64().is_some_and(|thread| thread != 0), "{event}");
        assert!(event["pid"].is_u64() && event["pid"] != event["tid"], "{event}");
    }
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

/// Lets so many fibers yield to each other for a while, again and again, until the monitor has seen what
/// it is to see. Nobody ever counts as stalled.
fn until(workers: usize, fibers: usize, seen: fn(&Telemetry) -> bool) {
    let patience = Duration::from_secs(50);
    let runtime = Runtime::builder().workers(workers).stall_after(20 * patience).build().unwrap();
    let began = Instant::now();
    runtime.run(|| {
        while !seen(&runtime.stats().scaling) {
            let scaling = runtime.stats().scaling;
            assert!(began.elapsed() < patience, "{scaling:?}");
            scope(|s| {
                let until = Instant::now() + Duration::from_millis(5);
                let yields = move || {
                    while Instant::now() < until {
                        (0..100).for_each(|_| yield_now().unwrap());
                    }
                };
                (0..fibers).for_each(|_| spawn(s, yields));
            });
            // All workers fall asleep.
            sleep(Duration::from_millis(2)).unwrap();
        }
    });
    let scaling = runtime.stats().scaling;
    assert_eq!(scaling.promotions, 0, "nobody is stuck");
    let gates = scaling.gate_no_work
        + scaling.gate_nonpositive
        + scaling.gate_idle_capacity
        + scaling.gate_not_stuck
        + scaling.gate_at_limit;
    assert_eq!(gates, scaling.samples(), "every sample has its reason");
}

#[test]
fn a_runtime_gives_each_reason_not_to_add_a_worker() {
    // One fiber, and nothing queued.
    until(1, 1, |scaling| scaling.gate_no_work > 0);
    // Many queued, and their worker gets on with them.
    until(1, 8, |scaling| scaling.gate_not_stuck > 0 && scaling.positive_samples > 0);
    // Something queued, and another worker asleep.
    until(2, 8, |scaling| scaling.gate_idle_capacity > 0);
}

/// One is queued at a time, and it takes long to look at so many workers: what was dequeued is counted
/// later than what was enqueued.
#[test]
fn a_runtime_sees_pressure_that_is_not_positive() {
    until(64, 2, |scaling| scaling.gate_nonpositive > 0 && scaling.negative_streak_most > 0);
}

/// What a future's waker keeps goes where it is woken: on a worker, or on the monitor's thread.
struct Keeper {
    runtime: Mutex<Option<Runtime>>,
    has_ended: AtomicBool,
}

impl Wake for Keeper {
    fn wake(self: Arc<Self>) {
        drop(self.runtime.lock().unwrap().take());
        self.has_ended.store(true, Ordering::Release);
    }
}

#[test]
fn a_runtime_may_end_on_a_thread_of_its_own() {
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let mut sleep = pin!(runtime.sleep(Duration::from_millis(1)));
        let has_ended = AtomicBool::new(false);
        let keeper = Arc::new(Keeper { runtime: Mutex::new(None), has_ended });
        let waker = keeper.clone().into();
        // With the lock held: the runtime is there when the waker comes for it.
        let mut kept = keeper.runtime.lock().unwrap();
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        *kept = Some(runtime);
        drop(kept);
        // One that waited for itself would never end.
        while !keeper.has_ended.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }
}
