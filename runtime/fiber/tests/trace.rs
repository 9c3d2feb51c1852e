//! A program whose trace is worth a look in a viewer, with nurseries within nurseries, channels and
//! names; and what a viewer needs to find in it.
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fiber::channel::bounded;
use fiber::sync::Mutex;
use fiber::{Runtime, name, nursery, sleep, yield_now};
use serde_json::Value;

/// Something to do that takes a while.
fn work(rounds: u64) -> u64 {
    (0..rounds * 1000).fold(1, |sum, i| std::hint::black_box(sum ^ (sum << 7) ^ i))
}

fn traced() -> Runtime {
    let runtime = Runtime::builder().workers(2).trace_events(4096).build().unwrap();
    runtime.run(|| {
        name("main");
        let (tx, rx) = bounded(2);
        let total = Mutex::new(0);
        nursery(|n| {
            n.spawn(move || {
                name("producer \"one\" \\ ü\n");
                for value in 0..20 {
                    work(50);
                    tx.send(value).unwrap();
                }
            });
            for _ in 0..2 {
                n.spawn(|| {
                    name("consumer");
                    nursery(|inner| {
                        for value in &rx {
                            let total = &total;
                            inner.spawn(move || {
                                name("adds");
                                work(300);
                                *total.lock() += value;
                                yield_now().unwrap();
                            });
                        }
                    });
                });
            }
            n.spawn(|| {
                work(100);
                sleep(Duration::from_millis(1)).unwrap();
                work(100);
            });
        });
        assert_eq!(total.into_inner(), 190);
    });
    runtime
}

/// The events of a trace, as a viewer reads them.
fn events_of(runtime: &Runtime) -> Vec<Value> {
    let json = runtime.trace().to_json();
    // The first one is the one to look at.
    let is_first = json.contains("consumer");
    if let Some(folder) = std::env::var_os("TEST_UNDECLARED_OUTPUTS_DIR").filter(|_| is_first) {
        std::fs::write(std::path::Path::new(&folder).join("trace.json"), &json).unwrap();
    }
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["displayTimeUnit"], "ns");
    json["traceEvents"].as_array().unwrap().clone()
}

fn of_phase<'a>(events: &'a [Value], phase: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == phase).collect()
}

/// When an event begins and ends, in nanoseconds.
fn span(event: &Value) -> (i64, i64) {
    let ns = |key: &str| (event[key].as_f64().unwrap_or(0.0) * 1000.0).round() as i64;
    (ns("ts"), ns("ts") + ns("dur"))
}

/// What the format asks of every event: thread and process that are told apart, times in order, slices
/// one after the other, flows from a slice to a slice.
fn check_format(events: &[Value]) {
    let mut last_ns = 0;
    let mut slices: BTreeMap<u64, Vec<(i64, i64)>> = BTreeMap::new();
    for event in events {
        assert!(event["name"].is_string() && event["pid"].is_u64(), "{event}");
        if event["ph"] == "M" {
            continue;
        }
        let thread = event["tid"].as_u64().unwrap();
        assert!(thread != 0, "thread 0 is the idle one of a system: {event}");
        assert!(event["tid"] != event["pid"], "taken for the main thread: {event}");
        let (from_ns, to_ns) = span(event);
        assert!(from_ns >= last_ns, "not in order: {event}");
        last_ns = from_ns;
        match event["ph"].as_str().unwrap() {
            "X" => {
                assert!(event["dur"].is_number(), "{event}");
                let slices = slices.entry(thread).or_default();
                assert!(slices.last().is_none_or(|last| last.1 <= from_ns), "overlaps: {event}");
                slices.push((from_ns, to_ns));
            }
            "i" => assert_eq!(event["s"], "t", "{event}"),
            "s" | "f" => assert!(event["id"].is_u64() && event["cat"].is_string(), "{event}"),
            other => panic!("phase {other}"),
        }
    }
    let in_a_slice = |event: &Value| {
        let at_ns = span(event).0;
        let slices = &slices[&event["tid"].as_u64().unwrap()];
        slices.iter().any(|slice| (slice.0..=slice.1).contains(&at_ns))
    };
    let (begins, ends) = (of_phase(events, "s"), of_phase(events, "f"));
    assert!(begins.iter().chain(&ends).all(|event| in_a_slice(event)));
    for begin in &begins {
        let ends: Vec<_> = ends.iter().filter(|end| end["id"] == begin["id"]).collect();
        assert!(ends.len() == 1 && ends[0]["bp"] == "e", "one end for {begin}");
        assert!(span(ends[0]).0 >= span(begin).0, "before its cause: {begin}");
    }
    assert_eq!(begins.len(), ends.len());
}

#[test]
fn a_trace_says_who_ran_where_and_why_it_stopped() {
    let runtime = traced();
    let events = events_of(&runtime);
    check_format(&events);
    let named = |what: &str| {
        let named = events.iter().filter(|event| event["ph"] == "M" && event["name"] == what);
        let mut names: Vec<_> = named.map(|event| event["args"]["name"].clone()).collect();
        names.sort_by_key(Value::to_string);
        names
    };
    assert_eq!(named("process_name"), ["fibers"]);
    assert!(named("thread_name").contains(&"worker 0".into()));
    let slices = of_phase(&events, "X");
    let of =
        |name: &str| -> Vec<_> { slices.iter().filter(|slice| slice["name"] == name).collect() };
    let then = |name: &str, what: &str| {
        let slices = of(name);
        let mut ends = slices.iter().filter_map(|slice| slice["args"]["then"].as_str());
        ends.any(|then| then.starts_with(what))
    };
    // Names, also of fibers that have ended, and whatever they are made of.
    assert!(then("main", "waits for Scope at 0x"));
    assert!(then("producer \"one\" \\ ü\n", "waits for Send at 0x"));
    assert!(then("consumer", "waits for Receive at 0x"));
    assert!(then("adds", "ended"));
    let fibers = |name: &str| {
        let fibers: BTreeSet<_> =
            of(name).iter().map(|slice| slice["args"]["fiber"].to_string()).collect();
        fibers.len()
    };
    assert_eq!((fibers("main"), fibers("consumer"), fibers("adds")), (1, 2, 20));
    // One has no name, and sleeps.
    let nameless = |slice: &&&Value| slice["name"].as_str().unwrap().starts_with("fiber ");
    let sleeper = slices.iter().filter(nameless).map(|slice| &slice["args"]["then"]);
    assert!(sleeper.into_iter().any(|then| then == "waits for Timer"));
    // Every fiber but the first was made runnable by what ran.
    assert!(of_phase(&events, "s").len() >= 24);
}

#[test]
fn what_is_under_way_and_what_was_overwritten() {
    let runtime = Runtime::builder().workers(1).trace_events(16).build().unwrap();
    let events = runtime.run(|| {
        name("runs on");
        nursery(|n| {
            for _ in 0..100 {
                n.spawn(|| yield_now().unwrap());
            }
        });
        events_of(&runtime)
    });
    check_format(&events);
    let slices = of_phase(&events, "X");
    assert!((1..16).contains(&slices.len()), "{}", slices.len());
    let last = slices.last().unwrap();
    assert_eq!((&last["name"], &last["args"]["then"]), (&"runs on".into(), &"runs on".into()));
}
