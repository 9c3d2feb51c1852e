//! One program, many ends by pages without the access that is tried: the name of its first grant says which.
//!
//! The test kernel compares each process's exit code with the one in its name.
#![no_std]
#![no_main]

use capos_rt::{Env, Error};
use schema::memory_capnp::MemoryAccess;
use schema::{timer, virtual_memory};
use test_wild::{at, call};

capos_rt::main!(main);

const FAR: u64 = 0x5000_0000_0000;
const PAGE: u64 = 4096;
/// `ret`, eight times.
const RETURNS: u64 = 0xc3c3_c3c3_c3c3_c3c3;
/// Nothing went wrong where something had to.
const WENT_ON: i64 = 77;

fn main(env: &'static Env) -> Result<i64, Error> {
    let has = |name| {
        !matches!(env.caps.find(name, timer::INTERFACE_ID), Err(capos_rt::NoCap::NotGranted(_)))
    };
    let slot = env.cap("memory", virtual_memory::INTERFACE_ID)?;
    let mut memory = virtual_memory::Client::new(env.io.caller(), slot);
    memory.map(FAR, 3 * PAGE, MemoryAccess::Write, true)?;
    at::write64(FAR + PAGE, RETURNS);
    if has("read-unmapped") {
        memory.unmap(FAR + PAGE, PAGE)?;
        at::write64(FAR, at::read64(FAR + 2 * PAGE));
        at::read64(FAR + PAGE);
    } else if has("write-read-only") {
        memory.protect(FAR + PAGE, PAGE, MemoryAccess::Read)?;
        at::write64(FAR, at::read64(FAR + PAGE));
        at::write64(FAR + PAGE, 1);
    } else if has("write-code") {
        memory.protect(FAR + PAGE, PAGE, MemoryAccess::Execute)?;
        call(FAR + PAGE);
        at::write64(FAR + PAGE, 1);
    } else if has("run-writable") {
        call(FAR + PAGE);
    } else if has("run-read-only") {
        memory.protect(FAR + PAGE, PAGE, MemoryAccess::Read)?;
        call(FAR + PAGE);
    } else if has("read-reserved") {
        memory.unmap(FAR + PAGE, PAGE)?;
        memory.reserve(FAR + PAGE, PAGE, true)?;
        at::read64(FAR + PAGE);
    } else if has("run-then-write") {
        // Written, run, written again, and run while it can be written.
        memory.protect(FAR + PAGE, PAGE, MemoryAccess::Execute)?;
        call(FAR + PAGE);
        memory.protect(FAR + PAGE, PAGE, MemoryAccess::Write)?;
        at::write64(FAR + PAGE, RETURNS);
        call(FAR + PAGE);
    } else {
        // The pages end with the process.
        return Ok(5);
    }
    Ok(WENT_ON)
}
