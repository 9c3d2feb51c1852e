//! Who gets how much of the CPUs.

use crate::hog::{self, QUANTUM_NS};
use crate::is_deterministic;
use abi_types::CapSlot;
use capos_rt::now_ns;
use core::sync::atomic::{AtomicU32, Ordering};
use test_bare::program::Program;
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_ok, require_some};

type Test<'a> = T<'a, Program>;

const TURNS: u32 = 60;
static READY: AtomicU32 = AtomicU32::new(0);
/// Who had each turn.
static LOG: [AtomicU32; 3 * TURNS as usize] = [const { AtomicU32::new(0) }; 3 * TURNS as usize];
static TAKEN: AtomicU32 = AtomicU32::new(0);

fn take_turns(child: &Child) -> i64 {
    READY.fetch_add(1, Ordering::Relaxed);
    while READY.load(Ordering::Relaxed) < 3 {
        let _ = child.io.yield_now();
    }
    for _ in 0..TURNS {
        let turn = TAKEN.fetch_add(1, Ordering::Relaxed) as usize;
        LOG[turn].store(child.argument as u32, Ordering::Relaxed);
        if child.io.yield_now().is_err() {
            return 1;
        }
    }
    0
}

pub fn yield_takes_turns(t: &mut Test<'_>) -> Outcome {
    READY.store(0, Ordering::Relaxed);
    TAKEN.store(0, Ordering::Relaxed);
    let mut handles = [CapSlot::NONE; 3];
    for (number, handle) in handles.iter_mut().enumerate() {
        *handle = require_ok!(t, t.env.spawn(number, take_turns, number as u64));
    }
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    check_eq!(t, TAKEN.load(Ordering::Relaxed), 3 * TURNS);
    if t.env.cpus() > 1 {
        // On several CPUs there is no common order, only that everybody came to an end.
        return Ok(());
    }
    // Nobody has two turns in a row while others wait, and nobody waits for long.
    let mut last = [0usize; 3];
    for turn in 1..LOG.len() - 6 {
        let (before, now) =
            (LOG[turn - 1].load(Ordering::Relaxed), LOG[turn].load(Ordering::Relaxed));
        check!(t, before != now, "{now} has turn {turn} and the one before it");
        last[now as usize % 3] = turn;
        let longest = last.iter().map(|seen| turn - seen).max().unwrap_or(0);
        check!(t, longest <= 6, "somebody waits for {longest} turns at turn {turn}");
    }
    Ok(())
}

/// For how long hogs compete. A slice is one share of it, so shares are asserted to a quantum.
const PERIOD_NS: u64 = 160_000_000;

pub fn equal_siblings(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() > 1 {
        return t.skip("one CPU, so that two hogs share it");
    }
    let ran = require_some!(t, hog::siblings(t.env, 2, PERIOD_NS));
    check!(t, ran[0].abs_diff(ran[1]) <= QUANTUM_NS + QUANTUM_NS / 10, "{} and {}", ran[0], ran[1]);
    check!(t, ran[0] + ran[1] > PERIOD_NS * 98 / 100, "{} of {PERIOD_NS} ns", ran[0] + ran[1]);
    for waited in &hog::WAITED_NS[..2] {
        let waited = waited.load(Ordering::Relaxed);
        check!(t, waited <= QUANTUM_NS * 21 / 10, "waited {waited} ns for a turn");
    }
    t.metric("difference", ran[0].abs_diff(ran[1]), "ns");
    Ok(())
}

/// Two hog processes at once: what each got.
fn compete(t: &mut Test<'_>, names: [&'static str; 2]) -> Result<[u64; 2], test_kit::Ended> {
    // Where CPUs race, times say nothing: both hogs run and answer.
    let period = if is_deterministic(t.env) { PERIOD_NS } else { PERIOD_NS / 20 };
    let from = now_ns() + 2_000_000;
    let mut pending = [None, None];
    for (pending, name) in pending.iter_mut().zip(names) {
        let Ok(slot) = t.env.env.cap(name, plain_schema::plain::INTERFACE_ID) else {
            return Err(t.fail(format_args!("no {name}")).unwrap_err());
        };
        *pending = hog::ask(t.env, slot, from, from + period).ok();
    }
    let mut ran = [0; 2];
    for (ran, pending) in ran.iter_mut().zip(pending) {
        let Some((got, _)) = pending.and_then(|pending| hog::answer(t.env, pending)) else {
            return Err(t.fail(format_args!("a hog did not answer")).unwrap_err());
        };
        *ran = got;
    }
    Ok(ran)
}

pub fn equal_processes(t: &mut Test<'_>) -> Outcome {
    let ran = compete(t, ["light", "other"])?;
    if t.env.cpus() == 1 {
        let difference = ran[0].abs_diff(ran[1]);
        check!(t, difference <= QUANTUM_NS + QUANTUM_NS / 10, "{} and {}", ran[0], ran[1]);
        t.metric("difference", difference, "ns");
    }
    Ok(())
}

pub fn weights(t: &mut Test<'_>) -> Outcome {
    let ran = compete(t, ["light", "heavy"])?;
    if t.env.cpus() == 1 {
        // Two thirds and one third, to a quantum.
        let expected = PERIOD_NS * 2 / 3;
        check!(t, ran[1].abs_diff(expected) <= QUANTUM_NS + QUANTUM_NS / 10, "{ran:?}");
        check!(t, ran[0] + ran[1] > PERIOD_NS * 98 / 100, "{ran:?}");
        t.metric("heavy to light", ran[1] * 100 / ran[0].max(1), "%");
    }
    Ok(())
}

pub fn every_cpu_works(t: &mut Test<'_>) -> Outcome {
    let cpus = t.env.cpus().min(8);
    let before: [u64; 8] = core::array::from_fn(|cpu| busy(t.env, cpu as u32));
    if !is_deterministic(t.env) {
        return t.skip("threads.siblings_run_at_once is the proof where CPUs race");
    }
    let period = 20_000_000 * u64::from(cpus);
    let ran = require_some!(t, hog::siblings(t.env, cpus as usize, period));
    for (number, ran) in ran.iter().enumerate().take(cpus as usize) {
        check!(t, *ran > 0, "hog {number} of {cpus} never ran");
    }
    for (cpu, before) in before.iter().enumerate().take(cpus as usize) {
        let now = busy(t.env, cpu as u32);
        check!(t, now > *before, "CPU {cpu} did nothing while {cpus} hogs ran");
    }
    Ok(())
}

/// Switches of a CPU.
fn busy(program: &Program, cpu: u32) -> u64 {
    program.counters(cpu).map_or(0, |counters| counters.switches)
}

pub fn more_hogs_than_cpus(t: &mut Test<'_>) -> Outcome {
    let cpus = t.env.cpus().min(8);
    if cpus == 1 {
        return t.skip("needs two CPUs");
    }
    let hogs = cpus as usize + 1;
    let period = if is_deterministic(t.env) { 400_000_000 } else { 10_000_000 };
    let ran = require_some!(t, hog::siblings(t.env, hogs, period));
    let got = &ran[..hogs];
    let (least, most) = (got.iter().min().copied(), got.iter().max().copied());
    let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
    if is_deterministic(t.env) {
        // The crowd moves on every tenth slice, so nobody is in it all the time.
        check!(t, least * 3 >= most * 2, "{got:?}");
    }
    t.metric("least to most", least * 100 / most.max(1), "%");
    let steals = (0..cpus).filter_map(|cpu| t.env.counters(cpu)).map(|c| c.steals).sum::<u64>();

    t.metric("steals", steals, "");
    Ok(())
}
