//! What one thread can see of PARK and UNPARK.

use abi_types::place::{CAPSET_VADDR, USER_END};
use abi_types::{CapSlot, Cqe, NEVER, Opcode, Sqe, Status};
use capos_rt::io::{Pending, status_of};
use capos_rt::now_ns;
use capos_rt::park::{Parked, park, park_sqe, unpark, unpark_sqe};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use schema::park_space;
use test_bare::program::{Program, cancel_sqe, work};
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require, require_ok, require_some};

type Test<'a> = T<'a, Program>;

/// User data of operations by hand.
const FIRST: u64 = 1 << 63 | 1;
const SECOND: u64 = 1 << 63 | 2;

fn status(t: &mut Test<'_>, sqe: Sqe) -> Status {
    t.env.io().run_plain(sqe).map_or_else(|status| status, |(status, _)| status)
}

pub fn mismatch(t: &mut Test<'_>) -> Outcome {
    let word = AtomicU32::new(7);
    let space = t.env.park;
    for expected in [0, 6, 8, u32::MAX] {
        check_eq!(t, park(t.env.io(), space, &word, expected, NEVER), Ok(Parked::Mismatch));
    }
    // Nobody is parked after it.
    check_eq!(t, unpark(t.env.io(), space, &word, u32::MAX), Ok(0));
    // A value beyond 32 bits is no value of the word.
    let sqe = Sqe { address: 1 << 32 | 7, ..park_sqe(space, &word, 7, 0) };
    let found = status(t, sqe);
    check!(t, matches!(found, Status::InvalidArgument | Status::Mismatch), "{found:?}");
    Ok(())
}

pub fn timeout_never_early(t: &mut Test<'_>) -> Outcome {
    let word = AtomicU32::new(1);
    for timeout_ns in [1, 1_000, 100_000, 3_000_000] {
        let before = now_ns();
        check_eq!(t, park(t.env.io(), t.env.park, &word, 1, timeout_ns), Ok(Parked::TimedOut));
        let waited = now_ns() - before;
        check!(t, waited >= timeout_ns, "{waited} ns of {timeout_ns}");
        // One CPU is the deterministic lane: nothing else runs, so it is on time too.
        if t.env.cpus() == 1 {
            check!(t, waited < timeout_ns + 200_000, "{waited} ns for {timeout_ns}");
        }
    }
    Ok(())
}

pub fn timeout_zero(t: &mut Test<'_>) -> Outcome {
    let word = AtomicU32::new(1);
    check_eq!(t, park(t.env.io(), t.env.park, &word, 1, 0), Ok(Parked::TimedOut));
    check_eq!(t, park(t.env.io(), t.env.park, &word, 2, 0), Ok(Parked::Mismatch));
    check_eq!(t, unpark(t.env.io(), t.env.park, &word, 1), Ok(0));
    Ok(())
}

pub fn timeout_unlinks(t: &mut Test<'_>) -> Outcome {
    let word = AtomicU32::new(1);
    for _ in 0..20 {
        check_eq!(t, park(t.env.io(), t.env.park, &word, 1, 20_000), Ok(Parked::TimedOut));
        check_eq!(t, unpark(t.env.io(), t.env.park, &word, u32::MAX), Ok(0));
    }
    Ok(())
}

/// Parks for at most two milliseconds and wakes that wait before; the wait's own completion is still
/// to come. Where the machine can be held up for longer than that the time may be up first: then it
/// tries again.
fn park_and_wake(t: &Test<'_>, word: &AtomicU32) -> Option<Pending> {
    let io = t.env.io();
    let tries = if t.env.cpus() == 1 { 1 } else { 100 };
    for _ in 0..tries {
        let parked = io.submit(park_sqe(t.env.park, word, 1, 2_000_000), &[]).ok()?;
        io.flush();
        match unpark(io, t.env.park, word, 1) {
            Ok(1) => return Some(parked),
            Ok(0) if status_of(&io.wait(parked, &mut [0; 16])) == Status::TimedOut => {}
            _ => return None,
        }
    }
    None
}

