//! Several threads, and another process.

use abi_types::{CapSlot, NEVER, Opcode, Sqe, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::park::{Parked, park, park_sqe, unpark};
use capos_rt::{Env, Error};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::park_space;
use test_bare::program::Program;
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_eq, require_ok};

type Test<'a> = T<'a, Program>;

static WORD: AtomicU32 = AtomicU32::new(0);
static OTHER: AtomicU32 = AtomicU32::new(0);
static SPACE: AtomicU64 = AtomicU64::new(0);
/// Threads that are parked, and those that were woken, each with its place in the order.
static PARKED: AtomicU32 = AtomicU32::new(0);
static WOKEN: AtomicU32 = AtomicU32::new(0);
static ORDER: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];

fn space() -> CapSlot {
    CapSlot::from_bits(SPACE.load(Ordering::Relaxed))
}

/// Parks and tells so; when woken, takes its place in the order.
fn wait_in_line(child: &Child) -> i64 {
    let Ok(parked) = child.io.submit(park_sqe(space(), &WORD, 0, NEVER), &[]) else { return 1 };
    // The wait begins here and the thread goes on until it asks for the completion.
    child.io.flush();
    PARKED.fetch_add(1, Ordering::Relaxed);
    let cqe = child.io.wait(parked, &mut [0; 16]);
    if status_of(&cqe) != Status::Woken {
        return 2;
    }
    let place = WOKEN.load(Ordering::Relaxed);
    ORDER[place as usize % 8].store(child.argument as u32, Ordering::Relaxed);
    WOKEN.store(place + 1, Ordering::Release);
    0
}

/// Parks `count` threads, one after the other.
fn line_up(t: &mut Test<'_>, count: usize) -> Result<[CapSlot; 8], test_kit::Ended> {
    SPACE.store(t.env.park.to_bits(), Ordering::Relaxed);
    WORD.store(0, Ordering::Relaxed);
    PARKED.store(0, Ordering::Relaxed);
    WOKEN.store(0, Ordering::Relaxed);
    let mut handles = [CapSlot::NONE; 8];
    for (number, handle) in handles.iter_mut().enumerate().take(count) {
        match t.env.spawn(number, wait_in_line, number as u64) {
            Ok(made) => *handle = made,
            Err(error) => t.fail(format_args!("no thread: {error:?}"))?,
        }
        while PARKED.load(Ordering::Relaxed) <= number as u32 {
            t.env.yield_now();
        }
    }
    Ok(handles)
}

fn until_woken(t: &Test<'_>, count: u32) {
    // Acquire pairs with the release in `wait_in_line`.
    while WOKEN.load(Ordering::Acquire) < count {
        t.env.yield_now();
    }
}

pub fn order_and_counts(t: &mut Test<'_>) -> Outcome {
    let handles = line_up(t, 8)?;
    let io = t.env.io();
    // One by one: those who woke before have taken their place.
    for count in 1..=6 {
        check_eq!(t, unpark(io, t.env.park, &WORD, 1), Ok(1));
        until_woken(t, count);
    }
    for (place, found) in ORDER.iter().enumerate().take(6) {
        check_eq!(t, found.load(Ordering::Relaxed), place as u32);
    }
    // More than there are.
    check_eq!(t, unpark(io, t.env.park, &WORD, u32::MAX), Ok(2));
    check_eq!(t, unpark(io, t.env.park, &WORD, u32::MAX), Ok(0));
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    Ok(())
}

pub fn unpark_of_zero(t: &mut Test<'_>) -> Outcome {
    let handles = line_up(t, 3)?;
    let io = t.env.io();
    check_eq!(t, unpark(io, t.env.park, &WORD, 0), Ok(0));
    check_eq!(t, WOKEN.load(Ordering::Relaxed), 0);
    check_eq!(t, unpark(io, t.env.park, &WORD, 2), Ok(2));
    check_eq!(t, unpark(io, t.env.park, &WORD, 2), Ok(1));
    for handle in &handles[..3] {
        check_eq!(t, t.env.finish(*handle), Ok(0));
    }
    Ok(())
}

