//! RELEASE, and CANCEL of every kind of pending operation: each completes once.

use abi_types::{CapSlot, NEVER, Status};
use core::sync::atomic::AtomicU32;
use schema::console::ReadParams;
use schema::endpoint::{self, LoadResults, MintFacetResults};
use schema::timer::SleepParams;
use test_kit::{Outcome, T, require_ok};
use test_ring::{Raw, raw, sqe};

use crate::{Bench, SLEEPS};

/// `Endpoint.load`.
const LOAD: u16 = 2;

fn load(ring: &mut Raw<'_>, own: CapSlot) -> Option<(u32, u32)> {
    let got = ring.ends(sqe::call_endpoint(own, LOAD, 0, 0), Status::Ok, "load");
    got.results::<LoadResults>().map(|load| (load.queued, load.in_flight))
}

pub fn release(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, .. } = *t.env;
    let minted = endpoint::Client::new(env.io.caller(), own).mint_facet(3, 0);
    let MintFacetResults { facet_index, facet_generation } = require_ok!(t, minted);
    let facet = CapSlot::new(facet_index.into(), facet_generation);
    raw(t, &env.io, |ring| {
        ring.push(sqe::named(sqe::call(facet, 0, 0, 0), 1));
        ring.push(sqe::named(sqe::recv(own), 2));
        ring.dispatch();
        let call = ring.expect(2, Status::Ok, "the call through the facet");
        ring.eq(call.cqe.badge, 3, "its badge");
        // A capability can go while a call through it is under way.
        ring.ends(sqe::release(facet), Status::Ok, "a live slot");
        ring.ends(sqe::release(facet), Status::Disconnected, "the same again");
        ring.ends(sqe::call(facet, 0, 0, 0), Status::Disconnected, "a call through it");
        ring.push(sqe::named(sqe::answer(call.cqe.token, 0, 0), 3));
        ring.dispatch();
        ring.expect(1, Status::Ok, "the call is answered");
        ring.expect(3, Status::Ok, "RETURN");
        for slot in [
            CapSlot::NONE,
            CapSlot::new(facet.index(), facet.generation() + 2),
            CapSlot::new(63, 1),
            CapSlot::new(64, 1),
            CapSlot::new(u32::MAX, u32::MAX),
            CapSlot::new(own.index(), 0),
        ] {
            ring.ends(sqe::release(slot), Status::Disconnected, "an empty or stale slot");
        }
        let found = load(ring, own);
        ring.eq(found, Some((0, 0)), "nothing is left at the endpoint");
    })
}

pub fn call(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, .. } = *t.env;
    raw(t, &env.io, |ring| {
        // While it waits for a receiver.
        ring.push(sqe::named(sqe::call(first, 0, 0, 0), 1));
        ring.dispatch();
        let found = load(ring, own);
        ring.eq(found, Some((1, 0)), "one call waits");
        ring.push(sqe::named(sqe::cancel(1), 2));
        ring.expect(1, Status::Cancelled, "a waiting call");
        ring.expect(2, Status::Ok, "its cancel");
        let found = load(ring, own);
        ring.eq(found, Some((0, 0)), "none waits");
        // While it is being served: the answer finds nobody, and says so to nobody.
        ring.push(sqe::named(sqe::call(first, 0, 0, 0), 3));
        ring.push(sqe::named(sqe::recv(own), 4));
        ring.dispatch();
        let served = ring.expect(4, Status::Ok, "the receive");
        ring.push(sqe::named(sqe::cancel(3), 5));
        ring.expect(3, Status::Cancelled, "a call that is being served");
        ring.expect(5, Status::Ok, "its cancel");
        ring.push(sqe::named(sqe::cancel(3), 5));
        ring.expect(5, Status::NotFound, "a second cancel");
        let found = load(ring, own);
        ring.eq(found, Some((0, 1)), "the server still has it");
        ring.ends(sqe::named(sqe::answer(served.cqe.token, 0, 0), 6), Status::Ok, "its answer");
        ring.expect_none("an answer to a call that was given up");
        let found = load(ring, own);
        ring.eq(found, Some((0, 0)), "the server is rid of it");
        let again = sqe::answer(served.cqe.token, 0, 0);
        ring.ends(again, Status::NotFound, "a second answer");
    })
}

