//! Slices that end while something was submitted without entering the kernel.

use abi_types::{CapSlot, Opcode, Sqe};
use capos_rt::now_ns;
use core::sync::atomic::{AtomicU64, Ordering};
use schema::timer;
use test_bare::program::{Program, work};
use test_bare::raw::Child;
use test_kit::{Outcome, T, check_eq, require_ok};

use crate::hog::QUANTUM_NS;

type Test<'a> = T<'a, Program>;

const THREADS: usize = 5;
const ROUNDS: u64 = 12;
static TIMER: AtomicU64 = AtomicU64::new(0);

/// Publishes yields, computes past the end of its slice, and sleeps for a while, so that some CPU is
/// idle now and then and takes a thread that yields in the middle of its pass.
fn submit_and_compute(child: &Child) -> i64 {
    let slot = CapSlot::from_bits(TIMER.load(Ordering::Relaxed));
    let a_yield = Sqe { opcode: Opcode::Yield as u8, ..Sqe::default() };
    for round in 0..ROUNDS {
        let mut pending = [const { None }; 3];
        for place in &mut pending {
            match child.io.submit(a_yield, &[]) {
                Ok(submitted) => *place = Some(submitted),
                Err(_) => return 1,
            }
        }
        let until = now_ns() + QUANTUM_NS * 3 / 2;
        while now_ns() < until {
            work(500);
            core::hint::spin_loop();
        }
        for submitted in pending.into_iter().flatten() {
            let _ = child.io.wait(submitted, &mut [0; 16]);
        }
        let for_ns = (round * 7 + child.argument * 3) % 11 * 300_000;
        if timer::Client::new(child.io.caller(), slot).sleep(for_ns).is_err() {
            return 2;
        }
    }
    0
}

/// A thread whose slice ends yields in the middle of what the kernel then does for it, and may go on
/// on another CPU: that one gives way from there, not the one it came from.
pub fn yields_in_a_pass(t: &mut Test<'_>) -> Outcome {
    TIMER.store(t.env.timer.to_bits(), Ordering::Relaxed);
    let mut handles = [CapSlot::NONE; THREADS];
    for (number, handle) in handles.iter_mut().enumerate() {
        *handle = require_ok!(t, t.env.spawn(number, submit_and_compute, number as u64));
    }
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    Ok(())
}
