//! Create, exit, join, detach.

use abi_types::{CapSlot, ExceptionKind, NEVER, Status};
use capos_rt::caller::call_of;
use capos_rt::io::status_of;
use capos_rt::park::{park, unpark};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use schema::thread_handle;
use schema_wire::CallError;
use test_bare::program::{Program, cancel_sqe, is_exception};
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_eq, require_ok};

type Test<'a> = T<'a, Program>;

/// Woken when a waiting sibling may go on.
static GATE: AtomicU32 = AtomicU32::new(0);
static PARK: AtomicU64 = AtomicU64::new(0);
static REACHED: AtomicU32 = AtomicU32::new(0);

fn give_code(child: &Child) -> i64 {
    child.argument as i64
}

fn count_and_leave(child: &Child) -> i64 {
    REACHED.fetch_add(1, Ordering::Relaxed);
    child.argument as i64
}

/// Waits until the gate is open.
fn at_gate(child: &Child) -> i64 {
    REACHED.fetch_add(1, Ordering::Relaxed);
    let space = CapSlot::from_bits(PARK.load(Ordering::Relaxed));
    while GATE.load(Ordering::Relaxed) == 0 {
        let _ = park(&child.io, space, &GATE, 0, NEVER);
    }
    child.argument as i64
}

fn close_gate(shared: &Program) {
    PARK.store(shared.park.to_bits(), Ordering::Relaxed);
    GATE.store(0, Ordering::Relaxed);
    REACHED.store(0, Ordering::Relaxed);
}

fn open_gate(shared: &Program) {
    GATE.store(1, Ordering::Relaxed);
    let _ = unpark(shared.io(), shared.park, &GATE, u32::MAX);
}

fn until_reached(shared: &Program, count: u32) {
    while REACHED.load(Ordering::Relaxed) < count {
        shared.yield_now();
    }
}

pub fn create_and_join(t: &mut Test<'_>) -> Outcome {
    for code in [0, 7, -1, i64::MIN, i64::MAX] {
        let handle = require_ok!(t, t.env.spawn(0, give_code, code as u64));
        check_eq!(t, require_ok!(t, t.env.finish(handle)), code);
    }
    Ok(())
}

pub fn retained_status(t: &mut Test<'_>) -> Outcome {
    let handle = require_ok!(t, t.env.spawn(0, give_code, 41));
    t.env.until_exited(handle);
    // Looking takes nothing.
    check_eq!(t, t.env.exit_code(handle), Ok(Some(41)));
    check_eq!(t, t.env.exit_code(handle), Ok(Some(41)));
    check_eq!(t, t.env.join(handle), Ok(41));
    require_ok!(t, t.env.release(handle));
    Ok(())
}

pub fn live_target_blocks(t: &mut Test<'_>) -> Outcome {
    close_gate(t.env);
    let handle = require_ok!(t, t.env.spawn(0, at_gate, 42));
    until_reached(t.env, 1);
    let io = t.env.io();
    let sqe = call_of::<thread_handle::methods::Join>(handle, 0);
    let join = require_ok!(t, io.submit(sqe, &[]));
    io.flush();
    t.env.sleep(1_000_000);
    check!(t, !io.is_done(&join), "a join of a live thread has completed");
    check_eq!(t, t.env.exit_code(handle), Ok(None));
    open_gate(t.env);
    let mut words = [0; 16];
    let cqe = io.wait(join, &mut words);
    check_eq!(t, status_of(&cqe), Status::Ok);
    check!(t, cqe.length > 0 && words.contains(&42), "{} bytes, {words:?}", cqe.length);
    require_ok!(t, t.env.release(handle));
    Ok(())
}

static HANDLE: AtomicU64 = AtomicU64::new(0);

fn join_handle(child: &Child) -> i64 {
    while HANDLE.load(Ordering::Acquire) == 0 {
        let _ = child.io.yield_now();
    }
    let handle = CapSlot::from_bits(HANDLE.load(Ordering::Relaxed));
    let joined = thread_handle::Client::new(child.io.caller(), handle).join();
    match joined {
        Ok(joined) => 1000 + joined.exit_code,
        result if is_exception(&result, ExceptionKind::Failed, "join itself") => 1,
        result if is_exception(&result, ExceptionKind::Failed, "waits for this one") => 2,
        Err(_) => 3,
    }
}

pub fn self_join(t: &mut Test<'_>) -> Outcome {
    HANDLE.store(0, Ordering::Relaxed);
    let handle = require_ok!(t, t.env.spawn(0, join_handle, 0));
    // Release pairs with the acquire in `join_handle`.
    HANDLE.store(handle.to_bits(), Ordering::Release);
    check_eq!(t, t.env.finish(handle), Ok(1));
    Ok(())
}

pub fn second_waiter(t: &mut Test<'_>) -> Outcome {
    close_gate(t.env);
    HANDLE.store(0, Ordering::Relaxed);
    let target = require_ok!(t, t.env.spawn(0, at_gate, 5));
    let io = t.env.io();
    let sqe = call_of::<thread_handle::methods::Join>(target, 0);
    let first = require_ok!(t, io.submit(sqe, &[]));
    io.flush();
    HANDLE.store(target.to_bits(), Ordering::Release);
    let second = require_ok!(t, t.env.spawn(1, join_handle, 0));
    check_eq!(t, t.env.finish(second), Ok(2));
    check!(t, !io.is_done(&first), "the second waiter ended the first one's wait");
    open_gate(t.env);
    let cqe = io.wait(first, &mut [0; 16]);
    check_eq!(t, status_of(&cqe), Status::Ok);
    require_ok!(t, t.env.release(target));
    Ok(())
}

