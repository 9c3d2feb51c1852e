//! Siblings on several CPUs.

use abi_types::CapSlot;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use test_bare::program::Program;
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_ok};

type Test<'a> = T<'a, Program>;

/// Siblings in a rendezvous that only ends if all are at it at once.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
const MEETINGS: u32 = 50;

/// Meets the others without ever entering the kernel.
fn meet(child: &Child) -> i64 {
    let siblings = child.argument as u32;
    for meeting in 1..=MEETINGS {
        ARRIVED.fetch_add(1, Ordering::Relaxed);
        while ARRIVED.load(Ordering::Relaxed) < meeting * siblings {
            core::hint::spin_loop();
        }
    }
    0
}

pub fn siblings_run_at_once(t: &mut Test<'_>) -> Outcome {
    let cpus = t.env.cpus().min(8);
    if cpus < 2 {
        return t.skip("needs two CPUs");
    }
    ARRIVED.store(0, Ordering::Relaxed);
    let mut handles = [CapSlot::NONE; 8];
    for (number, handle) in handles.iter_mut().enumerate().take(cpus as usize) {
        *handle = require_ok!(t, t.env.spawn(number, meet, cpus.into()));
    }
    for handle in handles.iter().take(cpus as usize) {
        check_eq!(t, t.env.finish(*handle), Ok(0));
    }
    check_eq!(t, ARRIVED.load(Ordering::Relaxed), MEETINGS * cpus);
    Ok(())
}

/// Taken by a thread while it is in its own code.
static INSIDE: [AtomicBool; 8] = [const { AtomicBool::new(false) }; 8];
static TWICE: AtomicU32 = AtomicU32::new(0);
const TURNS: u32 = 400;

/// A flag of the thread's own is set by hand around each turn; a second incarnation of the thread
/// on another CPU would find it set.
fn turn(child: &Child) -> i64 {
    let Some(inside) = INSIDE.get(child.argument as usize) else { return 1 };
    for round in 0..TURNS {
        if inside.swap(true, Ordering::AcqRel) {
            TWICE.fetch_add(1, Ordering::Relaxed);
        }
        for _ in 0..(round % 7) * 50 {
            core::hint::spin_loop();
        }
        if !inside.swap(false, Ordering::AcqRel) {
            TWICE.fetch_add(1, Ordering::Relaxed);
        }
        if child.io.yield_now().is_err() {
            return 2;
        }
    }
    0
}

pub fn nowhere_twice(t: &mut Test<'_>) -> Outcome {
    TWICE.store(0, Ordering::Relaxed);
    let mut handles = [CapSlot::NONE; 8];
    for (number, handle) in handles.iter_mut().enumerate() {
        *handle = require_ok!(t, t.env.spawn(number, turn, number as u64));
    }
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    let twice = TWICE.load(Ordering::Relaxed);
    check!(t, twice == 0, "{twice} turns were taken twice");
    Ok(())
}
