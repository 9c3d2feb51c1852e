//! SchedulerControl: any thread by its name, pages of all, loads.

use crate::bench::{Bench, NO_NAME, OK, Order, QUANTUM_NS, STALE, name_of, said, set_times};
use crate::guest;
use abi_types::{CapSlot, ExceptionKind};
use schema::scheduler_control::{self, ThreadName};
use schema::scheduling_policy_capnp::LatencyClass;
use schema_wire::CallError;
use test_bare::program::is_exception;
use test_kit::{Outcome, T, check, check_eq, require, require_ok, require_some};

type Test<'a> = T<'a, Bench>;

/// A thread of another process, wherever it is: weight, class, account.
pub fn any_thread(t: &mut Test<'_>) -> Outcome {
    let [pid, tid] = require_some!(t, guest::ask(t, guest::WHO, 0));
    let is_its = |one: &scheduler_control::ThreadAccount| {
        (u64::from(one.pid), u64::from(one.tid)) == (pid, tid)
    };
    let found = require_some!(t, t.env.find(is_its));
    check_eq!(t, (found.weight, found.class), (32, LatencyClass::Normal));
    let name = name_of(&found);
    for weight in [0, 1025, u16::MAX] {
        let refused = t.env.scheduler().set_weight(name, weight);
        let said = "weight has to be from 1 to 1024";
        let is_refused = is_exception(&refused, ExceptionKind::InvalidArgument, said);
        require!(t, is_refused, "{weight}: {refused:?}");
    }
    for (weight, class) in [
        (1, LatencyClass::Batch),
        (1024, LatencyClass::Interactive),
        (100, LatencyClass::IpcServer),
    ] {
        let answer = require_ok!(t, t.env.scheduler().set_weight(name, weight));
        check_eq!(t, answer.result, OK);
        let answer = require_ok!(t, t.env.scheduler().set_latency_class(name, class));
        check_eq!(t, answer.result, OK);
        // It waits: what was asked counts from its next wake on.
        check!(t, guest::weighs(t, weight), "{weight} is not in effect");
        let now = require_some!(t, t.env.account(name));
        check_eq!(t, (now.weight, now.class, now.context_id), (weight, class, 0));
        check!(t, now.runtime_ns >= found.runtime_ns && now.voluntary_blocks > 0, "{now:?}");
    }
    // Its own capability still reaches to its process's weight, and no farther.
    check_eq!(t, guest::ask(t, guest::WEIGH, 100), Some([0, 0]));
    require_ok!(t, t.env.scheduler().set_latency_class(name, LatencyClass::Normal));
    check_eq!(t, guest::ask(t, guest::WEIGH, 32), Some([1, 0]));
    check!(t, guest::weighs(t, 32), "its own weight is not in effect");
    Ok(())
}

/// A name with any part changed, and that of a thread that has ended.
pub fn stale_names(t: &mut Test<'_>) -> Outcome {
    set_times(QUANTUM_NS);
    let handle = require_some!(t, t.env.start(0, Order::COMPUTE));
    let tid = t.env.tid_of(0);
    let name = require_some!(t, t.env.named(tid));
    check!(t, t.env.account(name).is_some(), "it lives");
    let wrong = [
        ThreadName { pid: name.pid + 1, ..name },
        ThreadName { process_generation: name.process_generation + 2, ..name },
        ThreadName { process_generation: name.process_generation - 1, ..name },
        ThreadName { tid: name.tid + 1, ..name },
        ThreadName { tid: u32::MAX, ..name },
        ThreadName { thread_generation: name.thread_generation + 1, ..name },
        NO_NAME,
    ];
    for wrong in wrong {
        check_eq!(t, t.env.scheduler().set_weight(wrong, 5).map(|answer| answer.result), Ok(STALE));
    }
    check_eq!(t, t.env.account(name).map(|account| account.weight), Some(64));
    check!(t, t.env.finish(&[handle]), "a sibling failed");
    let mut scheduler = t.env.scheduler();
    check_eq!(t, scheduler.set_weight(name, 5).map(|answer| answer.result), Ok(STALE));
    let class = scheduler.set_latency_class(name, LatencyClass::Batch);
    check_eq!(t, class.map(|answer| answer.result), Ok(STALE));
    let seen = require_ok!(t, scheduler.snapshot(name));
    check_eq!(t, (seen.result, seen.account.runtime_ns, seen.account.tid), (STALE, 0, 0));
    // Another thread in the same record has another name, and is as it was made.
    set_times(QUANTUM_NS);
    let handle = require_some!(t, t.env.start(0, Order::COMPUTE));
    let tid = t.env.tid_of(0);
    let next = require_some!(t, t.env.named(tid));
    check!(t, next != name, "{next:?} is used again");
    check_eq!(t, t.env.account(next).map(|account| account.weight), Some(64));
    check_eq!(t, scheduler.set_weight(name, 5).map(|answer| answer.result), Ok(STALE));
    check!(t, t.env.finish(&[handle]), "a sibling failed");
    Ok(())
}

