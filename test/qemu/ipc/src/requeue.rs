//! A receive that a failed delivery put back into its queue is cancelled like any other.
//!
//! A call that is too large for the receive it was matched with drops out, and the receive waits again
//! under another name, which is noted where a cancel looks for it. The test makes whoever notes it late:
//! the bad caller also has large calls under way, whose pages another thread copies under the lock that
//! the bad caller needs to hear of its refusal. Meanwhile a good call takes the receive, and the receiver
//! waits again, with the same cell and a third name.

use abi_types::{CapSlot, NEVER, Status};
use capos_rt::Env;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use test_kit::{Outcome, T, check_eq, require_ok, require_some};
use test_ring::{Random, Raw, borrow, raw, sqe};

use crate::{Bench, load, machine};

/// How often it is tried where CPUs race. With the name noted too late, five of ten boots that tried up to
/// 400 times found it, after 56 to 354 attempts.
const ATTEMPTS: u64 = 100;
/// On one CPU nobody comes between.
const ATTEMPTS_ALONE: u64 = 1;
/// Large calls the bad caller has under way.
const LARGE: u64 = 8;
const LARGE_BYTES: u32 = 65_536;
/// The method that ends the thread that copies.
const STOP: u16 = 99;

// User data.
const FIRST: u64 = 1;
const SECOND: u64 = 2;
const ANSWER: u64 = 3;
const CANCEL: u64 = 4;
const BAD: u64 = 5;
const GOOD: u64 = 6;
const COPIED: u64 = 7;

capos_rt::stacks! {
    static STACKS: [16384; 4];
}
static OUT: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];
static IN: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];

/// The attempt whose first receive waits.
static RECEIVING: AtomicU64 = AtomicU64::new(0);
/// The attempt whose bad call is about to be made.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// The attempt whose bad call was refused.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// The attempt whose good call was answered.
static ANSWERED: AtomicU64 = AtomicU64::new(0);
/// Nobody tries again.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Waits until `word` has come to `attempt`; `false` if all is over.
fn comes_to(word: &AtomicU64, attempt: u64) -> bool {
    // Acquire and release, here and below: nothing but order among the threads.
    while word.load(Ordering::Acquire) < attempt {
        if IS_OVER.load(Ordering::Acquire) {
            return false;
        }
        core::hint::spin_loop();
    }
    true
}

/// The completion of `user_data`, without a wait in the kernel; others are counted in `also`.
fn poll(ring: &mut Raw<'_>, user_data: u64, also: &mut u64) -> Option<Status> {
    loop {
        match ring.pop() {
            Some(got) if got.cqe.user_data == user_data => return got.status(),
            Some(_) => *also += 1,
            None if IS_OVER.load(Ordering::Acquire) && user_data != COPIED => return None,
            None => core::hint::spin_loop(),
        }
    }
}

/// Receives, is called once, receives again, and gives that up when nobody has to do with it any more.
fn receive(env: &Env) -> i64 {
    let own = env.caps.named("t").unwrap_or(CapSlot::NONE);
    let log = borrow(&env.io, |ring| {
        for attempt in 1..=env.argument {
            ring.push(sqe::named(sqe::recv(own), FIRST));
            let _ = ring.dispatch();
            RECEIVING.store(attempt, Ordering::Release);
            let call = loop {
                match ring.pop() {
                    Some(got) => break got,
                    None => core::hint::spin_loop(),
                }
            };
            ring.eq((call.cqe.user_data, call.status()), (FIRST, Some(Status::Ok)), "the call");
            ring.push(sqe::named(sqe::answer(call.cqe.token, 0, 0), ANSWER));
            ring.push(sqe::named(sqe::recv(own), SECOND));
            let _ = ring.dispatch();
            ring.expect(ANSWER, Status::Ok, "the answer");
            if !comes_to(&REFUSED, attempt) || !comes_to(&ANSWERED, attempt) {
                break;
            }
            ring.push(sqe::named(sqe::cancel(SECOND), CANCEL));
            let _ = ring.dispatch();
            // The receive ends before the cancel that ends it says so.
            let first = ring.wait();
            ring.eq(
                (first.cqe.user_data, first.status()),
                (SECOND, Some(Status::Cancelled)),
                "the receive that was given up",
            );
            if ring.failures() != 0 {
                break;
            }
            ring.expect(CANCEL, Status::Ok, "the cancel of a receive that waits");
        }
        IS_OVER.store(true, Ordering::Release);
    });
    log.failures() as i64
}

