//! Interrupt lines: the controllers that are used, and the one-shot timer through them.
//!
//! `expect_pic` and `expect_pit` say that the old hardware must be in use.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering};
use kernel_arch::irq::Controllers;
use kernel_arch::time::TimerSource;
use kernel_arch::trap::{TIMER_VECTOR, TrapFrame};
use kernel_arch::{apic, cpu, time};
use kernel_sys::Machine;
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require_some};

kernel_sys::kernel_main!(
    main,
    syscall = no_call,
    user_fault = kernel_sys::user::fault,
    timer = fired
);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("irq.controllers", controllers),
    Test::new("irq.timer", timer),
    Test::new("irq.timer-chains", timer_chains),
    Test::new("irq.self", to_itself),
]);

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

fn no_call(_: u64, _: u64, _: u64) -> u64 {
    0
}

static FIRED: AtomicU64 = AtomicU64::new(0);
static VECTOR: AtomicU64 = AtomicU64::new(0);

fn fired(frame: &TrapFrame) {
    FIRED.fetch_add(1, Ordering::Relaxed);
    VECTOR.store(frame.vector().0.into(), Ordering::Relaxed);
}

fn controllers(t: &mut T<'_, Env>) -> Outcome {
    let is_pic = t.env.controllers == Controllers::Pic;
    check_eq!(t, is_pic, t.env.words().has("expect_pic"));
    let source = require_some!(t, t.env.timer);
    let is_pit = source == TimerSource::Pit;
    check_eq!(t, is_pit, t.env.words().has("expect_pit"));
    if is_pit {
        check_eq!(t, t.env.cpus().len(), 1);
    }
    Ok(())
}

/// Halts until the timer hook was called: when.
fn wait_for(deadline_ns: u64) -> u64 {
    let before = FIRED.load(Ordering::Relaxed);
    time::arm(deadline_ns);
    while FIRED.load(Ordering::Relaxed) == before {
        cpu::wait_for_interrupt();
    }
    time::clock_ns()
}

fn timer(t: &mut T<'_, Env>) -> Outcome {
    let is_pit = t.env.timer == Some(TimerSource::Pit);
    for delay_ns in [0, 1, 1_000, 50_000, 3_000_000] {
        let deadline = time::clock_ns() + delay_ns;
        let woke = wait_for(deadline);
        check!(t, woke >= deadline, "{} ns early", deadline - woke);
        let vector = VECTOR.load(Ordering::Relaxed);
        check_eq!(t, vector, if is_pit { 32 } else { TIMER_VECTOR.into() });
    }
    // Skipped if an earlier one is armed; nothing comes once it is disarmed.
    let now = time::clock_ns();
    time::arm(now + 1_000_000);
    time::arm(now + 900_000_000);
    check_eq!(t, time::armed_ns(), Some(now + 1_000_000));
    time::disarm();
    let before = FIRED.load(Ordering::Relaxed);
    check!(t, wait_for(now + 5_000_000) >= now + 5_000_000);
    check_eq!(t, FIRED.load(Ordering::Relaxed), before + 1);
    Ok(())
}

/// A CPU that asks itself for attention is interrupted, armed or not, and its deadline is kept.
fn to_itself(t: &mut T<'_, Env>) -> Outcome {
    let me = cpu::this().apic_id();
    for _ in 0..3 {
        apic::send_ipi(me);
        cpu::wait_for_interrupt();
    }
    let deadline = time::clock_ns() + 20_000_000;
    let before = FIRED.load(Ordering::Relaxed);
    apic::send_ipi(me);
    time::arm(deadline);
    cpu::wait_for_interrupt();
    check_eq!(t, FIRED.load(Ordering::Relaxed), before);
    while FIRED.load(Ordering::Relaxed) == before {
        cpu::wait_for_interrupt();
    }
    check!(t, time::clock_ns() >= deadline);
    Ok(())
}

/// Longer than the interval timer counts, which is 55 ms.
fn timer_chains(t: &mut T<'_, Env>) -> Outcome {
    let before = FIRED.load(Ordering::Relaxed);
    let deadline = time::clock_ns() + 200_000_000;
    let woke = wait_for(deadline);
    check!(t, woke >= deadline, "{} ns early", deadline - woke);
    check_eq!(t, FIRED.load(Ordering::Relaxed), before + 1);
    Ok(())
}
