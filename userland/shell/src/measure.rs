//! What `bench` measures: a few operations of the kernel, each a plain loop.

use core::sync::atomic::AtomicU32;

use abi_ring::INLINE_WORDS;
use abi_types::Sqe;
use arrayvec::ArrayVec;
use capos_rt::process::Command;
use capos_rt::{Pending, now_ns, park};
use schema::timer;
use shell_core::system::Measured;
use shell_core::text::{Sentence, sentence};

use crate::machine::Kernel;
use crate::start::PROFILE;

/// NOPs that are submitted together.
const BATCH: usize = 4;
/// How long the shell sleeps to see how much longer that is.
const SLEEP_NS: u64 = 1_000_000;

type Operation = fn(&Kernel) -> Result<(), Sentence>;

/// What is measured: in words, how often, how many operations each time are, and how long each would take at least.
const OPERATIONS: [(&str, u64, u64, u64, Operation); 7] = [
    ("the clock, without the kernel", 20_000, 1, 0, clock),
    ("an entry into the kernel that asks for nothing", 5_000, 1, 0, entry),
    ("a NOP, four with one entry", 1_000, BATCH as u64, 0, nops),
    ("a PARK that finds another value", 2_000, 1, 0, parked),
    ("a call of the kernel, Timer.now", 2_000, 1, 0, call),
    ("a sleep of 1 ms, beyond the 1 ms", 20, 1, SLEEP_NS, sleep),
    ("a process: started, ended, waited for", 10, 1, 0, process),
];

/// Measures one of them.
pub(crate) fn measure(kernel: &Kernel, index: usize) -> Option<Result<Measured, Sentence>> {
    let (what, times, each, least_ns, operation) = *OPERATIONS.get(index)?;
    let began_ns = now_ns();
    let done = (0..times).try_for_each(|_| operation(kernel));
    let ns = (now_ns() - began_ns).saturating_sub(times * least_ns);
    Some(done.map(|()| Measured { what, times: times * each, ns }))
}

fn clock(_: &Kernel) -> Result<(), Sentence> {
    core::hint::black_box(now_ns());
    Ok(())
}

fn entry(kernel: &Kernel) -> Result<(), Sentence> {
    kernel.io.flush();
    Ok(())
}

fn nops(kernel: &Kernel) -> Result<(), Sentence> {
    let mut under_way = ArrayVec::<Pending, BATCH>::new();
    let mut refused = None;
    while !under_way.is_full() && refused.is_none() {
        match kernel.io.submit(Sqe::default(), &[]) {
            Ok(pending) => under_way.push(pending),
            Err(status) => refused = Some(status),
        }
    }
    for pending in under_way {
        kernel.io.wait(pending, &mut [0; INLINE_WORDS]);
    }
    match refused {
        None => Ok(()),
        Some(_) => {
            Err(sentence(format_args!("{BATCH} operations at once are too many now: kill a job")))
        }
    }
}

fn parked(kernel: &Kernel) -> Result<(), Sentence> {
    static WORD: AtomicU32 = AtomicU32::new(0);
    match park::park(kernel.io, kernel.park, &WORD, 1, 0) {
        Ok(_) => Ok(()),
        Err(status) => Err(sentence(format_args!("PARK ended with {status:?}"))),
    }
}

fn call(kernel: &Kernel) -> Result<(), Sentence> {
    let now = timer::Client::new(kernel.io.caller(), kernel.timer).now();
    now.map(|_| ()).map_err(|error| sentence(format_args!("{error}")))
}

fn sleep(kernel: &Kernel) -> Result<(), Sentence> {
    let slept = timer::Client::new(kernel.io.caller(), kernel.timer).sleep(SLEEP_NS);
    slept.map_err(|error| sentence(format_args!("{error}")))
}

fn process(kernel: &Kernel) -> Result<(), Sentence> {
    // Without a console it says nothing.
    let command = Command { profile: PROFILE, ..Command::new("bench", "hello.elf") };
    let child = kernel.processes.spawn(kernel.io, &command);
    let child = child.map_err(|error| sentence(format_args!("{error}")))?;
    let ended = child.wait(kernel.io);
    let _released = child.release(kernel.io);
    ended.map(|_| ()).map_err(|error| sentence(format_args!("{error}")))
}
