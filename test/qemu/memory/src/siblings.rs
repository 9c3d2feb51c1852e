//! Threads on other CPUs while pages come and go.
//!
//! A sibling that spins in user mode keeps the address space loaded on its CPU, so that what is taken away has to be
//! flushed there; on one CPU nobody has to, and the same tests run without waiting.

use crate::pointers::{now_to, status};
use crate::{PAGE, Run};
use abi_types::ExceptionKind::Failed;
use abi_types::{CapSlot, Status};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use schema::memory_capnp::MemoryAccess;
use schema::virtual_memory::methods::Unmap;
use schema::virtual_memory::{self, UnmapParams};
use schema_wire::CallError;
use test_bare::program::is_exception;
use test_bare::raw::Child;
use test_kit::{Outcome, check, check_eq, require, require_ok};
use test_wild::at;

const FAR: u64 = 0x5000_0000_0000;

/// Rounds of a race: each takes several thousand instructions.
const ROUNDS: u64 = 200;

static STOP: AtomicBool = AtomicBool::new(false);
/// Odd: the sibling is to read; even: it has.
static TURN: AtomicU64 = AtomicU64::new(0);
static READ: AtomicU64 = AtomicU64::new(0);
static MEMORY: AtomicU64 = AtomicU64::new(0);
static TIMER: AtomicU64 = AtomicU64::new(0);
static GOOD: AtomicU32 = AtomicU32::new(0);
static REFUSED: AtomicU32 = AtomicU32::new(0);
static WRONG: AtomicU32 = AtomicU32::new(0);

fn begin(t: &Run<'_>) {
    STOP.store(false, Ordering::Relaxed);
    TURN.store(0, Ordering::Relaxed);
    for counter in [&GOOD, &REFUSED, &WRONG] {
        counter.store(0, Ordering::Relaxed);
    }
    MEMORY.store(t.env.memory.to_bits(), Ordering::Relaxed);
    TIMER.store(t.env.program.timer.to_bits(), Ordering::Relaxed);
}

/// Lets another thread go on: by waiting for it on several CPUs, by the kernel on one.
fn pause(t: &Run<'_>, cpus: u32) {
    if cpus == 1 {
        t.env.program.yield_now();
    }
    core::hint::spin_loop();
}

/// Reads a word whenever it is asked to, and enters the kernel only if it is alone on its CPU.
fn reader(child: &Child) -> i64 {
    let one_cpu = child.argument == 1;
    while !STOP.load(Ordering::Acquire) {
        let turn = TURN.load(Ordering::Acquire);
        if turn % 2 == 1 {
            READ.store(at::read64(FAR), Ordering::Relaxed);
            TURN.store(turn + 1, Ordering::Release);
        } else if one_cpu {
            let _ = child.io.yield_now();
        }
        core::hint::spin_loop();
    }
    0
}

fn read_by_sibling(t: &Run<'_>, cpus: u32) -> u64 {
    let turn = TURN.load(Ordering::Relaxed);
    TURN.store(turn + 1, Ordering::Release);
    while TURN.load(Ordering::Acquire) != turn + 2 {
        pause(t, cpus);
    }
    READ.load(Ordering::Relaxed)
}

/// Runs a race twice: the first time threads get their rings and the kernel its memory, and the second costs nothing.
pub fn twice(t: &mut Run<'_>, race: fn(&mut Run<'_>) -> Outcome) -> Outcome {
    race(t)?;
    let before = t.env.program.settled_frames();
    race(t)?;
    check_eq!(t, t.env.program.settled_frames(), before);
    Ok(())
}

pub fn stale_translations(t: &mut Run<'_>) -> Outcome {
    twice(t, reads)
}

pub fn storm(t: &mut Run<'_>) -> Outcome {
    twice(t, calls)
}

/// What a change loses, several races lose more than once.
pub fn overlapping(t: &mut Run<'_>) -> Outcome {
    changes(t)?;
    let before = t.env.program.settled_frames();
    for _ in 0..3 {
        changes(t)?;
    }
    check_eq!(t, t.env.program.settled_frames(), before);
    Ok(())
}

/// Once an unmap has completed no CPU reaches the old page: a sibling that has read it reads what is mapped there next.
fn reads(t: &mut Run<'_>) -> Outcome {
    begin(t);
    let cpus = t.env.program.cpus();
    let handle = require_ok!(t, t.env.program.spawn(0, reader, u64::from(cpus)));
    for round in 1..=ROUNDS {
        require_ok!(t, t.env.memory().map(FAR, PAGE, MemoryAccess::Write, true));
        at::write64(FAR, round);
        require!(t, read_by_sibling(t, cpus) == round, "round {round}");
        if round % 3 == 0 {
            // The other way a translation goes out of date.
            require_ok!(t, t.env.memory().protect(FAR, PAGE, MemoryAccess::Read));
            require_ok!(t, t.env.memory().protect(FAR, PAGE, MemoryAccess::Write));
            at::write64(FAR, round + ROUNDS);
            require!(t, read_by_sibling(t, cpus) == round + ROUNDS, "round {round}");
        }
        require_ok!(t, t.env.memory().unmap(FAR, PAGE));
        // Somebody else's memory now.
        require_ok!(t, t.env.memory().map(FAR + PAGE, PAGE, MemoryAccess::Write, true));
        at::write64(FAR + PAGE, u64::MAX);
        require_ok!(t, t.env.memory().unmap(FAR + PAGE, PAGE));
    }
    STOP.store(true, Ordering::Release);
    check_eq!(t, t.env.program.finish(handle), Ok(0));
    Ok(())
}

