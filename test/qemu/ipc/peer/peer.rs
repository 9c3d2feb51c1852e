//! The other process of a call: does what it is told, and ends when it is told.
//!
//! The first thread takes commands. A worker does the work, so that the process can end while the
//! worker waits at whatever point; a third thread sits there to be joined.
#![no_std]
#![no_main]

use abi_types::{CapSlot, NEVER, Opcode, Status};
use capos_rt::thread::Threads;
use capos_rt::{Env, Error, exit};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use ipc_protocol::{EXIT, EXIT_CODE, EXIT_LATER, FAULT, START, Work};
use schema::console::ReadParams;
use schema::timer::SleepParams;
use test_ring::{Raw, borrow, sqe};

capos_rt::main!(main);

capos_rt::stacks! {
    static WORKER: [16384; 1];
    static SITTER: [8192; 1];
    static EXTRA: [8192; 1];
}
/// Nobody wakes who waits here.
static NEVER_WOKEN: AtomicU32 = AtomicU32::new(0);
/// The sitter's handle, for the worker.
static SITTER_HANDLE: AtomicU64 = AtomicU64::new(0);
static LARGE: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];

/// The most one call carries.
const LARGE_BYTES: u32 = 65_536;
/// User data of a YIELD between calls.
const YIELDED: u64 = 1;

fn main(env: &Env) -> Result<(), Error> {
    let commands = env.cap("commands", schema::endpoint::INTERFACE_ID)?;
    let threads = Threads::of(&env.caps)?;
    loop {
        let (token, method, word) = env.io.with_ring(|ring| {
            let _ = ring.push(sqe::recv(commands));
            loop {
                let _ = ring.enter(1, NEVER);
                if let Some(call) = ring.pop() {
                    let word = call.inline_word(0);
                    let cqe = call.take();
                    break (cqe.token, cqe.method, word);
                }
            }
        });
        if method == START {
            let sitter = threads.spawn(&env.io, &SITTER[0], sit, 0)?;
            SITTER_HANDLE.store(sitter.handle().to_bits(), Ordering::Relaxed);
            let _ = threads.spawn(&env.io, &WORKER[0], work, word)?;
        }
        env.io.with_ring(|ring| {
            let _ = ring.push(sqe::answer(token, 0, 0));
            let _ = ring.enter(1, NEVER);
            while ring.pop().is_some() {}
        });
        match method {
            EXIT => exit(EXIT_CODE),
            FAULT => test_wild::fault(),
            EXIT_LATER => {
                let timer = env.caps.named("timer").unwrap_or(CapSlot::NONE);
                let _ = schema::timer::Client::new(env.io.caller(), timer).sleep(word);
                exit(EXIT_CODE)
            }
            _ => {}
        }
    }
}

fn sit(env: &Env) -> i64 {
    forever(env)
}

/// Parks where nobody is woken.
fn forever(env: &Env) -> i64 {
    let Ok(space) = env.cap("park", schema::park_space::INTERFACE_ID) else { return -1 };
    let address = NEVER_WOKEN.as_ptr().expose_provenance() as u64;
    loop {
        borrow(&env.io, |ring| {
            ring.push(sqe::park(space, address, 0, NEVER));
            wait(ring);
        });
    }
}

/// Waits as long as it takes.
fn wait(ring: &mut Raw<'_>) -> test_ring::Got {
    loop {
        if let Some(got) = ring.pop() {
            return got;
        }
        let _ = ring.enter(1, NEVER);
    }
}

fn run(ring: &mut Raw<'_>, sqe: abi_types::Sqe) -> test_ring::Got {
    ring.push(sqe);
    wait(ring)
}

