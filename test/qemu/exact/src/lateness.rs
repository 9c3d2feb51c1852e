//! How late a deadline is: never early, and late by no more than it takes to serve it.

use abi_types::{Sqe, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::now_ns;
use capos_rt::park::{Parked, park};
use core::sync::atomic::AtomicU32;
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::timer;
use test_bare::program::Program;
use test_kit::{Outcome, T, check, check_eq, require_ok};

type Test<'a> = T<'a, Program>;

/// Instructions from the moment that was asked for to the next one in user mode: the interrupt, its
/// service, a switch from idle, the way out, and what the program does with the completion. The same
/// whatever the time asked for: at most 4,000, and 6,500 in a checked image.
const LATE_NS: u64 = 10_000;

/// The times asked for: some shorter than a slice, some longer, one that needs the timer's largest count.
const TIMES_NS: [u64; 7] =
    [20_000, 137_000, 1_000_000, 4_000_000, 9_999_999, 10_000_001, 33_333_333];

/// Waits for each of the times by `wait`, which is given the time and when it will have passed.
fn each(t: &mut Test<'_>, mut wait: impl FnMut(&Program, u64, u64) -> bool) -> Outcome {
    // With two CPUs the clock counts both: the idle one's own interrupts too.
    let bound = LATE_NS * u64::from(t.env.cpus());
    let mut latest = 0;
    for ns in TIMES_NS {
        let due = now_ns() + ns;
        let is_as_said = wait(t.env, ns, due);
        let now = now_ns();
        check!(t, is_as_said, "a wait of {ns} ns ended otherwise");
        check!(t, now >= due, "a wait of {ns} ns ended {} ns early", due.saturating_sub(now));
        let late = now.saturating_sub(due);
        check!(t, late <= bound, "a wait of {ns} ns ended {late} ns late; {bound} are right");
        latest = late.max(latest);
    }
    t.metric("latest", latest, "ns");
    Ok(())
}

pub fn sleep(t: &mut Test<'_>) -> Outcome {
    each(t, |program, ns, _| {
        timer::Client::new(program.io().caller(), program.timer).sleep(ns).is_ok()
    })
}

pub fn sleep_until(t: &mut Test<'_>) -> Outcome {
    each(t, |program, _, due| {
        timer::Client::new(program.io().caller(), program.timer).sleep_until(due).is_ok()
    })
}

/// A call that nobody receives ends at its deadline.
pub fn call_deadline(t: &mut Test<'_>) -> Outcome {
    let facet = require_ok!(t, t.env.env.cap("self", plain_schema::plain::INTERFACE_ID));
    each(t, |program, _, due| {
        let sqe = Sqe { arg: due, ..call(facet, PLAIN, 0, 0) };
        let ended = program.io().run(sqe, &[], &mut [0; 16]);
        ended.is_ok_and(|cqe| status_of(&cqe) == Status::DeadlineExpired)
    })?;
    // Each left the queue.
    let own = require_ok!(t, t.env.env.cap("own", schema::endpoint::INTERFACE_ID));
    let load = require_ok!(t, schema::endpoint::Client::new(t.env.io().caller(), own).load());
    check_eq!(t, (load.queued, load.in_flight), (0, 0));
    Ok(())
}

pub fn park_timeout(t: &mut Test<'_>) -> Outcome {
    let word = AtomicU32::new(5);
    each(t, |program, ns, _| park(program.io(), program.park, &word, 5, ns) == Ok(Parked::TimedOut))
}

/// An entry that waits for a completion that never comes.
pub fn enter_timeout(t: &mut Test<'_>) -> Outcome {
    each(t, |program, ns, _| program.io().with_ring(|ring| ring.enter(1, ns)).count() == 0)
}
