//! What the kernel serves itself: Console, Timer, SystemInfo, Endpoint; and exceptions.

use abi_types::{CapSlot, ExceptionKind, INLINE_BYTES, Status};
use capos_rt::now_ns;
use schema::console::{ReadParams, WriteParams, WriteResults};
use schema::endpoint::{
    LoadResults, MintFacetParams, MintFacetResults, RevokeFacetsParams, RevokeFacetsResults,
};
use schema::system_info::MachineResults;
use schema::timer::{NowResults, SleepParams, SleepUntilParams};
use schema::{system_info, timer as timer_interface};
use schema_wire::{CallError, Exception};
use test_kit::{Outcome, T, check, check_eq, require_ok};
use test_ring::{Raw, raw, sqe};

use crate::{Bench, SECOND_BADGE, SLEEPS};

pub fn console(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, console, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let length = ring.put_params(0, &WriteParams { bytes: b"the console takes this\n" });
        let got = ring.ends(sqe::call_console(console, 0, 0, length), Status::Ok, "write");
        ring.eq(got.results(), Some(WriteResults { written: 23 }), "all of it");
        let length = ring.put_params(0, &WriteParams { bytes: &[b'.'; 96] });
        let got = ring.ends(sqe::call_console(console, 0, 0, length), Status::Ok, "a long write");
        ring.eq(got.results(), Some(WriteResults { written: 64 }), "as much as it takes at once");
        let length = ring.put_params(0, &ReadParams { capacity: 0 });
        let got = ring.one(sqe::call_console(console, 1, 0, length));
        ring.eq(got.exception(), Some(ExceptionKind::InvalidArgument), "a read of nothing");
        // One read waits; a second is refused and the first goes on.
        let length = ring.put_params(0, &ReadParams { capacity: 1 });
        ring.push(sqe::named(sqe::call_console(console, 1, 0, length), 1));
        let got = ring.one(sqe::named(sqe::call_console(console, 1, 0, length), 2));
        ring.eq(got.exception(), Some(ExceptionKind::Overloaded), "a second read");
        ring.push(sqe::named(sqe::cancel(1), 3));
        ring.expect(1, Status::Cancelled, "the first read");
        ring.expect(3, Status::Ok, "its cancel");
    })
}

fn now(ring: &mut Raw<'_>, timer: CapSlot) -> u64 {
    let got = ring.ends(sqe::call_timer(timer, 0, 0, 0), Status::Ok, "now");
    got.results().map_or(0, |now: NowResults| now.ns)
}

pub fn timer(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, timer, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let mut last = now_ns();
        for _ in 0..50 {
            // One clock: the page's and the kernel's, in turn.
            let kernel = now(ring, timer);
            let page = now_ns();
            ring.check(last <= kernel && kernel <= page, "the clock never goes back");
            last = page;
        }
        for ns in [1, 999, 30_000, 1_500_000] {
            let begun_ns = now_ns();
            let length = ring.put_params(0, &SleepParams { ns });
            let got = ring.ends(sqe::call_timer(timer, 1, 0, length), Status::Ok, "sleep");
            ring.check(now_ns() >= begun_ns + ns, "never early");
            ring.eq(got.results::<schema::timer::SleepResults>().is_some(), true, "its results");
        }
        let at_ns = now_ns() + 700_000;
        let length = ring.put_params(0, &SleepUntilParams { deadline_ns: at_ns });
        ring.ends(sqe::call_timer(timer, 2, 0, length), Status::Ok, "sleepUntil");
        ring.check(now_ns() >= at_ns, "not before");
        // At once: no time, and a time that has passed.
        for (method, length) in [
            (1, ring.put_params(0, &SleepParams { ns: 0 })),
            (2, ring.put_params(1, &SleepUntilParams { deadline_ns: 1 })),
        ] {
            ring.push(sqe::call_timer(timer, method, method - 1, length));
            let found = ring.enter(0, 0).count();
            ring.eq(found, 1, "completes at once");
            ring.expect(0, Status::Ok, "with ok");
        }
    })
}

