//! What waiting costs.

use crate::hog;
use abi_types::CapSlot;
use capos_rt::now_ns;
use core::sync::atomic::{AtomicU64, Ordering};
use schema::timer;
use test_bare::program::Program;
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_ok, require_some};

type Test<'a> = T<'a, Program>;

static TIMER: AtomicU64 = AtomicU64::new(0);

fn sleep_long(child: &Child) -> i64 {
    let timer = CapSlot::from_bits(TIMER.load(Ordering::Relaxed));
    let slept = timer::Client::new(child.io.caller(), timer).sleep(child.argument);
    i64::from(slept.is_err())
}

pub fn sleepers_cost_nothing(t: &mut Test<'_>) -> Outcome {
    TIMER.store(t.env.timer.to_bits(), Ordering::Relaxed);
    let mut handles = [CapSlot::NONE; 8];
    for (number, handle) in handles.iter_mut().enumerate() {
        *handle = require_ok!(t, t.env.spawn(number, sleep_long, 60_000_000));
    }
    t.env.sleep(5_000_000);
    let before = require_some!(t, t.env.counters(0));
    t.env.sleep(40_000_000);
    let after = require_some!(t, t.env.counters(0));
    if t.env.cpus() == 1 {
        // One sleep of one thread: its timer, and the switches to and from it.
        let switches = after.switches - before.switches;
        let interrupts = after.timer_interrupts - before.timer_interrupts;
        check!(t, switches <= 6, "{switches} switches while all sleep");
        check!(t, interrupts <= 4, "{interrupts} timer interrupts while all sleep");
        let idle = after.idle_ns - before.idle_ns;
        check!(t, idle >= 39_500_000, "idle for {idle} ns of 40,000,000");
    }
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    Ok(())
}

/// A CPU without work or deadlines looks around ten times a second, by its timer.
pub fn looks_around(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() > 1 {
        return t.skip("one CPU, so that nobody else is there to interrupt it");
    }
    let before = require_some!(t, t.env.counters(0));
    t.env.sleep(1_000_000_000);
    let after = require_some!(t, t.env.counters(0));
    let interrupts = after.timer_interrupts - before.timer_interrupts;
    check!(t, (10..=11).contains(&interrupts), "{interrupts} timer interrupts in a second asleep");
    Ok(())
}

/// What a CPU does not spend idle it spends on threads.
pub fn idle_time(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() > 1 {
        return t.skip("one CPU, so that the first thread's time is the CPU's");
    }
    let begin = require_some!(t, t.env.counters(0));
    let from = now_ns();
    let (ran, _) = hog::run(from, from + 30_000_000);
    let middle = require_some!(t, t.env.counters(0));
    check_eq!(t, middle.idle_ns - begin.idle_ns, 0);
    check!(t, ran >= 29_900_000, "ran for {ran} ns of 30,000,000");
    let before = now_ns();
    t.env.sleep(30_000_000);
    let elapsed = now_ns() - before;
    let end = require_some!(t, t.env.counters(0));
    let idle = end.idle_ns - middle.idle_ns;
    check!(t, idle <= elapsed && idle + 100_000 >= elapsed, "idle {idle} ns of {elapsed}");
    Ok(())
}

/// A thread that is alone on its CPU is not interrupted.
pub fn alone_no_timer(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() > 1 {
        return t.skip("one CPU, so that this thread is on it");
    }
    let before = require_some!(t, t.env.counters(0));
    let from = now_ns();
    let (_, waited) = hog::run(from, from + 60_000_000);
    let after = require_some!(t, t.env.counters(0));
    let interrupts = after.timer_interrupts - before.timer_interrupts;
    check!(t, interrupts <= 1, "{interrupts} timer interrupts in six quanta alone");
    check_eq!(t, waited, 0);
    Ok(())
}
