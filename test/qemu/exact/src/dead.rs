//! What a dead thread leaves behind: nothing that counts, and nobody who takes its mail.

use abi_types::{CapSlot, NEVER, Opcode, RingBlock, Sqe, SqeFlags, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::now_ns;
use capos_rt::park::{park, unpark};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::timer;
use schema::timer::SleepParams;
use test_bare::program::{Program, work};
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_ok};
use test_wild::at;

use crate::SIBLINGS;
use crate::peer::{ECHO, END, SECRET};

type Test<'a> = T<'a, Program>;

const HOUR_NS: u64 = 3_600_000_000_000;
/// The most sleeps the process may have pending: its profile's default.
const SLEEPS: u32 = 16;
/// More than the machine has timers for (4,096) if none came back.
const DEAD: u32 = 280;

static TIMER: AtomicU64 = AtomicU64::new(0);
static PARK: AtomicU64 = AtomicU64::new(0);
static ENDPOINT: AtomicU64 = AtomicU64::new(0);
static FACET: AtomicU64 = AtomicU64::new(0);

fn slot(of: &AtomicU64) -> CapSlot {
    CapSlot::from_bits(of.load(Ordering::Relaxed))
}

/// Begins as many sleeps as the process may have, and ends; how many could not begin.
fn sleep_and_end(child: &Child) -> i64 {
    let mut pending = [const { None }; SLEEPS as usize];
    for place in &mut pending {
        let begun =
            child.io.start::<timer::methods::Sleep>(slot(&TIMER), &SleepParams { ns: HOUR_NS });
        *place = begun.ok();
    }
    child.io.flush();
    // One that is over by now was refused.
    pending.iter().filter(|p| p.as_ref().is_none_or(|p| child.io.is_done(p))).count() as i64
}

/// A thread's sleeps end with it: they count no more for its process, and their timers are free.
pub fn sleeps_of_the_dead(t: &mut Test<'_>) -> Outcome {
    TIMER.store(t.env.timer.to_bits(), Ordering::Relaxed);
    for round in 0..DEAD {
        let handle = require_ok!(t, t.env.spawn(0, sleep_and_end, 0));
        let refused = require_ok!(t, t.env.finish(handle));
        check!(t, refused == 0, "thread {round}: {refused} of {SLEEPS} sleeps were refused");
        if refused != 0 {
            break;
        }
    }
    // All of them again, by a thread that lives.
    let mut pending = [const { None }; SLEEPS as usize - 1];
    for place in &mut pending {
        let params = SleepParams { ns: 1_000 };
        *place = t.env.io().start::<timer::methods::Sleep>(t.env.timer, &params).ok();
    }
    for sleep in pending {
        let Some(sleep) = sleep else { return t.fail(format_args!("a sleep could not begin")) };
        check_eq!(t, status_of(&t.env.io().wait(sleep, &mut [0; 16])), Status::Ok);
    }
    Ok(())
}

/// A thread's ring as it is when the thread begins: the words that are a secret's.
fn count_secrets(child: &Child) -> i64 {
    let from = SIBLINGS[child.argument as usize].registers().low[2];
    let bytes = RingBlock::new(64).map_or(0, |block| block.size() as u64);
    (from..from + bytes).step_by(8).filter(|&word| at::read64(word) == SECRET).count() as i64
}

/// A process ends whose rings are full of a secret; threads that are made then find nothing of it in
/// theirs.
pub fn new_ring_is_zero(t: &mut Test<'_>) -> Outcome {
    let facet = require_ok!(t, t.env.env.cap("secret", plain_schema::plain::INTERFACE_ID));
    let mut words = [0; 16];
    for _ in 0..1000 {
        let cqe = require_ok!(t, t.env.io().run(call(facet, PLAIN, ECHO, 0), &[], &mut words));
        check_eq!(t, status_of(&cqe), Status::Ok);
        if words[0] == SIBLINGS.len() as u64 {
            break;
        }
        t.env.sleep(100_000);
    }
    check_eq!(t, words[0], SIBLINGS.len() as u64);
    let before = t.env.free_frames();
    let end = require_ok!(t, t.env.io().run(call(facet, PLAIN, END, 0), &[], &mut words));
    check_eq!(t, status_of(&end), Status::Disconnected);
    t.env.sleep(2_000_000);
    check!(
        t,
        t.env.free_frames() > before + 9 * SIBLINGS.len() as u64,
        "the secret's memory is not free"
    );
    let mut handles = [CapSlot::NONE; SIBLINGS.len()];
    for (number, handle) in handles.iter_mut().enumerate() {
        *handle = require_ok!(t, t.env.spawn(number, count_secrets, number as u64));
    }
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    Ok(())
}

