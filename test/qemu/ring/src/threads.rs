//! What needs a second thread, or a wait at an address.

use abi_types::{NEVER, Status};
use capos_rt::Env;
use capos_rt::park;
use core::sync::atomic::{AtomicU32, Ordering};
use test_kit::{Outcome, T, check_eq, require_ok};
use test_ring::{borrow, raw, sqe};

use crate::Bench;

capos_rt::stacks! {
    static STACK: [16384; 1];
}
static WORD: AtomicU32 = AtomicU32::new(0);

/// A thread that stays until the word is not 0.
fn stay(env: &Env) -> i64 {
    let Ok(space) = env.cap("park", schema::park_space::INTERFACE_ID) else { return -1 };
    while WORD.load(Ordering::Acquire) == 0 {
        if park::park(&env.io, space, &WORD, 0, NEVER).is_err() {
            return -2;
        }
    }
    17
}

pub fn cancel_join(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, threads, park: space, .. } = *t.env;
    WORD.store(0, Ordering::Release);
    let thread = require_ok!(t, threads.spawn(&env.io, &STACK[0], stay, 0));
    let handle = thread.handle();
    raw(t, &env.io, |ring| {
        for _ in 0..3 {
            ring.push(sqe::named(sqe::call_handle(handle, 0, 0, 0), 1));
            ring.push(sqe::named(sqe::cancel(1), 2));
            ring.dispatch();
            ring.expect(1, Status::Cancelled, "a join");
            ring.expect(2, Status::Ok, "its cancel");
        }
    })?;
    WORD.store(1, Ordering::Release);
    require_ok!(t, park::unpark(&env.io, space, &WORD, 1));
    // A join that was cancelled took nothing.
    check_eq!(t, require_ok!(t, thread.join(&env.io)), 17);
    Ok(())
}

/// A thread waits at one place at a time; being refused a second changes nothing about the first.
pub fn one_park(t: &mut T<'_, Bench>) -> Outcome {
    static FIRST: AtomicU32 = AtomicU32::new(1);
    static SECOND: AtomicU32 = AtomicU32::new(2);
    let Bench { env, park: space, .. } = *t.env;
    let first = FIRST.as_ptr().expose_provenance() as u64;
    let second = SECOND.as_ptr().expose_provenance() as u64;
    raw(t, &env.io, |ring| {
        for round in 0..4 {
            ring.push(sqe::named(sqe::park(space, first, 1, NEVER), 1));
            ring.push(sqe::named(sqe::park(space, second, 2, NEVER), 2));
            ring.dispatch();
            ring.expect(2, Status::Overloaded, "a second park");
            ring.push(sqe::named(sqe::park(space, second, 3, NEVER), 3));
            let odd = ring.wait();
            ring.eq(odd.cqe.user_data, 3, "a park that would not wait");
            if round % 2 == 0 {
                ring.push(sqe::named(sqe::unpark(space, first, 5), 4));
                ring.expect(1, Status::Woken, "the first park");
                let unpark = ring.expect(4, Status::Ok, "unpark");
                ring.eq(unpark.cqe.length, 1, "how many it woke");
            } else {
                ring.push(sqe::named(sqe::cancel(1), 4));
                ring.expect(1, Status::Cancelled, "the first park");
                ring.expect(4, Status::Ok, "its cancel");
            }
        }
    })
}

/// Calls the endpoint of its own process; the exit code is what was wrong.
fn caller(env: &Env) -> i64 {
    let Ok(first) = env.cap("first", test_ring::plain::INTERFACE_ID) else { return -1 };
    let log = borrow(&env.io, |ring| {
        for number in 0..20 {
            ring.put(0, &[number]);
            // The same names the server uses in its own ring.
            ring.push(sqe::named(sqe::call(first, 0, 0, 8), 1));
            let answer = ring.expect(1, Status::Ok, "the call");
            ring.eq(answer.words[0], number + 1, "the answer");
        }
    });
    log.failures() as i64
}

pub fn completes_at_submitter(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, threads, own, .. } = *t.env;
    let thread = require_ok!(t, threads.spawn(&env.io, &STACK[0], caller, 0));
    raw(t, &env.io, |ring| {
        for number in 0..20 {
            ring.push(sqe::named(sqe::recv(own), 1));
            let call = ring.expect(1, Status::Ok, "a call");
            ring.eq(call.words[0], number, "the number");
            ring.put(0, &[number + 1]);
            ring.ends(sqe::named(sqe::answer(call.cqe.token, 0, 8), 1), Status::Ok, "RETURN");
        }
    })?;
    check_eq!(t, require_ok!(t, thread.join(&env.io)), 0);
    Ok(())
}
