//! Attacks of a size: what the observer sees of one must not depend on how much there is to end, to close or to free.
//!
//! One thread does each; what it prepares beforehand waits and does not run.

use abi_types::{NEVER, Opcode, Sqe};
use capos_rt::caller::call;
use capos_rt::exit;
use capos_rt::park::park;
use capos_rt::ring::NOP;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use schema::console::WriteParams;
use schema::memory_capnp::MemoryAccess;
use schema::virtual_memory;
use schema_wire::Encode;
use test_bare::raw::{Child, Raw, Run};
use zerocopy::IntoBytes;

use crate::{Attacker, OWN, PARK, compute, drain, raw, slot};

const PAGE: u64 = 4096;

/// Stacks for as many threads as an attack makes at most.
pub static STACKS: [Raw<8192>; 120] = [const { Raw::new() }; 120];
static WORD: AtomicU32 = AtomicU32::new(0);

pub fn park_for_good(child: &Child) -> i64 {
    let _ = park(&child.io, slot(&PARK), &WORD, 0, NEVER);
    0
}

/// Makes at most `count` threads that wait for good; how many there are.
pub fn crowd(attacker: &Attacker, count: u64) -> u64 {
    let mut made = 0;
    for stack in STACKS.iter().take(count as usize) {
        let run = Run { main: park_for_good, argument: 0, fs_base: 0 };
        if stack.start(attacker.io(), attacker.by, run).is_err() {
            break;
        }
        made += 1;
    }
    // Each has come to its wait.
    for _ in 0..3 {
        let _ = attacker.io().yield_now();
    }
    made
}

fn map(attacker: &Attacker, pages: u64) -> Option<u64> {
    let mut memory = virtual_memory::Client::new(attacker.io().caller(), attacker.memory);
    memory.map(0, pages * PAGE, MemoryAccess::Write, false).ok().map(|mapped| mapped.mapped)
}

/// Pages to be there when the process ends; how many.
pub fn hold(attacker: &Attacker, pages: u64) -> u64 {
    if map(attacker, pages).is_some() { pages } else { 0 }
}

/// Maps and unmaps.
pub fn free(attacker: &Attacker, pages: u64) -> u64 {
    let Some(start) = map(attacker, pages) else { return 0 };
    let mut memory = virtual_memory::Client::new(attacker.io().caller(), attacker.memory);
    u64::from(memory.unmap(start, pages * PAGE).is_ok())
}

pub fn leave(_: &Attacker) -> u64 {
    exit(0)
}

/// Receives in a ring, which wait.
fn begin_receives(ring: &mut capos_rt::Ring, endpoint: u64, count: u64) {
    for number in 0..count {
        let recv = Sqe { opcode: Opcode::Recv as u8, cap: endpoint, ..NOP };
        let _ = ring.push(Sqe { user_data: raw(number), ..recv });
    }
    let _ = ring.enter(0, 0);
}

/// How many receives wait at the endpoint that is to be closed.
static RECEIVES: AtomicU64 = AtomicU64::new(0);

pub fn receive(attacker: &Attacker, count: u64) -> u64 {
    attacker.io().with_ring(|ring| begin_receives(ring, attacker.own.to_bits(), count));
    RECEIVES.store(count, Ordering::Relaxed);
    count
}

/// Closes the endpoint, and computes to the end; how many receives have heard of it.
pub fn shut(attacker: &Attacker) -> u64 {
    let ended = attacker.io().with_ring(|ring| {
        let cap = attacker.own.to_bits();
        let _ = ring.push(Sqe { opcode: Opcode::Release as u8, cap, user_data: raw(99), ..NOP });
        let all = RECEIVES.load(Ordering::Relaxed) + 1;
        let _ = ring.enter(all as u32, NEVER);
        drain(ring)
    });
    compute();
    ended
}

/// Console writes of 64 newlines.
pub fn flood(attacker: &Attacker, count: u64) -> u64 {
    attacker.io().with_ring(|ring| {
        let mut words = [0_u64; 16];
        let length = WriteParams { bytes: &[b'\n'; 64] }.encode(words.as_mut_bytes()).unwrap_or(0);
        ring.write_inline(0, &words[..length.div_ceil(8)]);
        for number in 0..count {
            let write = call(attacker.console, schema::console::INTERFACE_TAG, 0, length as u32);
            let _ = ring.push(Sqe { user_data: raw(number), ..write });
        }
        let _ = ring.enter(count as u32, NEVER);
        drain(ring)
    })
}

fn end_with_receives(child: &Child) -> i64 {
    child.io.with_ring(|ring| begin_receives(ring, slot(&OWN).to_bits(), child.argument));
    0
}

/// A sibling ends with so many receives pending.
pub fn exits(attacker: &Attacker, count: u64) -> u64 {
    let run = Run { main: end_with_receives, argument: count, fs_base: 0 };
    let Ok(handle) = STACKS[0].start(attacker.io(), attacker.by, run) else { return 0 };
    let joined = schema::thread_handle::Client::new(attacker.io().caller(), handle).join();
    let _ = attacker.io().release(handle);
    u64::from(joined.is_ok())
}