/// How long before the end of its slice each process begins to make threads; one takes some 20,000 ns.
const LEADS_NS: [(&str, u64); 6] = [
    ("maker0", 4_000),
    ("maker1", 9_000),
    ("maker2", 14_000),
    ("maker3", 19_000),
    ("maker4", 24_000),
    ("maker5", 29_000),
];

/// A process ends while a thread of it makes another: that one ends too, and the process with it.
pub fn thread_made_in_the_end(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() > 1 {
        return t.skip("one CPU, so that the process ends in the middle");
    }
    for (name, lead_ns) in LEADS_NS {
        let facet = require_ok!(t, t.env.env.cap(name, plain_schema::plain::INTERFACE_ID));
        let making = require_ok!(t, t.env.io().submit(call(facet, PLAIN, ECHO, 8), &[lead_ns]));
        let last = Sqe { arg: now_ns() + 10 * SLICE_NS, ..call(facet, PLAIN, ECHO, 8) };
        let cqe = require_ok!(t, t.env.io().run(last, &[0], &mut [0; 16]));
        let status = status_of(&cqe);
        check!(t, status == Status::Disconnected, "{name}: {status:?}");
        if status == Status::Disconnected {
            check_eq!(t, status_of(&t.env.io().wait(making, &mut [0; 16])), Status::Disconnected);
        } else {
            t.env.io().forget(making);
        }
    }
    Ok(())
}

/// The largest message: it is copied in several pieces, and others may run between two of them.
const LARGE_BYTES: u32 = 65_536;
static ANSWER: [AtomicU64; 8192] = [const { AtomicU64::new(0x5a5a) }; 8192];
static RESULT: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];

/// Where the answer is.
static TURN: AtomicU32 = AtomicU32::new(0);
/// The call was received; the server may answer; it is about to; it has answered.
const RECEIVED: u32 = 1;
const MAY_ANSWER: u32 = 2;
const ANSWERS: u32 = 3;
const ANSWERED: u32 = 4;
/// How long before the end of its slice the server begins to answer.
static LEAD_NS: AtomicU64 = AtomicU64::new(0);
/// How long a thread runs while another waits.
const SLICE_NS: u64 = 10_000_000;

fn address(of: &[AtomicU64; 8192]) -> u64 {
    of.as_ptr().expose_provenance() as u64
}

/// Lets others run until it is that turn.
fn wait_for(child: &Child, turn: u32) {
    while TURN.load(Ordering::Acquire) < turn {
        let _ = child.io.yield_now();
    }
}

/// Receives one call and answers it at length.
fn answer_at_length(child: &Child) -> i64 {
    let recv = Sqe { opcode: Opcode::Recv as u8, cap: slot(&ENDPOINT).to_bits(), ..Sqe::default() };
    let Ok(cqe) = child.io.run(recv, &[], &mut [0; 16]) else { return 1 };
    TURN.store(RECEIVED, Ordering::Release);
    let woken = park(&child.io, slot(&PARK), &TURN, RECEIVED, NEVER);
    // The slice began a moment ago: it ends in the middle of the answer.
    let from = now_ns() + SLICE_NS - LEAD_NS.load(Ordering::Relaxed);
    while now_ns() < from {
        work(8);
    }
    let answer = Sqe {
        opcode: Opcode::Return as u8,
        flags: SqeFlags::BY_ADDRESS,
        arg: cqe.token,
        address: address(&ANSWER),
        length: LARGE_BYTES,
        ..Sqe::default()
    };
    TURN.store(ANSWERS, Ordering::Release);
    let answered = child.io.run_plain(answer);
    TURN.store(ANSWERED, Ordering::Release);
    i64::from(woken.is_err() || answered != Ok((Status::Ok, 0)))
}

