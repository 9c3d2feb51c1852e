//! Calls to a server in another process, and back.

use abi_ring::INLINE_WORDS;
use abi_types::{NEVER, Status};
use bench_schema::echo::{self, EchoResults};
use capos_rt::caller::call;
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_kit::{Outcome, T, require_eq, require_some};

use crate::Bench;
use crate::measure::BATCH;
use crate::raw::{Wrong, push};

pub fn round_trip_0(t: &mut T<'_, Bench>) -> Outcome {
    round_trip::<0>(t)
}

pub fn round_trip_64(t: &mut T<'_, Bench>) -> Outcome {
    round_trip::<8>(t)
}

/// `WORDS` words there and back, in inline slots.
// A function of its own, so that its loop can be told from others in a trace.
#[inline(never)]
fn round_trip<const WORDS: usize>(t: &mut T<'_, Bench>) -> Outcome {
    let (env, target) = (t.env.env, t.env.echo);
    let message: [u64; WORDS] = core::array::from_fn(|word| 0x1111_1111_1111_1111 * word as u64);
    let measured = env.io.with_ring(|ring| {
        let slot = ring.take_slot()?;
        let mut sqe = call(target, PLAIN, 0, WORDS as u32 * 8);
        (sqe.user_data, sqe.buffer) = (1 << 63, slot);
        let mut wrong = Wrong::default();
        let mut answer = [0; INLINE_WORDS];
        let samples = t.env.counter.sample(|| {
            for _ in 0..BATCH {
                ring.write_inline(slot, &message);
                push(ring, sqe);
                let completion = loop {
                    let _ = ring.enter(1, NEVER);
                    if let Some(completion) = ring.pop() {
                        break completion;
                    }
                };
                completion.read_inline(WORDS as u32 * 8, &mut answer);
                wrong.unless(&completion.take(), Status::Ok);
            }
        });
        ring.give_slot(slot);
        Some((samples, wrong, answer))
    });
    let (samples, wrong, answer) = require_some!(t, measured);
    require_eq!(t, wrong.0, 0);
    require_eq!(t, answer[..WORDS], message);
    samples.report(t, BATCH);
    Ok(())
}

pub fn round_trip_64_typed(t: &mut T<'_, Bench>) -> Outcome {
    let mut echo = echo::Client::new(t.env.env.io.caller(), t.env.typed);
    let expected = Ok(EchoResults { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7 });
    let mut wrong = 0;
    let samples = t.env.counter.sample(|| {
        for _ in 0..BATCH {
            wrong += u32::from(echo.echo(1, 2, 3, 4, 5, 6, 7) != expected);
        }
    });
    require_eq!(t, wrong, 0);
    samples.report(t, BATCH);
    Ok(())
}