pub fn sleep_quota(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, timer, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let length = ring.put_params(0, &SleepParams { ns: u64::MAX });
        let call = sqe::call_timer(timer, 1, 0, length);
        for round in 0..2 {
            for number in 0..SLEEPS {
                ring.push(sqe::named(call, number));
            }
            let found = ring.dispatch().count();
            ring.eq(found, 0, "all are pending");
            for _ in 0..3 {
                let got = ring.one(sqe::named(call, 99));
                ring.eq(got.exception(), Some(ExceptionKind::Overloaded), "one too many");
            }
            // One that ends by itself makes room as well as one that is cancelled.
            ring.push(sqe::named(sqe::cancel(round), 50));
            ring.expect(round, Status::Cancelled, "a sleep");
            ring.expect(50, Status::Ok, "its cancel");
            let short = ring.put_params(1, &SleepParams { ns: 1000 });
            ring.ends(
                sqe::named(sqe::call_timer(timer, 1, 1, short), 7),
                Status::Ok,
                "there is room",
            );
            for number in (0..SLEEPS).filter(|&number| number != round) {
                ring.push(sqe::named(sqe::cancel(number), 50));
                ring.expect(number, Status::Cancelled, "a sleep");
                ring.expect(50, Status::Ok, "its cancel");
            }
        }
    })
}

pub fn system_info(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, info, .. } = *t.env;
    let mut client = system_info::Client::new(env.io.large(), info);
    let before = require_ok!(t, client.machine()).machine;
    check!(t, before.cpus >= 1 && before.frames_free < before.frames_total, "{before:?}");
    for cpu in 0..before.cpus {
        let counters = require_ok!(t, client.cpu(cpu)).counters;
        check!(t, cpu != 0 || counters.idle_entries + counters.switches > 0, "{counters:?}");
    }
    let after = require_ok!(t, client.machine()).machine;
    check_eq!(t, (after.cpus, after.frames_total), (before.cpus, before.frames_total));
    check!(t, after.uptime_ns > before.uptime_ns);
    let total = |client: &mut system_info::Client<_>| -> Option<u64> {
        (0..before.cpus).map(|cpu| Some(client.cpu(cpu).ok()?.counters.syscalls)).sum()
    };
    let syscalls = total(&mut client);
    for _ in 0..100 {
        let _ = capos_rt::syscall::cap_enter(0, 0);
    }
    check!(t, total(&mut client) >= syscalls.map(|count| count + 100), "syscalls are counted");
    raw(t, &env.io, |ring| {
        let got = ring.ends(sqe::call_info(info, 0, 0, 0), Status::Ok, "machine");
        ring.check(got.results::<MachineResults>().is_some(), "results of the method");
    })?;
    for cpu in [before.cpus, u32::MAX] {
        let said = client.cpu(cpu).map(|_| ());
        let is_refused = matches!(&said, Err(CallError::Exception(exception))
            if exception.kind() == ExceptionKind::InvalidArgument);
        check!(t, is_refused, "CPU {cpu}, which is not there: {said:?}");
    }
    Ok(())
}

fn mint(ring: &mut Raw<'_>, own: CapSlot, badge: u64) -> Option<CapSlot> {
    let length = ring.put_params(9, &MintFacetParams { badge, interface_id: 0 });
    let got = ring.one(sqe::call_endpoint(own, 0, 9, length));
    let made: MintFacetResults = got.results()?;
    Some(CapSlot::new(made.facet_index.into(), made.facet_generation))
}

fn revoke(ring: &mut Raw<'_>, own: CapSlot, badge: u64) -> Option<u32> {
    let length = ring.put_params(9, &RevokeFacetsParams { badge });
    let got = ring.one(sqe::call_endpoint(own, 1, 9, length));
    got.results().map(|done: RevokeFacetsResults| done.revoked)
}

