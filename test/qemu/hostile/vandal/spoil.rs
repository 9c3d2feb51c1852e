//! The siblings that spoil.

use super::sqes::{ADDRESS, CAP, Caps, OPERATION, RESULT_ADDRESS};
use super::sqes::{anywhere, destination, operation, source};
use super::{OPERATIONS, is_reckless, place, wait_for_go, word};
use abi_types::place::RING_VADDR;
use abi_types::{RingBlock, RingWord, Sqe};
use capos_rt::{Env, exit};
use core::sync::atomic::Ordering;
use test_ring::Random;
use test_wild::at;

/// Writes of one turn.
const WRITES: u32 = 64;
/// Bytes of the block that are written to; the indices and the first entries matter most.
const BYTES: usize = 0x2000;

/// Turns of a reckless vandal's threads, at most: any of them ends the process, for each may be
/// spoiled so that it never gets there.
const RECKLESS_TURNS: u64 = 20_000;

/// The end of a turn.
fn turn(env: &Env) {
    let turns = OPERATIONS.fetch_add(1, Ordering::Relaxed);
    if is_reckless() && turns >= RECKLESS_TURNS {
        exit(3);
    }
    let _ = env.io.yield_now();
}

/// Writes over the whole block of the first thread.
pub fn block(env: &Env) -> i64 {
    let mut random = Random::new(env.argument);
    let caps = Caps::of(env);
    // Before the word that says it is written over.
    let Some(block) = RingBlock::new(word(RingWord::SqEntries)) else { return 1 };
    wait_for_go(env);
    let bytes = block.size().min(BYTES) as u64 & !7;
    loop {
        for _ in 0..WRITES {
            let offset = random.below(bytes);
            let value = random.bits();
            match sqe_word(block, offset as usize) {
                Some(OPERATION) if !is_reckless() => whole(offset, operation(&mut random)),
                Some(CAP) if !is_reckless() => whole(offset, caps.any(&mut random)),
                Some(ADDRESS) if !is_reckless() => whole(offset, source(&mut random)),
                Some(RESULT_ADDRESS) if !is_reckless() => whole(offset, destination(&mut random)),
                _ => match random.below(3) {
                    0 => at::write8(RING_VADDR + offset, value as u8),
                    1 => whole(offset, value),
                    _ => at::write32(RING_VADDR + (offset & !3), value as u32 % 64),
                },
            }
        }
        turn(env);
    }
}

/// Which word of an SQE is at an offset of the block.
fn sqe_word(block: RingBlock, offset: usize) -> Option<usize> {
    let sqes = RingBlock::ENTRIES..block.cqe(0);
    sqes.contains(&offset).then(|| (offset - RingBlock::ENTRIES) % size_of::<Sqe>() / 8)
}

fn whole(offset: u64, value: u64) {
    at::write64(RING_VADDR + (offset & !7), value);
}

/// Writes over the indices, which matter most.
pub fn indices(env: &Env) -> i64 {
    let mut random = Random::new(env.argument);
    wait_for_go(env);
    loop {
        for _ in 0..WRITES / 2 {
            let index = random.of(&[
                RingWord::SqTail,
                RingWord::CqHead,
                RingWord::SqHead,
                RingWord::CqTail,
                RingWord::Flags,
                RingWord::SqEntries,
                RingWord::CqEntries,
            ]);
            let near = word(index).wrapping_add(random.below(9) as u32).wrapping_sub(4);
            let value = if random.one_in(4) { random.bits() as u32 } else { near };
            at::write32(place(index), value);
        }
        turn(env);
    }
}

/// Writes anywhere in the process's memory, now and then: a reckless vandal's way to its end.
pub fn memory(env: &Env) -> i64 {
    let mut random = Random::new(env.argument);
    wait_for_go(env);
    loop {
        if random.one_in(50) {
            at::write64(anywhere(&mut random) & !7, random.bits());
        }
        turn(env);
    }
}
