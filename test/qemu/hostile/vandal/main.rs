//! A process that spoils its own ring while it enters the kernel with it.
//!
//! The first thread enters with random arguments, now and then after writing SQEs of random bytes or of
//! almost the right ones ([`sqes`]). Two siblings write over the whole block meanwhile: indices, flags,
//! geometry, SQEs, CQEs, inline slots ([`spoil`]). What else there is depends on the kind:
//!
//! - A *careful* vandal never makes the kernel write where it has something to lose: an address or a
//!   capability in an SQE is one it chose, or bits that mean nothing, never a mixture of both, and where
//!   results go is its buffer or nowhere. So whatever is spoiled, the rest of the process is whole, and
//!   what its last thread finds wrong with kernel calls through a ring of its own is the kernel's fault.
//! - A *reckless* one writes anywhere in its own memory, lets the kernel do so, gives capabilities back,
//!   ends threads, calls `exit` now and then. It ends sooner or later, which is what it is for.
//!
//! Decided in ADR 156.
#![no_std]
#![no_main]

mod lie;
mod spoil;
mod sqes;

use abi_types::place::RING_VADDR;
use abi_types::{CapSlot, RingBlock, RingWord, Status, UNKNOWN_SYSCALL};
use capos_rt::thread::Threads;
use capos_rt::{Env, Error, exit};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hostile_protocol::{HELLO, NEWS, News, Start};
use test_ring::{Random, borrow, sqe};
use test_wild::at;

use sqes::{Caps, any_sqe};

capos_rt::main!(main);

capos_rt::stacks! {
    static STACKS: [16384; 3];
}
/// The siblings may begin.
static GO: AtomicBool = AtomicBool::new(false);
/// Whether this one is reckless.
static IS_RECKLESS: AtomicBool = AtomicBool::new(false);
/// SQEs and syscalls so far.
static OPERATIONS: AtomicU64 = AtomicU64::new(0);
static ENTRIES: AtomicU64 = AtomicU64::new(0);
/// Unknown syscalls with a wrong answer.
static SYSCALLS: AtomicU64 = AtomicU64::new(0);

/// How long an entry waits at most.
const WAIT_NS: u64 = 20_000;
/// Once in so many entries a reckless vandal calls `exit`.
const EXIT_ONCE_IN: u64 = 8_000;

fn main(env: &Env) -> Result<(), Error> {
    let threads = Threads::of(&env.caps)?;
    let Some(block) = RingBlock::new(word(RingWord::SqEntries)) else { exit(1) };
    let Start { seed, is_reckless } = hello(env);
    IS_RECKLESS.store(is_reckless, Ordering::Relaxed);
    sqes::register(env);
    // All that needs this thread's ring in good order comes before anything spoils it.
    let _ = threads.spawn(&env.io, &STACKS[1], spoil::block, seed + 1)?;
    let _ = threads.spawn(&env.io, &STACKS[2], spoil::indices, seed + 2)?;
    let last = if is_reckless { spoil::memory } else { report };
    let _ = threads.spawn(&env.io, &STACKS[0], last, seed + 3)?;
    if !is_reckless {
        lie::tell(block);
    }
    // Release, pairs with the acquire in `wait_for_go`: the lies were told before anyone else writes.
    GO.store(true, Ordering::Release);
    enter(block, &Caps::of(env), Random::new(seed), is_reckless)
}

/// A shared word of the first thread's ring.
fn word(word: RingWord) -> u32 {
    at::read32(place(word))
}

fn place(word: RingWord) -> u64 {
    RING_VADDR + word.offset() as u64
}

fn is_reckless() -> bool {
    IS_RECKLESS.load(Ordering::Relaxed)
}

/// Waits until the first thread's ring is there to be spoiled.
fn wait_for_go(env: &Env) {
    while !GO.load(Ordering::Acquire) {
        let _ = env.io.yield_now();
    }
}

/// Waits for its turn.
fn hello(env: &Env) -> Start {
    let news = env.caps.named("news").unwrap_or(CapSlot::NONE);
    let mut start = None;
    borrow(&env.io, |ring| {
        // As long as it takes: a reckless vandal's turn comes late.
        ring.push(sqe::call(news, HELLO, 0, 0));
        let got = loop {
            if let Some(got) = ring.pop() {
                break got;
            }
            let _ = ring.enter(1, abi_types::NEVER);
        };
        if got.status() == Some(Status::Ok) {
            start = Some(Start::from_words([got.words[0], got.words[1]]));
        }
    });
    start.unwrap_or_else(|| exit(2))
}

/// Enters for ever.
fn enter(block: RingBlock, caps: &Caps, mut random: Random, is_reckless: bool) -> ! {
    loop {
        let count = random.below(6);
        let mut tail = word(RingWord::SqHead);
        for _ in 0..count {
            let to = RING_VADDR + block.sqe(tail) as u64;
            for (number, part) in (0_u64..).zip(any_sqe(&mut random, caps)) {
                at::write64(to + number * 8, part);
            }
            tail = tail.wrapping_add(1);
        }
        at::write32(place(RingWord::SqTail), tail);
        if !random.one_in(4) {
            at::write32(place(RingWord::CqHead), word(RingWord::CqTail));
        }
        if random.one_in(10) {
            let number = 2 + random.bits() % 1_000_000;
            let answer = test_wild::syscall(number, random.bits(), random.bits());
            SYSCALLS.fetch_add(u64::from(answer != UNKNOWN_SYSCALL), Ordering::Relaxed);
        }
        let min = random.of(&[0, 1, 2, 1 << 20, u64::MAX]);
        let timeout = if random.one_in(3) { random.below(WAIT_NS) } else { 0 };
        let _ = test_wild::syscall(0, min, timeout);
        OPERATIONS.fetch_add(count + 1, Ordering::Relaxed);
        ENTRIES.fetch_add(1, Ordering::Relaxed);
        if is_reckless && random.one_in(EXIT_ONCE_IN) {
            exit(random.bits().cast_signed());
        }
    }
}

/// Tells the witness how far it is, and what is wrong. Its capabilities are its own: those that SQEs of
/// the first thread name may be released by one of them.
fn report(env: &Env) -> i64 {
    let named = |name| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let (news, info) = (named("news"), named("calm"));
    wait_for_go(env);
    let mut calls = 0;
    loop {
        let log = borrow(&env.io, |ring| {
            ring.ends(sqe::call_info(info, 0, 0, 0), Status::Ok, "the kernel answers");
            let told = News {
                operations: OPERATIONS.load(Ordering::Relaxed),
                entries: ENTRIES.load(Ordering::Relaxed),
                lies: lie::FOUND_OUT.load(Ordering::Relaxed),
                syscalls: SYSCALLS.load(Ordering::Relaxed),
                calls,
            };
            ring.put(0, &told.to_words());
            ring.ends(sqe::call(news, NEWS, 0, News::BYTES), Status::Ok, "the witness answers");
        });
        calls += log.failures() as u64;
    }
}
