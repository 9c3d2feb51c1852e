//! A process that does something at random, and ends in one of the ways there are: by itself, by a fault, by the end of
//! its threads, with operations of its own and of others pending.
//!
//! Its seed is the time and its number, and is printed.
#![no_std]
#![no_main]

use abi_types::{CapSlot, Opcode, Sqe};
use capos_rt::caller::call;
use capos_rt::park::park;
use capos_rt::ring::NOP;
use capos_rt::{Env, Error, Io, exit, now_ns, println};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::{thread_control, timer};
use test_bare::fault;
use test_bare::program::work;
use test_bare::raw::{By, Child, Raw, Run};

capos_rt::main!(main);

static STACKS: [Raw<8192>; 3] = [const { Raw::new() }; 3];
static WORD: AtomicU32 = AtomicU32::new(0);
static CAPS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
const NAMES: [&str; 4] = ["timer", "park", "own", "next"];
const TIMER: usize = 0;
const PARK: usize = 1;
const OWN: usize = 2;
const NEXT: usize = 3;

fn cap(which: usize) -> CapSlot {
    CapSlot::from_bits(CAPS[which].load(Ordering::Relaxed))
}

/// A xorshift generator (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}

/// Leaves operations pending.
fn leave_pending(io: &Io, random: &mut Random) {
    for _ in 0..random.below(6) {
        let sqe = match random.below(3) {
            0 => Sqe { opcode: Opcode::Recv as u8, cap: cap(OWN).to_bits(), ..NOP },
            1 => call(cap(NEXT), PLAIN, 0, 0),
            _ => Sqe { arg: now_ns() + 2_000_000, ..call(cap(NEXT), PLAIN, 0, 8) },
        };
        if let Ok(pending) = io.submit(sqe, &[random.0]) {
            io.forget(pending);
        }
    }
    let params = timer::SleepParams { ns: random.below(4_000_000) };
    if let Ok(pending) = io.start::<timer::methods::Sleep>(cap(TIMER), &params) {
        io.forget(pending);
    }
    io.flush();
}

/// Does something, and then ends or waits for the end of the process.
fn act(io: &Io, seed: u64) -> i64 {
    let mut random = Random(seed | 1);
    for _ in 0..random.below(4) {
        match random.below(4) {
            0 => leave_pending(io, &mut random),
            1 => work(random.below(50_000) as u32),
            2 => drop(io.yield_now()),
            _ => {
                let ns = random.below(3_000_000);
                let _ = timer::Client::new(io.caller(), cap(TIMER)).sleep(ns);
            }
        }
    }
    match random.below(6) {
        0 => exit(random.below(100) as i64),
        1 => fault::undefined(),
        2 => {
            let _ = park(io, cap(PARK), &WORD, 0, random.below(5_000_000));
        }
        3 => {
            // Long, unless another thread ends the process.
            let _ = park(io, cap(PARK), &WORD, 0, 20_000_000);
        }
        _ => {}
    }
    random.below(50) as i64
}

fn thread(child: &Child) -> i64 {
    act(&child.io, child.argument)
}

fn main(env: &'static Env) -> Result<(), Error> {
    for (place, name) in CAPS.iter().zip(NAMES) {
        place.store(env.caps.named(name).unwrap_or(CapSlot::NONE).to_bits(), Ordering::Relaxed);
    }
    let seed = now_ns() ^ u64::from(env.pid.0) << 40;
    println!(env, "seed {seed:#x}");
    let named = |name| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let by = By { spawner: named("spawner"), control: named("control") };
    let mut random = Random(seed | 1);
    for stack in STACKS.iter().take(random.below(4) as usize) {
        let run = Run { main: thread, argument: random.below(u64::MAX), fs_base: 0 };
        let _ = stack.start(&env.io, by, run);
    }
    let code = act(&env.io, random.below(u64::MAX));
    if random.below(2) == 0 {
        exit(code);
    }
    // Its siblings go on, and the last of them ends the process.
    let mut control = thread_control::Client::new(env.io.caller(), by.control);
    let _ = control.exit_thread(code);
    Ok(())
}
