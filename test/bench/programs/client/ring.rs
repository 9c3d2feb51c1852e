//! The entry itself, and operations that do nothing.

use abi_types::{NEVER, Sqe, Status};
use capos_rt::syscall::cap_enter;
use test_kit::{Outcome, T, require_eq};

use crate::Bench;
use crate::measure::BATCH;
use crate::raw::{Wrong, complete, push};

pub fn null_entry(t: &mut T<'_, Bench>) -> Outcome {
    let mut waiting = 0;
    let samples = t.env.counter.sample(|| {
        for _ in 0..BATCH {
            waiting |= cap_enter(0, 0).0;
        }
    });
    require_eq!(t, waiting, 0);
    samples.report(t, BATCH);
    Ok(())
}

pub fn nop_1(t: &mut T<'_, Bench>) -> Outcome {
    nop::<1>(t)
}

pub fn nop_8(t: &mut T<'_, Bench>) -> Outcome {
    nop::<8>(t)
}

pub fn nop_64(t: &mut T<'_, Bench>) -> Outcome {
    nop::<64>(t)
}

/// `N` NOPs an entry.
// A function of its own, so that its loop can be told from others in a trace.
#[inline(never)]
fn nop<const N: u32>(t: &mut T<'_, Bench>) -> Outcome {
    let env = t.env.env;
    let (samples, wrong) = env.io.with_ring(|ring| {
        let mut wrong = Wrong::default();
        let samples = t.env.counter.sample(|| {
            for _ in 0..N {
                push(ring, Sqe { user_data: 1 << 63, ..Sqe::default() });
            }
            let _ = ring.enter(N, NEVER);
            for _ in 0..N {
                wrong.unless(&complete(ring), Status::Ok);
            }
        });
        (samples, wrong)
    });
    require_eq!(t, wrong.0, 0);
    samples.report(t, N.into());
    Ok(())
}
