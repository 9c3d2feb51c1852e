//! Targets that cannot run at once.

use abi_types::{NEVER, Status};
use capos_rt::Env;
use core::sync::atomic::{AtomicU64, Ordering};
use ipc_protocol::Work;
use test_kit::{Outcome, T, check, check_eq, require_ok, require_some};
use test_ring::{Raw, borrow, raw, sqe};

use crate::{Bench, counted, start};

/// Peers that answer.
pub const SERVERS: [usize; 3] = [0, 1, 2];
/// The peer that never waits.
const POLLER: usize = 3;
const ROUNDS: u64 = 200;

/// A call to each of `services` in one entry; the answers are those to what was sent, once each.
fn call_all(ring: &mut Raw<'_>, services: &[abi_types::CapSlot], round: u64) {
    for (number, service) in (0_u16..).zip(services) {
        let word = round << 8 | u64::from(number);
        ring.put(number, &[word, !word]);
        ring.push(sqe::named(sqe::call(*service, 0, number, 16), u64::from(number)));
    }
    let _ = ring.enter(services.len() as u32, NEVER);
    let mut is_answered = [false; 8];
    for _ in services {
        let got = ring.wait();
        let number = got.cqe.user_data;
        let word = round << 8 | number;
        let is_right = got.status() == Some(Status::Ok) && got.words[..2] == [word, !word];
        ring.check(is_right, "an answer");
        match is_answered.get_mut(number as usize) {
            Some(is_answered) if !*is_answered => *is_answered = true,
            _ => ring.fail(format_args!("call {number} was answered twice")),
        }
    }
}

/// Calls in one entry: the first server is in the slot when the others come, which are queued.
pub fn taken(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, services, .. } = *t.env;
    let bench = &*t.env;
    let log = borrow(&env.io, |ring| {
        for peer in SERVERS {
            start(ring, bench, peer, Work::Serve);
        }
        // They wait for calls after the first round at the latest.
        call_all(ring, &SERVERS.map(|peer| services[peer]), 0);
    });
    log.tell(t);
    for count in [2, 3] {
        let (cpus, before_taken, before_missed) = require_some!(t, counted(t));
        raw(t, &env.io, |ring| {
            for round in 0..ROUNDS {
                call_all(ring, &SERVERS.map(|peer| services[peer])[..count], round);
            }
        })?;
        let (_, taken, missed) = require_some!(t, counted(t));
        let (taken, missed) = (taken - before_taken, missed - before_missed);
        t.metric("hand-offs taken", taken, "calls");
        t.metric("hand-offs missed", missed, "calls");
        if cpus == 1 {
            // The first call and the last answer are handed over; the calls between find the slot taken.
            check_eq!(t, (taken, missed), (2 * ROUNDS, (count as u64 - 1) * ROUNDS));
        } else {
            check!(t, missed > 0, "no slot was taken in {ROUNDS} rounds");
        }
    }
    Ok(())
}

/// The caller goes on although its server is in the slot.
pub fn not_used(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, services, .. } = *t.env;
    let (cpus, before_taken, before_missed) = require_some!(t, counted(t));
    raw(t, &env.io, |ring| {
        for round in 0..ROUNDS {
            ring.put(0, &[round, !round]);
            ring.push(sqe::named(sqe::call(services[0], 0, 0, 16), round));
            let _ = ring.enter(0, 0);
            let got = ring.expect(round, Status::Ok, "an answer");
            ring.check(got.words[..2] == [round, !round], "its words");
        }
    })?;
    let (_, taken, missed) = require_some!(t, counted(t));
    if cpus == 1 {
        // Each call offers the slot and gives it up; each answer finds the caller waiting, or running.
        check_eq!(t, missed - before_missed, ROUNDS);
        check!(t, taken - before_taken >= ROUNDS, "{taken} taken");
    }
    Ok(())
}

capos_rt::stacks! {
    static STACKS: [16384; 2];
}
static CALLED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Calls both servers at once, in the order its argument says.
fn call_both(env: &Env) -> i64 {
    let facet = |name| env.caps.named(name).unwrap_or(abi_types::CapSlot::NONE);
    let mut services = [facet("s0"), facet("s1")];
    let me = env.argument as usize;
    if me == 1 {
        services.reverse();
    }
    let log = borrow(&env.io, |ring| {
        for round in 0..ROUNDS {
            call_all(ring, &services, round * 2 + me as u64);
            CALLED[me].fetch_add(2, Ordering::Relaxed);
        }
    });
    log.failures() as i64
}

/// Two callers offer two servers each, in opposite orders.
pub fn two_callers(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, threads, .. } = *t.env;
    let first = require_ok!(t, threads.spawn(&env.io, &STACKS[0], call_both, 0));
    let second = require_ok!(t, threads.spawn(&env.io, &STACKS[1], call_both, 1));
    for thread in [first, second] {
        check_eq!(t, require_ok!(t, thread.join(&env.io)), 0);
    }
    for called in &CALLED {
        check_eq!(t, called.load(Ordering::Relaxed), 2 * ROUNDS);
    }
    Ok(())
}

/// A server that runs, on another CPU if there is one, is not woken and not handed anything: it finds the
/// call.
pub fn runs_elsewhere(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, services, .. } = *t.env;
    let bench = &*t.env;
    let log = borrow(&env.io, |ring| {
        start(ring, bench, POLLER, Work::Poll);
        for round in 0..ROUNDS {
            call_all(ring, &[services[POLLER]], round);
            // Both in one entry: one that waits here, one that runs elsewhere.
            call_all(ring, &[services[0], services[POLLER]], round);
        }
    });
    log.tell(t);
    Ok(())
}
