//! The one-shot timer: never early, at once when late, far ones in steps.

use crate::harness::TIMER_IN_KERNEL;
use core::sync::atomic::Ordering;
use kernel_arch::{cpu, time};
use test_kernel::Env;
use test_kit::{Outcome, T, check, check_eq};

fn now_ns() -> u64 {
    time::now_ns().expect("a clock")
}

fn fired() -> u64 {
    TIMER_IN_KERNEL.load(Ordering::Relaxed)
}

/// Halts until the timer hook was called: when.
fn wait_for(deadline_ns: u64) -> u64 {
    let before = fired();
    time::arm(deadline_ns);
    while fired() == before {
        cpu::wait_for_interrupt();
    }
    now_ns()
}

pub fn in_the_kernel(t: &mut T<'_, Env>) -> Outcome {
    for delay_ns in [0, 1, 1_000, 50_000, 3_000_000] {
        let deadline = now_ns() + delay_ns;
        let woke = wait_for(deadline);
        check!(t, woke >= deadline, "{} ns early", deadline - woke);
        check_eq!(t, time::armed_ns(), None);
    }
    // A deadline that has passed comes at once.
    let before = now_ns();
    check!(t, wait_for(before / 2) >= before);
    Ok(())
}

/// Longer than 32 bits of nanoseconds, which is what the counter of the emulated APIC holds.
const LONG_NS: u64 = 4_500_000_000;

pub fn chains(t: &mut T<'_, Env>) -> Outcome {
    if t.env.cpus().len() > 1 {
        return t.skip("waits in real time with more than one CPU");
    }
    let before = fired();
    let deadline = now_ns() + LONG_NS;
    let woke = wait_for(deadline);
    check!(t, woke >= deadline, "{} ns early", deadline - woke);
    check_eq!(t, fired(), before + 1);
    Ok(())
}

pub fn skips_later(t: &mut T<'_, Env>) -> Outcome {
    let start = now_ns();
    let near = start + 2_000_000;
    time::arm(near);
    time::arm(start + 900_000_000);
    check_eq!(t, time::armed_ns(), Some(near));
    time::arm(start + 1_000_000);
    check_eq!(t, time::armed_ns(), Some(start + 1_000_000));
    time::disarm();
    check_eq!(t, time::armed_ns(), None);
    // What was programmed still interrupts, and is swallowed: the hook sees the later one only.
    let before = fired();
    let woke = wait_for(start + 5_000_000);
    check!(t, woke >= start + 5_000_000);
    check_eq!(t, fired(), before + 1);
    Ok(())
}
