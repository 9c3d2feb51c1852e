//! Programs whose fibers end them: the name of a grant says how.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use abi_types::{CapSlot, Sqe, Status};
use capos_rt::io::status_of;
use capos_rt::{Env, exit};
use fiber::ring::{Caller, submit};
use fiber::{BuildError, Runtime, Thread, nursery, yield_now};
use fiber_rt::SystemError;
use schema::timer;
use schema_wire::CallError;

capos_rt::main!(main);
capos_heap::heap!(512 << 10);
fiber::stacks!(fibers: [FIBER_BYTES; 16], threads: [THREAD_BYTES; THREADS]);

const FIBER_BYTES: usize = 16 << 10;
const THREAD_BYTES: usize = 64 << 10;
const THREADS: usize = 6;

/// How a program ends whose stack was too small for what it did, and that went on.
const WENT_ON: i64 = 77;

fn main(env: &'static Env) -> i64 {
    let caps = env.caps;
    let has = |name: &str| caps.named(name).is_some();
    if has("few-threads") {
        let expected = SystemError::ThreadStacks(THREADS);
        // One that has ended keeps its stack until it is joined.
        let threads: Vec<_> = (0..=THREADS).map(|_| Thread::spawn("ends", || ())).collect();
        let had = threads.iter().filter(|thread| thread.is_ok()).count();
        if had != THREADS || threads.last().and_then(|last| last.as_ref().err()) != Some(&expected)
        {
            return 4;
        }
        threads.into_iter().flatten().for_each(Thread::join);
        // Workers and monitor: more than there are stacks for.
        let refused = Runtime::builder().workers(THREADS).build().map(|_| ());
        if refused != Err(BuildError::System(expected)) {
            return 5;
        }
        capos_rt::println!(env, "{expected}");
    }
    if has("too-narrow") {
        return too_narrow(env);
    }
    if has("narrow") {
        return narrow(env);
    }
    let built = Runtime::builder().workers(2).stack_bytes(FIBER_BYTES).build();
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => {
            capos_rt::println!(env, "{error}");
            return 3;
        }
    };
    runtime.run(|| {
        nursery(|n| {
            // Others are at work meanwhile.
            for _ in 0..4 {
                n.spawn(|| while yield_now().is_ok() {});
            }
            if has("panic") {
                let number = env_number(7);
                n.spawn(move || {
                    fiber::name("the doomed");
                    yield_now().unwrap();
                    panic!("it broke: {number}");
                });
            } else if has("overflow") {
                // Nobody gives a worker up from here on: what ends the process is the overflow itself.
                n.spawn(|| go_on_after(|| dive(FIBER_BYTES + 1000)));
            } else if has("large-frame") {
                n.spawn(|| go_on_after(|| large_frame(7)));
            } else if has("thread") {
                Thread::spawn("too deep", || go_on_after(|| dive(THREAD_BYTES + 1000)))
                    .unwrap()
                    .join();
            } else if has("memory") {
                n.spawn(|| {
                    fiber::name("wants much");
                    alloc::vec![1u8; 64 << 20].len()
                });
            } else {
                n.cancel();
            }
        });
    });
    0
}

/// In a ring of two entries a fiber that waits for long would keep all others from the system: it is refused.
fn too_narrow(env: &'static Env) -> i64 {
    let expected = SystemError::RingEntries { entries: 2, least: 4 };
    let refused = Runtime::builder().workers(1).build().map(|_| ());
    capos_rt::println!(env, "{expected}");
    if refused == Err(BuildError::System(expected)) { 0 } else { 12 }
}