fn work(env: &Env) -> i64 {
    let Some(work) = Work::ALL.get(env.argument as usize) else { return -1 };
    let cap = |name: &str| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let service = cap("service");
    // What is wrong shows at the tester.
    let _ = borrow(&env.io, |ring| match work {
        Work::Call => {
            run(ring, sqe::call(cap("up"), 0, 0, 8));
        }
        Work::Receive => {
            run(ring, sqe::recv(service));
            loop {
                let _ = ring.enter(1, NEVER);
            }
        }
        Work::AnswerOnce => {
            let call = run(ring, sqe::recv(service));
            run(ring, sqe::answer(call.cqe.token, 0, 0));
            let _ = ring.enter(1, NEVER);
        }
        Work::Sleep => {
            let length = ring.put_params(0, &SleepParams { ns: u64::MAX });
            run(ring, sqe::call_timer(cap("timer"), 1, 0, length));
        }
        Work::Join => {
            let sitter = CapSlot::from_bits(SITTER_HANDLE.load(Ordering::Relaxed));
            run(ring, sqe::call(sitter, 0, 0, 0));
        }
        Work::Park => {}
        Work::Read => {
            let length = ring.put_params(0, &ReadParams { capacity: 1 });
            run(ring, sqe::call_console(cap("console"), 1, 0, length));
        }
        Work::Wait => {
            let _ = ring.enter(1, NEVER);
        }
        // Without a pause, which the emulator takes much longer over than over any other instruction.
        Work::Spin => loop {
            core::hint::black_box(());
        },
        Work::EchoLarge => {
            let place = LARGE.as_ptr().expose_provenance() as u64;
            let mut next = sqe::to_memory(sqe::recv(service), place, LARGE_BYTES);
            loop {
                let call = run(ring, next);
                let answer = sqe::answer(call.cqe.token, 0, 0);
                let answer = sqe::from_memory(answer, place, call.cqe.length);
                next = sqe::to_memory(sqe::then_recv(answer, service), place, LARGE_BYTES);
            }
        }
        Work::CallMany => {
            let up = cap("up");
            for number in 0_u64.. {
                ring.put(0, &[number]);
                let got = run(ring, sqe::call(up, 0, 0, 8));
                if got.status() != Some(Status::Ok) {
                    break;
                }
            }
        }
        Work::Serve => {
            let mut next = sqe::recv(service);
            loop {
                let call = run(ring, next);
                ring.put(0, &call.words);
                let answer = sqe::answer(call.cqe.token, 0, call.cqe.length);
                next = sqe::then_recv(answer, service);
                if call.status() != Some(Status::Ok) {
                    break;
                }
            }
        }
        Work::Poll => {
            ring.push(sqe::recv(service));
            loop {
                // With one CPU nobody else would run.
                ring.push(sqe::named(sqe::plain(Opcode::Yield), YIELDED));
                let _ = ring.dispatch();
                while let Some(got) = ring.pop() {
                    if got.cqe.user_data == YIELDED {
                        continue;
                    }
                    if got.status() != Some(Status::Ok) {
                        return;
                    }
                    ring.put(0, &got.words);
                    let answer = sqe::answer(got.cqe.token, 0, got.cqe.length);
                    ring.push(sqe::then_recv(answer, service));
                }
            }
        }
        Work::CallLarge => {
            let place = LARGE.as_ptr().expose_provenance() as u64;
            let call = sqe::from_memory(sqe::call(cap("up"), 0, 0, 0), place, LARGE_BYTES);
            while run(ring, call).status() == Some(Status::Ok) {}
        }
        Work::Batch => {
            let place = LARGE.as_ptr().expose_provenance() as u64;
            let call = sqe::from_memory(sqe::call_timer(cap("timer"), 0, 0, 0), place, LARGE_BYTES);
            loop {
                while ring.try_push(call) {}
                let _ = ring.dispatch();
                while ring.pop().is_some() {}
            }
        }
        // Needs more than the ring.
        Work::Spawn => {}
    });
    if *work == Work::Spawn
        && let Ok(threads) = Threads::of(&env.caps)
    {
        while let Ok(thread) = threads.spawn(&env.io, &EXTRA[0], end_at_once, 0) {
            let _ = thread.join(&env.io);
        }
    }
    forever(env)
}

fn end_at_once(_: &Env) -> i64 {
    0
}
