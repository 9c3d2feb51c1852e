//! SchedulingPolicyCap: each method, rightly and wrongly.

use crate::bench::{Bench, QUANTUM_NS};
use abi_types::{CapSlot, ExceptionKind, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::now_ns;
use schema::scheduling_policy::{INTERFACE_TAG, SnapshotResults};
use schema::scheduling_policy_capnp::LatencyClass;
use test_bare::program::is_exception;
use test_kit::{Outcome, T, check, check_eq, require, require_ok, require_some};

type Test<'a> = T<'a, Bench>;

/// The first thread's snapshot once what it asked for is in effect.
fn settled(t: &Test<'_>) -> Option<SnapshotResults> {
    let mut own = t.env.own(t.env.policy);
    let before = own.snapshot().ok()?;
    loop {
        // A sleep that is over before the thread has stopped queues nobody.
        t.env.program.sleep(100_000);
        let now = own.snapshot().ok()?;
        if now.voluntary_blocks > before.voluntary_blocks {
            return Some(now);
        }
    }
}

/// Weights up to each ceiling, and what is beyond.
pub fn every_weight(t: &mut Test<'_>) -> Outcome {
    let begin = require_some!(t, settled(t));
    check_eq!(t, (begin.weight, begin.class), (64, LatencyClass::Normal));
    let ceilings: [(CapSlot, u16); 3] = [(t.env.policy, 1024), (t.env.low, 100), (t.env.unset, 64)];
    for (slot, ceiling) in ceilings {
        let said = match ceiling {
            1024 => "weight has to be from 1 to 1024",
            100 => "weight has to be from 1 to 100",
            _ => "weight has to be from 1 to 64",
        };
        for weight in [1, 2, 63, 64, ceiling - 1, ceiling] {
            check_eq!(t, t.env.own(slot).set_weight(weight), Ok(()));
            let now = require_some!(t, settled(t));
            check_eq!(t, (now.weight, now.class), (weight, LatencyClass::Normal));
        }
        for weight in [0, ceiling + 1, 1025, u16::MAX] {
            let refused = t.env.own(slot).set_weight(weight);
            require!(
                t,
                is_exception(&refused, ExceptionKind::InvalidArgument, said),
                "{weight} above {ceiling}: {refused:?}"
            );
        }
        let now = require_some!(t, settled(t));
        check_eq!(t, now.weight, ceiling);
    }
    check_eq!(t, t.env.own(t.env.policy).set_weight(64), Ok(()));
    Ok(())
}

/// Each class, without the weight; and a number that is none.
pub fn classes(t: &mut Test<'_>) -> Outcome {
    require_ok!(t, t.env.own(t.env.policy).set_weight(65));
    for class in [
        LatencyClass::Interactive,
        LatencyClass::Batch,
        LatencyClass::IpcServer,
        LatencyClass::Normal,
    ] {
        check_eq!(t, t.env.own(t.env.low).set_latency_class(class), Ok(()));
        let now = require_some!(t, settled(t));
        check_eq!(t, (now.weight, now.class), (65, class));
    }
    // A message with a class that the schema does not name.
    let message = [1 << 32, 4];
    let method = call(t.env.policy, INTERFACE_TAG, 1, 16);
    let cqe = require_ok!(t, t.env.program.io().run(method, &message, &mut [0; 16]));
    check_eq!(t, status_of(&cqe), Status::Exception);
    let now = require_some!(t, settled(t));
    check_eq!(t, (now.weight, now.class), (65, LatencyClass::Normal));
    check_eq!(t, t.env.own(t.env.policy).set_weight(64), Ok(()));
    let now = require_some!(t, settled(t));
    check_eq!(t, now.weight, 64);
    Ok(())
}

/// What a thread does with its time is in one of three accounts: it ran, it wanted to, it waited.
pub fn accounts_add_up(t: &mut Test<'_>) -> Outcome {
    const SLEEP_NS: u64 = 3_000_000;
    let mut own = t.env.own(t.env.policy);
    let (from, before) = (now_ns(), require_ok!(t, own.snapshot()));
    crate::bench::set_times(10 * QUANTUM_NS);
    crate::bench::compute_for(2 * QUANTUM_NS);
    t.env.program.sleep(SLEEP_NS);
    let (after, until) = (require_ok!(t, own.snapshot()), now_ns());
    let ran = after.runtime_ns - before.runtime_ns;
    let waited = after.runnable_accumulated_ns - before.runnable_accumulated_ns;
    check_eq!(t, after.virtual_runtime_ns - before.virtual_runtime_ns, ran);
    check!(t, after.voluntary_blocks > before.voluntary_blocks, "{after:?}");
    if t.env.program.cpus() == 1 {
        // Between the looks at the clock and those at the account there are some thousand instructions.
        let elapsed = until - from;
        let known = ran + waited + SLEEP_NS;
        check!(t, known <= elapsed && elapsed - known < 50_000, "{ran} + {waited} of {elapsed}");
        check_eq!(t, after.voluntary_blocks - before.voluntary_blocks, 1);
    }
    Ok(())
}

/// What a running thread asks for counts when it is next queued, and not before.
pub fn in_effect_when_next_queued(t: &mut Test<'_>) -> Outcome {
    let mut own = t.env.own(t.env.policy);
    if t.env.program.cpus() > 1 {
        return t.skip("one CPU, where nobody else preempts the thread meanwhile");
    }
    require_ok!(t, own.set_weight(640));
    let at_once = require_ok!(t, own.snapshot());
    check_eq!(t, at_once.weight, 64);
    let before = (at_once.runtime_ns, at_once.virtual_runtime_ns);
    crate::bench::set_times(10 * QUANTUM_NS);
    crate::bench::compute_for(QUANTUM_NS);
    let still = require_ok!(t, own.snapshot());
    check_eq!(t, still.virtual_runtime_ns - before.1, still.runtime_ns - before.0);
    let queued = require_some!(t, settled(t));
    check_eq!(t, queued.weight, 640);
    crate::bench::compute_for(QUANTUM_NS);
    let after = require_ok!(t, own.snapshot());
    let ran = after.runtime_ns - queued.runtime_ns;
    let passed = after.virtual_runtime_ns - queued.virtual_runtime_ns;
    check!(t, (ran / 10).abs_diff(passed) <= 2, "{passed} of {ran}");
    require_ok!(t, own.set_weight(64));
    Ok(())
}
