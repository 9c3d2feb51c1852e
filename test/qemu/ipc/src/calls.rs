//! How calls and receives meet.

use abi_types::{CapSlot, NEVER, Sqe, Status};
use capos_rt::now_ns;
use core::sync::atomic::{AtomicU64, Ordering};
use ipc_protocol::{START, Work};
use schema::system_info;
use test_kit::{Outcome, T, check, check_eq, require_ok, require_some};
use test_ring::{Random, Raw, raw, sqe};

use crate::{Bench, OWN_BADGE, load, machine};

/// The peer that echoes large messages, after those that end.
const LARGE_PEER: usize = 22;

/// Calls the echo `times` times the way a fast client does, and checks what comes back.
fn echo_many(ring: &mut Raw<'_>, echo: CapSlot, times: u64) {
    for number in 0..times {
        ring.put(3, &[number, !number, 7, 8]);
        ring.push(sqe::named(sqe::call(echo, 1, 3, 32), number));
        let _ = ring.enter(1, NEVER);
        let got = ring.expect(number, Status::Ok, "the answer");
        ring.eq(got.words[..2] == [number, !number], true, "its words");
    }
}

pub fn echo(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, echo, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let mut random = Random::new(1);
        for words in 0..=16_usize {
            let message: [u64; 16] = core::array::from_fn(|_| random.bits());
            ring.put(5, &message[..words]);
            let call = sqe::call(echo, words as u16, 5, words as u32 * 8);
            let got = ring.ends(sqe::named(call, 1), Status::Ok, "the answer");
            ring.eq(got.cqe.length, words as u32 * 8, "its length");
            ring.check(got.words[..words] == message[..words], "its words");
            ring.eq((got.cqe.badge, got.cqe.token), (0, 0), "an answer has neither");
        }
    })
}

/// A server that waits gets no call that means another interface, and the next one is as fast as ever.
pub fn other_interfaces(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, echo, .. } = *t.env;
    raw(t, &env.io, |ring| {
        for interface in [0, 1, sqe::call(echo, 1, 3, 32).interface ^ 1 << 31] {
            echo_many(ring, echo, 3);
            for number in 0..3 {
                let call = Sqe { interface, ..sqe::call(echo, 1, 3, 32) };
                ring.ends(sqe::named(call, number), Status::WrongInterface, "as something else");
                ring.push(sqe::named(call, number));
                ring.push(sqe::named(call, number));
                let _ = ring.enter(2, NEVER);
                ring.expect(number, Status::WrongInterface, "one of two");
                ring.expect(number, Status::WrongInterface, "the other");
            }
        }
        echo_many(ring, echo, 3);
    })
}

/// Totals over all CPUs: hand-offs taken, hand-offs missed, syscalls.
fn totals(t: &mut T<'_, Bench>) -> Option<[u64; 3]> {
    let Bench { env, info, .. } = *t.env;
    let mut info = system_info::Client::new(env.io.large(), info);
    let cpus = info.machine().ok()?.machine.cpus;
    let mut sum = [0; 3];
    for cpu in 0..cpus {
        let counters = info.cpu(cpu).ok()?.counters;
        sum[0] += counters.handoffs_taken;
        sum[1] += counters.handoffs_missed;
        sum[2] += counters.syscalls;
    }
    Some(sum)
}

pub fn hand_off_is_counted(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, echo, .. } = *t.env;
    let before = require_some!(t, totals(t));
    raw(t, &env.io, |ring| echo_many(ring, echo, 200))?;
    let after = require_some!(t, totals(t));
    let [taken, missed, _] = [0, 1, 2].map(|n| after[n] - before[n]);
    t.metric("hand-offs taken", taken, "calls");
    t.metric("hand-offs missed", missed, "calls");
    // Each call hands the CPU to the server that waits for it.
    check!(t, taken >= 200, "{taken} taken, {missed} missed");
    Ok(())
}