/// Pages of one thread and pages of many are the same threads, in the order of their names.
pub fn pages(t: &mut Test<'_>) -> Outcome {
    set_times(1_000 * QUANTUM_NS);
    let mut handles = [CapSlot::NONE; 5];
    for (number, handle) in handles.iter_mut().enumerate() {
        let order = Order { weight: 0, computes_ns: 100_000 };
        *handle = require_some!(t, t.env.start(number, order));
    }
    for number in 0..handles.len() {
        t.env.tid_of(number);
    }
    let key =
        |name: ThreadName| (name.pid, name.process_generation, name.tid, name.thread_generation);
    let mut found = [[NO_NAME; 16]; 2];
    for (is_large, names) in found.iter_mut().enumerate() {
        let (mut after, mut count, mut calls) = (NO_NAME, 0, 0);
        loop {
            calls += 1;
            let mut page = [NO_NAME; 16];
            let more = if is_large == 1 {
                let mut scheduler = t.env.scheduler();
                let reading = require_ok!(t, scheduler.threads(after));
                let results = require_ok!(t, reading.get());
                for (place, one) in page.iter_mut().zip(results.accounts.iter()) {
                    *place = name_of(&require_ok!(t, one));
                }
                results.more
            } else {
                let caller = t.env.program.io().caller();
                let mut scheduler = scheduler_control::Client::new(caller, t.env.scheduler);
                let reading = require_ok!(t, scheduler.threads(after));
                let results = require_ok!(t, reading.get());
                check_eq!(t, results.accounts.len(), 1);
                for (place, one) in page.iter_mut().zip(results.accounts.iter()) {
                    *place = name_of(&require_ok!(t, one));
                }
                results.more
            };
            for name in page.into_iter().filter(|name| *name != NO_NAME) {
                check!(t, key(after) < key(name), "{name:?} after {after:?}");
                check!(t, count < names.len(), "more threads than there are");
                names[count] = name;
                count += 1;
                after = name;
            }
            if !more {
                break;
            }
        }
        // Five siblings, this thread and the guest's.
        check_eq!(t, count, 7);
        check_eq!(t, calls, if is_large == 1 { 1 } else { 7 });
    }
    check!(t, found[0] == found[1], "{found:?}");
    check!(t, t.env.finish(&handles), "a sibling failed");
    Ok(())
}

/// How busy CPUs are: this one runs this thread, and is not idle.
pub fn loads(t: &mut Test<'_>) -> Outcome {
    let cpus = t.env.program.cpus();
    let mut scheduler = t.env.scheduler();
    let (mut first, mut runnable, mut seen) = (0, 0, 0);
    loop {
        let reading = require_ok!(t, scheduler.loads(first));
        let page = require_ok!(t, reading.get());
        for load in page.loads.iter() {
            let load = require_ok!(t, load);
            check_eq!(t, load.cpu, seen);
            check_eq!(t, (load.promised_permille, load.isolated, load.lease_id), (0, false, 0));
            seen += 1;
            runnable += load.runnable;
        }
        first = seen;
        if !page.more {
            break;
        }
    }
    check_eq!(t, seen, cpus);
    check!(t, runnable >= 1, "nobody runs, and this thread asks");
    let past = require_ok!(t, scheduler.loads(cpus));
    let past = require_ok!(t, past.get());
    check_eq!(t, (past.loads.len(), past.more), (0, false));
    Ok(())
}

/// What needs contexts or leases is refused with a sentence that says so.
pub fn without_contexts(t: &mut Test<'_>) -> Outcome {
    fn is_refused<V>(answer: &Result<V, CallError>) -> bool {
        is_exception(answer, ExceptionKind::Unimplemented, "this kernel has no ")
    }
    let mut scheduler = t.env.scheduler();
    check!(t, is_refused(&scheduler.bind_context(1, 1, NO_NAME)), "bindContext");
    check!(t, is_refused(&scheduler.revoke_context(1, 1)), "revokeContext");
    check!(t, is_refused(&scheduler.revoke_lease(1, 1)), "revokeLease");
    Ok(())
}

/// Weights of threads that run, wait to run and sleep, on whatever CPU, again and again: what is in effect at the end
/// is what was asked last, and nobody is lost.
pub fn weights_while_they_run(t: &mut Test<'_>) -> Outcome {
    const ROUNDS: u16 = 60;
    set_times(100_000 * QUANTUM_NS);
    let mut handles = [CapSlot::NONE; 4];
    for (number, handle) in handles.iter_mut().enumerate() {
        let computes_ns = if number % 2 == 0 { 0 } else { 300_000 };
        *handle = require_some!(t, t.env.start(number, Order { weight: 0, computes_ns }));
    }
    let mut names = [NO_NAME; 4];
    for (number, name) in names.iter_mut().enumerate() {
        let tid = t.env.tid_of(number);
        *name = require_some!(t, t.env.named(tid));
    }
    let classes = [LatencyClass::Interactive, LatencyClass::Normal, LatencyClass::Batch];
    for round in 0..ROUNDS {
        for (number, name) in (0..).zip(names) {
            let weight = 1 + (round * 37 + number * 501) % 1024;
            let mut scheduler = t.env.scheduler();
            check_eq!(t, scheduler.set_weight(name, weight).map(|a| a.result), Ok(OK));
            let class = classes[usize::from(round + number) % 3];
            check_eq!(t, scheduler.set_latency_class(name, class).map(|a| a.result), Ok(OK));
        }
        if round % 8 == 0 {
            t.env.program.sleep(200_000);
        }
    }
    for name in names {
        require_ok!(t, t.env.scheduler().set_weight(name, 64));
        require_ok!(t, t.env.scheduler().set_latency_class(name, LatencyClass::Normal));
    }
    // Those that sleep are queued soon; those that compute when their slice ends.
    let mut turns = 0;
    while names.iter().any(|name| t.env.account(*name).is_some_and(|now| now.weight != 64)) {
        t.env.program.sleep(QUANTUM_NS / 10);
        turns += 1;
        // A thread that is alone on its CPU is not queued until somebody comes.
        if turns > 400 && t.env.program.cpus() > 2 {
            break;
        }
        require!(t, turns < 4_000, "a weight is not in effect");
    }
    check!(t, t.env.finish(&handles), "a sibling failed");
    for number in 0..handles.len() {
        check!(t, said(number).runtime_ns > 0, "sibling {number} did not run");
    }
    Ok(())
}
