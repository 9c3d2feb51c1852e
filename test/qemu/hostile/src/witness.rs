//! The healthy process: calls its peer and checks every answer while others misbehave.
//!
//! Vandals tell how far they are by calls to `news`: a word of operations so far, a word of
//! what they found wrong.
#![no_std]
#![no_main]

use abi_types::{CapSlot, NEVER, Status};
use capos_rt::Env;
use schema::system_info;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require_ok};
use test_ring::{Random, raw, sqe};

capos_rt::main!(main);

/// Vandals the manifest starts.
const VANDALS: usize = 2;
/// Operations of all vandals together, at least.
const OPERATIONS: u64 = 100_000;
/// Calls to the healthy peer for each word of a vandal.
const CALLS: u64 = 20;

const SUITE: Suite<&'static Env> = Suite::new(&[
    Test::new("hostile.others_are_served", others_are_served),
    Test::new("hostile.the_kernel_is_whole", the_kernel_is_whole),
]);

fn main(env: &'static Env) {
    let mut shared = env;
    test_user::run_with(env, &SUITE, &mut shared)
}

fn cap(env: &Env, name: &str) -> CapSlot {
    env.caps.named(name).unwrap_or(CapSlot::NONE)
}

fn others_are_served(t: &mut T<'_, &'static Env>) -> Outcome {
    let env = *t.env;
    let (news, echo) = (cap(env, "news"), cap(env, "echo"));
    let mut operations = [0_u64; VANDALS];
    let mut entries = [0_u64; VANDALS];
    let mut wrong = 0_u64;
    let mut served = 0_u64;
    raw(t, &env.io, |ring| {
        let mut random = Random::new(4);
        ring.push(sqe::named(sqe::recv(news), 1));
        while operations.iter().sum::<u64>() < OPERATIONS || operations.contains(&0) {
            for _ in 0..CALLS {
                let word = random.bits();
                ring.put(3, &[word, !word]);
                ring.push(sqe::named(sqe::call(echo, 0, 3, 16), 2));
                let _ = ring.enter(1, NEVER);
                let mut got = ring.wait();
                if got.cqe.user_data == 1 {
                    // News came first: the next one is answered with it.
                    let vandal = got.cqe.badge as usize % VANDALS;
                    operations[vandal] = got.words[0];
                    wrong += got.words[1];
                    entries[vandal] = got.words[2];
                    let answer = sqe::answer(got.cqe.token, 0, 0);
                    ring.push(sqe::named(sqe::then_recv(answer, news), 1));
                    got = ring.wait();
                    while got.cqe.user_data == 1 {
                        let answer = sqe::answer(got.cqe.token, 0, 0);
                        operations[got.cqe.badge as usize % VANDALS] = got.words[0];
                        wrong += got.words[1];
                        ring.push(sqe::named(sqe::then_recv(answer, news), 1));
                        got = ring.wait();
                    }
                }
                let is_right = got.status() == Some(Status::Ok) && got.words[..2] == [word, !word];
                ring.check(is_right, "an answer of the healthy peer");
                served += 1;
            }
            if ring.failures() != 0 {
                break;
            }
        }
        ring.push(sqe::named(sqe::cancel(1), 3));
        // A word that comes between is no harm.
        let first = ring.wait();
        let second = ring.wait();
        for got in [first, second] {
            if got.cqe.user_data == 1 && got.status() == Some(Status::Ok) {
                ring.ends(sqe::answer(got.cqe.token, 0, 0), Status::Ok, "the last word");
            }
        }
    })?;
    for (vandal, count) in operations.iter().enumerate() {
        t.metric(if vandal == 0 { "operations, first" } else { "operations, second" }, *count, "");
    }
    t.metric("entries, first", entries[0], "");
    t.metric("healthy calls", served, "");
    check_eq!(t, wrong, 0);
    Ok(())
}

fn the_kernel_is_whole(t: &mut T<'_, &'static Env>) -> Outcome {
    let env = *t.env;
    let mut info = system_info::Client::new(env.io.caller(), cap(env, "info"));
    let machine = require_ok!(t, info.machine()).machine;
    check!(t, machine.frames_free > machine.frames_total / 4, "{machine:?}");
    Ok(())
}
