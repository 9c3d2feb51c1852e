//! A sibling at the same slots: one of two gets a capability, whoever is first.

use abi_types::{CapSlot, Sqe, Status, TransferMode};
use capos_rt::Env;
use core::sync::atomic::{AtomicU64, Ordering};
use test_kit::{Outcome, T, check_eq, require_ok};
use test_ring::{borrow, raw, sqe};
use transfer_protocol::{DROP, KEEP};

use crate::{Bench, laden, slots};
use TransferMode::{Copy, Move};

capos_rt::stacks! {
    static STACK: [16384; 1];
}

/// Rounds of the race.
const ROUNDS: u64 = 300;
/// The slot of this round, 0 between rounds, all ones at the end.
static SLOT: AtomicU64 = AtomicU64::new(0);
/// Slots that the sibling released before they left.
static RELEASED: AtomicU64 = AtomicU64::new(0);

/// Releases each slot as soon as it is told of.
fn releaser(env: &Env) -> i64 {
    let log = borrow(&env.io, |ring| {
        loop {
            match SLOT.load(Ordering::Acquire) {
                0 => {
                    ring.ends(sqe::plain(abi_types::Opcode::Yield), Status::Ok, "YIELD");
                }
                u64::MAX => return,
                slot => {
                    let got = ring.one(sqe::release(CapSlot::from_bits(slot)));
                    let is_released = got.status() == Some(Status::Ok);
                    RELEASED.fetch_add(u64::from(is_released), Ordering::Relaxed);
                    SLOT.store(0, Ordering::Release);
                }
            }
        }
    });
    log.failures() as i64
}

pub fn move_meets_release(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, itself, keeper, timer, threads, .. } = *t.env;
    let thread = require_ok!(t, threads.spawn(&env.io, &STACK[0], releaser, 0));
    let mut arrived = 0_u64;
    raw(t, &env.io, |ring| {
        for _ in 0..ROUNDS {
            // A copy of the clock, sent to the program itself.
            ring.push(Sqe { result_transfers: 1, ..sqe::named(sqe::recv(own), 1) });
            ring.dispatch();
            let call = laden(ring, itself, 0, &[(timer, Copy)]);
            ring.push(sqe::named(call, 2));
            let got = ring.expect(1, Status::Ok, "the copy");
            ring.push(sqe::named(sqe::answer(got.cqe.token, 0, 0), 3));
            ring.dispatch();
            ring.expect(2, Status::Ok, "the answer");
            ring.expect(3, Status::Ok, "RETURN");
            let ([copy, ..], _) = slots(&got);
            let call = laden(ring, keeper, KEEP, &[(copy, Move)]);
            SLOT.store(copy.to_bits(), Ordering::Release);
            let got = ring.one(sqe::named(call, 4));
            match got.status() {
                Some(Status::Ok) => {
                    arrived += 1;
                    ring.ends(sqe::named(sqe::call(keeper, DROP, 0, 0), 5), Status::Ok, "DROP");
                }
                Some(Status::Disconnected) => {}
                odd => ring.fail(format_args!("a move: {odd:?}")),
            }
            while SLOT.load(Ordering::Acquire) != 0 {
                ring.ends(sqe::plain(abi_types::Opcode::Yield), Status::Ok, "YIELD");
            }
        }
    })?;
    SLOT.store(u64::MAX, Ordering::Release);
    check_eq!(t, require_ok!(t, thread.join(&env.io)), 0);
    check_eq!(t, arrived + RELEASED.load(Ordering::Relaxed), ROUNDS);
    Ok(())
}
