//! Threads of one process, and how they wait for each other.

use core::sync::atomic::{AtomicU32, Ordering};

use abi_types::{NEVER, Status};
use capos_rt::park::{Parked, park, unpark};
use capos_rt::thread::Threads;
use capos_rt::{Env as ThreadEnv, Error};
use schema::{park_space, timer};
use test_kit::{Outcome, T, check, check_eq, require_ok};
use test_user::Env;

const STACK_BYTES: usize = 32768;

capos_rt::stacks! {
    static STACKS: [STACK_BYTES; 4];
}

/// What each thread saw of itself.
static TIDS: [AtomicU32; 4] = [const { AtomicU32::new(u32::MAX) }; 4];

pub fn many(t: &mut T<'_, Env>) -> Outcome {
    let threads = require_ok!(t, Threads::of(&t.env.caps));
    for round in 0..8 {
        let mut running = [const { None }; 4];
        for (index, place) in running.iter_mut().enumerate() {
            let argument = round * 4 + index as u64;
            let thread = threads.spawn(&t.env.io, &STACKS[index], work, argument);
            *place = Some(require_ok!(t, thread));
        }
        for (index, thread) in running.into_iter().enumerate() {
            let code = thread.map(|thread| thread.join(&t.env.io));
            check_eq!(t, code, Some(Ok(round as i64 * 4 + index as i64 - 100)));
        }
        for (index, tid) in TIDS.iter().enumerate() {
            let tid = tid.load(Ordering::Relaxed);
            let others = TIDS.iter().skip(index + 1).map(|other| other.load(Ordering::Relaxed));
            check!(t, tid != t.env.tid.0 && others.into_iter().all(|other| other != tid));
        }
    }
    Ok(())
}

/// Calls through its own ring, then says who it was.
fn work(env: &ThreadEnv) -> i64 {
    let index = env.argument as usize % 4;
    TIDS[index].store(env.tid.0, Ordering::Relaxed);
    let slept = env
        .cap("timer", timer::INTERFACE_ID)
        .map_err(Error::from)
        .and_then(|slot| Ok(timer::Client::new(env.io.caller(), slot).sleep(10_000)?));
    if slept.is_ok() { env.argument as i64 - 100 } else { i64::MIN }
}

pub fn stack_of_one_thread(t: &mut T<'_, Env>) -> Outcome {
    let threads = require_ok!(t, Threads::of(&t.env.caps));
    let first = require_ok!(t, threads.spawn(&t.env.io, &STACKS[0], work, 0));
    let second = threads.spawn(&t.env.io, &STACKS[0], work, 0).map(|_| ());
    check_eq!(t, second, Err(Error::Status(Status::Overloaded)));
    check_eq!(t, first.join(&t.env.io), Ok(-100));
    let again = require_ok!(t, threads.spawn(&t.env.io, &STACKS[0], work, 0));
    check_eq!(t, again.join(&t.env.io), Ok(-100));
    Ok(())
}

static TURN: AtomicU32 = AtomicU32::new(0);
const TURNS: u32 = 200;

pub fn park_and_unpark(t: &mut T<'_, Env>) -> Outcome {
    let threads = require_ok!(t, Threads::of(&t.env.caps));
    let other = require_ok!(t, threads.spawn(&t.env.io, &STACKS[1], take_odd_turns, 0));
    check_eq!(t, take_turns(t.env, 0), Ok(TURNS));
    check_eq!(t, other.join(&t.env.io), Ok(i64::from(TURNS + 1)));
    Ok(())
}

fn take_odd_turns(env: &ThreadEnv) -> i64 {
    take_turns(env, 1).map_or(-1, i64::from)
}

/// Takes every second turn, from `mine` on, and waits for the other's; the turn it ends with.
fn take_turns(env: &ThreadEnv, mut mine: u32) -> Result<u32, Error> {
    let space = env.cap("park", park_space::INTERFACE_ID)?;
    while mine < TURNS {
        loop {
            let turn = TURN.load(Ordering::Acquire);
            if turn == mine {
                break;
            }
            park(&env.io, space, &TURN, turn, NEVER)?;
        }
        TURN.store(mine + 1, Ordering::Release);
        unpark(&env.io, space, &TURN, 1)?;
        mine += 2;
    }
    Ok(mine)
}

pub fn park_ends_by_itself(t: &mut T<'_, Env>) -> Outcome {
    let space = require_ok!(t, t.env.cap("park", park_space::INTERFACE_ID));
    let word = AtomicU32::new(7);
    check_eq!(t, park(&t.env.io, space, &word, 8, NEVER), Ok(Parked::Mismatch));
    check_eq!(t, park(&t.env.io, space, &word, 7, 50_000), Ok(Parked::TimedOut));
    check_eq!(t, unpark(&t.env.io, space, &word, 5), Ok(0));
    Ok(())
}
