//! `cap_enter`: what is dispatched, what is counted, how long it waits.

use abi_types::{EnterFlags, NEVER, Opcode, Status};
use capos_rt::now_ns;
use schema::timer::SleepParams;
use test_kit::{Outcome, T};
use test_ring::{Raw, raw, sqe};

use crate::{Bench, CQ, SQ};

/// `Timer.sleep`.
const SLEEP: u16 = 1;

fn nop(ring: &mut Raw<'_>, user_data: u64) {
    ring.push(sqe::named(sqe::plain(Opcode::Nop), user_data));
}

pub fn counts(t: &mut T<'_, Bench>) -> Outcome {
    let env = t.env.env;
    raw(t, &env.io, |ring| {
        let found = ring.enter(0, 0).0;
        ring.eq(found, 0, "an entry with nothing to do");
        let found = ring.enter(0, NEVER).0;
        ring.eq(found, 0, "an entry that asks for nothing");
        let found = ring.enter(5, 0).0;
        ring.eq(found, 0, "an entry without time");
        nop(ring, 1);
        let found = ring.enter(0, 0).0;
        ring.eq(found, 1, "one completion");
        // Old ones count, again and again.
        let found = ring.enter(1, NEVER).0;
        ring.eq(found, 1, "the old completion");
        nop(ring, 2);
        nop(ring, 3);
        let found = ring.enter(3, NEVER).0;
        ring.eq(found, 3, "old and new");
        for user_data in 1..=3 {
            ring.expect(user_data, Status::Ok, "in order");
        }
        for user_data in 0..u64::from(CQ) {
            nop(ring, user_data);
            if user_data == u64::from(SQ) - 1 {
                ring.dispatch();
            }
        }
        // More than the queue holds: enough is when the queue is full.
        let found = ring.enter(u32::MAX, NEVER).0;
        ring.eq(found, u64::from(CQ), "a full queue");
        for user_data in 0..u64::from(CQ) {
            ring.expect(user_data, Status::Ok, "of the full queue");
        }
        let found = ring.enter(0, 0).flags();
        ring.eq(found, 0, "nothing stands in the way");
    })
}

pub fn times_out(t: &mut T<'_, Bench>) -> Outcome {
    let env = t.env.env;
    raw(t, &env.io, |ring| {
        for timeout_ns in [1, 1_000, 50_000, 2_000_000] {
            let before_ns = now_ns();
            let result = ring.enter(1, timeout_ns);
            let waited_ns = now_ns() - before_ns;
            ring.eq(result.0, 0, "the time was over");
            ring.check(waited_ns >= timeout_ns, "never early");
        }
        // What is dispatched by the way is counted, and not enough is not enough.
        nop(ring, 9);
        let before_ns = now_ns();
        let found = ring.enter(2, 300_000).0;
        ring.eq(found, 1, "one of two");
        ring.check(now_ns() - before_ns >= 300_000, "waits for the second");
        ring.expect(9, Status::Ok, "the first");
    })
}

pub fn waits_for_several(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, timer, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let before_ns = now_ns();
        for (slot, ns) in [(0, 900_000), (1, 300_000), (2, 600_000)] {
            let length = ring.put_params(slot, &SleepParams { ns });
            ring.push(sqe::named(sqe::call_timer(timer, SLEEP, slot, length), ns));
        }
        let found = ring.enter(3, NEVER).0;
        ring.eq(found, 3, "all of them");
        ring.check(now_ns() - before_ns >= 900_000, "as long as the longest");
        // In whatever order: between two of them the machine may have had other things to do.
        let sum: u64 = (0..3)
            .map(|_| {
                let got = ring.wait();
                ring.eq(got.status(), Some(Status::Ok), "a sleep");
                got.cqe.user_data
            })
            .sum();
        ring.eq(sum, 1_800_000, "each of them once");
    })
}

pub fn batch(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, .. } = *t.env;
    raw(t, &env.io, |ring| {
        // A full queue of one entry: a call and its answer among operations that do nothing.
        ring.put(3, &[0xfeed, 0xbeef]);
        ring.push(sqe::named(sqe::recv(own), 100));
        ring.push(sqe::named(sqe::call(first, 4, 3, 16), 101));
        for user_data in 0..u64::from(SQ) - 2 {
            let opcode = if user_data % 3 == 0 { Opcode::Yield } else { Opcode::Nop };
            ring.push(sqe::named(sqe::plain(opcode), user_data));
        }
        let found = !ring.ring.push(sqe::plain(Opcode::Nop)).is_ok();
        ring.check(found, "the queue is full");
        // The call waits for its answer; all else is done.
        let found = ring.enter(SQ - 1, NEVER).0;
        ring.eq(found, u64::from(SQ) - 1, "all but the call");
        let call = ring.expect(100, Status::Ok, "the call comes first");
        ring.eq((call.cqe.method, call.cqe.badge, call.bytes().len()), (4, 1, 16), "the call");
        for user_data in 0..u64::from(SQ) - 2 {
            ring.expect(user_data, Status::Ok, "in order");
        }
        ring.push(sqe::named(sqe::answer(call.cqe.token, 3, 8), 102));
        let found = ring.enter(2, NEVER).flags() & EnterFlags::CQ_FULL;
        ring.eq(found, 0, "room enough");
        let answer = ring.expect(101, Status::Ok, "the answer");
        ring.eq((answer.cqe.length, answer.words[0]), (8, 0xfeed), "what was answered");
        ring.expect(102, Status::Ok, "the RETURN itself");
    })
}
