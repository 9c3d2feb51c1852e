//! A process that spoils its own ring while it enters the kernel with it.
//!
//! The first thread enters with random arguments, now and then after writing an SQE of random bytes
//! or of almost the right ones. Two siblings write over the whole block meanwhile: indices, flags,
//! geometry, SQEs, CQEs, inline slots. A third reports through a ring that nobody touches, and checks
//! that kernel calls through it are answered as ever.
//!
//! `exit` is left out, and so are thread creation and exit: this process is to stay.
#![no_std]
#![no_main]

use abi_types::place::RING_VADDR;
use abi_types::{CapSlot, NEVER, Opcode, RingBlock, RingWord, Sqe, Status, UNKNOWN_SYSCALL};
use capos_rt::thread::{Stack, Threads};
use capos_rt::{Env, Error, exit};
use core::sync::atomic::{AtomicU64, Ordering};
use test_ring::{Random, borrow, sqe};
use test_wild::at;

capos_rt::main!(main);

static STACKS: [Stack<16384>; 3] = [const { Stack::new() }; 3];
/// SQEs and syscalls so far.
static OPERATIONS: AtomicU64 = AtomicU64::new(0);
static ENTRIES: AtomicU64 = AtomicU64::new(0);
/// What was wrong with the answers of the kernel.
static WRONG: AtomicU64 = AtomicU64::new(0);
/// What SQEs with a good address point to. Whatever the kernel writes at one of them, up to the limit of
/// a call, stays in here: this process spoils its ring and nothing it needs to go on.
static BUFFER: [AtomicU64; 20 * 1024] = [const { AtomicU64::new(0) }; 20 * 1024];
/// Where in it PARKs wait for one another.
const PARKED_AT: u64 = 96 * 1024;

/// How long an entry waits at most.
const WAIT_NS: u64 = 20_000;
const SEED: u64 = 0x5eed_0001;

fn main(env: &Env) -> Result<(), Error> {
    let threads = Threads::of(&env.caps)?;
    let entries = at::read32(RING_VADDR + RingWord::SqEntries.offset() as u64);
    let Some(block) = RingBlock::new(entries) else { exit(1) };
    // The seed of each part; the whole run follows from it, but for the races.
    let seed = SEED + u64::from(env.pid.0);
    let _ = threads.spawn(&env.io, &STACKS[0], report, 0)?;
    lie(block);
    let _ = threads.spawn(&env.io, &STACKS[1], spoil, seed + 1)?;
    let _ = threads.spawn(&env.io, &STACKS[2], spoil_indices, seed + 2)?;
    enter(block, Caps::of(env), seed)
}

fn word(word: RingWord) -> u64 {
    RING_VADDR + word.offset() as u64
}

fn note(holds: bool) {
    WRONG.fetch_add(u64::from(!holds), Ordering::Relaxed);
}

/// Lies of which the outcome is known, before anybody else writes: a tail far ahead gives one pass
/// of the queue's size and no more, and a head that cannot be frees nothing.
fn lie(block: RingBlock) {
    let (sq, cq) = (block.sq_entries(), block.cq_entries());
    for entry in 0..sq {
        for part in 0..8 {
            at::write64(RING_VADDR + block.sqe(entry) as u64 + part * 8, 0);
        }
    }
    let (head, tail) = (at::read32(word(RingWord::SqHead)), at::read32(word(RingWord::CqTail)));
    at::write32(word(RingWord::CqHead), tail);
    at::write32(word(RingWord::SqTail), head.wrapping_add(1_000_000));
    let _ = test_wild::syscall(0, 0, 0);
    note(at::read32(word(RingWord::SqHead)) == head.wrapping_add(sq));
    note(at::read32(word(RingWord::CqTail)) == tail.wrapping_add(sq));
    let _ = test_wild::syscall(0, 0, 0);
    // The queue is full; a head ahead of the tail, or far behind, is no room.
    for lie in [tail.wrapping_add(cq + 1), tail.wrapping_sub(1), tail.wrapping_add(1 << 31)] {
        at::write32(word(RingWord::CqHead), lie);
        for _ in 0..3 {
            let _ = test_wild::syscall(0, 0, 0);
        }
        let posted = at::read32(word(RingWord::CqTail)).wrapping_sub(tail);
        note(posted <= cq);
    }
    // A thread with an impossible head does not block for ever.
    at::write32(word(RingWord::CqHead), tail.wrapping_add(1 << 30));
    let _ = test_wild::syscall(0, 1, NEVER);
    let now = at::read32(word(RingWord::CqTail));
    at::write32(word(RingWord::CqHead), now);
    at::write32(word(RingWord::SqTail), at::read32(word(RingWord::SqHead)));
}

struct Caps([CapSlot; 6]);

impl Caps {
    fn of(env: &Env) -> Self {
        let named = |name| env.caps.named(name).unwrap_or(CapSlot::NONE);
        Self([
            named("echo"),
            named("own"),
            named("self"),
            named("timer"),
            named("info"),
            named("park"),
        ])
    }

    /// A capability that is there, mostly.
    fn any(&self, random: &mut Random) -> u64 {
        if random.one_in(12) { random.bits() } else { random.of(&self.0).to_bits() }
    }
}

/// An address: of the buffer, of the ring, of nothing, of the kernel.
fn address(random: &mut Random) -> u64 {
    let buffer = BUFFER.as_ptr().expose_provenance() as u64;
    let offset = random.below(8192 - 256);
    match random.below(8) {
        0..4 => buffer + offset,
        4 => RING_VADDR + random.below(1 << 16),
        5 => random.bits(),
        6 => 0xffff_8000_0000_0000 | random.bits() >> 20,
        _ => buffer + PARKED_AT,
    }
}

