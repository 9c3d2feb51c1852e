//! Vector registers of two threads that take turns on one CPU: there and back, again and again.

use abi_types::{CapSlot, Opcode, Sqe, SqeFlags, Status};
use capos_rt::Io;
use capos_rt::caller::call;
use capos_rt::io::status_of;
use core::sync::atomic::{AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_bare::program::Program;
use test_bare::raw::Child;
use test_bare::vectors;
use test_kit::{Outcome, T, check_eq, require_ok};

type Test<'a> = T<'a, Program>;

const ROUNDS: u64 = 50;
static ENDPOINT: AtomicU64 = AtomicU64::new(0);

/// Submits, and enters with a pattern in the registers: its completion, and how many words are wrong.
fn run_with_pattern(io: &Io, sqe: Sqe, seed: u64) -> Option<(abi_types::Cqe, u32)> {
    let pending = io.submit(sqe, &[]).ok()?;
    let wrong = vectors::hold_in_a_wait(seed, vectors::has_avx());
    Some((io.wait(pending, &mut [0; 16]), wrong))
}

/// Answers calls, each with a pattern of its own while it waits for the next one; how many words were
/// wrong.
fn answer(child: &Child) -> i64 {
    let cap = ENDPOINT.load(Ordering::Relaxed);
    let mut next = Sqe { opcode: Opcode::Recv as u8, cap, ..Sqe::default() };
    let mut wrong = 0;
    for round in 0..=ROUNDS {
        let Some((cqe, words)) = run_with_pattern(&child.io, next, 2 * round + 1) else {
            return -1;
        };
        if status_of(&cqe) != Status::Ok {
            return -2;
        }
        wrong += i64::from(words);
        let answer = Opcode::Return as u8;
        next = Sqe { opcode: answer, arg: cqe.token, ..Sqe::default() };
        if round < ROUNDS {
            next = Sqe { flags: SqeFlags::THEN_RECV, cap, ..next };
        }
    }
    match child.io.run_plain(next) {
        Ok((Status::Ok, _)) => wrong,
        _ => -3,
    }
}

pub fn through_a_call(t: &mut Test<'_>) -> Outcome {
    let own = require_ok!(t, t.env.env.cap("own", schema::endpoint::INTERFACE_ID));
    let facet = require_ok!(t, t.env.env.cap("self", plain_schema::plain::INTERFACE_ID));
    ENDPOINT.store(own.to_bits(), Ordering::Relaxed);
    let handle = require_ok!(t, t.env.spawn(0, answer, 0));
    for round in 0..=ROUNDS {
        let done = run_with_pattern(t.env.io(), call(facet, PLAIN, 0, 0), 2 * round + 2);
        let (cqe, wrong) = test_kit::require_some!(t, done);
        check_eq!(t, (status_of(&cqe), wrong), (Status::Ok, 0));
    }
    check_eq!(t, t.env.finish(handle), Ok(0));
    Ok(())
}

/// Yields with a pattern in the registers.
fn yield_often(io: &Io, seed: u64) -> i64 {
    let sqe = Sqe { opcode: Opcode::Yield as u8, ..Sqe::default() };
    let mut wrong = 0;
    for round in 0..ROUNDS {
        match run_with_pattern(io, sqe, seed + 3 * round) {
            Some((_, words)) => wrong += i64::from(words),
            None => return -1,
        }
    }
    wrong
}

pub fn through_a_yield(t: &mut Test<'_>) -> Outcome {
    let mut handles = [CapSlot::NONE; 2];
    for (number, handle) in handles.iter_mut().enumerate() {
        let yielding = |child: &Child| yield_often(&child.io, child.argument);
        *handle = require_ok!(t, t.env.spawn(number, yielding, number as u64));
    }
    check_eq!(t, yield_often(t.env.io(), 2), 0);
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    Ok(())
}
