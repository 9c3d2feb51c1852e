//! What CPUs count: requests for other shares, ways into idleness, flushes.

use crate::bench::{Bench, Order, QUANTUM_NS, compute, set_times};
use schema::memory_capnp::MemoryAccess;
use schema::scheduling_policy_capnp::LatencyClass;
use schema::system_info::CpuCounters;
use schema::virtual_memory;
use test_kit::{Outcome, T, check, check_eq, require_ok, require_some};

type Test<'a> = T<'a, Bench>;

/// A count of all CPUs together.
fn total(t: &Test<'_>, of: impl Fn(&CpuCounters) -> u64) -> u64 {
    let program = &t.env.program;
    (0..program.cpus()).filter_map(|cpu| program.counters(cpu)).map(|counters| of(&counters)).sum()
}

/// Requests that were granted and refused, one by one.
pub fn requests(t: &mut Test<'_>) -> Outcome {
    let counts = |t: &Test<'_>| (total(t, |c| c.policy_admissions), total(t, |c| c.policy_denials));
    let (admitted, denied) = counts(t);
    let mut own = t.env.own(t.env.low);
    for _ in 0..3 {
        require_ok!(t, own.set_weight(64));
    }
    require_ok!(t, own.set_latency_class(LatencyClass::Normal));
    for weight in [0, 101] {
        check!(t, own.set_weight(weight).is_err(), "{weight}");
    }
    require_ok!(t, own.snapshot());
    let stale = require_ok!(t, t.env.scheduler().set_weight(crate::bench::NO_NAME, 64));
    check_eq!(t, stale.result, crate::bench::STALE);
    check_eq!(t, counts(t), (admitted + 4, denied + 3));
    Ok(())
}

/// A CPU leaves a thread for its idle loop because the thread waits or has ended, and halts; a halt that does not follow
/// from a thread is the idle loop's own.
pub fn idleness(t: &mut Test<'_>) -> Outcome {
    const SLEEPS: u64 = 10;
    let ways =
        |c: &CpuCounters| c.idle_dispatch_timer + c.idle_dispatch_block + c.idle_dispatch_exit;
    for cpu in 0..t.env.program.cpus() {
        let now = require_some!(t, t.env.program.counters(cpu));
        // Where CPUs race, one more may come between two reads.
        check!(t, now.idle_entries <= now.idle_cooperative + ways(&now) + 2, "{now:?}");
        check!(t, now.runnable_max >= now.runnable, "more wait than ever did: {now:?}");
    }
    let (blocks, halts) = (total(t, |c| c.idle_dispatch_block), total(t, |c| c.idle_entries));
    for _ in 0..SLEEPS {
        t.env.program.sleep(100_000);
    }
    let (blocks, halts) =
        (total(t, |c| c.idle_dispatch_block) - blocks, total(t, |c| c.idle_entries) - halts);
    check!(t, blocks >= 1 && halts >= 1, "{blocks} waits, {halts} halts for {SLEEPS} sleeps");
    if t.env.program.cpus() == 1 {
        check_eq!(t, (blocks, halts), (SLEEPS, SLEEPS));
        // A CPU looks around ten times a second, by itself.
        let alone = total(t, |c| c.idle_cooperative);
        t.env.program.sleep(50 * QUANTUM_NS);
        let alone = total(t, |c| c.idle_cooperative) - alone;
        check!(t, (4..=5).contains(&alone), "{alone} looks in half a second");
    }
    // This thread joins, and so waits: the sibling is the last to leave its CPU.
    let ends = total(t, |c| c.idle_dispatch_exit);
    set_times(QUANTUM_NS);
    let handle = require_some!(t, t.env.start(0, Order::COMPUTE));
    check!(t, t.env.program.finish(handle) == Ok(0), "a sibling failed");
    let ends = total(t, |c| c.idle_dispatch_exit) - ends;
    if t.env.program.cpus() == 1 {
        check_eq!(t, ends, 1);
    }
    t.metric("idle by an end", ends, "");
    Ok(())
}

/// Pages that are taken away while a sibling runs on another CPU: that CPU is asked to forget them.
pub fn flushes(t: &mut Test<'_>) -> Outcome {
    const ROUNDS: u64 = 20;
    if t.env.program.cpus() == 1 {
        check_eq!(t, total(t, |c| c.tlb_requests), 0);
        return Ok(());
    }
    set_times(100_000 * QUANTUM_NS);
    let handle = require_some!(t, t.env.start(0, Order::COMPUTE));
    t.env.tid_of(0);
    // Long enough for the sibling to compute.
    t.env.program.sleep(8 * QUANTUM_NS);
    let before = total(t, |c| c.tlb_requests);
    for _ in 0..ROUNDS {
        let caller = t.env.program.io().caller();
        let mut memory = virtual_memory::Client::new(caller, t.env.memory);
        let mapped = require_ok!(t, memory.map(0, 4096, MemoryAccess::Write, false)).mapped;
        require_ok!(t, memory.unmap(mapped, 4096));
        (0..50).for_each(|_| compute());
    }
    let asked = total(t, |c| c.tlb_requests) - before;
    check!(t, t.env.finish(&[handle]), "a sibling failed");
    check!(t, asked >= 1, "no CPU was asked to flush in {ROUNDS} rounds");
    if t.env.is_deterministic() {
        check!(t, asked >= ROUNDS / 2, "asked {asked} times in {ROUNDS} rounds");
    }
    check_eq!(t, total(t, |c| c.tlb_failures), 0);
    t.metric("asked to flush", asked, "");
    Ok(())
}