/// Calls, and ends as soon as it runs while it is answered.
fn call_and_end(child: &Child) -> i64 {
    let sqe = Sqe {
        flags: SqeFlags::RESULT_BY_ADDRESS,
        result_address: address(&RESULT),
        result_capacity: LARGE_BYTES,
        ..call(slot(&FACET), PLAIN, 0, 0)
    };
    let Ok(pending) = child.io.submit(sqe, &[]) else { return 1 };
    child.io.flush();
    wait_for(child, RECEIVED);
    TURN.store(MAY_ANSWER, Ordering::Release);
    let woken = unpark(&child.io, slot(&PARK), &TURN, 1);
    wait_for(child, ANSWERS);
    child.io.forget(pending);
    i64::from(woken != Ok(1)) * 2
}

/// Has an operation pending where the dead one had its call, and waits for what must not come; whether
/// the answer was halfway is told by `HALFWAY`.
fn be_the_next(child: &Child) -> i64 {
    let params = SleepParams { ns: HOUR_NS };
    let Ok(pending) = child.io.start::<timer::methods::Sleep>(slot(&TIMER), &params) else {
        return 1;
    };
    child.io.flush();
    if TURN.load(Ordering::Acquire) != ANSWERED {
        HALFWAY.fetch_add(1, Ordering::Relaxed);
    }
    let came = child.io.with_ring(|ring| ring.enter(1, 1_000_000)).count();
    let is_done = child.io.is_done(&pending);
    child.io.forget(pending);
    i64::from(came) * 2 + i64::from(is_done) * 4
}

/// Times that the next thread of a record was there before the answer to the one before was given.
static HALFWAY: AtomicU32 = AtomicU32::new(0);
/// The places in the answer, which takes some 40,000 ns, at which the slice ends.
const MOMENTS: u64 = 24;
const STEP_NS: u64 = 2_000;

/// A server is halfway through the answer to a thread that ends meanwhile, and whose record is another
/// thread's by then: that one is told nothing.
pub fn answer_to_the_dead(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() > 1 {
        return t.skip("one CPU, so that threads come in one order");
    }
    let own = require_ok!(t, t.env.env.cap("own", schema::endpoint::INTERFACE_ID));
    ENDPOINT.store(own.to_bits(), Ordering::Relaxed);
    FACET.store(
        require_ok!(t, t.env.env.cap("self", plain_schema::plain::INTERFACE_ID)).to_bits(),
        Ordering::Relaxed,
    );
    TIMER.store(t.env.timer.to_bits(), Ordering::Relaxed);
    PARK.store(t.env.park.to_bits(), Ordering::Relaxed);
    for moment in 0..MOMENTS {
        TURN.store(0, Ordering::Release);
        LEAD_NS.store(moment * STEP_NS, Ordering::Relaxed);
        let server = require_ok!(t, t.env.spawn(0, answer_at_length, 0));
        let caller = require_ok!(t, t.env.spawn(1, call_and_end, 0));
        // This thread is there when the server's slice ends, and goes before it.
        t.env.until_exited(caller);
        check_eq!(t, t.env.finish(caller), Ok(0));
        // In the record that was the caller's.
        let next = require_ok!(t, t.env.spawn(2, be_the_next, 0));
        check_eq!(t, t.env.finish(next), Ok(0));
        check_eq!(t, t.env.finish(server), Ok(0));
    }
    let halfway = HALFWAY.load(Ordering::Relaxed);
    t.metric("answers that were halfway", halfway.into(), "");
    check!(t, halfway > 0, "no answer was halfway when the record was used again");
    Ok(())
}