/// The only worker's queue is full when it goes to sleep: something in it completes at once, and then
/// something in it is to be cancelled.
fn narrow(env: &'static Env) -> i64 {
    let Ok(timer) = env.cap("timer", timer::INTERFACE_ID) else { return 8 };
    let built = Runtime::builder().workers(1).elastic(false).build();
    let Ok(runtime) = built else { return 9 };
    let entries = env.io.with_ring(|ring| ring.sq_entries());
    let sleep = || timer::Client::new(Caller::new(), timer).sleep(1 << 60).map(|_| ());
    let status = runtime.run(|| {
        nursery(|n| {
            // Each is with the kernel before the next begins.
            for _ in 1..entries {
                n.spawn(sleep);
                (0..8).for_each(|_| _ = yield_now());
            }
            let nop = n.spawn(|| submit(Sqe::default(), &[], &mut [0; 16]));
            let done = nop.join();
            n.cancel();
            done.map(|done| done.map(|cqe| status_of(&cqe)))
        })
    });
    if !matches!(status, Ok(Ok(Status::Ok))) {
        return 10;
    }
    // Wakes the worker by its completion, so that its PARK stays with the kernel.
    let nap = || timer::Client::new(Caller::new(), timer).sleep(1_000_000).map(|_| ());
    let asked = AtomicU32::new(0);
    let ended = runtime.run(|| {
        if nap().is_err() {
            return None;
        }
        nursery(|n| {
            let ask = || {
                asked.fetch_add(1, Ordering::Relaxed);
                sleep()
            };
            let first = n.spawn(ask);
            (1..entries).for_each(|_| drop(n.spawn(ask)));
            // There is one worker: who has said that it asks has asked before this fiber goes on.
            while asked.load(Ordering::Relaxed) < entries {
                let _ = yield_now();
            }
            first.cancel();
            let ended = first.join();
            n.cancel();
            Some(ended)
        })
    });
    if !matches!(ended, Some(Ok(Err(CallError::Status(Status::Cancelled))))) {
        return 11;
    }
    drop(runtime);
    if matches!(relieved(timer, entries), Some(Ok(Status::Ok))) { 0 } else { 13 }
}

/// All begin on the worker whose ring they fill: who finds no place there goes through the other's.
fn relieved(timer: CapSlot, entries: u32) -> Option<Result<Status, Status>> {
    let runtime = Runtime::builder().workers(2).elastic(false).build().ok()?;
    let sleep = || timer::Client::new(Caller::new(), timer).sleep(1 << 60).map(|_| ());
    runtime.run(|| {
        nursery(|n| {
            for _ in 1..2 * entries {
                n.spawn(sleep);
                (0..8).for_each(|_| _ = yield_now());
            }
            let nop = n.spawn(|| submit(Sqe::default(), &[], &mut [0; 16]));
            let done = nop.join();
            n.cancel();
            done.ok().map(|done| done.map(|cqe| status_of(&cqe)))
        })
    })
}

/// A number the compiler does not see through.
fn env_number(number: u32) -> u32 {
    core::hint::black_box(number)
}

/// Ends the process with another code than an overflow's.
fn go_on_after(overflow: fn() -> u64) {
    core::hint::black_box(overflow());
    exit(WENT_ON)
}

/// Uses so many bytes of stack, a few at a time.
fn dive(bytes: usize) -> u64 {
    let mut first = [1; 24];
    dive_below(core::ptr::from_ref(&first).addr(), bytes, &mut first)
}

#[inline(never)]
fn dive_below(start: usize, bytes: usize, above: &mut [u64; 24]) -> u64 {
    let mut mine = *core::hint::black_box(above);
    mine[1] += 1;
    let is_deep = start - core::ptr::from_ref(&mine).addr() > bytes;
    let below = if is_deep { 0 } else { dive_below(start, bytes, &mut mine) };
    below + core::hint::black_box(&mine).iter().sum::<u64>()
}

/// A frame that reaches far beyond the guard and the stack below it, with something in its lowest part
/// only: the compiler touches each page on the way.
#[inline(never)]
fn large_frame(value: u8) -> u64 {
    let mut room = core::mem::MaybeUninit::<[u8; 5 * FIBER_BYTES]>::uninit();
    let first = room.as_mut_ptr().cast::<u8>();
    core::hint::black_box(first.addr() as u64 + u64::from(value))
}
