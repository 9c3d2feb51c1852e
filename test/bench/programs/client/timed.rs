//! Operations that a deadline bounds and that end before it: what arming and disarming adds.

use abi_ring::INLINE_WORDS;
use abi_types::{NEVER, Opcode, Sqe, Status};
use capos_rt::caller::call;
use test_kit::{Outcome, T, require_eq, require_some};

use crate::Bench;
use crate::measure::BATCH;
use crate::raw::{Wrong, complete, push};

/// A time or a duration that no run comes to the end of, in ns.
pub const FAR_NS: u64 = 1 << 50;

/// `Timer.sleep` and its CANCEL, in one entry.
pub fn sleep_cancel(t: &mut T<'_, Bench>) -> Outcome {
    /// Name of the sleep.
    const SLEEP: u64 = 1;
    let (env, timer) = (t.env.env, t.env.timer);
    let measured = env.io.with_ring(|ring| {
        let slot = ring.take_slot()?;
        let mut sleep = call(timer, 1, 16);
        (sleep.user_data, sleep.buffer) = (SLEEP, slot);
        let cancel =
            Sqe { opcode: Opcode::Cancel as u8, arg: SLEEP, user_data: 1 << 63, ..Sqe::default() };
        // A struct of one data word.
        ring.write_inline(slot, &[1 << 32, FAR_NS]);
        let mut wrong = Wrong::default();
        let samples = t.env.counter.sample(|| {
            for _ in 0..BATCH {
                push(ring, sleep);
                push(ring, cancel);
                let _ = ring.enter(2, NEVER);
                wrong.unless(&complete(ring), Status::Cancelled);
                wrong.unless(&complete(ring), Status::Ok);
            }
        });
        ring.give_slot(slot);
        Some((samples, wrong))
    });
    let (samples, wrong) = require_some!(t, measured);
    require_eq!(t, wrong.0, 0);
    samples.report(t, BATCH);
    Ok(())
}

/// A call with a deadline.
pub fn call_with_deadline(t: &mut T<'_, Bench>) -> Outcome {
    bounded(t, FAR_NS, NEVER)
}

/// A call whose caller enters with a time-out.
pub fn enter_with_timeout(t: &mut T<'_, Bench>) -> Outcome {
    bounded(t, 0, FAR_NS)
}

/// A call without a payload, bounded by its own deadline or by the time limit of the wait for it.
#[inline(never)]
fn bounded(t: &mut T<'_, Bench>, deadline_ns: u64, timeout_ns: u64) -> Outcome {
    let (env, target) = (t.env.env, t.env.echo);
    let measured = env.io.with_ring(|ring| {
        let slot = ring.take_slot()?;
        let mut sqe = call(target, 0, 0);
        (sqe.user_data, sqe.buffer, sqe.arg) = (1 << 63, slot, deadline_ns);
        let mut wrong = Wrong::default();
        let mut answer = [0; INLINE_WORDS];
        let samples = t.env.counter.sample(|| {
            for _ in 0..BATCH {
                push(ring, sqe);
                let completion = loop {
                    let _ = ring.enter(1, timeout_ns);
                    if let Some(completion) = ring.pop() {
                        break completion;
                    }
                };
                completion.read_inline(0, &mut answer);
                wrong.unless(&completion.take(), Status::Ok);
            }
        });
        ring.give_slot(slot);
        Some((samples, wrong))
    });
    let (samples, wrong) = require_some!(t, measured);
    require_eq!(t, wrong.0, 0);
    samples.report(t, BATCH);
    Ok(())
}