pub fn recv(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, .. } = *t.env;
    raw(t, &env.io, |ring| {
        for user_data in [1, 2, 3] {
            ring.push(sqe::named(sqe::recv(own), user_data));
        }
        ring.push(sqe::named(sqe::cancel(2), 9));
        ring.dispatch();
        ring.expect(2, Status::Cancelled, "the second of three");
        ring.expect(9, Status::Ok, "its cancel");
        // A receive that is part of a RETURN is cancelled like any other.
        ring.push(sqe::named(sqe::call(first, 0, 0, 0), 10));
        ring.dispatch();
        let call = ring.expect(1, Status::Ok, "the first takes the call");
        let answer = sqe::then_recv(sqe::answer(call.cqe.token, 0, 0), own);
        ring.push(sqe::named(answer, 4));
        ring.dispatch();
        ring.expect(10, Status::Ok, "answered");
        for user_data in [4, 3] {
            ring.push(sqe::named(sqe::cancel(user_data), 9));
            ring.expect(user_data, Status::Cancelled, "the others");
            ring.expect(9, Status::Ok, "their cancel");
        }
        ring.push(sqe::named(sqe::call(first, 0, 0, 0), 11));
        ring.push(sqe::named(sqe::cancel(11), 12));
        ring.expect(11, Status::Cancelled, "nobody receives any more");
        ring.expect(12, Status::Ok, "its cancel");
    })
}

pub fn sleep(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, timer, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let length = ring.put_params(0, &SleepParams { ns: 1 << 50 });
        // More often than the quota allows at once: a cancelled sleep gives its place back.
        for _ in 0..3 * SLEEPS {
            ring.push(sqe::named(sqe::call_timer(timer, 1, 0, length), 1));
            ring.push(sqe::named(sqe::cancel(1), 2));
            ring.dispatch();
            ring.expect(1, Status::Cancelled, "a sleep");
            ring.expect(2, Status::Ok, "its cancel");
        }
    })
}

pub fn park(t: &mut T<'_, Bench>) -> Outcome {
    static WORD: AtomicU32 = AtomicU32::new(5);
    let Bench { env, park, .. } = *t.env;
    let address = WORD.as_ptr().expose_provenance() as u64;
    raw(t, &env.io, |ring| {
        for timeout_ns in [NEVER, 1 << 50] {
            ring.push(sqe::named(sqe::park(park, address, 5, timeout_ns), 1));
            ring.push(sqe::named(sqe::cancel(1), 2));
            ring.dispatch();
            ring.expect(1, Status::Cancelled, "a park");
            ring.expect(2, Status::Ok, "its cancel");
            let unpark = ring.ends(sqe::unpark(park, address, 9), Status::Ok, "unpark");
            ring.eq(unpark.cqe.length, 0, "nobody is parked any more");
        }
    })
}

pub fn read(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, console, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let length = ring.put_params(0, &ReadParams { capacity: 4 });
        for _ in 0..3 {
            ring.push(sqe::named(sqe::call_console(console, 1, 0, length), 1));
            ring.push(sqe::named(sqe::cancel(1), 2));
            ring.dispatch();
            ring.expect(1, Status::Cancelled, "a read");
            ring.expect(2, Status::Ok, "its cancel");
        }
    })
}

pub fn none(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, .. } = *t.env;
    raw(t, &env.io, |ring| {
        ring.ends(sqe::named(sqe::cancel(7), 7), Status::NotFound, "itself");
        ring.ends(sqe::cancel(u64::MAX), Status::NotFound, "what never was");
        // Of two of the same name, one is ended by each.
        ring.push(sqe::named(sqe::recv(own), 1));
        ring.push(sqe::named(sqe::recv(own), 1));
        for _ in 0..2 {
            ring.push(sqe::named(sqe::cancel(1), 2));
            ring.dispatch();
            ring.expect(1, Status::Cancelled, "one of them");
            ring.expect(2, Status::Ok, "its cancel");
        }
        ring.ends(sqe::named(sqe::cancel(1), 2), Status::NotFound, "a third");
    })
}

/// A cancel that comes about when the time does: one of the two ends the sleep, never both.
pub fn races_sleep(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, timer, .. } = *t.env;
    let mut ends = [0_u64; 2];
    raw(t, &env.io, |ring| {
        for round in 0..400_u64 {
            let length = ring.put_params(0, &SleepParams { ns: 1 + round * 61 % 24_000 });
            ring.push(sqe::named(sqe::call_timer(timer, 1, 0, length), round));
            ring.dispatch();
            ring.push(sqe::named(sqe::cancel(round), 1 << 32));
            ring.dispatch();
            let (mut slept, mut cancelled) = (None, None);
            while slept.is_none() || cancelled.is_none() {
                let got = ring.wait();
                let place = if got.cqe.user_data == round { &mut slept } else { &mut cancelled };
                *place = got.status();
            }
            match (slept, cancelled) {
                (Some(Status::Ok), Some(Status::NotFound)) => ends[0] += 1,
                (Some(Status::Cancelled), Some(Status::Ok)) => ends[1] += 1,
                other => ring.fail(format_args!("a sleep and its cancel: {other:?}")),
            }
        }
    })?;
    t.metric("sleeps that ended first", ends[0], "sleeps");
    t.metric("cancels that came first", ends[1], "sleeps");
    Ok(())
}
