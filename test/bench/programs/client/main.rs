//! The program that measures: instructions of a raw ring client for each operation.
//!
//! For the deterministic lane, where a tick of the counter is an instruction of the guest. A
//! sample is a batch of one operation between two readings of the counter, without the cost of
//! the readings; reported are the least and the middle of all samples, per operation. What an
//! operation costs is what its thread sees until it has the result: user code on both sides,
//! entries, switches.
//!
//! * [`measure`]: samples and their summary. [`raw`]: operations by hand.
//! * [`ring`]: entries and NOPs. [`ipc`]: calls to another process, [`large`]: with a page. [`park`], [`threads`], [`memory`].
//! * [`timed`]: operations with a deadline.
#![no_std]
#![no_main]

mod ipc;
mod large;
mod measure;
mod memory;
mod park;
mod raw;
mod ring;
mod threads;
mod timed;

use abi_types::CapSlot;
use bench_schema::echo;
use capos_rt::memory::Memory;
use capos_rt::thread::Threads;
use capos_rt::{Env, Error};
use measure::Counter;
use test_kit::{Suite, Test};

capos_rt::main!(main);

/// What the measurements share.
struct Bench {
    env: &'static Env,
    counter: Counter,
    echo: CapSlot,
    typed: CapSlot,
    by_address: CapSlot,
    registered: CapSlot,
    yielder: CapSlot,
    timer: CapSlot,
    park_space: CapSlot,
    threads: Threads,
    memory: Memory,
}

const SUITE: Suite<Bench> = Suite::new(&[
    Test::new("bench.null_entry", ring::null_entry),
    Test::new("bench.ring_nop_1", ring::nop_1),
    Test::new("bench.ring_nop_8", ring::nop_8),
    Test::new("bench.ring_nop_64", ring::nop_64),
    Test::new("bench.ipc_rt_0", ipc::round_trip_0),
    Test::new("bench.ipc_rt_64", ipc::round_trip_64),
    Test::new("bench.ipc_rt_64_typed", ipc::round_trip_64_typed),
    Test::new("bench.ipc_rt_4096_address", large::by_address),
    Test::new("bench.ipc_rt_4096_registered", large::registered),
    Test::new("bench.unpark_none", park::unpark_none),
    Test::new("bench.park_mismatch", park::mismatch),
    Test::new("bench.park_rt", park::round_trip),
    Test::new("bench.park_rt_limit", park::round_trip_with_limit),
    Test::new("bench.sleep_cancel", timed::sleep_cancel),
    Test::new("bench.ipc_rt_deadline", timed::call_with_deadline),
    Test::new("bench.enter_timeout", timed::enter_with_timeout),
    Test::new("bench.yield_thread", threads::yield_thread),
    Test::new("bench.yield_process", threads::yield_process),
    Test::new("bench.map_touch_unmap", memory::map_touch_unmap),
    Test::new("bench.thread_create_join", threads::create_join),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    let mut bench = Bench {
        env,
        counter: Counter::new(),
        echo: env.cap("echo", plain_schema::plain::INTERFACE_ID)?,
        typed: env.cap("typed", echo::INTERFACE_ID)?,
        by_address: env.cap("large", plain_schema::plain::INTERFACE_ID)?,
        registered: env.cap("registered", plain_schema::plain::INTERFACE_ID)?,
        yielder: env.cap("yielder", plain_schema::plain::INTERFACE_ID)?,
        timer: env.cap("timer", schema::timer::INTERFACE_ID)?,
        park_space: env.cap("park", schema::park_space::INTERFACE_ID)?,
        threads: Threads::of(&env.caps)?,
        memory: Memory::of(&env.caps)?,
    };
    test_user::run_with(env, &SUITE, &mut bench)
}
