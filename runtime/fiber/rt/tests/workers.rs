//! What a trace holds, which needs a reader of JSON, and that nothing grows. All else about workers is in
//! //test/fiber.
use fiber_rt::{Runtime, Scope, name, scope, yield_now};

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
    assert!(runs("yielded") >= 20, "{} yields", runs("yielded"));
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
