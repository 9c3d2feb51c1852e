//! Serves and calls: two threads answer whoever calls, three call random nodes and check every
//! answer.
//!
//! A call carries random words; the answer is the same words, changed in a way that depends on the
//! caller's badge and the method. Some calls are answered with an exception, some are cancelled,
//! payloads are inline or in memory on either side.
#![no_std]
#![no_main]

use abi_types::{CapSlot, ExceptionKind, NEVER, Sqe, Status};
use capos_rt::thread::Threads;
use capos_rt::{Env, Error};
use core::sync::atomic::{AtomicU64, Ordering};
use test_ring::{Got, Random, Raw, borrow, sqe};

capos_rt::main!(main);

const SERVERS: usize = 2;
const CLIENTS: usize = 3;
/// The judge's method that says how many calls to make.
const HOW_MANY: u16 = 1;
/// The method that is answered with an exception.
const REFUSED: u16 = 7;
const NODES: [&str; 4] = ["to0", "to1", "to2", "to3"];
/// A node's number in its badge.
const BADGE: u64 = 1000;

capos_rt::stacks! {
    static STACKS: [16384; SERVERS + CLIENTS];
}
/// Memory of each client, out and back.
static MEMORY: [[AtomicU64; 32]; CLIENTS] = [const { [const { AtomicU64::new(0) }; 32] }; CLIENTS];

fn main(env: &Env) -> Result<(), Error> {
    let threads = Threads::of(&env.caps)?;
    for (number, stack) in (0_u64..).zip(&STACKS) {
        let (main, argument): (fn(&Env) -> i64, _) = if number < SERVERS as u64 {
            (serve, number)
        } else {
            (call_many, number - SERVERS as u64)
        };
        let _ = threads.spawn(&env.io, stack, main, argument)?;
    }
    env.io.with_ring(|ring| {
        loop {
            let _ = ring.enter(1, NEVER);
        }
    })
}

fn named(env: &Env, name: &str) -> CapSlot {
    env.caps.named(name).unwrap_or(CapSlot::NONE)
}

/// What a server makes of a word.
const fn changed(word: u64, badge: u64, method: u16) -> u64 {
    word.rotate_left(method as u32) ^ badge
}

fn wait(ring: &mut Raw<'_>) -> Got {
    loop {
        if let Some(got) = ring.pop() {
            return got;
        }
        let _ = ring.enter(1, NEVER);
    }
}

fn serve(env: &Env) -> i64 {
    let requests = named(env, "requests");
    let _ = borrow(&env.io, |ring| {
        let mut next = sqe::recv(requests);
        for number in 0_u64.. {
            ring.push(next);
            let _ = ring.enter(1, NEVER);
            let call = wait(ring);
            let (badge, method, length) = (call.cqe.badge, call.cqe.method, call.cqe.length);
            ring.put(0, &call.words.map(|word| changed(word, badge, method)));
            let answer = if method == REFUSED {
                sqe::refuse(call.cqe.token, ExceptionKind::Failed, 0, 0)
            } else {
                sqe::answer(call.cqe.token, 0, length)
            };
            // Both ways to go on.
            next = if number % 5 == env.argument {
                ring.push(answer);
                let _ = wait(ring);
                sqe::recv(requests)
            } else {
                sqe::then_recv(answer, requests)
            };
        }
    });
    0
}

fn call_many(env: &Env) -> i64 {
    let client = env.argument as usize;
    let targets = NODES.map(|name| named(env, name));
    let seed = u64::from(env.pid.0) << 8 | env.argument;
    let mut counts = [0_u64; 4];
    let log = borrow(&env.io, |ring| {
        let mut random = Random::new(seed);
        ring.push(sqe::call(named(env, "verdicts"), HOW_MANY, 1, 0));
        let calls = wait(ring).words[0];
        for _ in 0..calls {
            let (ended, is_right) = one_call(ring, &mut random, &targets, client, env);
            counts[0] += 1;
            counts[1] += u64::from(!is_right);
            counts[2] += u64::from(ended == Some(Status::Exception));
            counts[3] += u64::from(ended == Some(Status::Cancelled));
        }
    });
    counts[1] += log.failures() as u64;
    let _ = borrow(&env.io, |ring| {
        ring.put(1, &counts);
        ring.push(sqe::call(named(env, "verdicts"), 0, 1, 32));
        let _ = wait(ring);
    });
    0
}

/// One call to a random node: how it ended, and whether that is right.
fn one_call(
    ring: &mut Raw<'_>,
    random: &mut Random,
    targets: &[CapSlot; 4],
    client: usize,
    env: &Env,
) -> (Option<Status>, bool) {
    let words: [u64; 16] = core::array::from_fn(|_| random.bits());
    let count = random.below(17) as usize;
    let method = random.below(8) as u16;
    let (out, back) = MEMORY[client].split_at(16);
    let mut call: Sqe = sqe::call(random.of(targets), method, 2, count as u32 * 8);
    if random.one_in(4) {
        out.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        call = sqe::from_memory(call, out.as_ptr().expose_provenance() as u64, count as u32 * 8);
    } else {
        ring.put(2, &words[..count]);
    }
    let is_to_memory = random.one_in(4);
    if is_to_memory {
        call = sqe::to_memory(call, back.as_ptr().expose_provenance() as u64, 128);
    }
    ring.push(sqe::named(call, 1));
    let mut is_right = true;
    let is_cancelled = random.one_in(50);
    if is_cancelled {
        ring.push(sqe::named(sqe::cancel(1), 2));
    } else {
        let _ = ring.enter(1, NEVER);
    }
    let mut got = wait(ring);
    if is_cancelled {
        let second = wait(ring);
        let cancel = if got.cqe.user_data == 2 { got } else { second };
        got = if got.cqe.user_data == 2 { second } else { got };
        // Whoever was first, both say the same.
        let has_cancelled = got.status() == Some(Status::Cancelled);
        let expected = if has_cancelled { Status::Ok } else { Status::NotFound };
        is_right = cancel.cqe.user_data == 2 && cancel.status() == Some(expected);
    }
    is_right &= got.cqe.user_data == 1;
    // What became of the call.
    match got.status() {
        Some(Status::Ok) => {
            let badge = BADGE + u64::from(env.pid.0) - FIRST_NODE;
            let same =
                words[..count].iter().zip(got.words).zip(back).all(|((sent, came), memory)| {
                    let came = if is_to_memory { memory.load(Ordering::Relaxed) } else { came };
                    came == changed(*sent, badge, method)
                });
            is_right &= same && got.cqe.length as usize == count * 8 && method != REFUSED;
        }
        Some(Status::Exception) => is_right &= method == REFUSED,
        Some(Status::Cancelled) => is_right &= is_cancelled,
        _ => is_right = false,
    }
    (got.status(), is_right)
}

/// The process number of the first node: the judge is the first process.
const FIRST_NODE: u64 = 1;
