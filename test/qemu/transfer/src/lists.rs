//! What a list may be: the program sends to itself.

use abi_types::{CapSlot, Sqe, Status, TransferMode};
use schema::endpoint::RevokeFacetsParams;
use test_kit::{Outcome, T, check, require_ok};
use test_ring::{Raw, raw, sqe};

use crate::{Bench, is_timer, laden, slots};
use TransferMode::{Copy, Move};

/// The table of what may be passed on, one interface a line.
const TABLE: &str = include_str!("../../../../schema/transferability.txt");

/// User data of a receive, a call, an answer.
const RECV: u64 = 1;
const CALL: u64 = 2;
const ANSWER: u64 = 3;

fn recv(own: CapSlot, accepts: u16) -> Sqe {
    Sqe { result_transfers: accepts, ..sqe::named(sqe::recv(own), RECV) }
}

/// Sends a list to the program itself; how the call ended if it was refused, or the new slots.
fn send(
    ring: &mut Raw<'_>,
    (own, itself): (CapSlot, CapSlot),
    accepts: u16,
    list: &[(CapSlot, TransferMode)],
) -> Result<([CapSlot; 8], usize), Option<Status>> {
    ring.push(recv(own, accepts));
    ring.dispatch();
    let call = laden(ring, itself, 0, list);
    ring.push(sqe::named(call, CALL));
    let got = ring.wait();
    if got.cqe.user_data == CALL {
        ring.push(sqe::named(sqe::cancel(RECV), ANSWER));
        ring.dispatch();
        ring.expect(RECV, Status::Cancelled, "the receive, which goes on");
        ring.expect(ANSWER, Status::Ok, "its cancel");
        return Err(got.status());
    }
    ring.eq((got.cqe.user_data, got.status()), (RECV, Some(Status::Ok)), "the message");
    ring.push(sqe::named(sqe::answer(got.cqe.token, 0, 0), ANSWER));
    ring.dispatch();
    ring.expect(CALL, Status::Ok, "the answer");
    ring.expect(ANSWER, Status::Ok, "RETURN");
    Ok(slots(&got))
}

capos_rt::stacks! {
    static STACK: [16384; 1];
}

fn nothing(_: &capos_rt::Env) -> i64 {
    0
}

/// Each line of the table whose interface the program holds something of, as a copy and as a move.
pub fn each_entry(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, itself, threads, .. } = *t.env;
    let thread = require_ok!(t, threads.spawn(&env.io, &STACK[0], nothing, 0));
    let named = |name: &str| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let held = [
        ("Console", named("console")),
        ("Endpoint", named("spare")),
        ("ParkSpace", named("park")),
        ("SchedulerControl", named("scheduler")),
        ("SchedulingPolicyCap", named("policy")),
        ("SystemInfo", named("info")),
        ("ThreadControl", named("control")),
        ("ThreadHandle", thread.handle()),
        ("ThreadSpawner", named("spawner")),
        ("Timer", named("timer")),
    ];
    let mut seen = 0;
    raw(t, &env.io, |ring| {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_ascii_whitespace();
            let (name, verdict) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let Some((_, slot)) = held.iter().find(|(held, _)| *held == name) else { continue };
            seen += 1;
            for mode in [Copy, Move] {
                let passes = match verdict {
                    "yes" => true,
                    "move" => mode == Move,
                    _ => false,
                };
                let sent = send(ring, (own, itself), 1, &[(*slot, mode)]);
                match sent {
                    Err(status) if passes => ring.fail(format_args!("{name} {mode:?}: {status:?}")),
                    Err(status) => {
                        ring.eq(status, Some(Status::NotTransferable), name);
                    }
                    Ok(_) if !passes => ring.fail(format_args!("{name} {mode:?} went")),
                    Ok(([back, ..], _)) if mode == Copy => {
                        ring.ends(sqe::release(back), Status::Ok, "the copy");
                    }
                    // It stays under its new name: no test after this one looks for the old one.
                    Ok(([back, ..], _)) => {
                        ring.check(back != *slot && back != CapSlot::NONE, name);
                        ring.ends(sqe::release(*slot), Status::Disconnected, "what has left");
                    }
                }
            }
        }
    })?;
    check!(t, seen == held.len(), "{seen} entries of the table");
    require_ok!(t, thread.join(&env.io));
    Ok(())
}

