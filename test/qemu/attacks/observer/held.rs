//! Attacks that come to nothing.

use abi_types::Status;
use attack_orders::Order;
use capos_rt::io::status_of;
use capos_rt::now_ns;
use core::sync::atomic::{AtomicU64, Ordering};
use schema::thread_control;
use test_kit::{Outcome, Suite, T, Test, check, require_ok};

use crate::watch::{Observer, beside, judge};

type Testing<'a> = T<'a, Observer>;

pub const SUITE: Suite<Observer> = Suite::new(&[
    Test::new("attacks.none", |t| one(t, Order::Compute, 1)),
    Test::new("attacks.rings", |t| one(t, Order::Rings, 1)),
    Test::new("attacks.cells", |t| one(t, Order::Cells, 1)),
    Test::new("attacks.credits", |t| one(t, Order::Credits, 1)),
    Test::new("attacks.handles", handles),
    Test::new("attacks.facets", |t| one(t, Order::Facets, 1)),
    Test::new("attacks.sleepers", |t| one(t, Order::Sleepers, 1)),
    Test::new("attacks.parkers", parkers),
    Test::new("attacks.yields", |t| one(t, Order::Yields, 1)),
    Test::new("attacks.messages", |t| one(t, Order::Messages, 2)),
    Test::new("attacks.segments", segments),
    Test::new("attacks.bursts", |t| one(t, Order::Bursts, 2)),
    Test::new("attacks.pending_ends", |t| one(t, Order::PendingEnds, 6)),
    Test::new("attacks.full_facets", |t| one(t, Order::FullFacets, 1)),
    Test::new("attacks.lost_calls", |t| one(t, Order::LostCalls, 6)),
    Test::new("attacks.timeouts", |t| one(t, Order::Timeouts, 12)),
    // The attacker, and the server that it sends to.
    Test::new("attacks.objects", |t| one(t, Order::Objects, 2)),
    Test::new("attacks.trace", |t| one(t, Order::Trace, 1)),
    Test::new("attacks.readers", |t| one(t, Order::Readers, 1)),
    Test::new("attacks.nothing_is_kept", nothing_is_kept),
    Test::new("attacks.end", |t| last(t, "mortal", Order::End, 14)),
    Test::new("attacks.fault", |t| last(t, "faulty", Order::Fault, 1)),
    Test::new("attacks.nothing_is_left", nothing_is_left),
]);

/// The attacker does one thing for a while, by so many threads, a server's included.
fn one(t: &mut Testing<'_>, order: Order, threads: u64) -> Outcome {
    let (harm, _) = beside(t, "attacker", order, 0, false)?;
    judge(t, &harm, threads)
}

/// By a process that may have one sibling.
fn handles(t: &mut Testing<'_>) -> Outcome {
    let (harm, _) = beside(t, "pair", Order::Handles, 0, false)?;
    judge(t, &harm, 2)
}

/// The attacker wakes whoever waits at its own word, and at the observer's.
fn parkers(t: &mut Testing<'_>) -> Outcome {
    let word = core::ptr::from_ref(&t.env.word).expose_provenance() as u64;
    let (harm, _) = beside(t, "attacker", Order::Parkers, word, false)?;
    judge(t, &harm, 13)
}

static AT_FS: AtomicU64 = AtomicU64::new(0x0bad_cafe);

/// The attacker's FS base is the same as the observer's, by the record; it loads segment registers.
fn segments(t: &mut Testing<'_>) -> Outcome {
    let base = core::ptr::from_ref(&AT_FS).expose_provenance() as u64;
    let io = t.env.program.io();
    let control = t.env.program.control;
    let before = require_ok!(t, thread_control::Client::new(io.caller(), control).get_fs_base());
    require_ok!(t, thread_control::Client::new(io.caller(), control).set_fs_base(base));
    t.env.at_fs = Some(AT_FS.load(Ordering::Relaxed));
    let seen = beside(t, "attacker", Order::Segments, base, false);
    t.env.at_fs = None;
    let mut own = thread_control::Client::new(io.caller(), control);
    require_ok!(t, own.set_fs_base(before.fs_base));
    let (harm, _) = seen?;
    // The attacker, and the server that it calls.
    judge(t, &harm, 2)
}

/// How long an attack lasts for which only what it leaves behind counts, and how long that has to settle.
const SHORT_NS: u64 = 4_000_000;
const SETTLE_NS: u64 = 3_000_000;

/// Each attack once more, twice: the second time leaves the kernel with as much memory as the first.
fn nothing_is_kept(t: &mut Testing<'_>) -> Outcome {
    if !t.env.is_exact {
        return t.skip("one CPU, where an attack does the same every time");
    }
    let orders = [
        Order::Rings,
        Order::Cells,
        Order::Credits,
        Order::Facets,
        Order::Sleepers,
        Order::Parkers,
        Order::Messages,
        Order::Bursts,
        Order::PendingEnds,
        Order::FullFacets,
        Order::LostCalls,
        Order::Timeouts,
        Order::Objects,
        Order::Trace,
        Order::Readers,
    ];
    for order in orders {
        let mut found = [None; 2];
        for memory in &mut found {
            let until = now_ns() + SHORT_NS;
            let pending = require_ok!(t, t.env.order("attacker", order, until, 0));
            let status = status_of(&t.env.program.io().wait(pending, &mut [0; 16]));
            check!(t, status == Status::Ok, "{order:?}: {status:?}");
            t.env.program.sleep(SETTLE_NS);
            *memory = t.env.memory();
        }
        let [first, second] = found;
        check!(t, first.is_some() && first == second, "{order:?}: {first:?}, then {second:?}");
    }
    Ok(())
}

/// An attacker that ends.
fn last(t: &mut Testing<'_>, attacker: &'static str, order: Order, threads: u64) -> Outcome {
    let (harm, _) = beside(t, attacker, order, 0, true)?;
    judge(t, &harm, threads)
}

/// The attacker lives, and so does everybody else; what it has tried costs nobody anything.
fn nothing_is_left(t: &mut Testing<'_>) -> Outcome {
    let (harm, _) = beside(t, "attacker", Order::Compute, 0, false)?;
    judge(t, &harm, 1)?;
    let gone = t.env.order("mortal", Order::Compute, 0, 0);
    let gone = require_ok!(t, gone);
    let mut words = [0; 16];
    let status = status_of(&t.env.program.io().wait(gone, &mut words));
    check!(t, status == Status::Disconnected, "{status:?}");
    Ok(())
}