pub fn wake_wins_over_timeout(t: &mut Test<'_>) -> Outcome {
    let word = AtomicU32::new(1);
    let parked = require_some!(t, park_and_wake(t, &word));
    let io = t.env.io();
    let cqe = io.wait(parked, &mut [0; 16]);
    check_eq!(t, status_of(&cqe), Status::Woken);
    // The time passes, and nothing more comes of it.
    t.env.sleep(3_000_000);
    check_eq!(t, unpark(io, t.env.park, &word, 1), Ok(0));
    check_eq!(t, io.strays(), 0);
    // Nor does the old limit end the next wait.
    let next = require_some!(t, park_and_wake(t, &word));
    io.forget(next);
    let before = now_ns();
    check_eq!(t, park(io, t.env.park, &word, 1, 4_000_000), Ok(Parked::TimedOut));
    check!(t, now_ns() - before >= 4_000_000, "the limit of an earlier wait ended it");
    Ok(())
}

pub fn bad_addresses(t: &mut Test<'_>) -> Outcome {
    let word = [AtomicU32::new(1), AtomicU32::new(1)];
    let at = core::ptr::from_ref(&word[0]).expose_provenance() as u64;
    const UNMAPPED: u64 = 0x1000;
    const KERNEL: u64 = 0xffff_ffff_8000_0000;
    const HOLE: u64 = 0x0000_8000_0000_0000;
    let bad =
        [at + 1, at + 2, at + 3, 0, UNMAPPED, USER_END - 4, USER_END, HOLE, KERNEL, u64::MAX - 3];
    for address in bad {
        let parking = Sqe { arg: address, ..park_sqe(t.env.park, &word[0], 1, NEVER) };
        let waking = Sqe { arg: address, ..unpark_sqe(t.env.park, &word[0], 1) };
        let found = [status(t, parking), status(t, waking)];
        check!(t, found == [Status::BadAddress; 2], "{address:#x}: {found:?}");
    }
    // Memory that may be read is enough.
    let parking = Sqe { arg: CAPSET_VADDR, ..park_sqe(t.env.park, &word[0], 1, NEVER) };
    check_eq!(t, status(t, parking), Status::Mismatch);
    Ok(())
}

pub fn bad_spaces(t: &mut Test<'_>) -> Outcome {
    let word = AtomicU32::new(1);
    let other = require_ok!(t, t.env.env.cap("other", park_space::INTERFACE_ID));
    // Two spaces of one process are the same words.
    let io = t.env.io();
    let parked = require_ok!(t, io.submit(park_sqe(t.env.park, &word, 1, NEVER), &[]));
    io.flush();
    check_eq!(t, unpark(io, other, &word, 1), Ok(1));
    io.forget(parked);
    require_ok!(t, t.env.release(other));
    let stale = CapSlot::new(other.index(), other.generation() + 1);
    let cases = [
        (other, Status::Disconnected),
        (stale, Status::Disconnected),
        (CapSlot::NONE, Status::Disconnected),
        (CapSlot::new(60_000, 1), Status::Disconnected),
        (CapSlot::from_bits(u64::MAX), Status::Disconnected),
        (t.env.timer, Status::Unimplemented),
    ];
    for (space, expected) in cases {
        let found =
            [park_sqe(space, &word, 1, NEVER), unpark_sqe(space, &word, 1)].map(|s| status(t, s));
        check!(t, found == [expected; 2], "{space:?}: {found:?}");
    }
    check_eq!(t, unpark(io, t.env.park, &word, u32::MAX), Ok(0));
    Ok(())
}

pub fn one_wait_at_a_time(t: &mut Test<'_>) -> Outcome {
    let (word, second) = (AtomicU32::new(1), AtomicU32::new(1));
    let io = t.env.io();
    let parked = require_ok!(t, io.submit(park_sqe(t.env.park, &word, 1, NEVER), &[]));
    io.flush();
    check_eq!(t, park(io, t.env.park, &second, 1, NEVER), Err(Status::Overloaded));
    check_eq!(t, unpark(io, t.env.park, &second, 1), Ok(0));
    check_eq!(t, unpark(io, t.env.park, &word, 1), Ok(1));
    let cqe = io.wait(parked, &mut [0; 16]);
    check_eq!(t, status_of(&cqe), Status::Woken);
    Ok(())
}

