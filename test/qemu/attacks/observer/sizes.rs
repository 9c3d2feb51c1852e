//! Attacks of two sizes each: what is ended, closed, written or freed may be little or much, and the observer is
//! kept from its CPU for no longer.
//!
//! One thread attacks. Beside it runs what takes apart what it left: the reaper, or the drain.

use abi_types::Status;
use attack_orders::Order;
use capos_rt::io::status_of;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require_ok};

use crate::watch::{Observer, beside, judge};

type Testing<'a> = T<'a, Observer>;

pub const SUITE: Suite<Observer> = Suite::new(&[
    Test::new("sizes.none", |t| repeated(t, Order::Compute, 0)),
    Test::new("sizes.exits_with_1_pending", |t| repeated(t, Order::Exits, 1)),
    Test::new("sizes.exits_with_32_pending", |t| repeated(t, Order::Exits, 32)),
    Test::new("sizes.floods_of_1", |t| repeated(t, Order::Flood, 1)),
    Test::new("sizes.floods_of_30", |t| repeated(t, Order::Flood, 30)),
    Test::new("sizes.frees_16_pages", |t| repeated(t, Order::Free, 16)),
    Test::new("sizes.frees_8192_pages", |t| repeated(t, Order::Free, 8_192)),
    Test::new("sizes.closes_with_1", |t| closes(t, "closes-1", 1)),
    Test::new("sizes.closes_with_32", |t| closes(t, "closes-32", 32)),
    Test::new("sizes.ends_with_2_threads", |t| ends(t, "ends-2", Order::Crowd, 2)),
    Test::new("sizes.ends_with_100_threads", |t| ends(t, "ends-100", Order::Crowd, 100)),
    Test::new("sizes.ends_with_16_pages", |t| ends(t, "holds-16", Order::Hold, 16)),
    Test::new("sizes.ends_with_16384_pages", |t| ends(t, "holds-16384", Order::Hold, 16_384)),
    Test::new("sizes.nothing_is_left", |t| repeated(t, Order::Compute, 0)),
]);

/// The attacker does the same again and again.
fn repeated(t: &mut Testing<'_>, order: Order, size: u64) -> Outcome {
    let (harm, _) = beside(t, "attacker", order, size, false)?;
    judge(t, &harm, 1)
}

/// An attacker prepares what the attack is about, all of it.
fn prepare(t: &mut Testing<'_>, attacker: &'static str, order: Order, size: u64) -> Outcome {
    let pending = require_ok!(t, t.env.order(attacker, order, 0, size));
    let mut words = [0; 16];
    check_eq!(t, status_of(&t.env.program.io().wait(pending, &mut words)), Status::Ok);
    check_eq!(t, words[0], size);
    Ok(())
}

fn closes(t: &mut Testing<'_>, attacker: &'static str, size: u64) -> Outcome {
    prepare(t, attacker, Order::Receive, size)?;
    let (harm, _) = beside(t, attacker, Order::Shut, 0, false)?;
    judge(t, &harm, 1)
}

fn ends(t: &mut Testing<'_>, attacker: &'static str, order: Order, size: u64) -> Outcome {
    prepare(t, attacker, order, size)?;
    let before = t.env.memory();
    let (harm, _) = beside(t, attacker, Order::Leave, 0, true)?;
    let after = t.env.memory();
    check!(t, after < before, "{before:?} before, {after:?} after: nothing was taken apart");
    judge(t, &harm, 1)
}
