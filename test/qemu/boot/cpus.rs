//! All CPUs: each reports in, has its own block, takes work, and reads the same clock.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core_sched::MAX_CPUS;
use kernel_arch::cpu::{self, CpuState};
use kernel_arch::{apic, time};
use kernel_sys::{Machine, smp};
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require};

kernel_sys::kernel_main!(main);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("cpus.all-report-in", all_report_in),
    Test::new("cpus.stops-at-the-limit", stops_at_the_limit),
    Test::new("cpus.set-up-alike", set_up_alike),
    Test::new("cpus.each-knows-itself", each_knows_itself),
    Test::new("cpus.take-work", take_work),
    Test::new("cpus.boot-is-timed", boot_is_timed),
    Test::new("cpus.clock-goes-forward", clock_goes_forward),
    Test::new("cpus.clock-agrees-between-cpus", clock_agrees_between_cpus),
]);

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

fn all_report_in(t: &mut T<'_, Env>) -> Outcome {
    let cpus = t.env.cpus();
    let muster = t.env.muster;
    check_eq!(t, cpus.len() + muster.left_out(), t.env.firmware.enabled_cpus);
    check_eq!(t, cpus.len(), muster.used());
    check_eq!(t, t.env.missing_cpus, 0);
    check_eq!(t, cpu::online_count(), cpus.len());
    for (index, cpu) in cpus.iter().enumerate() {
        check_eq!(t, cpu.index() as usize, index);
        check!(t, cpu.state() == CpuState::Online);
        let twins = cpus.iter().filter(|c| c.apic_id() == cpu.apic_id()).count();
        check_eq!(t, twins, 1);
    }
    t.metric("cpus", cpus.len() as u64, "cpus");
    Ok(())
}

/// What is more than the limit is not used, and nothing else is lost by it: the loader's memory comes
/// back although CPUs were parked there.
fn stops_at_the_limit(t: &mut T<'_, Env>) -> Outcome {
    let limit = t.env.options.max_cpus.unwrap_or(MAX_CPUS).min(MAX_CPUS);
    let there = t.env.firmware.enabled_cpus;
    check_eq!(t, t.env.muster.used(), limit.min(there));
    check_eq!(t, cpu::retired_count(), there.saturating_sub(limit));
    check!(t, t.env.memory.reclaimed > 0, "the loader's memory was not taken back");
    Ok(())
}

fn set_up_alike(t: &mut T<'_, Env>) -> Outcome {
    let cpus = t.env.cpus();
    for cpu in cpus {
        check_eq!(t, cpu.features(), cpus[0].features());
        check_eq!(t, cpu.control(), cpus[0].control());
    }
    let expected = if cpus[0].features().x2apic { apic::Mode::X2Apic } else { apic::Mode::XApic };
    check_eq!(t, t.env.apic, expected);
    for (index, cpu) in cpus.iter().enumerate() {
        let same = cpus.iter().skip(index + 1).any(|c| c.place() == cpu.place());
        check!(t, !same, "two CPUs at {:?}", cpu.place());
    }
    Ok(())
}

/// How many CPUs looked at themselves, and the sum of their numbers.
static SEEN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
static WRONG: AtomicUsize = AtomicUsize::new(0);

fn look_at_self() {
    let me = cpu::this();
    SEEN[0].fetch_add(1, Ordering::Relaxed);
    SEEN[1].fetch_add(me.index() as usize, Ordering::Relaxed);
    if apic::id() != me.apic_id() {
        WRONG.fetch_add(1, Ordering::Relaxed);
    }
    // Its stack is its own: nobody else's is near.
    let mine = cpu::stack_pointer();
    if !core_paging::layout::STACKS.contains(mine) {
        WRONG.fetch_add(1, Ordering::Relaxed);
    }
}

fn each_knows_itself(t: &mut T<'_, Env>) -> Outcome {
    let cpus = t.env.cpus().len();
    for index in 0..cpus {
        require!(t, smp::run_on(index, look_at_self), "cpu {index} is not there");
    }
    check_eq!(t, SEEN[0].load(Ordering::Relaxed), cpus);
    check_eq!(t, SEEN[1].load(Ordering::Relaxed), cpus * (cpus - 1) / 2);
    check_eq!(t, WRONG.load(Ordering::Relaxed), 0);
    check!(t, !smp::run_on(cpus, look_at_self), "a CPU that is not there took work");
    Ok(())
}

static DONE: AtomicUsize = AtomicUsize::new(0);

fn count() {
    DONE.fetch_add(1, Ordering::Relaxed);
}

fn take_work(t: &mut T<'_, Env>) -> Outcome {
    const ROUNDS: usize = 100;
    let others = t.env.cpus().len() - 1;
    for _ in 0..ROUNDS {
        smp::run_on_others(count);
    }
    check_eq!(t, DONE.load(Ordering::Relaxed), ROUNDS * others);
    Ok(())
}

fn boot_is_timed(t: &mut T<'_, Env>) -> Outcome {
    require!(t, t.env.clock.is_some(), "no clock");
    let mut last_ns = 0;
    let mut steps = 0;
    for step in t.env.steps.timed() {
        check!(t, step.at_ns >= last_ns, "{} went back in time", step.name);
        last_ns = step.at_ns;
        steps += 1;
        t.metric(step.name, step.took_ns, "ns");
    }
    check_eq!(t, steps, 13);
    t.metric("boot", last_ns, "ns");
    Ok(())
}

fn clock_goes_forward(t: &mut T<'_, Env>) -> Outcome {
    let mut last = 0;
    for _ in 0..20_000 {
        let Some(now) = time::now_ns() else { return t.fail(format_args!("no clock")) };
        require!(t, now >= last, "{now} after {last}");
        last = now;
    }
    Ok(())
}

/// Hand-overs in each direction and for each CPU. Few: where the emulator's threads outnumber the
/// host's CPUs, each one may take a time slice of the host.
const HAND_OVERS: u64 = 250;
/// The time passed; odd: from the boot CPU, even: back.
static PASSED: AtomicU64 = AtomicU64::new(0);
static TURN: AtomicU64 = AtomicU64::new(0);
static EARLY: AtomicUsize = AtomicUsize::new(0);

/// Takes the time from the other side, compares, and passes its own on.
fn pass(first: u64) {
    for round in 0..HAND_OVERS {
        let turn = 2 * round + first;
        // Acquire, pairs with the release below on the other CPU.
        while TURN.load(Ordering::Acquire) != turn {
            cpu::relax();
        }
        let now = time::now_ns().unwrap_or(0);
        if now < PASSED.load(Ordering::Relaxed) {
            EARLY.fetch_add(1, Ordering::Relaxed);
        }
        PASSED.store(time::now_ns().unwrap_or(0), Ordering::Relaxed);
        TURN.store(turn + 1, Ordering::Release);
    }
}

fn pass_back() {
    pass(1);
}

fn clock_agrees_between_cpus(t: &mut T<'_, Env>) -> Outcome {
    let cpus = t.env.cpus().len();
    if cpus == 1 {
        return t.skip("takes two CPUs");
    }
    for index in 1..cpus.min(3) {
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