pub fn other_word(t: &mut Test<'_>) -> Outcome {
    let handles = line_up(t, 1)?;
    let io = t.env.io();
    check_eq!(t, unpark(io, t.env.park, &OTHER, u32::MAX), Ok(0));
    check_eq!(t, unpark(io, t.env.park, &WORD, u32::MAX), Ok(1));
    check_eq!(t, t.env.finish(handles[0]), Ok(0));
    Ok(())
}

/// How long the other process waits at its word.
const STRANGER_NS: u64 = 30_000_000;

/// The other process: parks at the address of the same word in its own memory, and tells how that
/// ended.
pub fn stranger(env: &'static Env) -> Result<(), Error> {
    let space = env.cap("park", park_space::INTERFACE_ID)?;
    let tester = env.cap("stranger", plain_schema::plain::INTERFACE_ID)?;
    // Asked to begin; the tester wakes waiters at the address meanwhile.
    let _ = env.io.run_plain(call(tester, PLAIN, 1, 0))?;
    let parked = park(&env.io, space, &WORD, 0, STRANGER_NS)?;
    let _ =
        env.io.run_plain(call(tester, PLAIN, if parked == Parked::TimedOut { 2 } else { 3 }, 0))?;
    Ok(())
}

pub fn other_process(t: &mut Test<'_>) -> Outcome {
    let io = t.env.io();
    let endpoint = require_ok!(t, t.env.env.cap("requests", schema::endpoint::INTERFACE_ID));
    let recv = Sqe { opcode: Opcode::Recv as u8, cap: endpoint.to_bits(), ..Sqe::default() };
    let answer = |token| Sqe { opcode: Opcode::Return as u8, arg: token, ..Sqe::default() };
    let begin = require_ok!(t, io.run(recv, &[], &mut [0; 16]));
    require_eq!(t, (status_of(&begin), begin.method), (Status::Ok, 1));
    check_eq!(t, io.run_plain(answer(begin.token)), Ok((Status::Ok, 0)));
    let told = require_ok!(t, io.submit(recv, &[]));
    let mut woken = 0;
    while !io.is_done(&told) {
        woken += unpark(io, t.env.park, &WORD, u32::MAX).unwrap_or(1000);
    }
    let told = io.wait(told, &mut [0; 16]);
    check_eq!(t, io.run_plain(answer(told.token)), Ok((Status::Ok, 0)));
    check_eq!(t, woken, 0);
    check!(t, told.method == 2, "the other process was woken through its own word");
    Ok(())
}

const ROUNDS: u32 = 2_000;
static TURN: AtomicU32 = AtomicU32::new(0);

/// Waits for odd numbers and makes them even.
fn even(child: &Child) -> i64 {
    for round in 0..ROUNDS {
        while TURN.load(Ordering::Acquire) != 2 * round + 1 {
            let seen = 2 * round;
            match park(&child.io, space(), &TURN, seen, NEVER) {
                Ok(Parked::Woken | Parked::Mismatch) => {}
                _ => return 1,
            }
        }
        TURN.store(2 * round + 2, Ordering::Release);
        if unpark(&child.io, space(), &TURN, 1).is_err() {
            return 2;
        }
    }
    0
}

/// Each side changes the word and wakes, then waits for the other's change. A wake that is lost
/// between compare and wait would end it here.
pub fn no_lost_wake(t: &mut Test<'_>) -> Outcome {
    SPACE.store(t.env.park.to_bits(), Ordering::Relaxed);
    TURN.store(0, Ordering::Relaxed);
    let handle = require_ok!(t, t.env.spawn(0, even, 0));
    let io = t.env.io();
    for round in 0..ROUNDS {
        TURN.store(2 * round + 1, Ordering::Release);
        require_ok!(t, unpark(io, t.env.park, &TURN, 1));
        while TURN.load(Ordering::Acquire) != 2 * round + 2 {
            require_ok!(t, park(io, t.env.park, &TURN, 2 * round + 1, NEVER));
        }
    }
    check_eq!(t, t.env.finish(handle), Ok(0));
    Ok(())
}
