//! Threads: their life, and giving the CPU to another one.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use abi_types::{Opcode, Sqe, Status};
use capos_rt::caller::call;
use capos_rt::ring::NOP;
use capos_rt::{Env, Ring};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_kit::{Outcome, T, check, require_eq, require_ok, require_some};

use crate::Bench;
use crate::measure::{BATCH, SAMPLES, Samples};
use crate::raw::{Wrong, one};

/// A yield is to another thread, which yields back: two switches.
const SWITCHES: u64 = 2;
/// Yields of the measuring thread.
const YIELDS: u64 = BATCH * SAMPLES as u64;

capos_rt::stacks! {
    static STACK: [32768; 1];
}
static IS_OVER: AtomicBool = AtomicBool::new(false);
static OTHERS_YIELDS: AtomicU32 = AtomicU32::new(0);

const YIELD: Sqe = Sqe { opcode: Opcode::Yield as u8, user_data: 1 << 63, ..NOP };

/// The measured loop, in the function of each measurement.
#[inline(always)]
fn yields(t: &mut T<'_, Bench>, ring: &mut Ring) -> (Samples, Wrong) {
    let mut wrong = Wrong::default();
    let samples = t.env.counter.sample(|| {
        for _ in 0..BATCH {
            wrong.unless(&one(ring, YIELD), Status::Ok);
        }
    });
    (samples, wrong)
}

pub fn yield_thread(t: &mut T<'_, Bench>) -> Outcome {
    let env = t.env.env;
    let other = require_ok!(t, t.env.threads.spawn(&env.io, &STACK[0], yield_until_over, 0));
    let (samples, wrong, others) = env.io.with_ring(|ring| {
        while OTHERS_YIELDS.load(Ordering::Relaxed) == 0 {
            one(ring, YIELD);
        }
        let before = OTHERS_YIELDS.load(Ordering::Relaxed);
        let (samples, wrong) = yields(t, ring);
        (samples, wrong, OTHERS_YIELDS.load(Ordering::Relaxed) - before)
    });
    IS_OVER.store(true, Ordering::Relaxed);
    require_eq!(t, require_ok!(t, other.join(&env.io)), 0);
    require_eq!(t, wrong.0, 0);
    // Otherwise the yields were not to the other thread, and the figure is of something else.
    let others = u64::from(others);
    check!(t, others.abs_diff(YIELDS) < YIELDS / 20, "{others} yields against {YIELDS}");
    samples.report(t, BATCH * SWITCHES);
    Ok(())
}

fn yield_until_over(env: &Env) -> i64 {
    env.io.with_ring(|ring| {
        while !IS_OVER.load(Ordering::Relaxed) {
            one(ring, YIELD);
            OTHERS_YIELDS.fetch_add(1, Ordering::Relaxed);
        }
    });
    0
}

pub fn yield_process(t: &mut T<'_, Bench>) -> Outcome {
    let (env, yielder) = (t.env.env, t.env.yielder);
    let measured = env.io.with_ring(|ring| {
        let slot = ring.take_slot()?;
        let ask = |ring: &mut Ring, times: u64| {
            ring.write_inline(slot, &[times]);
            let sqe = Sqe { user_data: 1 << 63, buffer: slot, ..call(yielder, PLAIN, 0, 8) };
            one(ring, sqe).status
        };
        // A few more than the measurement takes: it is over before the other stops.
        let begun = ask(ring, YIELDS + YIELDS / 20);
        let (samples, wrong) = yields(t, ring);
        // Waits until the other is done, so that it disturbs nothing that follows.
        let ended = ask(ring, 0);
        ring.give_slot(slot);
        Some((samples, wrong, begun, ended))
    });
    let (samples, wrong, begun, ended) = require_some!(t, measured);
    require_eq!(t, (wrong.0, begun, ended), (0, Status::Ok as u8, Status::Ok as u8));
    samples.report(t, BATCH * SWITCHES);
    Ok(())
}

/// Lives in one sample.
const THREADS: u64 = 4;

pub fn create_join(t: &mut T<'_, Bench>) -> Outcome {
    let (env, threads) = (t.env.env, t.env.threads);
    let mut wrong = 0;
    let samples = t.env.counter.sample(|| {
        for _ in 0..THREADS {
            let joined =
                threads.spawn(&env.io, &STACK[0], end_at_once, 7).and_then(|o| o.join(&env.io));
            wrong += u32::from(joined != Ok(7));
        }
    });
    require_eq!(t, wrong, 0);
    samples.report(t, THREADS);
    Ok(())
}

fn end_at_once(env: &Env) -> i64 {
    env.argument as i64
}
