//! How soon a thread that has something to do runs.

use crate::hog::{self, QUANTUM_NS};
use crate::is_deterministic;
use abi_types::{CapSlot, NEVER};
use capos_rt::now_ns;
use capos_rt::park::{park, unpark};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use schema::timer;
use test_bare::program::{Program, work};
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require, require_ok};

type Test<'a> = T<'a, Program>;

/// Sleeps of the first thread, each of `ns`; how late the latest was.
fn latest(t: &Test<'_>, count: u32, ns: u64) -> Option<u64> {
    let mut timer = timer::Client::new(t.env.io().caller(), t.env.timer);
    let mut latest = 0;
    for _ in 0..count {
        let due = now_ns() + ns;
        timer.sleep(ns).ok()?;
        // Earlier than due is an error whatever the lane.
        latest = latest.max(now_ns().checked_sub(due)?);
    }
    Some(latest)
}

/// Sleeps while hogs take all CPUs.
fn beside_hogs(t: &mut Test<'_>, hogs: usize, count: u32, ns: u64) -> Outcome {
    // Where CPUs race it is only that the sleeps end.
    let count = if is_deterministic(t.env) { count } else { 4 };
    hog::set_times(20_000_000_000);
    let mut handles = [CapSlot::NONE; 10];
    for (number, handle) in handles.iter_mut().enumerate().take(hogs) {
        *handle = require_ok!(t, t.env.spawn(number, hog::sibling, number as u64));
    }
    let late = latest(t, count, ns);
    hog::UNTIL_NS.store(0, Ordering::Relaxed);
    for handle in handles.iter().take(hogs) {
        check_eq!(t, t.env.finish(*handle), Ok(0));
    }
    let late = test_kit::require_some!(t, late);
    if is_deterministic(t.env) {
        // It waits for each hog's slice at most once; guest time is the sum over CPUs.
        let bound = QUANTUM_NS * hogs as u64 + QUANTUM_NS / 10;
        check!(t, late <= bound, "{late} ns after its time");
    }
    t.metric("latest", late, "ns");
    Ok(())
}

pub fn wake_against_a_hog(t: &mut Test<'_>) -> Outcome {
    let cpus = t.env.cpus().min(8) as usize;
    beside_hogs(t, cpus, 20, 1_500_000)
}

/// Where hogs share a CPU its timer is set for their slices, and where there is one more than CPUs
/// the crowd moves around: a deadline comes in time all the same.
pub fn sleep_beside_hogs(t: &mut Test<'_>) -> Outcome {
    let cpus = t.env.cpus().min(4) as usize;
    beside_hogs(t, cpus + 1, 30, 1_500_000)
}

static WOKEN: AtomicU32 = AtomicU32::new(0);
static EARLY: AtomicU32 = AtomicU32::new(0);
static DUE_NS: AtomicU64 = AtomicU64::new(0);
static ORDER: [AtomicU64; 10] = [const { AtomicU64::new(0) }; 10];
static TIMER: AtomicU64 = AtomicU64::new(0);

fn sleep_in_line(child: &Child) -> i64 {
    let timer = CapSlot::from_bits(TIMER.load(Ordering::Relaxed));
    let mut timer = timer::Client::new(child.io.caller(), timer);
    let due = DUE_NS.load(Ordering::Relaxed) + child.argument * 400_000;
    if timer.sleep_until(due).is_err() {
        return 1;
    }
    EARLY.fetch_add(u32::from(now_ns() < due), Ordering::Relaxed);
    let place = WOKEN.fetch_add(1, Ordering::Relaxed) as usize;
    ORDER[place].store(child.argument, Ordering::Relaxed);
    0
}

pub fn many_sleeps(t: &mut Test<'_>) -> Outcome {
    WOKEN.store(0, Ordering::Relaxed);
    TIMER.store(t.env.timer.to_bits(), Ordering::Relaxed);
    DUE_NS.store(now_ns() + 8_000_000, Ordering::Relaxed);
    let mut handles = [CapSlot::NONE; 10];
    for (number, handle) in handles.iter_mut().enumerate() {
        // The last one to be made is the first to wake.
        *handle = require_ok!(t, t.env.spawn(number, sleep_in_line, 9 - number as u64));
    }
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    check_eq!(t, EARLY.load(Ordering::Relaxed), 0);
    check_eq!(t, WOKEN.load(Ordering::Relaxed), 10);
    if t.env.cpus() == 1 {
        for (place, found) in ORDER.iter().enumerate() {
            check_eq!(t, found.load(Ordering::Relaxed), place as u64);
        }
    }
    Ok(())
}

static GATE: AtomicU32 = AtomicU32::new(0);
static ANSWER: AtomicU32 = AtomicU32::new(0);
static SPACE: AtomicU64 = AtomicU64::new(0);
const ROUNDS: u32 = 100;

/// Answers each change of the gate.
fn answer(child: &Child) -> i64 {
    let space = CapSlot::from_bits(SPACE.load(Ordering::Relaxed));
    for round in 1..=ROUNDS {
        while GATE.load(Ordering::Acquire) < round {
            if park(&child.io, space, &GATE, round - 1, NEVER).is_err() {
                return 1;
            }
        }
        ANSWER.store(round, Ordering::Release);
    }
    0
}

/// The first thread wakes a sibling and computes on, without entering: another CPU, which is idle,
/// has to run it.
pub fn idle_cpu_wakes(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() == 1 {
        return t.skip("needs two CPUs");
    }
    SPACE.store(t.env.park.to_bits(), Ordering::Relaxed);
    GATE.store(0, Ordering::Relaxed);
    ANSWER.store(0, Ordering::Relaxed);
    let handle = require_ok!(t, t.env.spawn(0, answer, 0));
    for round in 1..=ROUNDS {
        GATE.store(round, Ordering::Release);
        require_ok!(t, unpark(t.env.io(), t.env.park, &GATE, 1));
        let mut turns = 0u64;
        // Acquire pairs with the release in `answer`.
        while ANSWER.load(Ordering::Acquire) < round {
            work(64);
            core::hint::spin_loop();
            turns += 1;
            require!(t, turns < 1 << 26, "no answer in round {round}");
        }
        // Long enough for the other to wait again, and its CPU to be idle.
        work(if round % 2 == 0 { 20_000 } else { 100 });
    }
    check_eq!(t, t.env.finish(handle), Ok(0));
    Ok(())
}
