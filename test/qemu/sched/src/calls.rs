//! Calls between CPUs: a caller that waits brings its server along.

use capos_rt::caller::call;
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_bare::program::Program;
use test_kit::{Outcome, T, check, require_ok, require_some};

use crate::hog;

type Test<'a> = T<'a, Program>;

/// Calls that are made one after the other.
const CALLS: u64 = 400;

/// Hand-overs of all CPUs.
fn hand_overs(program: &Program) -> u64 {
    (0..program.cpus()).filter_map(|cpu| program.counters(cpu)).map(|c| c.handoffs_taken).sum()
}

/// A client and a server that start on different CPUs end up on one: each call is handed over, and so
/// is each answer, but for the first few.
pub fn a_waiting_caller_brings_its_server(t: &mut Test<'_>) -> Outcome {
    let server = require_ok!(t, t.env.env.cap("other", plain_schema::plain::INTERFACE_ID));
    // It computes until a moment that has passed, so it answers at once.
    let before = hand_overs(t.env);
    for _ in 0..CALLS {
        let pending = require_ok!(t, t.env.io().submit(call(server, PLAIN, 0, 24), &[0, 0, 0]));
        require_some!(t, hog::answer(t.env, pending));
    }
    let taken = hand_overs(t.env) - before;
    t.metric("hand-overs of 400 calls and answers", taken, "");
    check!(t, taken >= CALLS, "{taken} hand-overs for {CALLS} calls and as many answers");
    Ok(())
}