pub fn no_allocation(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, echo, info, .. } = *t.env;
    raw(t, &env.io, |ring| {
        echo_many(ring, echo, 3);
        let before = machine(ring, info);
        echo_many(ring, echo, 300);
        let after = machine(ring, info);
        let (Some(before), Some(after)) = (before, after) else { return };
        ring.eq(after.heap_allocations, before.heap_allocations, "allocations");
        ring.eq(after.heap_bytes, before.heap_bytes, "bytes of the heap");
        ring.eq(after.frames_free, before.frames_free, "free frames");
    })
}

pub fn one_entry_a_side(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, echo, .. } = *t.env;
    let before = require_some!(t, totals(t));
    raw(t, &env.io, |ring| echo_many(ring, echo, 300))?;
    let after = require_some!(t, totals(t));
    let entries = after[2] - before[2];
    t.metric("entries for 300 calls", entries, "syscalls");
    // One of the client's and one of the server's for each; a few to count them.
    check!(t, (600..=620).contains(&entries), "{entries} entries");
    Ok(())
}

pub fn fifo(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, own_facet, .. } = *t.env;
    raw(t, &env.io, |ring| {
        // Calls wait in order.
        for number in 0..10 {
            ring.put(number as u16, &[number]);
            ring.push(sqe::named(sqe::call(own_facet, 0, number as u16, 8), number));
        }
        ring.dispatch();
        let found = load_of(ring, own);
        ring.eq(found, (10, 0), "ten wait");
        for number in 0..10 {
            let call = ring.ends(sqe::named(sqe::recv(own), 50), Status::Ok, "a receive");
            ring.eq((call.words[0], call.cqe.badge), (number, OWN_BADGE), "in order");
            ring.push(sqe::named(sqe::answer(call.cqe.token, number as u16, 8), 51));
            ring.dispatch();
            let answer = ring.expect(number, Status::Ok, "its answer");
            ring.eq(answer.words[0], number, "what was answered");
            ring.expect(51, Status::Ok, "RETURN");
        }
        // Receivers wait in order.
        for number in 0..6 {
            ring.push(sqe::named(sqe::recv(own), 100 + number));
        }
        for number in 0..6 {
            ring.push(sqe::named(sqe::call(own_facet, 0, number as u16, 8), number));
        }
        ring.dispatch();
        let mut tokens = [0; 6];
        for number in 0..6 {
            let call = ring.expect(100 + number, Status::Ok, "the next receiver");
            ring.eq(call.words[0], number, "takes the next call");
            tokens[number as usize] = call.cqe.token;
        }
        // Answers in any order.
        for number in [3, 0, 5, 1, 4, 2] {
            ring.push(sqe::named(sqe::answer(tokens[number], 0, 0), 52));
            ring.dispatch();
            ring.expect(number as u64, Status::Ok, "whose answer it is");
            ring.expect(52, Status::Ok, "RETURN");
        }
    })
}

fn load_of(ring: &mut Raw<'_>, own: CapSlot) -> (u32, u32) {
    load(ring, own)
}

pub fn batch_of_returns(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, own_facet, .. } = *t.env;
    raw(t, &env.io, |ring| {
        // RETURN and RECV as two SQEs of one entry, and as one SQE: the same.
        for is_one in [false, true] {
            ring.push(sqe::named(sqe::call(own_facet, 0, 0, 0), 1));
            ring.push(sqe::named(sqe::call(own_facet, 0, 0, 0), 2));
            ring.push(sqe::named(sqe::recv(own), 3));
            ring.dispatch();
            let call = ring.expect(3, Status::Ok, "the first call");
            let answer = sqe::answer(call.cqe.token, 0, 0);
            if is_one {
                ring.push(sqe::named(sqe::then_recv(answer, own), 5));
            } else {
                ring.push(sqe::named(answer, 4));
                ring.push(sqe::named(sqe::recv(own), 5));
            }
            let count = ring.enter(0, 0).count();
            ring.eq(count, if is_one { 2 } else { 3 }, "all in one entry");
            ring.expect(1, Status::Ok, "the first is answered");
            if !is_one {
                ring.expect(4, Status::Ok, "RETURN");
            }
            let call = ring.expect(5, Status::Ok, "the second call");
            ring.push(sqe::named(sqe::answer(call.cqe.token, 0, 0), 6));
            ring.dispatch();
            ring.expect(2, Status::Ok, "the second is answered");
            ring.expect(6, Status::Ok, "RETURN");
        }
    })
}

