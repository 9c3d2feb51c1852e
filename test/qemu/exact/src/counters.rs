//! What CPUs count, compared with what happened.

use capos_rt::caller::call;
use capos_rt::now_ns;
use capos_rt::syscall::cap_enter;
use core::sync::atomic::{AtomicU32, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::system_info::CpuCounters;
use test_bare::program::{Program, work};
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_ok, require_some};

use crate::peer::ECHO;

type Test<'a> = T<'a, Program>;

/// CPUs of the largest machine here.
const CPUS: usize = 2;
/// How long a thread runs while another waits.
const SLICE_NS: u64 = 10_000_000;

/// A look at every CPU, each with an entry; that of a CPU that is not there is CPU 0's.
fn look(program: &Program) -> Option<[CpuCounters; CPUS]> {
    let first = program.counters(0)?;
    let second = if program.cpus() > 1 { program.counters(1)? } else { first };
    Some([first, second])
}

/// What each CPU has counted meanwhile, and all of them together.
fn difference(
    program: &Program,
    before: &[CpuCounters; CPUS],
    after: &[CpuCounters; CPUS],
    of: impl Fn(&CpuCounters) -> u64,
) -> ([u64; CPUS], u64) {
    let mut each = core::array::from_fn(|cpu| of(&after[cpu]) - of(&before[cpu]));
    if program.cpus() == 1 {
        each[1] = 0;
    }
    (each, each.iter().sum())
}

/// Entries are counted by the CPU that has them, one by one.
pub fn entries(t: &mut Test<'_>) -> Outcome {
    const ENTRIES: u64 = 100;
    let before = require_some!(t, look(t.env));
    for _ in 0..ENTRIES {
        let _ = cap_enter(0, 0);
    }
    let after = require_some!(t, look(t.env));
    let (each, all) = difference(t.env, &before, &after, |counters| counters.syscalls);
    // Beside those: how many CPUs there are is asked once a look, and each CPU's look is an entry of its own.
    check!(t, (ENTRIES..=ENTRIES + 4).contains(&all), "{all} entries for {ENTRIES}");
    let busy = each.iter().filter(|&&count| count > 0).count();
    check!(t, busy == 1, "{busy} CPUs had entries: {each:?}");
    Ok(())
}

/// A call of a server that waits is a hand-over there and one back.
pub fn calls(t: &mut Test<'_>) -> Outcome {
    const CALLS: u64 = 50;
    let peer = require_ok!(t, t.env.env.cap("peer", plain_schema::plain::INTERFACE_ID));
    // The first one may bring the server along.
    let _ = require_ok!(t, t.env.io().run(call(peer, PLAIN, ECHO, 8), &[0], &mut [0; 16]));
    let before = require_some!(t, look(t.env));
    for word in 0..CALLS {
        let _ = require_ok!(t, t.env.io().run(call(peer, PLAIN, ECHO, 8), &[word], &mut [0; 16]));
    }
    let after = require_some!(t, look(t.env));
    let (_, taken) = difference(t.env, &before, &after, |counters| counters.handoffs_taken);
    let (_, missed) = difference(t.env, &before, &after, |counters| counters.handoffs_missed);
    let (_, switches) = difference(t.env, &before, &after, |counters| counters.switches);
    check_eq!(t, (taken, missed), (2 * CALLS, 0));
    check_eq!(t, switches, 2 * CALLS);
    Ok(())
}

/// A sleep with nobody else to run is a time of idleness, an interrupt of the timer and two switches.
pub fn sleeps(t: &mut Test<'_>) -> Outcome {
    const SLEEPS: u64 = 20;
    const SLEEP_NS: u64 = 70_000;
    let before = require_some!(t, look(t.env));
    for _ in 0..SLEEPS {
        t.env.sleep(SLEEP_NS);
    }
    let after = require_some!(t, look(t.env));
    let (_, interrupts) = difference(t.env, &before, &after, |counters| counters.timer_interrupts);
    let (_, idle) = difference(t.env, &before, &after, |counters| counters.idle_entries);
    let (_, switches) = difference(t.env, &before, &after, |counters| counters.switches);
    check_eq!(t, (interrupts, switches), (SLEEPS, 2 * SLEEPS));
    // A CPU looks again before it halts, and may be woken by what it does not need.
    check!(t, (SLEEPS..=3 * SLEEPS).contains(&idle), "{idle} times idle for {SLEEPS} sleeps");
    let (_, idle_ns) = difference(t.env, &before, &after, |counters| counters.idle_ns);
    if t.env.cpus() == 1 {
        // The interrupt that ends a sleep comes to an idle CPU: its time is idle too.
        let asked = SLEEPS * SLEEP_NS;
        check!(t, idle_ns.abs_diff(asked) <= asked / 20, "idle for {idle_ns} ns of {asked}");
    }
    Ok(())
}

static IS_OVER: AtomicU32 = AtomicU32::new(0);

fn compute(_: &Child) -> i64 {
    while IS_OVER.load(Ordering::Relaxed) == 0 {
        work(100);
    }
    0
}

/// Two threads that compute on one CPU take turns: each turn is a preemption, which is a switch, by an
/// interrupt of the timer; and one of them waits.
pub fn slices(t: &mut Test<'_>) -> Outcome {
    const SLICES: u64 = 8;
    if t.env.cpus() > 1 {
        return t.skip("one CPU, for two threads");
    }
    IS_OVER.store(0, Ordering::Relaxed);
    let handle = require_ok!(t, t.env.spawn(0, compute, 0));
    let before = require_some!(t, look(t.env));
    check_eq!(t, before[0].runnable, 1);
    let until = now_ns() + SLICES * SLICE_NS;
    while now_ns() < until {
        work(16);
    }
    let after = require_some!(t, look(t.env));
    IS_OVER.store(1, Ordering::Relaxed);
    check_eq!(t, t.env.finish(handle), Ok(0));
    let (_, preemptions) = difference(t.env, &before, &after, |counters| counters.preemptions);
    let (_, switches) = difference(t.env, &before, &after, |counters| counters.switches);
    let (_, interrupts) = difference(t.env, &before, &after, |counters| counters.timer_interrupts);
    // One may be under way at each end.
    check!(t, preemptions.abs_diff(SLICES) <= 1, "{preemptions} preemptions in {SLICES} slices");
    check_eq!(t, (switches, interrupts), (preemptions, preemptions));
    let (_, idle_ns) = difference(t.env, &before, &after, |counters| counters.idle_ns);
    check_eq!(t, idle_ns, 0);
    Ok(())
}
