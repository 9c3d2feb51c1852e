//! More threads at a time than the kernel has records for at boot.
#![no_std]
#![no_main]

use abi_types::{CapSlot, NEVER};
use capos_rt::park::{park, unpark};
use capos_rt::{Env, Error};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use test_bare::program::{Program, Sibling};
use test_bare::raw::Child;
use test_kit::{Outcome, Suite, T, Test, check_eq, require_ok};

capos_rt::main!(main);

/// Threads that live at a time, beside the first.
const THREADS: usize = 2_500;

static SIBLINGS: [Sibling; THREADS] = [const { Sibling::new() }; THREADS];
static GATE: AtomicU32 = AtomicU32::new(0);
static PARK: AtomicU64 = AtomicU64::new(0);
/// Handles to them, as bits.
static HANDLES: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];
static RUN: AtomicU32 = AtomicU32::new(0);

const SUITE: Suite<Program> = Suite::new(&[Test::new("crowd.all_live_at_a_time", crowd)]);

fn main(env: &'static Env) -> Result<(), Error> {
    let mut program = Program::new(env, &SIBLINGS)?;
    test_user::run_with(env, &SUITE, &mut program)
}

fn at_gate(child: &Child) -> i64 {
    RUN.fetch_add(1, Ordering::Relaxed);
    let space = CapSlot::from_bits(PARK.load(Ordering::Relaxed));
    while GATE.load(Ordering::Relaxed) == 0 {
        let _ = park(&child.io, space, &GATE, 0, NEVER);
    }
    0
}

/// Twice: the second time by the records of the first.
fn crowd(t: &mut T<'_, Program>) -> Outcome {
    PARK.store(t.env.park.to_bits(), Ordering::Relaxed);
    let mut free = [0; 2];
    for free in &mut free {
        GATE.store(0, Ordering::Relaxed);
        RUN.store(0, Ordering::Relaxed);
        for (number, handle) in HANDLES.iter().enumerate() {
            let made = require_ok!(t, t.env.spawn(number, at_gate, 0));
            handle.store(made.to_bits(), Ordering::Relaxed);
        }
        // Nobody passes the gate before it is opened: all of them live when the last has come.
        while RUN.load(Ordering::Relaxed) < THREADS as u32 {
            t.env.yield_now();
        }
        GATE.store(1, Ordering::Relaxed);
        let _ = unpark(t.env.io(), t.env.park, &GATE, u32::MAX);
        for handle in &HANDLES {
            let handle = CapSlot::from_bits(handle.load(Ordering::Relaxed));
            check_eq!(t, t.env.finish(handle), Ok(0));
        }
        *free = t.env.free_frames();
    }
    let [first, second] = free;
    t.metric("frames that the second crowd took", first.saturating_sub(second), "frames");
    Ok(())
}
