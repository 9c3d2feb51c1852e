//! Lies of which the outcome is known, before anybody else writes.

use super::{place, word};
use abi_types::place::RING_VADDR;
use abi_types::{NEVER, RingBlock, RingWord};
use core::sync::atomic::{AtomicU64, Ordering};
use test_wild::at;

/// Outcomes that were wrong.
pub static FOUND_OUT: AtomicU64 = AtomicU64::new(0);

/// How often the tail is far ahead.
const TRIES: u32 = 16;

fn note(holds: bool) {
    FOUND_OUT.fetch_add(u64::from(!holds), Ordering::Relaxed);
}

/// Withdraws everything that was submitted. A timer's pass may take some of it meanwhile.
fn submit_nothing() -> u32 {
    loop {
        let head = word(RingWord::SqHead);
        at::write32(place(RingWord::SqTail), head);
        if word(RingWord::SqHead) == head {
            return head;
        }
    }
}

/// A tail far ahead gives one pass of the queue's size and no more, and a head that cannot be frees
/// nothing.
pub fn tell(block: RingBlock) {
    let (sq, cq) = (block.sq_entries(), block.cq_entries());
    for entry in 0..sq {
        for part in 0..8 {
            at::write64(RING_VADDR + block.sqe(entry) as u64 + part * 8, 0);
        }
    }
    let mut least = u32::MAX;
    for _ in 0..TRIES {
        let (head, tail) = (submit_nothing(), word(RingWord::CqTail));
        at::write32(place(RingWord::CqHead), tail);
        at::write32(place(RingWord::SqTail), head.wrapping_add(1_000_000));
        let _ = test_wild::syscall(0, 0, 0);
        let took = submit_nothing().wrapping_sub(head);
        note(word(RingWord::CqTail).wrapping_sub(tail) == took);
        // More only if the end of a slice came before or after the entry: the timer's own pass takes a
        // few as well, within the same credits.
        note((sq..=cq).contains(&took));
        least = least.min(took);
    }
    note(least == sq);
    // The queue is made full; a head ahead of the tail, or far behind, is no room.
    let tail = word(RingWord::CqTail);
    at::write32(place(RingWord::CqHead), tail);
    at::write32(place(RingWord::SqTail), word(RingWord::SqHead).wrapping_add(1_000_000));
    for lie in [tail, tail.wrapping_add(cq + 1), tail.wrapping_sub(1), tail.wrapping_add(1 << 31)] {
        at::write32(place(RingWord::CqHead), lie);
        for _ in 0..3 {
            let _ = test_wild::syscall(0, 0, 0);
        }
        note(word(RingWord::CqTail).wrapping_sub(tail) == cq);
    }
    // A thread with an impossible head does not block for ever.
    at::write32(place(RingWord::CqHead), tail.wrapping_add(1 << 30));
    let _ = test_wild::syscall(0, 1, NEVER);
    submit_nothing();
    at::write32(place(RingWord::CqHead), word(RingWord::CqTail));
}
