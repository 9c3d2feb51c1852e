//! A client: calls the counting service as fast as it answers, tells once a second how far it
//! got, and ends when a key is pressed.
#![no_std]
#![no_main]

use abi_types::CapSlot;
use capos_rt::{Env, Error, Pending, now_ns, println};
use demo_schema::counter;
use schema::{console, system_info};

capos_rt::main!(main);

/// How long to call between two reports.
const REPORT_NS: u64 = 1_000_000_000;
/// Calls between two looks at clock and keyboard.
const BATCH: u64 = 64;

fn main(env: &Env) -> Result<(), Error> {
    let counter = env.cap("counter", counter::INTERFACE_ID)?;
    let info = env.cap("info", system_info::INTERFACE_ID)?;
    let key = listen(env)?;
    println!(env, "client: calling; press a key to end");

    let mut counter = counter::Client::new(env.io.caller(), counter);
    let mut reported = 0;
    loop {
        let report_at_ns = now_ns() + REPORT_NS;
        let mut total = 0;
        while now_ns() < report_at_ns && !env.io.is_done(&key) {
            for _ in 0..BATCH {
                total = counter.add(1)?.total;
            }
        }
        if env.io.is_done(&key) {
            break;
        }
        println!(env, "client: {total} calls, {} in the last second", total - reported);
        reported = total;
        report_cpus(env, info)?;
    }
    env.io.forget(key);
    println!(env, "client: done");
    Ok(())
}

/// Asks the console for a key without waiting for it: the completion comes while others do.
fn listen(env: &Env) -> Result<Pending, Error> {
    let console = env.cap("console", console::INTERFACE_ID)?;
    let params = console::ReadParams { capacity: 1 };
    Ok(env.io.start::<console::methods::Read>(console, &params)?)
}

/// What each CPU did so far.
fn report_cpus(env: &Env, info: CapSlot) -> Result<(), Error> {
    // The counters of a CPU are more than an inline slot holds.
    let mut info = system_info::Client::new(env.io.large(), info);
    for cpu in 0..info.machine()?.machine.cpus {
        let counters = info.cpu(cpu)?.counters;
        println!(
            env,
            "  cpu {cpu}: {} syscalls, {} switches, {} calls handed over, {} steals",
            counters.syscalls,
            counters.switches,
            counters.handoffs_taken,
            counters.steals
        );
    }
    Ok(())
}
