//! One program, many ways to spend time: the name of its first grant says which.
//!
//! Each process does its work and ends. The last one, `watch`, says how long the CPU was idle until then;
//! what the kernel says about each at its end is compared with the clock by `accounts.rs`.
#![no_std]
#![no_main]

use abi_types::{CapSlot, Opcode, Sqe, SqeFlags, Status};
use capos_rt::caller::call;
use capos_rt::io::{Io, status_of};
use capos_rt::park::{park, unpark};
use capos_rt::{Env, Error, exit, now_ns, println};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::{park_space, system_info, thread_control, thread_spawner, timer};
use test_bare::program::{Sibling, work};
use test_bare::raw::{By, Child, Run};

capos_rt::main!(main);

static SIBLINGS: [Sibling; 3] = [const { Sibling::new() }; 3];

/// How a server is told to end.
const END: u16 = 1;
/// All others have ended by then.
const ALL_OVER_NS: u64 = 900_000_000;

fn main(env: &'static Env) -> Result<(), Error> {
    let has = |name| env.caps.named(name);
    if let Some(requests) = has("serve") {
        return serve(env, requests);
    }
    if let Some(number) = has("mix") {
        return mix(env, number);
    }
    if let Some(number) = has("calls") {
        return make_calls(env, number);
    }
    if has("compute").is_some() {
        compute(60_000_000);
    } else if let Some(timer) = has("sleep") {
        for _ in 0..200 {
            compute(20_000);
            timer::Client::new(env.io.caller(), timer).sleep(150_000)?;
        }
    } else if has("yield").is_some() {
        for _ in 0..2_000 {
            env.io.yield_now()?;
        }
    } else if has("spawner").is_some() {
        leave_siblings(env)?;
    } else {
        watch(env)?;
    }
    Ok(())
}

/// Computes until so much time has passed, whoever had the CPU meanwhile.
fn compute(ns: u64) {
    let until = now_ns() + ns;
    while now_ns() < until {
        work(16);
    }
}

/// Answers until it is told to end.
fn serve(env: &'static Env, requests: CapSlot) -> Result<(), Error> {
    let cap = requests.to_bits();
    let mut words = [0; 16];
    let recv = Sqe { opcode: Opcode::Recv as u8, cap, ..Sqe::default() };
    let mut cqe = env.io.run(recv, &[], &mut words)?;
    while status_of(&cqe) == Status::Ok && cqe.method != END {
        if cqe.badge != 0 && cqe.length == 0 {
            // How many calls are to be made is in the badge of a facet of the caller's.
            words[0] = cqe.badge;
        }
        let sqe = Sqe {
            opcode: Opcode::Return as u8,
            flags: SqeFlags::THEN_RECV,
            cap,
            arg: cqe.token,
            length: 8,
            ..Sqe::default()
        };
        cqe = env.io.run(sqe, &[words[0]], &mut words)?;
    }
    exit(0)
}

/// One call of the server, which says `expected` again.
fn call_once(env: &Env, sqe: Sqe, expected: u64) -> Result<(), Error> {
    let mut words = [0; 16];
    let cqe = env.io.run(sqe, &[expected], &mut words)?;
    if (status_of(&cqe), words[0]) == (Status::Ok, expected) {
        Ok(())
    } else {
        Err(status_of(&cqe).into())
    }
}

/// How many rounds there are: the badge of its facet, which the server tells it.
fn rounds(env: &Env, number: CapSlot) -> Result<u64, Error> {
    let mut words = [0; 16];
    let cqe = env.io.run(call(number, PLAIN, 0, 0), &[], &mut words)?;
    if status_of(&cqe) == Status::Ok { Ok(words[0]) } else { Err(status_of(&cqe).into()) }
}

/// Makes as many calls as the badge of its facet says, and ends the server.
fn make_calls(env: &'static Env, number: CapSlot) -> Result<(), Error> {
    let mut words = [0; 16];
    for expected in 1..=rounds(env, number)? {
        call_once(env, call(number, PLAIN, 0, 8), expected)?;
    }
    let _ = env.io.run(call(number, PLAIN, END, 0), &[], &mut words)?;
    Ok(())
}