pub fn copies_and_moves(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, itself, timer, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let both = (own, itself);
        for count in 0..=7_usize {
            let list = [(timer, Copy); 7];
            let sent = send(ring, both, 8, &list[..count]);
            let Ok((made, found)) = sent else {
                return ring.fail(format_args!("{count} copies: {sent:?}"));
            };
            ring.eq(found, count, "copies that came");
            for slot in &made[..count] {
                expect_timer(ring, *slot, true, "a copy");
                ring.ends(sqe::release(*slot), Status::Ok, "its release");
            }
        }
        // A copy that is moved on is the same clock, and the first one stays.
        let Ok(([copy, ..], 1)) = send(ring, both, 1, &[(timer, Copy)]) else {
            return ring.fail(format_args!("no copy"));
        };
        let Ok(([moved, ..], 1)) = send(ring, both, 1, &[(copy, Move)]) else {
            return ring.fail(format_args!("no move"));
        };
        expect_timer(ring, copy, false, "it has left");
        expect_timer(ring, moved, true, "it is there");
        expect_timer(ring, timer, true, "the first one");
        ring.ends(sqe::release(moved), Status::Ok, "its release");
    })
}

/// Checks whether a slot is a clock.
fn expect_timer(ring: &mut Raw<'_>, slot: CapSlot, expected: bool, what: &str) {
    let found = is_timer(ring, slot);
    ring.eq(found, expected, what);
}

/// Nothing of a list with a bad line goes.
pub fn bad_lists(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, itself, timer, .. } = *t.env;
    let control = env.caps.named("control").unwrap_or(CapSlot::NONE);
    let (empty, stale) = (CapSlot::new(31, 1), CapSlot::new(timer.index(), timer.generation() + 1));
    let nowhere = CapSlot::new(u32::MAX, u32::MAX);
    raw(t, &env.io, |ring| {
        let Ok(([clock, ..], 1)) = send(ring, (own, itself), 1, &[(timer, Copy)]) else {
            return ring.fail(format_args!("no copy"));
        };
        for (list, status) in [
            ([(clock, Move), (empty, Copy)], Status::Disconnected),
            ([(clock, Move), (stale, Move)], Status::Disconnected),
            ([(clock, Move), (nowhere, Copy)], Status::Disconnected),
            ([(clock, Move), (CapSlot::NONE, Copy)], Status::Disconnected),
            ([(clock, Move), (control, Copy)], Status::NotTransferable),
            ([(clock, Move), (clock, Move)], Status::InvalidArgument),
            ([(clock, Copy), (clock, Move)], Status::InvalidArgument),
        ] {
            let sent = send(ring, (own, itself), 8, &list);
            ring.eq(sent.err(), Some(Some(status)), "a bad line");
            expect_timer(ring, clock, true, "the good line");
        }
        for word in [2, u64::from(u32::MAX), 1 << 32, 1 << 63] {
            ring.push(recv(own, 1));
            ring.dispatch();
            ring.put(3, &[1, clock.to_bits(), word]);
            let odd = Sqe { transfers: 1, ..sqe::named(sqe::call(itself, 0, 3, 8), CALL) };
            ring.push(odd);
            ring.expect(CALL, Status::InvalidArgument, "a mode that is none");
            ring.push(sqe::named(sqe::cancel(RECV), ANSWER));
            ring.dispatch();
            ring.expect(RECV, Status::Cancelled, "the receive");
            ring.expect(ANSWER, Status::Ok, "its cancel");
        }
        // What no method of the kernel's takes.
        let laden = laden(ring, timer, 0, &[(clock, Move)]);
        let now = Sqe { interface: sqe::call_timer(timer, 0, 0, 0).interface, length: 0, ..laden };
        ring.ends(sqe::named(now, CALL), Status::TransferRefused, "to an object of the kernel's");
        ring.ends(sqe::release(clock), Status::Ok, "its release");
    })
}

/// A receiver gets no more than it said, in calls and in answers.
pub fn no_more_than_is_taken(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, itself, timer, .. } = *t.env;
    raw(t, &env.io, |ring| {
        for accepts in 0..3_u16 {
            for count in 0..4_u16 {
                let list = [(timer, Copy); 4];
                match send(ring, (own, itself), accepts, &list[..usize::from(count)]) {
                    Ok((made, found)) => {
                        ring.check(count <= accepts && found == usize::from(count), "it went");
                        for slot in &made[..found] {
                            ring.ends(sqe::release(*slot), Status::Ok, "its release");
                        }
                    }
                    Err(status) => {
                        ring.check(count > accepts, "it was refused");
                        ring.eq(status, Some(Status::TransferRefused), "why");
                    }
                }
                answer(ring, (own, itself), accepts, count, timer);
            }
        }
    })
}