/// Makes calls that are too large for the receive they meet, with others under way.
fn call_badly(env: &Env) -> i64 {
    let named = |name| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let (own, spare) = (named("self"), named("spare_client"));
    let from = OUT.as_ptr().expose_provenance() as u64;
    let large =
        |to, name| sqe::named(sqe::from_memory(sqe::call(to, 0, 0, 0), from, LARGE_BYTES), name);
    let log = borrow(&env.io, |ring| {
        let (mut made, mut copied) = (0, 0);
        for attempt in 1..=env.argument {
            if !comes_to(&RECEIVING, attempt) {
                break;
            }
            while made - copied < LARGE {
                ring.push(large(spare, COPIED));
                made += 1;
            }
            let _ = ring.dispatch();
            BEGUN.store(attempt, Ordering::Release);
            ring.push(large(own, BAD));
            let _ = ring.dispatch();
            let bad = poll(ring, BAD, &mut copied);
            ring.eq(bad, Some(Status::ParamsTooLarge), "a call that is too large");
            REFUSED.store(attempt, Ordering::Release);
        }
        while copied < made {
            poll(ring, COPIED, &mut copied);
            copied += 1;
        }
        ring.ends(sqe::call(spare, STOP, 0, 0), Status::Ok, "stop");
    });
    log.failures() as i64
}

/// Makes one good call for each bad one, at about the same time.
fn call_well(env: &Env) -> i64 {
    let own = env.caps.named("self").unwrap_or(CapSlot::NONE);
    let log = borrow(&env.io, |ring| {
        let mut random = Random::new(16);
        for attempt in 1..=env.argument {
            if !comes_to(&BEGUN, attempt) {
                break;
            }
            for _ in 0..random.below(500) {
                core::hint::spin_loop();
            }
            ring.push(sqe::named(sqe::call(own, 0, 0, 0), GOOD));
            let _ = ring.dispatch();
            if let Some(status) = poll(ring, GOOD, &mut 0) {
                ring.eq(status, Status::Ok, "a good call");
            }
            ANSWERED.store(attempt, Ordering::Release);
        }
    });
    log.failures() as i64
}

/// Receives the large calls, page by page.
fn copy(env: &Env) -> i64 {
    let spare = env.caps.named("spare").unwrap_or(CapSlot::NONE);
    let to = IN.as_ptr().expose_provenance() as u64;
    let log = borrow(&env.io, |ring| {
        loop {
            ring.push(sqe::to_memory(sqe::recv(spare), to, LARGE_BYTES));
            let _ = ring.enter(1, NEVER);
            let call = ring.wait();
            ring.eq(call.status(), Some(Status::Ok), "a large call");
            ring.ends(sqe::answer(call.cqe.token, 0, 0), Status::Ok, "its answer");
            if call.cqe.method == STOP || ring.failures() != 0 {
                break;
            }
        }
    });
    log.failures() as i64
}

pub fn cancelled(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, threads, own, spare, info, .. } = *t.env;
    let mut cpus = None;
    raw(t, &env.io, |ring| cpus = machine(ring, info).map(|machine| machine.cpus))?;
    let attempts = if require_some!(t, cpus) == 1 { ATTEMPTS_ALONE } else { ATTEMPTS };
    let mut started = [const { None }; 4];
    let roles = [receive, call_badly, call_well, copy];
    for ((place, role), stack) in started.iter_mut().zip(roles).zip(&STACKS) {
        *place = Some(require_ok!(t, threads.spawn(&env.io, stack, role, attempts)));
    }
    for thread in started.into_iter().flatten() {
        check_eq!(t, require_ok!(t, thread.join(&env.io)), 0);
    }
    t.metric("attempts", RECEIVING.load(Ordering::Relaxed), "receives");
    raw(t, &env.io, |ring| {
        for endpoint in [own, spare] {
            let found = load(ring, endpoint);
            ring.eq(found, (0, 0), "nothing is left at the endpoint");
        }
    })
}