/// Pushes operations by hand, enters until both have completed, and gives the statuses by name.
fn by_hand(t: &Test<'_>, first: Sqe, second: Sqe) -> [Option<Status>; 2] {
    t.env.io().with_ring(|ring| {
        let mut found = [None; 2];
        let _ = ring.push(Sqe { user_data: FIRST, ..first });
        let _ = ring.push(Sqe { user_data: SECOND, ..second });
        let _ = ring.enter(2, 50_000_000);
        while let Some(completion) = ring.pop() {
            let cqe: Cqe = completion.take();
            found[usize::from(cqe.user_data == SECOND)] = Some(status_of(&cqe));
        }
        found
    })
}

pub fn cancel(t: &mut Test<'_>) -> Outcome {
    let word = AtomicU32::new(1);
    for timeout_ns in [NEVER, 5_000_000] {
        let found = by_hand(t, park_sqe(t.env.park, &word, 1, timeout_ns), cancel_sqe(FIRST));
        check_eq!(t, found, [Some(Status::Cancelled), Some(Status::Ok)]);
        check_eq!(t, unpark(t.env.io(), t.env.park, &word, u32::MAX), Ok(0));
    }
    // Nothing of that name is under way any more.
    check_eq!(t, status(t, cancel_sqe(FIRST)), Status::NotFound);
    // A cancelled wait's limit does not end the next wait.
    let before = now_ns();
    check_eq!(t, park(t.env.io(), t.env.park, &word, 1, 8_000_000), Ok(Parked::TimedOut));
    check!(t, now_ns() - before >= 8_000_000, "ended by the limit of a cancelled wait");
    Ok(())
}

static IS_OVER: AtomicBool = AtomicBool::new(false);

fn hog(_: &Child) -> i64 {
    while !IS_OVER.load(Ordering::Relaxed) {
        work(16);
    }
    0
}

/// What a thread has submitted and not entered for is looked at when its slice ends: a NOP is
/// done then, a PARK waits for its thread.
pub fn only_its_own_thread(t: &mut Test<'_>) -> Outcome {
    IS_OVER.store(false, Ordering::Relaxed);
    let hogs = t.env.cpus().min(7) as usize;
    let mut handles = [CapSlot::NONE; 8];
    for (number, handle) in handles.iter_mut().enumerate().take(hogs) {
        *handle = require_ok!(t, t.env.spawn(number, hog, 0));
    }
    let word = AtomicU32::new(1);
    let nop = Sqe { opcode: Opcode::Nop as u8, user_data: FIRST, ..Sqe::default() };
    let parking = Sqe { user_data: SECOND, ..park_sqe(t.env.park, &word, 1, NEVER) };
    let (is_served, late) = t.env.io().with_ring(|ring| {
        let _ = ring.push(nop);
        let _ = ring.push(parking);
        ring.publish();
        // One of the CPUs has this thread and a hog: its slices end.
        let mut nop_is_done = false;
        let begun = now_ns();
        while !nop_is_done && now_ns() - begun < 10_000_000_000 {
            nop_is_done = ring.pop().is_some_and(|c| c.take().user_data == FIRST);
            work(16);
        }
        // A PARK that was taken would wait by now, and not see this.
        word.store(2, Ordering::Relaxed);
        let _ = ring.enter(1, 100_000_000);
        (nop_is_done, ring.pop().map(|completion| completion.take()))
    });
    IS_OVER.store(true, Ordering::Relaxed);
    for handle in handles.iter().take(hogs) {
        check_eq!(t, t.env.finish(*handle), Ok(0));
    }
    require!(t, is_served, "a slice's end did not serve a NOP");
    check_eq!(
        t,
        late.map(|cqe| (cqe.user_data, status_of(&cqe))),
        Some((SECOND, Status::Mismatch))
    );
    Ok(())
}
