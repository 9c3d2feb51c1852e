//! Holders who want more than their share: nobody gets it, and nobody is kept from a share of one thousandth.

use crate::bench::{
    Bench, NO_NAME, Order, QUANTUM_NS, UNSET, compute, compute_for, goes_on, own, said, set_times,
    slot, timer,
};
use capos_rt::caller::Caller;
use capos_rt::now_ns;
use core::sync::atomic::{AtomicU64, Ordering};
use schema::scheduling_policy;
use schema::scheduling_policy_capnp::LatencyClass;
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_ok, require_some};

type Test<'a> = T<'a, Bench>;

/// For how long an attacker and a victim compete.
const PERIOD_NS: u64 = 40 * QUANTUM_NS;

static RAN_NS: AtomicU64 = AtomicU64::new(0);
static PATTERN: AtomicU64 = AtomicU64::new(0);

/// The attacker's capability, whose ceiling is its process's weight: as much as the victim weighs.
fn equal(child: &Child) -> scheduling_policy::Client<Caller<'_>> {
    scheduling_policy::Client::new(child.io.caller(), slot(&UNSET))
}

/// Computes with another share every moment.
fn flip(child: &Child) -> i64 {
    let pattern = PATTERN.load(Ordering::Relaxed);
    let Ok(before) = own(child).snapshot() else { return 1 };
    let mut round = 0u64;
    while goes_on() {
        round += 1;
        let weight = match pattern {
            0 => 1 + (round * 7) as u16 % 64,
            1 => {
                if round.is_multiple_of(2) {
                    64
                } else {
                    1
                }
            }
            _ => 64,
        };
        let class = match (pattern, round % 4) {
            (1, _) | (_, 0) => LatencyClass::Interactive,
            (_, 1) => LatencyClass::Batch,
            (_, 2) => LatencyClass::Normal,
            _ => LatencyClass::IpcServer,
        };
        let mut policy = equal(child);
        if policy.set_weight(weight).is_err() || policy.set_latency_class(class).is_err() {
            return 2;
        }
        // To be queued with it as often as may be.
        if pattern == 2 && child.io.yield_now().is_err() {
            return 3;
        }
        compute();
    }
    note(child, before.runtime_ns)
}

/// Asks for the greatest weight before it waits and for the least while it runs, or the other way round, and waits as
/// briefly as it can: to be owed as a heavy thread and to owe as a light one.
fn bank(child: &Child) -> i64 {
    let pattern = PATTERN.load(Ordering::Relaxed);
    let Ok(before) = own(child).snapshot() else { return 1 };
    let (waits, runs) = if pattern.is_multiple_of(2) { (64, 1) } else { (1, 64) };
    let class = |of: u64| if of == 0 { LatencyClass::Batch } else { LatencyClass::Interactive };
    while goes_on() {
        let mut policy = equal(child);
        let asked =
            policy.set_weight(waits).and_then(|()| policy.set_latency_class(class(pattern / 2)));
        if asked.is_err() || timer(child).sleep(20_000).is_err() {
            return 2;
        }
        let asked =
            policy.set_weight(runs).and_then(|()| policy.set_latency_class(class(1 - pattern / 2)));
        if asked.is_err() {
            return 3;
        }
        compute_for(QUANTUM_NS * 9 / 10);
    }
    note(child, before.runtime_ns)
}

fn note(child: &Child, before_ns: u64) -> i64 {
    let Ok(after) = own(child).snapshot() else { return 4 };
    RAN_NS.store(after.runtime_ns - before_ns, Ordering::Relaxed);
    0
}

/// The victim computes under the default share beside one attacker of the same ceiling: it has half of the CPU, less a
/// slice at each end.
fn beside(t: &mut Test<'_>, attack: fn(&Child) -> i64, pattern: u64) -> Outcome {
    PATTERN.store(pattern, Ordering::Relaxed);
    RAN_NS.store(0, Ordering::Relaxed);
    let period = if t.env.program.cpus() == 1 { PERIOD_NS } else { PERIOD_NS / 10 };
    set_times(period);
    let victim = require_some!(t, t.env.start(0, Order::COMPUTE));
    let attacker = require_ok!(t, t.env.program.spawn(1, attack, 0));
    check_eq!(t, t.env.program.finish(victim), Ok(0));
    check_eq!(t, t.env.program.finish(attacker), Ok(0));
    let (victim, attacker) = (said(0), RAN_NS.load(Ordering::Relaxed));
    if t.env.program.cpus() == 1 {
        let least = victim.for_ns / 2 - 2 * QUANTUM_NS;
        check!(t, victim.runtime_ns >= least, "pattern {pattern}: {victim:?}, {attacker}");
        t.metric("victim", victim.runtime_ns * 1000 / victim.for_ns, "thousandths");
    }
    Ok(())
}

/// Weight and class changed as fast as it goes.
pub fn flips(t: &mut Test<'_>) -> Outcome {
    (0..3).try_for_each(|pattern| beside(t, flip, pattern))
}

/// Lag made under one weight and used under another.
pub fn banked_lag(t: &mut Test<'_>) -> Outcome {
    (0..4).try_for_each(|pattern| beside(t, bank, pattern))
}

/// A scheduler's holder weighs the victim as little as it may and itself as much as the default, again and again, in
/// batch class: the victim is late, and it runs.
pub fn held_down(t: &mut Test<'_>) -> Outcome {
    set_times(1_000 * QUANTUM_NS);
    let victim = require_some!(t, t.env.start(0, Order::COMPUTE));
    let tid = t.env.tid_of(0);
    let name = require_some!(t, t.env.named(tid));
    check!(t, name != NO_NAME, "no name");
    t.env.program.sleep(5 * QUANTUM_NS);
    let before = require_some!(t, t.env.account(name));
    let from = now_ns();
    // All weights, times the least one's: 65 slices, and eight times that is what is promised.
    let until = from + if t.env.program.cpus() == 1 { 200 * QUANTUM_NS } else { QUANTUM_NS };
    let mut rounds = 0u64;
    while now_ns() < until {
        let mut scheduler = t.env.scheduler();
        let weight = 1 + (rounds % 2) as u16;
        require_ok!(t, scheduler.set_weight(name, weight));
        let class =
            if rounds.is_multiple_of(2) { LatencyClass::Batch } else { LatencyClass::Normal };
        require_ok!(t, scheduler.set_latency_class(name, class));
        (0..200).for_each(|_| compute());
        rounds += 1;
    }
    let after = require_some!(t, t.env.account(name));
    let ran = after.runtime_ns - before.runtime_ns;
    if t.env.program.cpus() == 1 {
        check!(t, ran > 0, "a thread of weight 1 did not run in two seconds: {after:?}");
    }
    t.metric("ran under the least weight", ran, "ns");
    check!(t, t.env.finish(&[victim]), "the victim failed");
    Ok(())
}
