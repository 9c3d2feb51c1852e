//! The clock: one time on all CPUs, whatever their counters show, and none of it lost in a halt.
//!
//! `expect=` says what the comparison of the counters must have come to, `hand_overs=` how often a time
//! is passed from one CPU to another and back.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering};
use kernel_arch::time::{self, ClockChoice};
use kernel_arch::{console, cpu};
use kernel_sys::{Machine, smp};
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require, require_some};

kernel_sys::kernel_main!(
    main,
    syscall = no_call,
    user_fault = kernel_sys::user::fault,
    timer = fired
);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("clock.choice", choice),
    Test::new("clock.never-back", never_back),
    Test::new("clock.agrees-with-the-boot-cpu", agrees_with_the_boot_cpu),
    Test::new("clock.handed-over", handed_over),
    Test::new("clock.long-halt", long_halt),
]);

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

fn no_call(_: u64, _: u64, _: u64) -> u64 {
    0
}

static FIRED: AtomicU64 = AtomicU64::new(0);

fn fired(_: &kernel_arch::trap::TrapFrame) {
    FIRED.fetch_add(1, Ordering::Relaxed);
}

fn choice(t: &mut T<'_, Env>) -> Outcome {
    let agreed = require_some!(t, t.env.agreed);
    console::print(format_args!("{agreed}\n"));
    let others = t.env.muster.used() - 1;
    check_eq!(t, agreed.compared, others);
    let skew_ns = t.env.options.tsc_skew.map_or(0, |skew| skew.ns);
    match t.env.words().value("expect") {
        None => {
            check_eq!(t, (agreed.choice, agreed.adjusted), (ClockChoice::Counters, 0));
        }
        Some("set") => {
            check_eq!(t, (agreed.choice, agreed.adjusted), (ClockChoice::Counters, others));
            let off = agreed.distance_ns.abs_diff(skew_ns);
            check!(t, off < skew_ns / 2, "{} ns were found, not {skew_ns}", agreed.distance_ns);
        }
        Some("shared") => {
            check_eq!(t, (agreed.choice, agreed.disagreeing), (ClockChoice::Shared, others));
            let clock = require_some!(t, time::user_clock());
            check!(t, clock.hpet.is_some(), "user mode reads another clock");
        }
        Some("alone") => {
            check_eq!(t, (agreed.choice, agreed.disagreeing), (ClockChoice::BootCpuAlone, others));
            check_eq!(t, (cpu::all().len(), cpu::online_count()), (1, 1));
        }
        Some(other) => return t.fail(format_args!("expect={other} means nothing")),
    }
    t.metric("distance", agreed.distance_ns, "ns");
    t.metric("sure within", agreed.within_ns, "ns");
    Ok(())
}

static BACK: AtomicU64 = AtomicU64::new(0);

fn read_often() {
    let mut last = 0;
    for _ in 0..10_000 {
        let now = time::clock_ns();
        BACK.fetch_max(u64::saturating_sub(last, now), Ordering::Relaxed);
        last = now;
    }
}

fn never_back(t: &mut T<'_, Env>) -> Outcome {
    read_often();
    smp::run_on_others(read_often);
    check_eq!(t, BACK.load(Ordering::Relaxed), 0);
    Ok(())
}

static READ: AtomicU64 = AtomicU64::new(0);

fn read_once() {
    READ.store(time::clock_ns(), Ordering::Relaxed);
}

/// A counter that is behind the kernel's start, or far ahead, is a clock that is centuries off.
fn agrees_with_the_boot_cpu(t: &mut T<'_, Env>) -> Outcome {
    for index in 0..t.env.cpus().len() {
        let before = time::clock_ns();
        require!(t, smp::run_on(index, read_once), "cpu {index} is not there");
        let after = time::clock_ns();
        let read = READ.load(Ordering::Relaxed);
        check!(t, before <= read && read <= after, "cpu {index}: {before}, {read}, {after}");
    }
    Ok(())
}

static PASSED: AtomicU64 = AtomicU64::new(0);
static TURN: AtomicU64 = AtomicU64::new(0);
static ROUNDS: AtomicU64 = AtomicU64::new(0);
static EARLY: AtomicU64 = AtomicU64::new(0);

/// Takes the time from the other side, compares, and passes its own on.
fn pass(first: u64) {
    for round in 0..ROUNDS.load(Ordering::Relaxed) {
        let turn = 2 * round + first;
        // Acquire, pairs with the release below on the other CPU.
        while TURN.load(Ordering::Acquire) != turn {
            cpu::relax();
        }
        let now = time::clock_ns();
        let early = PASSED.load(Ordering::Relaxed).saturating_sub(now);
        EARLY.fetch_max(early, Ordering::Relaxed);
        PASSED.store(time::clock_ns(), Ordering::Relaxed);
        TURN.store(turn + 1, Ordering::Release);
    }
}

fn pass_back() {
    pass(1);
}

fn handed_over(t: &mut T<'_, Env>) -> Outcome {
    let cpus = t.env.cpus().len();
    if cpus == 1 {
        return t.skip("takes two CPUs");
    }
    let all: u64 = t.env.words().value("hand_overs").and_then(|n| n.parse().ok()).unwrap_or(1000);
    ROUNDS.store((all / 2).div_ceil(cpus as u64 - 1), Ordering::Relaxed);
    for index in 1..cpus {
        PASSED.store(0, Ordering::Relaxed);
        TURN.store(0, Ordering::Relaxed);
        require!(t, smp::start_on(index, pass_back), "cpu {index} is not there");
        pass(0);
        while !t.env.cpus()[index].is_idle() {
            cpu::relax();
        }
    }
    check_eq!(t, EARLY.load(Ordering::Relaxed), 0);
    Ok(())
}

const HALT_NS: u64 = 10_000_000_000;
/// What a halt of ten seconds may lose.
const LOST_NS: u64 = 1_000_000;

/// A halted CPU's clock goes on: against the second counter of the machine.
fn long_halt(t: &mut T<'_, Env>) -> Outcome {
    if t.env.cpus().len() > 1 {
        return t.skip("waits in real time with more than one CPU");
    }
    let Some(reference) = t.env.hpet else { return t.skip("there is no second counter") };
    let (began, counted) = (time::clock_ns(), reference.counter());
    let deadline = began + HALT_NS;
    while FIRED.load(Ordering::Relaxed) == 0 {
        time::arm(deadline);
        cpu::wait_for_interrupt();
    }
    let clock = time::clock_ns() - began;
    let ticks = u128::from(reference.counter() - counted);
    let real = (ticks * 1_000_000_000 / u128::from(reference.hz())) as u64;
    check!(t, clock >= HALT_NS, "woken {} ns early", HALT_NS - clock);
    check!(t, clock.abs_diff(real) < LOST_NS, "{clock} ns by the clock, {real} ns by the HPET");
    t.metric("clock and HPET differ after 10 s by", clock.abs_diff(real), "ns");
    Ok(())
}