pub fn join_after_join(t: &mut Test<'_>) -> Outcome {
    let handle = require_ok!(t, t.env.spawn(0, give_code, 6));
    require_eq!(t, t.env.join(handle), Ok(6));
    let again = t.env.join(handle);
    check!(t, is_exception(&again, ExceptionKind::Failed, "earlier join"), "{again:?}");
    require_ok!(t, t.env.release(handle));
    // The slot is stale now, whatever is in its place.
    check_eq!(t, t.env.join(handle), Err(CallError::Status(Status::Disconnected)));
    check_eq!(t, t.env.release(handle), Err(Status::Disconnected));
    Ok(())
}

pub fn release_detaches(t: &mut Test<'_>) -> Outcome {
    close_gate(t.env);
    let handle = require_ok!(t, t.env.spawn(0, at_gate, 0));
    until_reached(t.env, 1);
    require_ok!(t, t.env.release(handle));
    check_eq!(t, t.env.exit_code(handle), Err(CallError::Status(Status::Disconnected)));
    // It runs on.
    open_gate(t.env);
    let handle = require_ok!(t, t.env.spawn(1, count_and_leave, 0));
    require_eq!(t, t.env.finish(handle), Ok(0));
    // A detached thread leaves no record behind: as many as the profile allows fit again and again.
    for _ in 0..40 {
        let before = REACHED.load(Ordering::Relaxed);
        let handle = loop {
            // The one before is taken apart in the background.
            match t.env.spawn(2, count_and_leave, 0) {
                Ok(handle) => break handle,
                Err(_) => t.env.yield_now(),
            }
        };
        require_ok!(t, t.env.release(handle));
        // Its stack is used again: only when it is past everything.
        until_reached(t.env, before + 1);
        t.env.sleep(300_000);
    }
    Ok(())
}

pub fn release_drops_status(t: &mut Test<'_>) -> Outcome {
    for _ in 0..40 {
        let handle = require_ok!(t, t.env.spawn(0, give_code, 9));
        t.env.until_exited(handle);
        require_ok!(t, t.env.release(handle));
    }
    Ok(())
}

pub fn cancelled_join(t: &mut Test<'_>) -> Outcome {
    close_gate(t.env);
    let handle = require_ok!(t, t.env.spawn(0, at_gate, 8));
    let io = t.env.io();
    // By hand: CANCEL names the user data.
    const JOIN: u64 = 1 << 63 | 1;
    const CANCEL: u64 = 1 << 63 | 2;
    let mut sqe = call_of::<thread_handle::methods::Join>(handle, 0);
    sqe.user_data = JOIN;
    let mut cancel = cancel_sqe(JOIN);
    cancel.user_data = CANCEL;
    let found = io.with_ring(|ring| {
        let mut found = [Status::Ok; 2];
        let _ = ring.push(sqe);
        let _ = ring.push(cancel);
        let _ = ring.enter(2, NEVER);
        while let Some(completion) = ring.pop() {
            let cqe = completion.take();
            found[usize::from(cqe.user_data == CANCEL)] = status_of(&cqe);
        }
        found
    });
    check_eq!(t, found, [Status::Cancelled, Status::Ok]);
    // The status is still there for another.
    open_gate(t.env);
    check_eq!(t, t.env.finish(handle), Ok(8));
    Ok(())
}

pub fn exit_posts_nothing(t: &mut Test<'_>) -> Outcome {
    // Its ring is the next thread's: that one finds no completion it did not ask for.
    for _ in 0..8 {
        let handle = require_ok!(t, t.env.spawn(0, look_for_strays, 0));
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    check_eq!(t, t.env.io().strays(), 0);
    Ok(())
}

fn look_for_strays(child: &Child) -> i64 {
    let found = child.io.with_ring(|ring| {
        let _ = ring.enter(0, 0);
        ring.pop().is_some()
    });
    i64::from(found)
}

/// Leaves with a sleep, a park and a join under way.
fn leave_much_behind(child: &Child) -> i64 {
    let timer = CapSlot::from_bits(TIMER.load(Ordering::Relaxed));
    let space = CapSlot::from_bits(PARK.load(Ordering::Relaxed));
    let long = schema::timer::SleepParams { ns: 3_600_000_000_000 };
    for _ in 0..3 {
        match child.io.start::<schema::timer::methods::Sleep>(timer, &long) {
            Ok(pending) => child.io.forget(pending),
            Err(_) => return 1,
        }
    }
    let word = capos_rt::park::park_sqe(space, &GATE, 0, NEVER);
    match child.io.submit(word, &[]) {
        Ok(pending) => child.io.forget(pending),
        Err(_) => return 2,
    }
    child.io.flush();
    0
}

static TIMER: AtomicU64 = AtomicU64::new(0);

pub fn exit_with_pending_operations(t: &mut Test<'_>) -> Outcome {
    close_gate(t.env);
    TIMER.store(t.env.timer.to_bits(), Ordering::Relaxed);
    // More sleeps in all than a process may have at once: each thread's go with it.
    for _ in 0..12 {
        let handle = require_ok!(t, t.env.spawn(0, leave_much_behind, 0));
        require_eq!(t, t.env.finish(handle), Ok(0));
    }
    // Nobody is parked any more.
    check_eq!(t, unpark(t.env.io(), t.env.park, &GATE, u32::MAX), Ok(0));
    Ok(())
}
