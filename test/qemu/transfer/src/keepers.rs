//! Another process: what it gets, how much of it, and what becomes of it when it ends.

use abi_types::{CapSlot, Sqe, Status, TransferMode};
use test_kit::{Outcome, T};
use test_ring::{Raw, raw, sqe};
use transfer_protocol::{CLOCKS, DROP, EXIT, GIVE, KEEP};

use crate::{Bench, is_timer, laden, slots};
use TransferMode::{Copy, Move};

/// Slots of the keeper's table that are not its own grants.
const ROOM: u64 = 4;

/// Asks the keeper something without capabilities, and checks what it says.
#[track_caller]
fn says(ring: &mut Raw<'_>, keeper: CapSlot, method: u16, expected: u64) {
    let ask = sqe::named(sqe::call(keeper, method, 0, 0), 9);
    let said = ring.ends(ask, Status::Ok, "the keeper").words[0];
    ring.eq(said, expected, "what the keeper says");
}

pub fn there_and_back(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, keeper, timer, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let keep = laden(ring, keeper, KEEP, &[(timer, Copy), (timer, Copy)]);
        let got = ring.ends(sqe::named(keep, 1), Status::Ok, "two copies");
        ring.eq(got.words[0], 2, "kept");
        says(ring, keeper, CLOCKS, 2);
        // It gives one back, which it then has no more; to a caller that takes none it gives none.
        ring.ends(sqe::named(sqe::call(keeper, GIVE, 0, 0), 2), Status::Ok, "none is taken");
        let take = Sqe { result_transfers: 1, ..sqe::named(sqe::call(keeper, GIVE, 0, 0), 2) };
        let got = ring.ends(take, Status::Ok, "one back");
        let ([back, ..], 1) = slots(&got) else { return ring.fail(format_args!("none came")) };
        let is_clock = is_timer(ring, back);
        ring.check(is_clock, "a clock");
        says(ring, keeper, CLOCKS, 1);
        // Moved there: not here any more.
        let keep = laden(ring, keeper, KEEP, &[(back, Move)]);
        ring.ends(sqe::named(keep, 1), Status::Ok, "a move");
        ring.ends(sqe::release(back), Status::Disconnected, "it has left");
        says(ring, keeper, CLOCKS, 2);
        says(ring, keeper, DROP, 2);
    })
}

/// Who takes capabilities runs out of slots and says so; what it did not get stays where it was.
pub fn full(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, keeper, timer, .. } = *t.env;
    raw(t, &env.io, |ring| {
        for _ in 0..3 {
            let three = laden(ring, keeper, KEEP, &[(timer, Copy); 3]);
            ring.ends(sqe::named(three, 1), Status::Ok, "three");
            let two = laden(ring, keeper, KEEP, &[(timer, Copy), (timer, Copy)]);
            ring.ends(sqe::named(two, 1), Status::Overloaded, "all or none");
            let one = laden(ring, keeper, KEEP, &[(timer, Copy)]);
            let got = ring.ends(sqe::named(one, 1), Status::Ok, "the last");
            ring.eq(got.words[0], ROOM, "kept");
            let one = laden(ring, keeper, KEEP, &[(timer, Move)]);
            ring.ends(sqe::named(one, 1), Status::Overloaded, "one more, moved");
            let stays = is_timer(ring, timer);
            ring.check(stays, "it stays");
            says(ring, keeper, DROP, ROOM);
        }
    })
}

/// A process that ends with what it was given; what is sent to it then comes back.
pub fn ends(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, mortal, keeper, timer, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let keep = laden(ring, mortal, KEEP, &[(timer, Copy), (keeper, Copy)]);
        ring.ends(sqe::named(keep, 1), Status::Ok, "kept by who is going to end");
        ring.push(sqe::named(sqe::call(mortal, EXIT, 0, 0), 2));
        let late = laden(ring, mortal, KEEP, &[(timer, Move)]);
        ring.push(sqe::named(late, 3));
        for _ in 0..2 {
            let got = ring.wait();
            ring.eq(got.status(), Some(Status::Disconnected), "it has ended");
        }
        let stays = is_timer(ring, timer);
        ring.check(stays, "what did not arrive");
        says(ring, keeper, DROP, 0);
    })
}
