//! On which CPU threads are: a new one on an idle CPU or its creator's, and none bound to any by what its process
//! holds.

use crate::bench::{Bench, NO_NAME, Order, QUANTUM_NS, compute, set_times};
use abi_types::CapSlot;
use test_kit::{Outcome, T, check, check_eq, require, require_some};

type Test<'a> = T<'a, Bench>;

/// The CPU of the first thread now.
fn here(t: &Test<'_>) -> Option<u16> {
    let env = t.env.program.env;
    t.env.account(t.env.named(env.tid)?).map(|account| account.cpu)
}

/// Where a sibling is queued that was just made, and where its creator was.
fn place_of_a_new_one(t: &Test<'_>, number: usize) -> Option<(CapSlot, u16, u16)> {
    let pid = t.env.program.env.pid.0;
    let own = t.env.program.env.tid.0;
    let mut others = [0; 32];
    let mut count = 0;
    t.env.find(|one| {
        if let Some(place) = others.get_mut(count).filter(|_| one.pid == pid) {
            *place = one.tid;
            count += 1;
        }
        false
    });
    let creator = here(t)?;
    let handle = t.env.start(number, Order::COMPUTE)?;
    let is_new = |tid: u32| tid != own && !others[..count].contains(&tid);
    let new = t.env.find(|one| one.pid == pid && is_new(one.tid))?;
    Some((handle, creator, new.cpu))
}

/// As long as a CPU is idle a new thread goes there; then to its creator's.
pub fn new_threads(t: &mut Test<'_>) -> Outcome {
    let cpus = t.env.program.cpus() as usize;
    if !t.env.is_deterministic() {
        return t.skip("where CPUs race, who is idle is old as soon as it is known");
    }
    set_times(100_000 * QUANTUM_NS);
    let mut handles = [CapSlot::NONE; 4];
    // Everybody else has come to rest.
    t.env.program.sleep(5 * QUANTUM_NS);
    for (number, handle) in handles.iter_mut().enumerate() {
        let (made, creator, place) = require_some!(t, place_of_a_new_one(t, number));
        *handle = made;
        if number + 1 < cpus {
            check!(t, place != creator, "thread {number} is beside its creator on CPU {place}");
        } else {
            check_eq!(t, place, creator);
        }
        // They begin to compute at once, but for a sleep: it is over.
        t.env.tid_of(number);
        t.env.program.sleep(5 * QUANTUM_NS);
    }
    check!(t, t.env.finish(&handles), "a sibling failed");
    Ok(())
}

/// Threads of a process that serves an endpoint and holds capabilities of every kind: one more than there are CPUs, so
/// that they have to move. Each of them does.
pub fn nobody_is_pinned(t: &mut Test<'_>) -> Outcome {
    let cpus = t.env.program.cpus() as usize;
    if cpus == 1 {
        return t.skip("needs two CPUs");
    }
    const LOOKS: u32 = 4_000;
    let count = (cpus + 1).min(5);
    set_times(1_000_000 * QUANTUM_NS);
    let mut handles = [CapSlot::NONE; 5];
    let mut names = [NO_NAME; 5];
    for number in 0..count {
        handles[number] = require_some!(t, t.env.start(number, Order::COMPUTE));
        let tid = t.env.tid_of(number);
        names[number] = require_some!(t, t.env.named(tid));
    }
    let mut seen = [0u64; 5];
    let mut looks = 0;
    while seen[..count].iter().any(|cpus| cpus.count_ones() < 2) {
        for (name, seen) in names[..count].iter().zip(&mut seen) {
            let account = require_some!(t, t.env.account(*name));
            *seen |= 1 << account.cpu;
        }
        (0..4).for_each(|_| compute());
        t.env.program.sleep(QUANTUM_NS);
        looks += 1;
        require!(t, looks < LOOKS, "threads stay where they are: {seen:?}");
    }
    check!(t, t.env.finish(&handles[..count]), "a sibling failed");
    t.metric("looks until all had moved", looks.into(), "");
    Ok(())
}
