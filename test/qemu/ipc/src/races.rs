//! Cancels against answers, and several threads that serve one endpoint.

use abi_types::{NEVER, Status};
use capos_rt::Env;
use core::sync::atomic::{AtomicU64, Ordering};
use test_kit::{Outcome, T, check_eq, require_ok};
use test_ring::{Random, borrow, raw, sqe};

use crate::{Bench, load};

const SERVERS: usize = 3;
/// The method that ends a server.
const STOP: u16 = 99;

capos_rt::stacks! {
    static STACKS: [16384; SERVERS];
}
static SERVED: [AtomicU64; SERVERS] = [const { AtomicU64::new(0) }; SERVERS];

/// Answers with one more than it got; every third call in two entries instead of one.
fn serve(env: &Env) -> i64 {
    let own = env.caps.named("t").unwrap_or(abi_types::CapSlot::NONE);
    let log = borrow(&env.io, |ring| {
        let mut next = sqe::recv(own);
        for number in 0_u64.. {
            ring.push(next);
            let _ = ring.enter(1, NEVER);
            let call = ring.wait();
            ring.eq(call.status(), Some(Status::Ok), "a receive");
            ring.put(0, &[call.words[0] + 1]);
            let answer = sqe::answer(call.cqe.token, 0, 8);
            SERVED[env.argument as usize].fetch_add(1, Ordering::Relaxed);
            if call.cqe.method == STOP || ring.failures() != 0 {
                ring.ends(answer, Status::Ok, "the last answer");
                break;
            }
            next = if number % 3 == 2 {
                ring.ends(answer, Status::Ok, "an answer");
                sqe::recv(own)
            } else {
                sqe::then_recv(answer, own)
            };
        }
    });
    log.failures() as i64
}

fn with_servers(
    t: &mut T<'_, Bench>,
    count: usize,
    work: impl FnOnce(&mut T<'_, Bench>) -> Outcome,
) -> Outcome {
    let Bench { env, threads, own, own_facet, .. } = *t.env;
    let mut started = [const { None }; SERVERS];
    for (number, place) in started.iter_mut().enumerate().take(count) {
        SERVED[number].store(0, Ordering::Relaxed);
        let spawned = threads.spawn(&env.io, &STACKS[number], serve, number as u64);
        *place = Some(require_ok!(t, spawned));
    }
    work(t)?;
    raw(t, &env.io, |ring| {
        for _ in 0..count {
            ring.ends(sqe::call(own_facet, STOP, 0, 8), Status::Ok, "stop");
        }
        let found = load(ring, own);
        ring.eq(found, (0, 0), "nothing is left at the endpoint");
    })?;
    for thread in started.into_iter().flatten() {
        check_eq!(t, require_ok!(t, thread.join(&env.io)), 0);
    }
    Ok(())
}

/// Takes one call and ends with it.
fn take_and_end(env: &Env) -> i64 {
    let own = env.caps.named("t").unwrap_or(abi_types::CapSlot::NONE);
    let log = borrow(&env.io, |ring| {
        ring.push(sqe::recv(own));
        let _ = ring.enter(1, NEVER);
        let call = ring.wait();
        ring.eq(call.status(), Some(Status::Ok), "a receive");
    });
    log.failures() as i64
}

/// A thread of a process that lives on ends with a call it was serving: the caller is told, and
/// nothing is left behind.
pub fn server_thread_ends(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, threads, own, own_facet, .. } = *t.env;
    for _ in 0..20 {
        let spawned = threads.spawn(&env.io, &STACKS[0], take_and_end, 0);
        let thread = require_ok!(t, spawned);
        raw(t, &env.io, |ring| {
            let call = sqe::call(own_facet, 5, 0, 8);
            ring.ends(sqe::named(call, 7), Status::Disconnected, "a call nobody answers");
        })?;
        check_eq!(t, require_ok!(t, thread.join(&env.io)), 0);
        raw(t, &env.io, |ring| {
            let found = load(ring, own);
            ring.eq(found, (0, 0), "nothing is left at the endpoint");
        })?;
    }
    Ok(())
}

/// A call and its cancel at about the time of its answer: one completion each, and they agree.
pub fn cancel_races_answer(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own_facet, .. } = *t.env;
    let mut ends = [0_u64; 2];
    with_servers(t, 1, |t| {
        raw(t, &env.io, |ring| {
            let mut random = Random::new(3);
            for round in 0..600 {
                ring.put(1, &[round]);
                ring.push(sqe::named(sqe::call(own_facet, 0, 1, 8), 1));
                // In the same entry, right after it, or a little later.
                match round % 3 {
                    0 => {}
                    1 => drop(ring.dispatch()),
                    _ => {
                        let _ = ring.dispatch();
                        for _ in 0..random.below(2000) {
                            core::hint::spin_loop();
                        }
                    }
                }
                ring.push(sqe::named(sqe::cancel(1), 2));
                let (mut call, mut cancel) = (None, None);
                for _ in 0..2 {
                    let got = ring.wait();
                    let place = if got.cqe.user_data == 1 { &mut call } else { &mut cancel };
                    if got.status() == Some(Status::Ok) && got.cqe.user_data == 1 {
                        ring.eq(got.words[0], round + 1, "the answer");
                    }
                    *place = got.status();
                }
                match (call, cancel) {
                    (Some(Status::Ok), Some(Status::NotFound)) => ends[0] += 1,
                    (Some(Status::Cancelled), Some(Status::Ok)) => ends[1] += 1,
                    other => ring.fail(format_args!("round {round}: {other:?}")),
                }
            }
        })
    })?;
    t.metric("answers that came first", ends[0], "calls");
    t.metric("cancels that came first", ends[1], "calls");
    Ok(())
}

/// Several calls under way at an endpoint that several threads serve.
pub fn server_threads(t: &mut T<'_, Bench>) -> Outcome {
    const CALLS: u64 = 1500;
    const UNDER_WAY: u64 = 8;
    let Bench { env, own_facet, .. } = *t.env;
    with_servers(t, SERVERS, |t| {
        raw(t, &env.io, |ring| {
            let (mut started, mut ended) = (0, 0);
            // Which call has which inline slot: one may take much longer than those after it.
            let mut slots = [None; UNDER_WAY as usize];
            while ended < CALLS {
                while started < CALLS && started - ended < UNDER_WAY {
                    let free = slots.iter().position(Option::is_none).unwrap_or(0);
                    slots[free] = Some(started);
                    let slot = free as u16;
                    ring.put(slot, &[started]);
                    ring.push(sqe::named(sqe::call(own_facet, 0, slot, 8), started));
                    started += 1;
                }
                let got = ring.wait();
                ring.eq(got.status(), Some(Status::Ok), "a call");
                ring.eq(got.words[0], got.cqe.user_data + 1, "its answer");
                ended += 1;
                slots
                    .iter_mut()
                    .filter(|of| **of == Some(got.cqe.user_data))
                    .for_each(|of| *of = None);
                if ring.failures() != 0 {
                    break;
                }
            }
        })
    })?;
    let served: u64 = SERVED.iter().map(|served| served.load(Ordering::Relaxed)).sum();
    check_eq!(t, served, CALLS + SERVERS as u64);
    Ok(())
}