/// Answers a call that takes `accepts` with `count` copies.
fn answer(
    ring: &mut Raw<'_>,
    (own, itself): (CapSlot, CapSlot),
    accepts: u16,
    count: u16,
    timer: CapSlot,
) {
    ring.push(recv(own, 0));
    let call = Sqe { result_transfers: accepts, ..sqe::named(sqe::call(itself, 0, 0, 0), CALL) };
    ring.push(call);
    let got = ring.expect(RECV, Status::Ok, "the call");
    let list = [(timer, Copy); 4];
    let Sqe { length, transfers, .. } = laden(ring, itself, 0, &list[..usize::from(count)]);
    let laden = Sqe { transfers, ..sqe::answer(got.cqe.token, 3, length) };
    ring.push(sqe::named(laden, ANSWER));
    ring.dispatch();
    if count > accepts {
        ring.expect(ANSWER, Status::TransferRefused, "too many");
        ring.push(sqe::named(sqe::answer(got.cqe.token, 0, 0), ANSWER));
        ring.dispatch();
        ring.expect(CALL, Status::Ok, "the call is there to be answered");
    } else {
        let got = ring.expect(CALL, Status::Ok, "the answer");
        let (made, found) = slots(&got);
        ring.eq(found, usize::from(count), "what came");
        ring.expect(ANSWER, Status::Ok, "RETURN");
        for slot in &made[..found] {
            expect_timer(ring, *slot, true, "a result");
            ring.ends(sqe::release(*slot), Status::Ok, "its release");
        }
        return;
    }
    ring.expect(ANSWER, Status::Ok, "RETURN");
}

/// A call that waits is judged when it is delivered, by the slots of that moment.
pub fn waiting_calls(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, itself, timer, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let Ok(([clock, ..], 1)) = send(ring, (own, itself), 1, &[(timer, Copy)]) else {
            return ring.fail(format_args!("no copy"));
        };
        let call = laden(ring, itself, 0, &[(clock, Move)]);
        ring.push(sqe::named(call, CALL));
        ring.dispatch();
        expect_timer(ring, clock, true, "it has not left yet");
        ring.push(recv(own, 1));
        let got = ring.expect(RECV, Status::Ok, "the call");
        let ([moved, ..], 1) = slots(&got) else { return ring.fail(format_args!("none came")) };
        expect_timer(ring, clock, false, "it has left");
        ring.push(sqe::named(sqe::answer(got.cqe.token, 0, 0), ANSWER));
        ring.dispatch();
        ring.expect(CALL, Status::Ok, "the answer");
        ring.expect(ANSWER, Status::Ok, "RETURN");
        let call = laden(ring, itself, 0, &[(moved, Move)]);
        ring.push(sqe::named(call, CALL));
        ring.dispatch();
        ring.ends(sqe::release(moved), Status::Ok, "released while the call waits");
        ring.push(recv(own, 1));
        ring.expect(CALL, Status::Disconnected, "the call");
        ring.push(sqe::named(sqe::cancel(RECV), ANSWER));
        ring.dispatch();
        ring.expect(RECV, Status::Cancelled, "the receive, which went on");
        ring.expect(ANSWER, Status::Ok, "its cancel");
    })
}

/// A facet that is revoked while it is on its way, or after it has arrived, is stale everywhere.
pub fn revoked_on_the_way(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, itself, to_spare, spare, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let Ok(([copy, ..], 1)) = send(ring, (own, itself), 1, &[(to_spare, Copy)]) else {
            return ring.fail(format_args!("no copy"));
        };
        let Ok(([again, ..], 1)) = send(ring, (own, itself), 1, &[(copy, Copy)]) else {
            return ring.fail(format_args!("no copy of a copy"));
        };
        let call = laden(ring, itself, 0, &[(copy, Move)]);
        ring.push(sqe::named(call, CALL));
        ring.dispatch();
        let length = ring.put_params(5, &RevokeFacetsParams { badge: 1 });
        let revoke = sqe::named(sqe::call_endpoint(spare, 1, 5, length), ANSWER);
        ring.ends(revoke, Status::Ok, "revoke");
        ring.push(recv(own, 1));
        ring.expect(CALL, Status::Disconnected, "what is revoked does not go");
        ring.push(sqe::named(sqe::cancel(RECV), ANSWER));
        ring.dispatch();
        ring.expect(RECV, Status::Cancelled, "the receive, which went on");
        ring.expect(ANSWER, Status::Ok, "its cancel");
        for slot in [to_spare, copy, again] {
            ring.ends(sqe::call(slot, 0, 0, 0), Status::Disconnected, "every copy is stale");
            ring.ends(sqe::release(slot), Status::Ok, "its release");
        }
    })
}