/// What is said to the sibling that parks, and its answer; [`STOP`] ends it.
static PING: AtomicU32 = AtomicU32::new(0);
static PONG: AtomicU32 = AtomicU32::new(0);
const STOP: u32 = u32::MAX;

/// The park space, for the sibling.
static PARK: AtomicU64 = AtomicU64::new(0);

/// Parks until `word` has another value than `old`; the new one.
fn await_change(io: &Io, word: &AtomicU32, old: u32) -> u32 {
    let space = CapSlot::from_bits(PARK.load(Ordering::Relaxed));
    loop {
        let now = word.load(Ordering::Acquire);
        if now != old {
            return now;
        }
        if park(io, space, word, old, 1_000_000_000).is_err() {
            exit(2);
        }
    }
}

fn say(io: &Io, word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
    if unpark(io, CapSlot::from_bits(PARK.load(Ordering::Relaxed)), word, 1).is_err() {
        exit(3);
    }
}

fn answer_pings(child: &Child) -> i64 {
    let mut last = 0;
    loop {
        last = await_change(&child.io, &PING, last);
        say(&child.io, &PONG, last);
        if last == STOP {
            return 0;
        }
    }
}

/// Blocks, wakes, hands over, yields, arms timers that fire and timers that are cancelled: as many rounds of it
/// as the badge of its facet says.
fn mix(env: &'static Env, number: CapSlot) -> Result<(), Error> {
    let by = By {
        spawner: env.cap("spawner", thread_spawner::INTERFACE_ID)?,
        control: env.cap("control", thread_control::INTERFACE_ID)?,
    };
    let mut timer = timer::Client::new(env.io.caller(), env.cap("timer", timer::INTERFACE_ID)?);
    PARK.store(env.cap("park", park_space::INTERFACE_ID)?.to_bits(), Ordering::Relaxed);
    let run = Run { main: answer_pings, argument: 0, fs_base: 0 };
    SIBLINGS[0].start(&env.io, by, run)?;
    let mut words = [0; 16];
    for round in 1..=rounds(env, number)? {
        call_once(env, call(number, PLAIN, 0, 8), round)?;
        let deadline = Sqe { arg: now_ns() + 1_000_000_000, ..call(number, PLAIN, 0, 8) };
        call_once(env, deadline, round)?;
        timer.sleep(20_000)?;
        say(&env.io, &PING, round as u32);
        await_change(&env.io, &PONG, round as u32 - 1);
        env.io.yield_now()?;
    }
    say(&env.io, &PING, STOP);
    let _ = env.io.run(call(number, PLAIN, END, 0), &[], &mut words)?;
    Ok(())
}

fn compute_for_ever(_: &Child) -> i64 {
    loop {
        work(100);
    }
}

/// Ends while siblings compute: one runs or has run, others wait in a queue.
fn leave_siblings(env: &'static Env) -> Result<(), Error> {
    let by = By {
        spawner: env.cap("spawner", thread_spawner::INTERFACE_ID)?,
        control: env.cap("control", thread_control::INTERFACE_ID)?,
    };
    for sibling in &SIBLINGS {
        let run = Run { main: compute_for_ever, argument: 0, fs_base: 0 };
        sibling.start(&env.io, by, run)?;
    }
    compute(25_000_000);
    Ok(())
}

/// Waits until all others have ended, and says how long nobody ran.
fn watch(env: &'static Env) -> Result<(), Error> {
    let timer = env.cap("timer", timer::INTERFACE_ID)?;
    let info = env.cap("info", system_info::INTERFACE_ID)?;
    timer::Client::new(env.io.caller(), timer).sleep_until(ALL_OVER_NS)?;
    let idle_ns = system_info::Client::new(env.io.large(), info).cpu(0)?.counters.idle_ns;
    println!(env, "idle for {idle_ns} ns until {} ns", now_ns());
    Ok(())
}
