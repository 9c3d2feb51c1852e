//! Either side gives up while a message is on its way.
//!
//! A message of many pages is copied a page at a time, and others run meanwhile. A receive that is given
//! up then ends with the message or, if the rest of it cannot be read, as cancelled: in any case it ends.
//! The memory of a call that is given up is its caller's again, and nothing that is put there afterwards
//! comes to the receiver.

use abi_types::place::STACK_TOP;
use abi_types::{CapSlot, Status};
use capos_rt::Env;
use capos_rt::ring::NOP;
use core::sync::atomic::{AtomicU64, Ordering};
use test_kit::{Outcome, T, check_eq, require_ok, require_some};
use test_ring::{Random, Raw, borrow, raw, sqe};
use test_wild::at;

use crate::{Bench, load, machine};

/// How often each is tried where CPUs race, and where they do not.
const ATTEMPTS: (u64, u64) = (60, 1);
const BYTES: u32 = 65_536;
const PAGE: u64 = 4096;

// User data.
const RECEIVE: u64 = 1;
const CANCEL: u64 = 2;
const CALL: u64 = 3;
const FILLER: u64 = 4;

/// What the caller's memory holds while it calls, and afterwards.
const MEANT: u64 = 1;
const LATER: u64 = 2;

capos_rt::stacks! {
    static STACKS: [16384; 1];
}
static OUT: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];
static IN: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];
/// The attempt that the tester, and the caller, has come to.
static TESTER: AtomicU64 = AtomicU64::new(0);
static CALLER: AtomicU64 = AtomicU64::new(0);

/// There is no further attempt.
const OVER: u64 = u64::MAX;

/// Waits for the other side; `false` if there is no further attempt.
fn comes_to(word: &AtomicU64, attempt: u64) -> bool {
    loop {
        // Acquire, pairs with the release where it is set.
        match word.load(Ordering::Acquire) {
            OVER => return false,
            now if now >= attempt => return true,
            _ => core::hint::spin_loop(),
        }
    }
}

/// Operations that complete together.
const NOPS: u64 = 48;

/// Holds the ring's completion lock for long, which whoever copies from or to this thread needs for each page.
fn be_in_the_way(ring: &mut Raw<'_>) {
    for _ in 0..NOPS {
        ring.push(sqe::named(NOP, FILLER));
    }
    let _ = ring.dispatch();
    for _ in 0..NOPS {
        ring.expect(FILLER, Status::Ok, "a NOP");
    }
}

/// Both ends of what was given up, in either order: its own status, and the cancel's. Neither is waited
/// for: nobody is left who would bring them.
fn both(ring: &mut Raw<'_>, user_data: u64) -> (Option<Status>, Option<Status>) {
    let (mut of, mut cancel) = (None, None);
    while let Some(got) = ring.pop() {
        let place = if got.cqe.user_data == user_data { &mut of } else { &mut cancel };
        *place = got.status();
    }
    (of, cancel)
}

/// Sends what begins in the initial thread's stack, far from what is used of it, and leaves it at the top.
fn call_badly(env: &Env) -> i64 {
    let own = env.caps.named("self").unwrap_or(CapSlot::NONE);
    let from = STACK_TOP - u64::from(BYTES) + PAGE;
    at::write64(from, MEANT);
    let log = borrow(&env.io, |ring| {
        for attempt in 1..=env.argument {
            if !comes_to(&TESTER, attempt) {
                break;
            }
            let call = sqe::from_memory(sqe::call(own, 0, 0, 0), from, BYTES);
            ring.ends(sqe::named(call, CALL), Status::BadAddress, "a call that cannot be read");
            CALLER.store(attempt, Ordering::Release);
        }
    });
    log.failures() as i64
}

/// A receive is given up while the message of a call that cannot be read is on its way.
pub fn receive_given_up(t: &mut T<'_, Bench>) -> Outcome {
    let own = t.env.own;
    let mut found_in_delivery = 0;
    with_caller(t, call_badly, |ring, attempts| {
        let mut random = Random::new(17);
        let to = IN.as_ptr().expose_provenance() as u64;
        let receive = sqe::named(sqe::to_memory(sqe::recv(own), to, BYTES), RECEIVE);
        let cancel = sqe::named(sqe::cancel(RECEIVE), CANCEL);
        for attempt in 1..=attempts {
            IN[0].store(0, Ordering::Relaxed);
            ring.push(receive);
            let _ = ring.dispatch();
            TESTER.store(attempt, Ordering::Release);
            // Until the first page is there, and somewhere in the pages that follow.
            while IN[0].load(Ordering::Relaxed) != MEANT {
                be_in_the_way(ring);
            }
            for _ in 0..random.below(8) {
                be_in_the_way(ring);
            }
            ring.push(cancel);
            let _ = ring.dispatch();
            let (mut ended, cancelled) = both(ring, RECEIVE);
            if cancelled == Some(Status::NotFound) {
                // Once the caller knows how its call ended nobody has to do with the receive any more.
                comes_to(&CALLER, attempt);
                ended = ended.or_else(|| both(ring, RECEIVE).0);
                found_in_delivery += 1;
            }
            ring.eq(ended, Some(Status::Cancelled), "the receive");
            if ring.failures() != 0 {
                return;
            }
            comes_to(&CALLER, attempt);
        }
    })?;
    t.metric("given up in a delivery", found_in_delivery, "receives");
    Ok(())
}

