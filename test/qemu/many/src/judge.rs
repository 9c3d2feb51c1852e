//! Waits for the verdicts of all client threads and adds them up.
#![no_std]
#![no_main]

use abi_types::{CapSlot, Status};
use capos_rt::Env;
use test_kit::{Outcome, Suite, T, Test, check_eq};
use test_ring::{raw, sqe};

capos_rt::main!(main);

/// Client threads of all nodes.
const CLIENTS: u64 = 12;
/// Calls of each: 10⁵ in all in the long run, which its manifest marks by a grant called `long`.
const CALLS_LONG: u64 = 8400;
/// Otherwise 10⁴.
const CALLS: u64 = 840;
/// The method that asks how many calls to make; 0 tells how they went.
const HOW_MANY: u16 = 1;

const SUITE: Suite<&'static Env> =
    Suite::new(&[Test::new("many.calls_between_random_pairs", calls)]);

fn main(env: &'static Env) {
    let mut shared = env;
    test_user::run_with(env, &SUITE, &mut shared)
}

fn calls(t: &mut T<'_, &'static Env>) -> Outcome {
    let env = *t.env;
    let verdicts = env.caps.named("verdicts").unwrap_or(CapSlot::NONE);
    let each = if env.caps.named("long").is_some() { CALLS_LONG } else { CALLS };
    let mut total = [0_u64; 4];
    raw(t, &env.io, |ring| {
        let mut left = CLIENTS;
        while left > 0 {
            // As long as it takes: whoever hangs is found by the run's own guard.
            ring.push(sqe::named(sqe::recv(verdicts), 1));
            while ring.enter(1, abi_types::NEVER).count() == 0 {}
            let got = ring.expect(1, Status::Ok, "a verdict");
            if got.cqe.method != HOW_MANY {
                (0..4).for_each(|word| total[word] += got.words[word]);
                left -= 1;
            }
            ring.put(0, &[each]);
            ring.ends(sqe::answer(got.cqe.token, 0, 8), Status::Ok, "taken");
        }
    })?;
    let [calls, wrong, exceptions, cancelled] = total;
    t.metric("calls", calls, "calls");
    t.metric("exceptions", exceptions, "calls");
    t.metric("cancelled", cancelled, "calls");
    check_eq!(t, (calls, wrong), (CLIENTS * each, 0));
    Ok(())
}
