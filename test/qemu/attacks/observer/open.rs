//! Attacks on what is known to be open. `docs/book/attacks.md` says what each shows, and how red it is.

use abi_types::{CapSlot, Status};
use attack_orders::Order;
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::now_ns;
use core::sync::atomic::{AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::thread_handle;
use test_bare::raw::{Child, Raw, Run};
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require_ok};

use crate::watch::{Observer, SLICE_NS, beside, judge};

type Testing<'a> = T<'a, Observer>;

pub const TIMERS: Suite<Observer> =
    Suite::new(&[Test::new("attacks.timers", |t| one(t, Order::ConsoleReads, false))]);
pub const LARGE: Suite<Observer> =
    Suite::new(&[Test::new("attacks.large_process_ends", |t| one(t, Order::End, true))]);
pub const NEWLINES: Suite<Observer> =
    Suite::new(&[Test::new("attacks.newlines", |t| one(t, Order::Newlines, false))]);
pub const CLOSE: Suite<Observer> =
    Suite::new(&[Test::new("attacks.close_with_32_waiting", |t| parties(t, Order::Close))]);
pub const RECEIVER: Suite<Observer> =
    Suite::new(&[Test::new("attacks.receiver_ends", |t| parties(t, Order::ReceiverEnds))]);
pub const FRAMES: Suite<Observer> =
    Suite::new(&[Test::new("attacks.frames_over_the_profile", frames)]);
pub const WEIGHT: Suite<Observer> =
    Suite::new(&[Test::new("attacks.weight_of_spawned_threads", weight)]);
pub const QUEUE: Suite<Observer> = Suite::new(&[Test::new("attacks.queue_of_one_badge", queue)]);
pub const JOIN: Suite<Observer> = Suite::new(&[Test::new("attacks.join_against_release", join)]);

fn one(t: &mut Testing<'_>, order: Order, ends: bool) -> Outcome {
    let (harm, _) = beside(t, "attacker", order, 0, ends)?;
    judge(t, &harm, 1)
}

/// Threads that the attacker makes for this, and which run when they were told that nothing comes.
const PARTIES: u64 = 32;

fn parties(t: &mut Testing<'_>, order: Order) -> Outcome {
    let (harm, _) = beside(t, "attacker", order, 0, false)?;
    judge(t, &harm, PARTIES + 2)
}

/// Page frames that the attacker's profile in `BUILD.bazel` allows.
const FRAMES_ALLOWED: u64 = 1024;
/// Page frames of a kernel stack, which another line of the profile counts.
const STACK_FRAMES: u64 = 32;

/// What an attacker takes by making threads stays within its profile.
fn frames(t: &mut Testing<'_>) -> Outcome {
    let before = t.env.program.free_frames();
    let (harm, made) = beside(t, "attacker", Order::Threads, 0, false)?;
    let after = t.env.program.free_frames();
    judge(t, &harm, 1)?;
    let taken = before.saturating_sub(after).saturating_sub(made * STACK_FRAMES);
    t.metric("threads made", made, "");
    t.metric("frames taken beside kernel stacks", taken, "frames");
    check!(
        t,
        taken <= FRAMES_ALLOWED,
        "{taken} frames for {made} threads; {FRAMES_ALLOWED} are right"
    );
    Ok(())
}

/// A process of weight 1 has a sixty-fifth of the CPU beside one of weight 64, also by a thread it made.
fn weight(t: &mut Testing<'_>) -> Outcome {
    let until = now_ns() + 42 * SLICE_NS;
    let pending = require_ok!(t, t.env.order("attacker", Order::ComputeInASibling, until, 0));
    t.env.program.io().flush();
    // The attacker's first thread has the weight of its process: it gets its order while nobody else runs.
    t.env.program.sleep(2 * SLICE_NS);
    let from = now_ns();
    // What is missing between two looks at the clock that are far apart is the attacker's.
    let (mut last, mut lost) = (from, 0);
    while last < until {
        test_bare::program::work(16);
        let now = now_ns();
        if now - last > 100_000 {
            lost += now - last;
        }
        last = now;
    }
    let mut words = [0; 16];
    check_eq!(t, status_of(&t.env.program.io().wait(pending, &mut words)), Status::Ok);
    let per_mille = lost * 1000 / (until - from);
    t.metric("the attacker's share", per_mille, "per mille");
    // One of 65, and a slice at each end.
    let right = 1000 / 65 + 2 * 1000 / 40;
    check!(t, per_mille <= right, "{per_mille} per mille of the CPU; {right} are right");
    Ok(())
}

