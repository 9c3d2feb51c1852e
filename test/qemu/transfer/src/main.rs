//! Capabilities that travel with calls and answers.
//!
//! The program calls itself through its own endpoint, so that one thread is sender and receiver; the keeper is
//! another process with a table of six slots.
//!
//! * [`lists`]: what a list may be, and the table of what may be passed on. [`keepers`]: another process's table,
//!   its limit and its end. [`races`]: a sibling at the same slots.
#![no_std]
#![no_main]

mod keepers;
mod lists;
mod races;

use abi_types::{CapSlot, Sqe, TransferMode};
use capos_rt::thread::Threads;
use capos_rt::{Env, Error};
use test_kit::{Suite, Test};
use test_ring::{Got, Raw, sqe};

capos_rt::main!(main);

/// What the tests share.
pub struct Bench {
    pub env: &'static Env,
    pub timer: CapSlot,
    pub own: CapSlot,
    pub itself: CapSlot,
    pub spare: CapSlot,
    pub to_spare: CapSlot,
    pub keeper: CapSlot,
    pub mortal: CapSlot,
    pub threads: Threads,
}

const SUITE: Suite<Bench> = Suite::new(&[
    Test::new("transfer.copies_and_moves", lists::copies_and_moves),
    Test::new("transfer.bad_lists", lists::bad_lists),
    Test::new("transfer.no_more_than_is_taken", lists::no_more_than_is_taken),
    Test::new("transfer.waiting_calls", lists::waiting_calls),
    Test::new("transfer.revoked_on_the_way", lists::revoked_on_the_way),
    Test::new("transfer.to_another_process", keepers::there_and_back),
    Test::new("transfer.a_table_is_full", keepers::full),
    Test::new("transfer.a_move_meets_a_release", races::move_meets_release),
    // The mortal is gone after this.
    Test::new("transfer.a_receiver_ends", keepers::ends),
    // What can be moved has other slots after this.
    Test::new("transfer.each_entry_of_the_table", lists::each_entry),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    let named = |name: &str| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let mut bench = Bench {
        env,
        timer: named("timer"),
        own: named("own"),
        itself: named("self"),
        spare: named("spare"),
        to_spare: named("to-spare"),
        keeper: named("keeper"),
        mortal: named("mortal"),
        threads: Threads::of(&env.caps)?,
    };
    test_user::run_with(env, &SUITE, &mut bench)
}

/// The list of a message, behind one word of payload in inline slot 3, and its CALL.
pub fn laden(
    ring: &mut Raw<'_>,
    target: CapSlot,
    method: u16,
    list: &[(CapSlot, TransferMode)],
) -> Sqe {
    let mut words = [0x77; 16];
    for (place, (slot, mode)) in words[1..].chunks_exact_mut(2).zip(list) {
        place.copy_from_slice(&[slot.to_bits(), u64::from(*mode as u32)]);
    }
    ring.put(3, &words);
    Sqe { transfers: list.len() as u16, ..sqe::call(target, method, 3, 8) }
}

/// The slots that came with a message.
pub fn slots(got: &Got) -> ([CapSlot; 8], usize) {
    let from = got.cqe.length.div_ceil(8) as usize;
    let count = usize::from(got.cqe.transfers()).min(7);
    let slot = |number| got.words.get(from + 2 * number).copied().unwrap_or(0);
    (core::array::from_fn(|number| CapSlot::from_bits(slot(number))), count)
}

/// Whether a slot is a clock.
pub fn is_timer(ring: &mut Raw<'_>, slot: CapSlot) -> bool {
    let got = ring.one(sqe::named(sqe::call_timer(slot, 0, 4, 0), 0xc10c));
    got.status() == Some(abi_types::Status::Ok)
}