pub fn facets(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, second, .. } = *t.env;
    raw(t, &env.io, |ring| {
        // The badge says which facet a call came through.
        for (facet, badge) in [(first, 1), (second, SECOND_BADGE), (first, 1)] {
            ring.push(sqe::named(sqe::call(facet, 0, 0, 0), 1));
            ring.push(sqe::named(sqe::recv(own), 2));
            ring.dispatch();
            let got = ring.expect(2, Status::Ok, "a call");
            ring.eq(got.cqe.badge, badge, "its badge");
            ring.push(sqe::named(sqe::answer(got.cqe.token, 0, 0), 3));
            ring.dispatch();
            ring.expect(1, Status::Ok, "answered");
            ring.expect(3, Status::Ok, "RETURN");
        }
        let made = [mint(ring, own, 50), mint(ring, own, 50), mint(ring, own, 51)];
        let [Some(a), Some(b), Some(c)] = made else {
            return ring.fail(format_args!("facets that could not be made: {made:?}"));
        };
        ring.check(a != b && b != c, "each has its slot");
        // Two calls under way through the facet that falls: one waits, one is served.
        ring.push(sqe::named(sqe::call(a, 0, 0, 0), 10));
        ring.push(sqe::named(sqe::recv(own), 2));
        ring.push(sqe::named(sqe::call(b, 0, 0, 0), 11));
        ring.dispatch();
        let served = ring.expect(2, Status::Ok, "the first");
        let found = revoke(ring, own, 50);
        ring.eq(found, Some(2), "facets revoked");
        let found = revoke(ring, own, 50);
        ring.eq(found, Some(0), "and none again");
        for facet in [a, b] {
            ring.ends(sqe::call(facet, 0, 0, 0), Status::Disconnected, "a revoked facet");
        }
        ring.push(sqe::named(sqe::answer(served.cqe.token, 0, 0), 3));
        ring.dispatch();
        ring.expect(10, Status::Ok, "what was delivered is answered");
        ring.expect(3, Status::Ok, "RETURN");
        ring.push(sqe::named(sqe::call(c, 0, 0, 0), 12));
        ring.push(sqe::named(sqe::recv(own), 2));
        ring.push(sqe::named(sqe::recv(own), 4));
        ring.dispatch();
        for (receive, call, badge) in [(2, 11, 50), (4, 12, 51)] {
            let got = ring.expect(receive, Status::Ok, "what waited, and the other facet");
            ring.eq(got.cqe.badge, badge, "its badge");
            ring.push(sqe::named(sqe::answer(got.cqe.token, 0, 0), 3));
            if receive == 4 {
                ring.dispatch();
            }
            let _ = call;
        }
        for user_data in [11, 3, 12, 3] {
            ring.expect(user_data, Status::Ok, "answered in order");
        }
        let found = revoke(ring, own, 51);
        ring.eq(found, Some(1), "the other facet");
        for facet in [a, b, c] {
            ring.ends(sqe::release(facet), Status::Ok, "a slot that holds a fallen facet");
        }
        // The table has an end, and says so.
        let mut all = [CapSlot::NONE; 64];
        let mut count = 0;
        while let Some(facet) = mint(ring, own, 60) {
            all[count] = facet;
            count += 1;
        }
        ring.check(count > 40 && count < 64, "as many as there are slots");
        let length = ring.put_params(9, &MintFacetParams { badge: 60, interface_id: 0 });
        let got = ring.one(sqe::call_endpoint(own, 0, 9, length));
        ring.eq(got.exception(), Some(ExceptionKind::Overloaded), "a full table");
        let found = revoke(ring, own, 60);
        ring.eq(found, Some(count as u32), "those that were made");
        for facet in &all[..count] {
            ring.ends(sqe::release(*facet), Status::Ok, "a slot");
        }
    })
}