/// A client that fills a queue keeps no other client out.
fn queue(t: &mut Testing<'_>) -> Outcome {
    let until = now_ns() + 8 * SLICE_NS;
    let pending = require_ok!(t, t.env.order("attacker", Order::Queue, until, 0));
    t.env.program.io().flush();
    // The attacker's calls are there by then.
    t.env.program.sleep(2 * SLICE_NS);
    let own = t.env.own;
    let load = schema::endpoint::Client::new(t.env.program.io().caller(), own).load();
    let load = require_ok!(t, load);
    t.metric("calls of the attacker", load.queued.into(), "");
    let facet = require_ok!(t, t.env.program.env.cap("self", plain_schema::plain::INTERFACE_ID));
    let sqe = abi_types::Sqe { arg: now_ns() + SLICE_NS, ..call(facet, PLAIN, 0, 0) };
    let cqe = require_ok!(t, t.env.program.io().run(sqe, &[], &mut [0; 16]));
    // Nobody receives: it waits until its deadline, which is what it was told.
    check_eq!(t, status_of(&cqe), Status::DeadlineExpired);
    check_eq!(t, status_of(&t.env.program.io().wait(pending, &mut [0; 16])), Status::Ok);
    Ok(())
}

const RACES: u64 = 3_000;
static STACKS: [Raw<16384>; 3] = [const { Raw::new() }; 3];
/// The handle that is joined and released at the same time, 0 for none, and the number of its round.
static HANDLE: AtomicU64 = AtomicU64::new(0);
static ROUND: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);
static JOINED: AtomicU64 = AtomicU64::new(0);

/// Joins whatever handle there is, as often as it can. A thread ends with the number of its round, so a
/// join that answers with another has joined another thread.
fn join_all(child: &Child) -> i64 {
    while ROUND.load(Ordering::Acquire) < RACES {
        let handle = HANDLE.load(Ordering::Acquire);
        let round = ROUND.load(Ordering::Acquire);
        // No handle is there twice: the round is the one of this handle if the handle is still there.
        if handle == 0 || HANDLE.load(Ordering::Acquire) != handle {
            continue;
        }
        let mut thread = thread_handle::Client::new(child.io.caller(), CapSlot::from_bits(handle));
        if let Ok(joined) = thread.join() {
            JOINED.fetch_add(1, Ordering::Relaxed);
            if joined.exit_code as u64 != round {
                WRONG.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    0
}

fn end_with(child: &Child) -> i64 {
    child.argument as i64
}

/// Threads are made and their handles released while a sibling joins by them: a join ends with the code of
/// the thread that its handle names, or not at all.
fn join(t: &mut Testing<'_>) -> Outcome {
    let (io, by) = (t.env.program.io(), t.env.program.by());
    let joiner = Run { main: join_all, argument: 0, fs_base: 0 };
    let joiner = require_ok!(t, STACKS[0].start(io, by, joiner));
    for round in 0..RACES {
        let run = Run { main: end_with, argument: round, fs_base: 0 };
        HANDLE.store(0, Ordering::Release);
        ROUND.store(round, Ordering::Release);
        let Ok(handle) = STACKS[1].start(io, by, run) else { continue };
        HANDLE.store(handle.to_bits(), Ordering::Release);
        // Its stack is used again: it has to be gone.
        while t.env.program.exit_code(handle) == Ok(None) {
            core::hint::spin_loop();
        }
        let _ = t.env.program.release(handle);
    }
    ROUND.store(RACES, Ordering::Release);
    check_eq!(t, t.env.program.finish(joiner), Ok(0));
    t.metric("joins", JOINED.load(Ordering::Relaxed), "");
    check_eq!(t, WRONG.load(Ordering::Relaxed), 0);
    Ok(())
}
