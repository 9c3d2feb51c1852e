//! Calls with a page there and back, by address and through registered buffers.

use abi_types::{NEVER, Sqe, SqeFlags, Status};
use capos_rt::caller::call;
use capos_rt::memory::{PAGE_BYTES, Pages};
use core::sync::atomic::{AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_kit::{Outcome, T, require_eq, require_ok, require_some};

use crate::Bench;
use crate::measure::BATCH;
use crate::raw::{Wrong, push};

const BYTES: u32 = PAGE_BYTES as u32;

pub fn by_address(t: &mut T<'_, Bench>) -> Outcome {
    let pages = require_ok!(t, t.env.memory.map(&t.env.env.io, 2 * PAGE_BYTES));
    let address = pages.address();
    let flags = SqeFlags::BY_ADDRESS | SqeFlags::RESULT_BY_ADDRESS;
    let result_address = address + u64::from(BYTES);
    let sqe = Sqe { flags, address, result_address, ..call(t.env.by_address, PLAIN, 0, BYTES) };
    round_trip(t, sqe, &pages)?;
    require_ok!(t, t.env.memory.unmap(&t.env.env.io, pages));
    Ok(())
}

pub fn registered(t: &mut T<'_, Bench>) -> Outcome {
    let io = &t.env.env.io;
    let pages = require_ok!(t, t.env.memory.map(io, 2 * PAGE_BYTES));
    let Ok(buffer) = t.env.memory.register(io, pages) else {
        return t.fail(format_args!("no buffer"));
    };
    let flags = SqeFlags::REGISTERED | SqeFlags::RESULT_REGISTERED;
    let sqe = Sqe {
        flags,
        buffer: buffer.number(),
        result_buffer: buffer.number(),
        result_address: u64::from(BYTES),
        ..call(t.env.registered, PLAIN, 0, BYTES)
    };
    round_trip(t, sqe, buffer.pages())?;
    let Ok(pages) = t.env.memory.unregister(&t.env.env.io, buffer) else {
        return t.fail(format_args!("the buffer is in use"));
    };
    require_ok!(t, t.env.memory.unmap(&t.env.env.io, pages));
    Ok(())
}

/// The first page goes out, and comes back to the second.
// A function of its own, so that its loop can be told from others in a trace.
#[inline(never)]
fn round_trip(t: &mut T<'_, Bench>, sqe: Sqe, pages: &Pages) -> Outcome {
    let words = pages.words();
    let (out, back) = words.split_at(PAGE_BYTES / 8);
    for (number, word) in (0_u64..).zip(out) {
        word.store(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), Ordering::Relaxed);
    }
    let sqe = Sqe { user_data: 1 << 63, result_capacity: BYTES, ..sqe };
    let measured = t.env.env.io.with_ring(|ring| {
        let mut wrong = Wrong::default();
        let samples = t.env.counter.sample(|| {
            for _ in 0..BATCH {
                push(ring, sqe);
                let completion = loop {
                    let _ = ring.enter(1, NEVER);
                    if let Some(completion) = ring.pop() {
                        break completion;
                    }
                };
                wrong.unless(&completion.take(), Status::Ok);
            }
        });
        Some((samples, wrong))
    });
    let (samples, wrong) = require_some!(t, measured);
    require_eq!(t, wrong.0, 0);
    let same = |(one, other): (&AtomicU64, &AtomicU64)| {
        one.load(Ordering::Relaxed) == other.load(Ordering::Relaxed)
    };
    require_eq!(t, out.iter().zip(back).all(same), true);
    samples.report(t, BATCH);
    Ok(())
}