/// Calls whose results go to a page that comes and goes.
fn caller(child: &Child) -> i64 {
    let timer = CapSlot::from_bits(TIMER.load(Ordering::Relaxed));
    // At the page's end, so that some results reach into the next.
    let address = FAR + child.argument;
    while !STOP.load(Ordering::Acquire) {
        let counter = match status(&child.io, now_to(timer, address)) {
            Status::Ok => &GOOD,
            Status::BadAddress => &REFUSED,
            _ => &WRONG,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    0
}

fn calls(t: &mut Run<'_>) -> Outcome {
    begin(t);
    let mut handles = [CapSlot::NONE; 3];
    for (number, (handle, offset)) in handles.iter_mut().zip([0, PAGE - 8, PAGE]).enumerate() {
        *handle = require_ok!(t, t.env.program.spawn(number, caller, offset));
    }
    let mut rounds = 0;
    // Until the callers have seen both, and for a while.
    while rounds < ROUNDS
        || GOOD.load(Ordering::Relaxed) < 50
        || REFUSED.load(Ordering::Relaxed) < 50
    {
        rounds += 1;
        require!(t, rounds < 10 * ROUNDS, "the callers do not come to it");
        require_ok!(t, t.env.memory().map(FAR, 2 * PAGE, MemoryAccess::Write, true));
        if rounds % 5 == 0 {
            require_ok!(t, t.env.memory().protect(FAR + PAGE, PAGE, MemoryAccess::Read));
        }
        if rounds % 2 == 0 {
            t.env.program.yield_now();
        }
        require_ok!(t, t.env.memory().unmap(FAR, 2 * PAGE));
        if rounds % 2 == 1 {
            t.env.program.yield_now();
        }
    }
    STOP.store(true, Ordering::Release);
    for handle in handles {
        check_eq!(t, t.env.program.finish(handle), Ok(0));
    }
    check_eq!(t, WRONG.load(Ordering::Relaxed), 0);
    t.metric("storm rounds", rounds, "rounds");
    Ok(())
}

fn spinner(_: &Child) -> i64 {
    while !STOP.load(Ordering::Acquire) {
        core::hint::spin_loop();
    }
    0
}

/// An unmap that has begun is not called off: CANCEL finds nothing, and the call completes once.
pub fn cancel(t: &mut Run<'_>) -> Outcome {
    begin(t);
    let io = t.env.program.io();
    let handle = require_ok!(t, t.env.program.spawn(0, spinner, 0));
    for _ in 0..50 {
        require_ok!(t, t.env.memory().map(FAR, 100 * PAGE, MemoryAccess::Write, true));
        let params = UnmapParams { address: FAR, bytes: 100 * PAGE };
        let unmap = require_ok!(t, io.start::<Unmap>(t.env.memory, &params));
        check_eq!(t, io.cancel(&unmap), Err(Status::NotFound));
        let mut words = [0; 16];
        let cqe = io.wait(unmap, &mut words);
        check_eq!(t, capos_rt::io::status_of(&cqe), Status::Ok);
        let gone = t.env.memory().unmap(FAR, PAGE);
        check!(t, is_exception(&gone, Failed, "not mapped"));
    }
    STOP.store(true, Ordering::Release);
    check_eq!(t, t.env.program.finish(handle), Ok(0));
    Ok(())
}

/// Maps, protects and unmaps wherever others do.
fn meddler(child: &Child) -> i64 {
    let memory = CapSlot::from_bits(MEMORY.load(Ordering::Relaxed));
    let mut random = child.argument.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..ROUNDS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let address = FAR + (random >> 8) % 24 * PAGE;
        let bytes = ((random >> 16) % 5 + 1) * PAGE;
        let mut client = virtual_memory::Client::new(child.io.caller(), memory);
        let access = if random >> 32 & 1 == 0 { MemoryAccess::Write } else { MemoryAccess::Read };
        let done = match random % 4 {
            0 | 1 => client.map(address, bytes, access, true).map(|_| ()),
            2 => client.unmap(address, bytes).map(|_| ()),
            _ => client.protect(address, bytes, access).map(|_| ()),
        };
        let counter = match done {
            Ok(()) => &GOOD,
            Err(CallError::Exception(said)) if said.kind() == Failed => &REFUSED,
            Err(_) => &WRONG,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    0
}

/// Changes of the same pages by several threads: each takes place as a whole or is refused.
fn changes(t: &mut Run<'_>) -> Outcome {
    begin(t);
    let mut handles = [CapSlot::NONE; 4];
    for (number, handle) in handles.iter_mut().enumerate() {
        *handle = require_ok!(t, t.env.program.spawn(number, meddler, number as u64 + 1));
    }
    for handle in handles {
        check_eq!(t, t.env.program.finish(handle), Ok(0));
    }
    check_eq!(t, WRONG.load(Ordering::Relaxed), 0);
    check!(t, GOOD.load(Ordering::Relaxed) > 100, "{} took place", GOOD.load(Ordering::Relaxed));
    // What is left is whole pages that can be used as the regions say, and goes.
    let (mut page, end) = (FAR, FAR + 64 * PAGE);
    while page < end {
        let region = require_ok!(t, t.env.memory().region(page)).region;
        let until = (region.address + region.bytes).min(end);
        if region.kind != schema::memory_capnp::RegionKind::Free {
            (page..until).step_by(PAGE as usize).for_each(|page| _ = at::read64(page));
            require_ok!(t, t.env.memory().unmap(page, until - page));
        }
        page = until;
    }
    Ok(())
}