pub fn load(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, second, .. } = *t.env;
    let load_is = |ring: &mut Raw<'_>, queued, in_flight| {
        let got = ring.ends(sqe::call_endpoint(own, 2, 0, 0), Status::Ok, "load");
        let expected = LoadResults { queued, queue_limit: 5, in_flight, in_flight_limit: 3 };
        ring.eq(got.results(), Some(expected), "the endpoint's load");
    };
    raw(t, &env.io, |ring| {
        load_is(ring, 0, 0);
        let third = mint(ring, own, 52).unwrap_or(CapSlot::NONE);
        for (number, facet) in (0..).zip([first, first, second, second, third]) {
            ring.push(sqe::named(sqe::call(facet, 0, 0, 0), number));
            ring.dispatch();
            if number == 1 {
                let more = sqe::named(sqe::call(first, 0, 0, 0), 9);
                ring.ends(more, Status::Overloaded, "half of the queue, with others about");
            }
        }
        load_is(ring, 5, 0);
        ring.ends(sqe::named(sqe::call(third, 0, 0, 0), 9), Status::Overloaded, "a full queue");
        let mut tokens = [0; 5];
        for token in &mut tokens[..3] {
            *token = ring.ends(sqe::recv(own), Status::Ok, "a receive").cqe.token;
        }
        load_is(ring, 2, 3);
        ring.ends(sqe::recv(own), Status::Overloaded, "as many as may be served");
        // RETURN makes the room that its own receive takes.
        for number in 0..2 {
            let answer = sqe::answer(tokens[number], 0, 0);
            ring.push(sqe::named(sqe::then_recv(answer, own), 20));
            ring.dispatch();
            ring.expect(number as u64, Status::Ok, "answered");
            tokens[3 + number] = ring.expect(20, Status::Ok, "the next call").cqe.token;
        }
        load_is(ring, 0, 3);
        for (number, token) in [(2, tokens[2]), (3, tokens[3]), (4, tokens[4])] {
            ring.push(sqe::named(sqe::answer(token, 0, 0), 21));
            ring.dispatch();
            ring.expect(number, Status::Ok, "answered");
            ring.expect(21, Status::Ok, "RETURN");
        }
        load_is(ring, 0, 0);
        let found = revoke(ring, own, 52);
        ring.eq(found, Some(1), "the third facet");
        ring.ends(sqe::release(third), Status::Ok, "its slot");
    })
}

pub fn exceptions(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, .. } = *t.env;
    raw(t, &env.io, |ring| {
        for kind in [
            ExceptionKind::Failed,
            ExceptionKind::Overloaded,
            ExceptionKind::Disconnected,
            ExceptionKind::Unimplemented,
            ExceptionKind::InvalidArgument,
        ] {
            ring.push(sqe::named(sqe::call(first, 0, 0, 0), 1));
            ring.push(sqe::named(sqe::recv(own), 2));
            ring.dispatch();
            let call = ring.expect(2, Status::Ok, "a call");
            let mut words = [0_u64; INLINE_BYTES / 8];
            let bytes = zerocopy_bytes(&mut words);
            let said = Exception::new(kind, "this is why").encode(bytes).unwrap_or(0);
            ring.put(4, &words);
            ring.push(sqe::named(sqe::refuse(call.cqe.token, kind, 4, said as u32), 3));
            ring.dispatch();
            let got = ring.expect(1, Status::Exception, "the exception");
            ring.eq(got.exception(), Some(kind), "its kind, in completion and message");
            ring.expect(3, Status::Ok, "RETURN");
        }
    })
}

/// The bytes of words.
fn zerocopy_bytes(words: &mut [u64]) -> &mut [u8] {
    zerocopy::IntoBytes::as_mut_bytes(words)
}

pub fn capset(t: &mut T<'_, Bench>) -> Outcome {
    let env = t.env.env;
    // By name and interface; what was not granted is not there.
    check!(t, env.cap("timer", timer_interface::INTERFACE_ID).is_ok());
    check!(t, env.cap("timer", schema::console::INTERFACE_ID).is_err(), "of another interface");
    check!(t, env.cap("nothing", test_ring::plain::INTERFACE_ID).is_err());
    let own = [t.env.own, t.env.first, t.env.second, t.env.echo, t.env.timer, t.env.info];
    for (number, slot) in own.iter().enumerate() {
        check!(t, *slot != CapSlot::NONE && !own[..number].contains(slot), "{slot:?}");
    }
    Ok(())
}
