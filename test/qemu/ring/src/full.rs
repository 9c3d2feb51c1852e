//! A completion queue that nobody drains: nothing is lost, nothing is written past it.

use abi_types::place::RING_VADDR;
use abi_types::{EnterFlags, NEVER, Opcode, RingBlock, RingWord, Status};
use schema::timer::SleepParams;
use test_kit::{Outcome, T};
use test_ring::{Raw, raw, sqe};
use test_wild::at;

use crate::{Bench, CQ, SLEEPS, SQ};

/// What the block's last page holds behind the block, summed up.
fn behind_the_block() -> u64 {
    let Some(block) = RingBlock::new(SQ) else { return 0 };
    let size = block.size() as u64;
    let page_end = size.next_multiple_of(4096);
    (size..page_end).step_by(8).fold(17, |sum: u64, offset| {
        sum.wrapping_mul(31).wrapping_add(at::read64(RING_VADDR + offset))
    })
}

pub fn never_drained(t: &mut T<'_, Bench>) -> Outcome {
    let env = t.env.env;
    raw(t, &env.io, |ring| {
        let behind = behind_the_block();
        let geometry = at::read32(RING_VADDR + RingWord::CqEntries.offset() as u64);
        ring.eq(geometry, CQ, "entries of the completion queue");
        let mut pushed = 0_u64;
        let mut refused = 0_u64;
        // Ten times the queue, and whatever can be pushed is.
        for _ in 0..10 * CQ {
            while ring.try_push(sqe::named(sqe::plain(Opcode::Nop), pushed)) {
                pushed += 1;
            }
            let result = ring.enter(CQ, 0);
            refused += u64::from(result.flags() & EnterFlags::CQ_FULL != 0);
            if result.count() > CQ {
                ring.fail(format_args!("{} completions in a queue of {CQ}", result.count()));
            }
        }
        ring.eq(pushed, u64::from(CQ + SQ), "what both queues hold");
        ring.check(refused >= u64::from(9 * CQ), "cqFull is said");
        // Waiting does not help, and does not block either.
        let result = ring.enter(CQ + 1, NEVER);
        ring.eq((result.count(), result.flags()), (CQ, EnterFlags::CQ_FULL), "asked to wait");
        ring.eq(behind_the_block(), behind, "memory behind the block");
        // One place at a time: each makes room for one more.
        for user_data in 0..u64::from(SQ) {
            ring.expect(user_data, Status::Ok, "nothing is lost");
            let left = u64::from(SQ) - user_data - 1;
            let full = if left == 0 { 0 } else { EnterFlags::CQ_FULL };
            let found = (ring.enter(0, 0).count(), ring.enter(0, 0).flags());
            ring.eq(found, (CQ, full), "one more");
        }
        for user_data in u64::from(SQ)..pushed {
            ring.expect(user_data, Status::Ok, "to the last");
        }
        ring.eq(behind_the_block(), behind, "memory behind the block, at the end");
    })
}

pub fn credits_of_pending(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, timer, own, .. } = *t.env;
    raw(t, &env.io, |ring| {
        // Operations that complete later hold their places.
        let length = ring.put_params(0, &SleepParams { ns: 1 << 40 });
        for number in 0..SLEEPS {
            ring.push(sqe::named(sqe::call_timer(timer, 1, 0, length), number));
        }
        ring.push(sqe::named(sqe::recv(own), SLEEPS));
        ring.dispatch();
        let pending = SLEEPS + 1;
        let mut pushed = 0;
        for _ in 0..4 {
            while ring.try_push(sqe::named(sqe::plain(Opcode::Nop), 1000 + pushed)) {
                pushed += 1;
            }
            ring.dispatch();
        }
        let done = u64::from(CQ) - pending;
        let result = ring.dispatch();
        ring.eq(u64::from(result.count()), done, "the rest of the queue");
        ring.eq(result.flags(), EnterFlags::CQ_FULL, "and no more");
        ring.eq(pushed, done + u64::from(SQ), "what fits");
        for number in 0..done {
            ring.expect(1000 + number, Status::Ok, "in order");
        }
        drain_rest(ring, 1000 + done, pushed - done);
        for number in 0..pending {
            ring.push(sqe::named(sqe::cancel(number), 500));
            ring.expect(number, Status::Cancelled, "what was pending");
            ring.expect(500, Status::Ok, "its cancel");
        }
    })
}

fn drain_rest(ring: &mut Raw<'_>, first: u64, count: u64) {
    for number in 0..count {
        ring.expect(first + number, Status::Ok, "what stayed in the queue");
    }
}