/// An SQE that is almost right, or no SQE at all.
fn any_sqe(random: &mut Random, caps: &Caps) -> [u64; 8] {
    if random.one_in(6) {
        return core::array::from_fn(|_| random.bits());
    }
    let opcode = random.of(&[
        Opcode::Nop,
        Opcode::Call,
        Opcode::Call,
        Opcode::Call,
        Opcode::Recv,
        Opcode::Return,
        Opcode::Release,
        Opcode::Cancel,
        Opcode::Park,
        Opcode::Unpark,
        Opcode::Yield,
        Opcode::Finish,
    ]);
    let mut made = Sqe {
        opcode: opcode as u8,
        flags: if random.one_in(2) { 0 } else { random.bits() as u8 & 0b1_0111 },
        method: random.below(4) as u16,
        length: random.of(&[0, 8, 16, 100, 128, 129, 4096, 70_000]),
        // Few names, so that CANCEL finds something.
        user_data: random.below(16),
        cap: caps.any(random),
        arg: random.below(16),
        ..Sqe::default()
    };
    match opcode {
        Opcode::Call | Opcode::Recv | Opcode::Return => {
            made.buffer = random.below(70) as u16;
            let odd = random.bits();
            made.arg = random.of(&[0, 0, 0, 1 << 32, 2 << 32, odd]);
            if made.flags & 1 << 2 != 0 {
                (made.address, made.buffer) = (address(random), 0);
            }
            if made.flags & 1 << 4 != 0 {
                made.result_address = address(random);
                made.result_capacity = random.of(&[0, 64, 4096, 1 << 20]);
            }
        }
        Opcode::Park | Opcode::Unpark => {
            (made.flags, made.method, made.length) = (0, 0, 0);
            made.cap = caps.0[5].to_bits();
            made.arg = address(random) & !3;
            made.address = random.below(2);
            made.result_address = if opcode == Opcode::Park { random.below(100_000) } else { 0 };
        }
        // Releasing what the others need ends the fun; a stale slot does not.
        Opcode::Release => made.cap |= 1 << 40,
        _ => {}
    }
    let words: [u64; 8] = zerocopy::transmute!(made);
    words
}

/// Enters for ever.
fn enter(block: RingBlock, caps: Caps, seed: u64) -> ! {
    let mut random = Random::new(seed);
    loop {
        let count = random.below(6);
        let mut tail = at::read32(word(RingWord::SqHead));
        for _ in 0..count {
            let place = RING_VADDR + block.sqe(tail) as u64;
            for (number, part) in (0_u64..).zip(any_sqe(&mut random, &caps)) {
                at::write64(place + number * 8, part);
            }
            tail = tail.wrapping_add(1);
        }
        at::write32(word(RingWord::SqTail), tail);
        if !random.one_in(4) {
            at::write32(word(RingWord::CqHead), at::read32(word(RingWord::CqTail)));
        }
        if random.one_in(10) {
            let number = 2 + random.bits() % 1_000_000;
            note(test_wild::syscall(number, random.bits(), random.bits()) == UNKNOWN_SYSCALL);
        }
        let min = random.of(&[0, 1, 2, 1 << 20, u64::MAX]);
        let timeout = if random.one_in(3) { random.below(WAIT_NS) } else { 0 };
        let _ = test_wild::syscall(0, min, timeout);
        OPERATIONS.fetch_add(count + 1, Ordering::Relaxed);
        ENTRIES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes over the whole block of the first thread.
fn spoil(env: &Env) -> i64 {
    let mut random = Random::new(env.argument);
    let bytes = random.of(&[0x1000_u64, 0x2000]);
    loop {
        for _ in 0..64 {
            let offset = random.below(bytes);
            match random.below(3) {
                0 => at::write8(RING_VADDR + offset, random.bits() as u8),
                1 => at::write64(RING_VADDR + (offset & !7), random.bits()),
                _ => at::write32(RING_VADDR + (offset & !3), random.below(64) as u32),
            }
        }
        OPERATIONS.fetch_add(1, Ordering::Relaxed);
        let _ = env.io.yield_now();
    }
}

/// Writes over the indices, which matter most.
fn spoil_indices(env: &Env) -> i64 {
    let mut random = Random::new(env.argument);
    loop {
        for _ in 0..32 {
            let index = random.of(&[
                RingWord::SqTail,
                RingWord::CqHead,
                RingWord::SqHead,
                RingWord::CqTail,
                RingWord::Flags,
                RingWord::SqEntries,
                RingWord::CqEntries,
            ]);
            let near = at::read32(word(index)).wrapping_add(random.below(9) as u32).wrapping_sub(4);
            at::write32(word(index), if random.one_in(4) { random.bits() as u32 } else { near });
        }
        OPERATIONS.fetch_add(1, Ordering::Relaxed);
        let _ = env.io.yield_now();
    }
}

/// Tells the witness how far it is, and what is wrong.
fn report(env: &Env) -> i64 {
    let named = |name| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let (news, info) = (named("news"), named("info"));
    loop {
        let log = borrow(&env.io, |ring| {
            ring.ends(sqe::call(info, 0, 0, 0), Status::Ok, "the kernel answers");
            let done = OPERATIONS.load(Ordering::Relaxed);
            let entries = ENTRIES.load(Ordering::Relaxed);
            ring.put(0, &[done, WRONG.load(Ordering::Relaxed), entries]);
            ring.ends(sqe::call(news, 0, 0, 24), Status::Ok, "the witness answers");
        });
        WRONG.fetch_add(log.failures() as u64, Ordering::Relaxed);
    }
}
