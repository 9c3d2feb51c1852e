//! Parking and waking.

use core::sync::atomic::{AtomicU32, Ordering};

use abi_types::{CapSlot, NEVER, Sqe, Status};
use capos_rt::park::{park_sqe, unpark_sqe};
use capos_rt::{Env, Ring};
use test_kit::{Outcome, T, require_eq, require_ok};

use crate::Bench;
use crate::measure::BATCH;
use crate::raw::{Wrong, complete, one, push};
use crate::timed::FAR_NS;

pub fn unpark_none(t: &mut T<'_, Bench>) -> Outcome {
    let word = AtomicU32::new(0);
    alone(t, |space| unpark_sqe(space, &word, 1), Status::Ok)
}

pub fn mismatch(t: &mut T<'_, Bench>) -> Outcome {
    let word = AtomicU32::new(0);
    alone(t, |space| park_sqe(space, &word, 1, NEVER), Status::Mismatch)
}

/// An operation that completes at once, one an entry.
#[inline(always)]
fn alone(t: &mut T<'_, Bench>, sqe: impl Fn(CapSlot) -> Sqe, expected: Status) -> Outcome {
    let (env, space) = (t.env.env, t.env.park_space);
    let sqe = Sqe { user_data: 1 << 63, ..sqe(space) };
    let (samples, wrong) = env.io.with_ring(|ring| {
        let mut wrong = Wrong::default();
        let samples = t.env.counter.sample(|| {
            for _ in 0..BATCH {
                wrong.unless(&one(ring, sqe), expected);
            }
        });
        (samples, wrong)
    });
    require_eq!(t, wrong.0, 0);
    samples.report(t, BATCH);
    Ok(())
}

capos_rt::stacks! {
    static STACK: [32768; 1];
}
/// The turn the measuring thread and the other one have come to.
static PING: AtomicU32 = AtomicU32::new(0);
static PONG: AtomicU32 = AtomicU32::new(0);
/// The last turn.
const END: u32 = u32::MAX;

pub fn round_trip(t: &mut T<'_, Bench>) -> Outcome {
    passes::<NEVER>(t)
}

pub fn round_trip_with_limit(t: &mut T<'_, Bench>) -> Outcome {
    PING.store(0, Ordering::Relaxed);
    PONG.store(0, Ordering::Relaxed);
    passes::<FAR_NS>(t)
}

/// Turns between two threads; the measuring one parks for so long at most.
#[inline(never)]
fn passes<const LIMIT_NS: u64>(t: &mut T<'_, Bench>) -> Outcome {
    let (env, space) = (t.env.env, t.env.park_space);
    let other = require_ok!(t, t.env.threads.spawn(&env.io, &STACK[0], partner, space.to_bits()));
    let (samples, answered) = env.io.with_ring(|ring| {
        let mut turn = 0;
        // The other thread is up and parked once it has answered.
        turn = pass::<LIMIT_NS>(ring, space, turn);
        let samples = t.env.counter.sample(|| {
            for _ in 0..BATCH {
                turn = pass::<LIMIT_NS>(ring, space, turn);
            }
        });
        let answered = turn == PONG.load(Ordering::Acquire);
        PING.store(END, Ordering::Release);
        let _ = one(ring, unpark_sqe(space, &PING, 1));
        (samples, answered)
    });
    require_eq!(t, require_ok!(t, other.join(&env.io)), 0);
    require_eq!(t, answered, true);
    samples.report(t, BATCH);
    Ok(())
}

/// Takes the next turn: wakes the other thread and parks until it has answered.
#[inline(always)]
fn pass<const LIMIT_NS: u64>(ring: &mut Ring, space: CapSlot, turn: u32) -> u32 {
    PING.store(turn + 1, Ordering::Release);
    push(ring, unpark_sqe(space, &PING, 1));
    push(ring, park_sqe(space, &PONG, turn, LIMIT_NS));
    let _ = ring.enter(2, NEVER);
    complete(ring);
    complete(ring);
    turn + 1
}

/// The other thread: answers each turn and parks until the next.
fn partner(env: &Env) -> i64 {
    let space = CapSlot::from_bits(env.argument);
    env.io.with_ring(|ring| {
        // The first turn may have been taken before this thread runs: then it does not park.
        let mut turn = 0;
        one(ring, park_sqe(space, &PING, turn, NEVER));
        while PING.load(Ordering::Acquire) != END {
            turn += 1;
            PONG.store(turn, Ordering::Release);
            push(ring, unpark_sqe(space, &PONG, 1));
            push(ring, park_sqe(space, &PING, turn, NEVER));
            let _ = ring.enter(2, NEVER);
            complete(ring);
            complete(ring);
        }
    });
    0
}