pub fn tokens(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, own_facet, spare, spare_facet, .. } = *t.env;
    raw(t, &env.io, |ring| {
        ring.push(sqe::named(sqe::call(own_facet, 0, 0, 0), 1));
        let call = ring.ends(sqe::named(sqe::recv(own), 2), Status::Ok, "a call");
        let token = call.cqe.token;
        for odd in [token ^ 1, token + (1 << 32), token - (1 << 32), token & 0xffff_ffff, 0] {
            ring.ends(sqe::answer(odd, 0, 0), Status::NotFound, "a token that was not given out");
            let both = sqe::then_recv(sqe::answer(odd, 0, 0), own);
            ring.ends(both, Status::NotFound, "the same with a receive");
        }
        let found = load(ring, own);
        ring.eq(found, (0, 1), "nothing changed");
        // The receive may be at another endpoint than the answer.
        ring.push(sqe::named(sqe::then_recv(sqe::answer(token, 0, 0), spare), 3));
        ring.dispatch();
        ring.expect(1, Status::Ok, "answered");
        ring.push(sqe::named(sqe::call(spare_facet, 8, 0, 0), 4));
        ring.dispatch();
        let other = ring.expect(3, Status::Ok, "a call of the other endpoint");
        ring.eq((other.cqe.method, other.cqe.badge), (8, 9), "which it is");
        ring.ends(sqe::answer(token, 0, 0), Status::NotFound, "a second answer");
        ring.push(sqe::named(sqe::answer(other.cqe.token, 0, 0), 5));
        ring.dispatch();
        ring.expect(4, Status::Ok, "answered");
        ring.expect(5, Status::Ok, "RETURN");
        ring.ends(sqe::answer(other.cqe.token, 0, 0), Status::NotFound, "a second answer");
    })
}

pub fn limits(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, own_facet, .. } = *t.env;
    const LIMIT: u64 = 32;
    // Peers have badges of their own, so calls of one badge take half of the queue.
    const SHARE: u64 = LIMIT / 2;
    raw(t, &env.io, |ring| {
        for round in 0..2 {
            let mut tokens = [0; LIMIT as usize];
            for (half, tokens) in (0..).zip(tokens.chunks_mut(SHARE as usize)) {
                for number in 0..SHARE {
                    ring.push(sqe::named(sqe::call(own_facet, 0, 0, 0), half * SHARE + number));
                }
                ring.dispatch();
                for _ in 0..3 {
                    let more = sqe::named(sqe::call(own_facet, 0, 0, 0), 90);
                    ring.ends(more, Status::Overloaded, "more than may wait");
                }
                let found = load(ring, own);
                ring.eq(found, (SHARE as u32, (half * SHARE) as u32), "as many as may wait");
                for token in tokens {
                    *token = ring.ends(sqe::recv(own), Status::Ok, "a receive").cqe.token;
                }
            }
            ring.ends(sqe::recv(own), Status::Overloaded, "more than may be served");
            let found = load(ring, own);
            ring.eq(found, (0, LIMIT as u32), "as many as may be served");
            // The queue has room again, whoever is being served.
            ring.push(sqe::named(sqe::call(own_facet, 0, 0, 0), 91));
            ring.push(sqe::named(sqe::cancel(91), 92));
            ring.expect(91, Status::Cancelled, "one more that waits");
            ring.expect(92, Status::Ok, "its cancel");
            for (number, token) in (0..).zip(tokens) {
                // Half of the callers have given up by then.
                let is_there = (number + round) % 2 == 0;
                if !is_there {
                    ring.push(sqe::named(sqe::cancel(number), 93));
                    ring.expect(number, Status::Cancelled, "one that is served");
                    ring.expect(93, Status::Ok, "its cancel");
                }
                ring.push(sqe::named(sqe::answer(token, 0, 0), 94));
                ring.dispatch();
                if is_there {
                    ring.expect(number, Status::Ok, "answered");
                }
                ring.expect(94, Status::Ok, "RETURN");
            }
            let found = load(ring, own);
            ring.eq(found, (0, 0), "nothing is left");
        }
    })
}

