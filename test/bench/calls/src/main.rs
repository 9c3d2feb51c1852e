//! Calls between CPUs: how many are handed over, and how many there are in a second.
//!
//! Clients are threads that have spread over the CPUs by the time they begin; servers are processes that wait
//! where they last ran. Pairs: half as many clients as there are CPUs, each with a server of its own.
//! Fan-in: a client for each CPU but one, and one server for all of them.
//!
//! For the deterministic lane. There the emulator runs one CPU after the other, and time passes with each
//! instruction of any of them: what passes for a call is the sum over CPUs, and a CPU that is idle adds nothing. A
//! machine whose CPUs run at once makes as many times the calls as CPUs are busy: one for each pair.
#![no_std]
#![no_main]

use abi_types::{CapSlot, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::{Env, Error, now_ns};
use core::sync::atomic::{AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_bare::program::{Program, Sibling, work};
use test_bare::raw::Child;
use test_kit::{Outcome, Suite, T, Test, require_eq, require_ok, require_some};

capos_rt::main!(main);

/// Calls that each client makes: enough that the first few, which find their server elsewhere, do not matter.
const CALLS: u64 = 10_000;
/// Clients at most: one for each of eight CPUs but one.
const CLIENTS: usize = 8;
/// Until then the clients have spread: some slices.
const SPREAD_NS: u64 = 400_000_000;
/// Before they begin, what CPUs have counted is read.
const LOOK_NS: u64 = 2_000_000;

static SIBLINGS: [Sibling; CLIENTS] = [const { Sibling::new() }; CLIENTS];
/// When clients begin.
static FROM_NS: AtomicU64 = AtomicU64::new(0);
/// When each began and ended.
static BEGAN_NS: [AtomicU64; CLIENTS] = [const { AtomicU64::new(0) }; CLIENTS];
static ENDED_NS: [AtomicU64; CLIENTS] = [const { AtomicU64::new(0) }; CLIENTS];
/// What each calls, as bits.
static TARGETS: [AtomicU64; CLIENTS] = [const { AtomicU64::new(0) }; CLIENTS];

const SUITE: Suite<Program> =
    Suite::new(&[Test::new("calls.pairs", pairs), Test::new("calls.fan_in", fan_in)]);

fn main(env: &'static Env) -> Result<(), Error> {
    let mut program = Program::new(env, &SIBLINGS)?;
    test_user::run_with(env, &SUITE, &mut program)
}

/// Computes until it is time, then calls; how many calls were not answered.
fn client(child: &Child) -> i64 {
    let number = child.argument as usize;
    while now_ns() < FROM_NS.load(Ordering::Relaxed) {
        work(1_000);
        // The emulator goes on with the next CPU.
        core::hint::spin_loop();
    }
    let target = CapSlot::from_bits(TARGETS[number].load(Ordering::Relaxed));
    let mut words = [0; 16];
    let mut wrong = 0;
    BEGAN_NS[number].store(now_ns(), Ordering::Relaxed);
    for _ in 0..CALLS {
        let answered = child.io.run(call(target, PLAIN, 0, 64), &[number as u64; 8], &mut words);
        let is_right = answered.is_ok_and(|cqe| status_of(&cqe) == Status::Ok);
        wrong += i64::from(!is_right || words[7] != number as u64);
    }
    ENDED_NS[number].store(now_ns(), Ordering::Relaxed);
    wrong
}

/// What all CPUs have counted.
#[derive(Clone, Copy, Default)]
struct Counted {
    taken: u64,
    missed: u64,
}

fn counted(program: &Program) -> Counted {
    let all = (0..program.cpus()).filter_map(|cpu| program.counters(cpu));
    all.fold(Counted::default(), |sum, cpu| Counted {
        taken: sum.taken + cpu.handoffs_taken,
        missed: sum.missed + cpu.handoffs_missed,
    })
}

fn pairs(t: &mut T<'_, Program>) -> Outcome {
    let count = t.env.cpus() as usize / 2;
    measure(t, count, |number| number)
}

fn fan_in(t: &mut T<'_, Program>) -> Outcome {
    let count = t.env.cpus() as usize - 1;
    measure(t, count, |_| 0)
}

fn measure(t: &mut T<'_, Program>, count: usize, server: fn(usize) -> usize) -> Outcome {
    const SERVERS: [&str; 4] = ["echo0", "echo1", "echo2", "echo3"];
    FROM_NS.store(now_ns() + SPREAD_NS, Ordering::Relaxed);
    let mut handles = [CapSlot::NONE; CLIENTS];
    for (number, handle) in handles.iter_mut().enumerate().take(count) {
        let name = require_some!(t, SERVERS.get(server(number)));
        let target = require_ok!(t, t.env.env.cap(name, plain_schema::plain::INTERFACE_ID));
        TARGETS[number].store(target.to_bits(), Ordering::Relaxed);
        *handle = require_ok!(t, t.env.spawn(number, client, number as u64));
    }
    t.env.sleep(FROM_NS.load(Ordering::Relaxed).saturating_sub(now_ns() + LOOK_NS));
    let before = counted(t.env);
    for handle in handles.iter().take(count) {
        require_eq!(t, t.env.finish(*handle), Ok(0));
    }
    let after = counted(t.env);
    let times = |all: &[AtomicU64; CLIENTS]| {
        let mut times = [0; CLIENTS];
        for (time, seen) in times.iter_mut().zip(all) {
            *time = seen.load(Ordering::Relaxed);
        }
        times
    };
    let began = times(&BEGAN_NS).into_iter().take(count).min().unwrap_or(0);
    let ended = times(&ENDED_NS).into_iter().take(count).max().unwrap_or(0);
    let all = CALLS * count as u64;
    let took_ns = (ended - began).max(1);
    t.metric("calls", all, "");
    t.metric("handed over", after.taken - before.taken, "calls and answers");
    t.metric("missed", after.missed - before.missed, "calls and answers");
    t.metric("time of a call, sum over CPUs", took_ns / all, "ns");
    t.metric("calls in a second of CPU time", all * 1_000_000_000 / took_ns, "");
    Ok(())
}