/// Gives each call up when its first words have arrived, and uses the memory for something else.
fn call_and_give_up(env: &Env) -> i64 {
    let own = env.caps.named("self").unwrap_or(CapSlot::NONE);
    let from = OUT.as_ptr().expose_provenance() as u64;
    let log = borrow(&env.io, |ring| {
        for attempt in 1..=env.argument {
            OUT.iter().for_each(|word| word.store(MEANT, Ordering::Relaxed));
            ring.push(sqe::named(sqe::from_memory(sqe::call(own, 0, 0, 0), from, BYTES), CALL));
            let _ = ring.dispatch();
            CALLER.store(attempt * 2 - 1, Ordering::Release);
            while IN[0].load(Ordering::Relaxed) != MEANT {
                be_in_the_way(ring);
            }
            ring.push(sqe::named(sqe::cancel(CALL), CANCEL));
            let _ = ring.dispatch();
            let ends = both(ring, CALL);
            OUT.iter().for_each(|word| word.store(LATER, Ordering::Relaxed));
            ring.eq(ends, (Some(Status::Cancelled), Some(Status::Ok)), "a call that is given up");
            CALLER.store(attempt * 2, Ordering::Release);
            comes_to(&TESTER, attempt);
        }
    });
    log.failures() as i64
}

/// A call is given up while its message is on its way.
pub fn call_given_up(t: &mut T<'_, Bench>) -> Outcome {
    let own = t.env.own;
    let mut delivered = 0;
    with_caller(t, call_and_give_up, |ring, attempts| {
        let to = IN.as_ptr().expose_provenance() as u64;
        for attempt in 1..=attempts {
            IN.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            comes_to(&CALLER, attempt * 2 - 1);
            ring.push(sqe::named(sqe::to_memory(sqe::recv(own), to, BYTES), RECEIVE));
            let _ = ring.dispatch();
            comes_to(&CALLER, attempt * 2);
            let is_meant = |word: &AtomicU64| word.load(Ordering::Relaxed) != LATER;
            ring.check(IN.iter().all(is_meant), "what came was sent");
            match ring.pop() {
                // The message was there before its call was given up; the answer goes nowhere.
                Some(got) => {
                    delivered += 1;
                    ring.eq(got.status(), Some(Status::Ok), "the receive");
                    let answer = sqe::named(sqe::answer(got.cqe.token, 0, 0), CALL);
                    ring.ends(answer, Status::Ok, "an answer nobody waits for");
                }
                None => {
                    ring.push(sqe::named(sqe::cancel(RECEIVE), CANCEL));
                    let _ = ring.dispatch();
                    let ends = both(ring, RECEIVE);
                    let expected = (Some(Status::Cancelled), Some(Status::Ok));
                    ring.eq(ends, expected, "a receive that goes on");
                }
            }
            TESTER.store(attempt, Ordering::Release);
        }
    })?;
    t.metric("messages that were faster", delivered, "calls");
    Ok(())
}

/// Runs `work` beside a thread that calls.
fn with_caller(
    t: &mut T<'_, Bench>,
    caller: fn(&Env) -> i64,
    work: impl FnOnce(&mut Raw<'_>, u64),
) -> Outcome {
    let Bench { env, threads, own, info, .. } = *t.env;
    TESTER.store(0, Ordering::Release);
    CALLER.store(0, Ordering::Release);
    let mut cpus = None;
    raw(t, &env.io, |ring| cpus = machine(ring, info).map(|machine| machine.cpus))?;
    let attempts = if require_some!(t, cpus) == 1 { ATTEMPTS.1 } else { ATTEMPTS.0 };
    let thread = require_ok!(t, threads.spawn(&env.io, &STACKS[0], caller, attempts));
    raw(t, &env.io, |ring| work(ring, attempts))?;
    // Should the work have ended early, the caller is not kept waiting.
    TESTER.store(OVER, Ordering::Release);
    check_eq!(t, require_ok!(t, thread.join(&env.io)), 0);
    raw(t, &env.io, |ring| {
        let found = load(ring, own);
        ring.eq(found, (0, 0), "nothing is left at the endpoint");
    })
}