pub fn large_messages(t: &mut T<'_, Bench>) -> Outcome {
    static OUT: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];
    static BACK: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];
    let Bench { env, commands, services, .. } = *t.env;
    let (out, back) = (OUT.as_ptr().expose_provenance(), BACK.as_ptr().expose_provenance());
    let mut random = Random::new(2);
    OUT.iter().for_each(|word| word.store(random.bits(), Ordering::Relaxed));
    raw(t, &env.io, |ring| {
        ring.put(0, &[Work::EchoLarge as u64]);
        ring.ends(sqe::call(commands[LARGE_PEER], START, 0, 8), Status::Ok, "start");
        for words in [0, 1, 16, 17, 511, 512, 513, 5000, 8192] {
            BACK.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            let call = sqe::call(services[LARGE_PEER], 0, 0, 0);
            let call = sqe::from_memory(call, out as u64, words * 8);
            let call = sqe::to_memory(call, back as u64, 65_536);
            let got = ring.ends(sqe::named(call, 1), Status::Ok, "the answer");
            ring.eq(got.cqe.length, words * 8, "its length");
            let equal = OUT.iter().zip(&BACK).take_while(|(sent, came)| {
                sent.load(Ordering::Relaxed) == came.load(Ordering::Relaxed)
            });
            ring.eq(equal.count(), words as usize, "words that came back");
        }
    })
}

/// A call that is answered in time gives its deadline's timer back, whoever answers it.
pub fn deadlines_cost_no_timer(t: &mut T<'_, Bench>) -> Outcome {
    // More than the system has timers.
    const CALLS: u64 = 4500;
    let Bench { env, echo, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let at_ns = now_ns() + (1 << 50);
        for number in 0..CALLS {
            let call = abi_types::Sqe { arg: at_ns, ..sqe::call(echo, 0, 0, 8) };
            ring.push(sqe::named(call, number));
            let _ = ring.enter(1, NEVER);
            let got = ring.wait();
            if got.status() != Some(Status::Ok) {
                return ring.fail(format_args!("call {number}: {:?}", got.status()));
            }
        }
    })
}

pub fn endpoint_released(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, spare, spare_facet, .. } = *t.env;
    raw(t, &env.io, |ring| {
        ring.push(sqe::named(sqe::call(spare_facet, 0, 0, 0), 1));
        let served = ring.ends(sqe::named(sqe::recv(spare), 2), Status::Ok, "a call");
        for number in [3, 4] {
            ring.push(sqe::named(sqe::call(spare_facet, 0, 0, 0), number));
        }
        ring.dispatch();
        ring.push(sqe::named(sqe::release(spare), 5));
        ring.dispatch();
        ring.expect(3, Status::Disconnected, "a call that waited");
        ring.expect(4, Status::Disconnected, "another");
        ring.expect(5, Status::Ok, "RELEASE");
        ring.ends(sqe::call(spare_facet, 0, 0, 0), Status::Disconnected, "a later call");
        ring.ends(sqe::recv(spare), Status::Disconnected, "a later receive");
        // What was taken can be answered.
        ring.push(sqe::named(sqe::answer(served.cqe.token, 0, 0), 6));
        ring.dispatch();
        ring.expect(1, Status::Ok, "the call that was being served");
        ring.expect(6, Status::Ok, "RETURN");
    })?;
    // The other endpoints of the process are as they were.
    let Bench { own, info, .. } = *t.env;
    let mut info = system_info::Client::new(env.io.caller(), info);
    check!(t, require_ok!(t, info.machine()).machine.cpus > 0);
    let load = require_ok!(t, schema::endpoint::Client::new(env.io.caller(), own).load());
    check_eq!(t, (load.queued, load.in_flight), (0, 0));
    Ok(())
}
