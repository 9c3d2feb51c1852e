//! A thread that only computes, and measures for how long it had a CPU.

use abi_types::{CapSlot, Opcode, Sqe, SqeFlags, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::{Env, Error, Pending, now_ns};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_bare::program::{Program, work};
use test_bare::raw::Child;

/// A quantum.
pub const QUANTUM_NS: u64 = 10_000_000;

/// Two looks at the clock that are further apart had others in between.
const GAP_NS: u64 = 200_000;

/// Computes from `from_ns` to `until_ns` without an entry; for how long it had a CPU, and the
/// longest time without one.
pub fn run(from_ns: u64, until_ns: u64) -> (u64, u64) {
    run_until(from_ns, &AtomicU64::new(until_ns))
}

/// As [`run`]; the end may be brought forward meanwhile.
fn run_until(from_ns: u64, until_ns: &AtomicU64) -> (u64, u64) {
    let gives_way = GIVES_WAY.load(Ordering::Relaxed);
    let (mut ran, mut longest) = (0, 0);
    let mut last = now_ns();
    while last < until_ns.load(Ordering::Relaxed) {
        work(if gives_way { 4_000 } else { 32 });
        if gives_way {
            core::hint::spin_loop();
        }
        let now = now_ns();
        let passed = now - last.max(from_ns).min(now);
        if now - last < GAP_NS {
            ran += passed;
        } else {
            longest = passed.max(longest);
        }
        last = now;
    }
    (ran, longest)
}

/// Whether hogs tell the emulator that they spin. With several CPUs whose instructions are counted one
/// is emulated after the other, and this hands over to the next; with one CPU it only takes time.
pub static GIVES_WAY: AtomicBool = AtomicBool::new(false);

/// When sibling hogs begin and end.
pub static FROM_NS: AtomicU64 = AtomicU64::new(0);
pub static UNTIL_NS: AtomicU64 = AtomicU64::new(0);
pub static RAN_NS: [AtomicU64; 10] = [const { AtomicU64::new(0) }; 10];
pub static WAITED_NS: [AtomicU64; 10] = [const { AtomicU64::new(0) }; 10];

/// A sibling that hogs.
pub fn sibling(child: &Child) -> i64 {
    let number = child.argument as usize;
    let (ran, waited) = run_until(FROM_NS.load(Ordering::Relaxed), &UNTIL_NS);
    RAN_NS[number].store(ran, Ordering::Relaxed);
    WAITED_NS[number].store(waited, Ordering::Relaxed);
    0
}

/// Lets hogs begin in a moment and run for `for_ns`.
pub fn set_times(for_ns: u64) -> u64 {
    let from = now_ns() + 2_000_000;
    FROM_NS.store(from, Ordering::Relaxed);
    UNTIL_NS.store(from + for_ns, Ordering::Relaxed);
    from
}

/// Sets `count` siblings going, waits for their end; what each got.
pub fn siblings(program: &Program, count: usize, for_ns: u64) -> Option<[u64; 10]> {
    set_times(for_ns);
    let mut handles = [CapSlot::NONE; 10];
    for (number, handle) in handles.iter_mut().enumerate().take(count) {
        *handle = program.spawn(number, sibling, number as u64).ok()?;
    }
    for handle in handles.iter().take(count) {
        program.finish(*handle).ok()?;
    }
    Some(core::array::from_fn(|number| RAN_NS[number].load(Ordering::Relaxed)))
}

/// A hog process: computes as long as a call says, in its payload, and answers what it got. It answers and
/// waits for the next call in one, as services do.
pub fn serve(env: &'static Env, endpoint: CapSlot) -> Result<(), Error> {
    let io = &env.io;
    let cap = endpoint.to_bits();
    let mut words = [0; 16];
    let recv = Sqe { opcode: Opcode::Recv as u8, cap, ..Sqe::default() };
    let mut cqe = io.run(recv, &[], &mut words)?;
    loop {
        if status_of(&cqe) != Status::Ok {
            return Err(status_of(&cqe).into());
        }
        GIVES_WAY.store(words[2] != 0, Ordering::Relaxed);
        let (ran, waited) = run(words[0], words[1]);
        let answer = Sqe {
            opcode: Opcode::Return as u8,
            flags: SqeFlags::THEN_RECV,
            cap,
            arg: cqe.token,
            length: 16,
            ..Sqe::default()
        };
        cqe = io.run(answer, &[ran, waited], &mut words)?;
    }
}

/// Asks a hog process to compute.
pub fn ask(
    program: &Program,
    hog: CapSlot,
    from_ns: u64,
    until_ns: u64,
) -> Result<Pending, Status> {
    let gives_way = GIVES_WAY.load(Ordering::Relaxed).into();
    program.io().submit(call(hog, PLAIN, 0, 24), &[from_ns, until_ns, gives_way])
}

/// What a hog process answered: what it ran and the longest it waited.
pub fn answer(program: &Program, pending: Pending) -> Option<(u64, u64)> {
    let mut words = [0; 16];
    let cqe = program.io().wait(pending, &mut words);
    (status_of(&cqe) == Status::Ok).then_some((words[0], words[1]))
}
