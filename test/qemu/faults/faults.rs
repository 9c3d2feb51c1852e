//! One program, many ends: the name of its first grant says which.
//!
//! The test kernel compares each process's exit code with the one in its name; how a program tells
//! that something is wrong is another code.
#![no_std]
#![no_main]

use abi_types::place::{CAPSET_VADDR, RING_VADDR, STACK_PAGES, STACK_TOP, TIME_VADDR};
use abi_types::{CapSlot, NEVER, Opcode, Sqe, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::park::park;
use capos_rt::thread::{StackRef, Threads};
use capos_rt::{Env, exit};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::{thread_control, timer};
use test_bare::program::{Program, Sibling, work};
use test_bare::raw::Child;
use test_bare::{fault, flags, tls};

capos_rt::main!(main);

static SIBLINGS: [Sibling; 10] = [const { Sibling::new() }; 10];

capos_rt::stacks! {
    static STACKS: [16384; 3];
}
const KERNEL: u64 = 0xffff_ffff_8000_0000;
const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;
const HOLE: u64 = 0x0000_8000_0000_0000;
const GUARD: u64 = STACK_TOP - (STACK_PAGES + 1) * 4096;
/// Read-only data of the program's: bytes, and addresses, which some linkers keep apart.
static CONSTANT: [u8; 64] = *b"a constant, of which not a byte may change while a program runs.";
static RELOCATED: [&[u8; 64]; 2] = [&CONSTANT; 2];
/// Nothing went wrong where something had to.
const WENT_ON: i64 = 77;

/// Whether the process was granted something of this name.
fn has(env: &Env, name: &'static str) -> bool {
    !matches!(env.caps.find(name, timer::INTERFACE_ID), Err(capos_rt::NoCap::NotGranted(_)))
}

macro_rules! acts {
    ($($name:literal => $act:expr,)*) => {
        fn main(env: &'static Env) -> i64 {
            $(
                if has(env, $name) {
                    let act: fn(&'static Env) -> i64 = $act;
                    return act(env);
                }
            )*
            78
        }
    };
}

/// Does something that must not come back.
fn must_end(act: impl FnOnce()) -> i64 {
    act();
    WENT_ON
}

fn read(address: u64) {
    let _ = fault::read(address);
}

fn overflow() {
    let _ = fault::overflow_the_stack(0);
}

acts! {
    "undefined" => |_| must_end(fault::undefined),
    "privileged" => |_| must_end(fault::privileged),
    "port" => |_| must_end(fault::port),
    "divide" => |_| must_end(fault::divide_by_zero),
    "breakpoint" => |_| must_end(fault::breakpoint),
    "vector" => |_| must_end(fault::interrupt_of_the_timer),
    "step" => |_| must_end(fault::single_step),
    "step-syscall" => |_| must_end(fault::single_step_into_a_syscall),
    "read-null" => |_| must_end(|| read(8)),
    "read-kernel" => |_| must_end(|| read(KERNEL)),
    "read-direct" => |_| must_end(|| read(DIRECT_MAP)),
    "read-hole" => |_| must_end(|| read(HOLE)),
    "write-capset" => |_| must_end(|| fault::write(CAPSET_VADDR)),
    "write-time" => |_| must_end(|| fault::write(TIME_VADDR)),
    "write-constant" => |_| must_end(|| fault::write(CONSTANT.as_ptr().expose_provenance() as u64)),
    "write-relocated" => |_| must_end(|| fault::write(RELOCATED.as_ptr().expose_provenance() as u64)),
    "write-code" => |_| must_end(|| fault::write(fault::undefined as *const () as u64)),
    "guard" => |_| must_end(|| read(GUARD)),
    "overflow" => |_| must_end(overflow),
    "guard-first" => |_| must_end(|| fault::write(guard_end(0) - 4096)),
    "guard-byte" => |_| must_end(|| fault::write(guard_end(1) - 1)),
    "guard-last" => |_| must_end(|| read(guard_end(2) - 4000)),
    "guard-edges" => touch_all_but_the_guards,
    "overflow-thread" => overflow_in_a_thread,
    "jump-hole" => |_| must_end(|| fault::jump(HOLE)),
    "jump-kernel" => |_| must_end(|| fault::jump(KERNEL)),
    "jump-data" => |_| must_end(|| fault::jump(RING_VADDR)),
    "iret" => |_| must_end(fault::iret_to_the_kernel),
    "stack-pointer" => |_| must_end(fault::bad_stack_pointer),
    "flags" => flags_around_syscalls,
    "sibling" => fault_in_a_sibling,
    "fs-of-a-sibling" => fs_of_a_sibling,
    "siblings-at-work" => |env| with_others(env, spin_for_ever, || read(8)),
    "exit-code" => |_| -42,
    "exit-sibling" => exit_from_a_sibling,
    "exit-last" => |env| last_to_leave(env, 23),
    "exit-spin" => |env| with_others(env, spin_for_ever, || exit(11)),
    "exit-park" => |env| with_others(env, park_for_ever, || exit(12)),
    "exit-sleep" => |env| with_others(env, sleep_for_ever, || exit(13)),
    "exit-enter" => |env| with_others(env, enter_for_ever, || exit(14)),
    "exit-join" => |env| with_others(env, join_for_ever, || exit(15)),
    "exit-recv" => |env| with_others(env, recv_for_ever, || exit(16)),
    "exit-call" => |env| with_others(env, call_for_ever, || exit(17)),
    "exit-yield" => |env| with_others(env, yield_for_ever, || exit(18)),
    "beside" => yield_beside,
    "witness" => witness,
}

/// Where the guard below a stack ends.
fn guard_end(stack: usize) -> u64 {
    StackRef::from(&STACKS[stack]).memory().start as u64
}

/// What is beside the guards is there, to the last byte.
fn touch_all_but_the_guards(_: &'static Env) -> i64 {
    for stack in &STACKS {
        let memory = StackRef::from(stack).memory();
        for page in memory.clone().step_by(4096) {
            fault::write(page as u64);
            fault::write(page as u64 + 4095);
        }
        if (memory.start - 4096) % 4096 != 0 || memory.len() != 16384 {
            return 1;
        }
    }
    0
}

/// A thread on a declared stack, while the first one waits for it.
fn overflow_in_a_thread(env: &'static Env) -> i64 {
    let Ok(threads) = Threads::of(&env.caps) else { return 71 };
    let deep = |_: &Env| {
        overflow();
        WENT_ON
    };
    let Ok(thread) = threads.spawn(&env.io, &STACKS[1], deep, 0) else { return 72 };
    thread.join(&env.io).unwrap_or(73)
}

/// Flags user code can set do not matter to the kernel, and are as they were after it.
fn flags_around_syscalls(_: &'static Env) -> i64 {
    for bits in [flags::DF, flags::AC, flags::NT, flags::DF | flags::AC | flags::NT, flags::STATUS]
    {
        let (after, _) = flags::enter_with(bits);
        if after & bits != bits {
            return 1;
        }
    }
    // Not user code's to set.
    if flags::enter_with(flags::IOPL).0 & flags::IOPL != 0 {
        return 2;
    }
    for number in [2, 3, 255, 1 << 32, u64::MAX] {
        if flags::syscall(number) != (abi_types::UNKNOWN_SYSCALL, true) {
            return 3;
        }
    }
    // Without the machine's own switch for it, the flag alone refuses no access.
    let _ = fault::misaligned_with_alignment_check();
    0
}

static READY: AtomicU32 = AtomicU32::new(0);
static IS_SET: AtomicBool = AtomicBool::new(false);
static PARK: AtomicU64 = AtomicU64::new(0);
static TIMER: AtomicU64 = AtomicU64::new(0);
static ENDPOINT: AtomicU64 = AtomicU64::new(0);
static FACET: AtomicU64 = AtomicU64::new(0);
static HANDLE: AtomicU64 = AtomicU64::new(0);
static WORD: AtomicU32 = AtomicU32::new(0);

fn slot(of: &AtomicU64) -> CapSlot {
    CapSlot::from_bits(of.load(Ordering::Relaxed))
}

const OTHERS: usize = 3;

/// Ends the process while three siblings are at something.
fn with_others(env: &'static Env, others: fn(&Child) -> i64, end: fn()) -> i64 {
    let Ok(program) = Program::new(env, &SIBLINGS) else { return 71 };
    PARK.store(program.park.to_bits(), Ordering::Relaxed);
    TIMER.store(program.timer.to_bits(), Ordering::Relaxed);
    let find = |name| env.caps.find(name, 0).map_or(0, CapSlot::to_bits);
    let endpoint = env.caps.find("own", schema::endpoint::INTERFACE_ID);
    ENDPOINT.store(endpoint.map_or(0, CapSlot::to_bits), Ordering::Relaxed);
    FACET.store(find("own-client"), Ordering::Relaxed);
    for number in 0..OTHERS {
        match program.spawn(number, others, number as u64) {
            Ok(handle) => HANDLE.store(handle.to_bits(), Ordering::Relaxed),
            Err(_) => return 72,
        }
    }
    while READY.load(Ordering::Relaxed) < OTHERS as u32 {
        program.yield_now();
    }
    // Some have their operation under way, some not yet.
    program.sleep(300_000);
    end();
    WENT_ON
}

fn begin() {
    READY.fetch_add(1, Ordering::Relaxed);
}

fn spin_for_ever(_: &Child) -> i64 {
    begin();
    while !IS_SET.load(Ordering::Relaxed) {
        work(100);
    }
    1
}

fn park_for_ever(child: &Child) -> i64 {
    begin();
    let _ = park(&child.io, slot(&PARK), &WORD, 0, NEVER);
    1
}

fn sleep_for_ever(child: &Child) -> i64 {
    begin();
    let _ = timer::Client::new(child.io.caller(), slot(&TIMER)).sleep(u64::MAX / 2);
    1
}

fn enter_for_ever(_: &Child) -> i64 {
    begin();
    let _ = capos_rt::syscall::cap_enter(1, NEVER);
    1
}

fn yield_for_ever(child: &Child) -> i64 {
    begin();
    while child.io.yield_now().is_ok() {}
    1
}

/// The first ones spin, the last joins one of them.
fn join_for_ever(child: &Child) -> i64 {
    if child.argument + 1 < OTHERS as u64 {
        return park_for_ever(child);
    }
    begin();
    let _ = schema::thread_handle::Client::new(child.io.caller(), slot(&HANDLE)).join();
    park_for_ever(child)
}

fn recv_for_ever(child: &Child) -> i64 {
    begin();
    let recv = Sqe { opcode: Opcode::Recv as u8, cap: slot(&ENDPOINT).to_bits(), ..Sqe::default() };
    let _ = child.io.run(recv, &[], &mut [0; 16]);
    1
}

/// Calls its own process, which never answers: queued for one, taken for another.
fn call_for_ever(child: &Child) -> i64 {
    if child.argument == 0 {
        return recv_for_ever(child);
    }
    begin();
    let _ = child.io.run(call(slot(&FACET), PLAIN, 0, 0), &[], &mut [0; 16]);
    1
}

fn fault_here(_: &Child) -> i64 {
    fault::undefined();
    1
}

/// What the FS base of the first thread leads to.
static AT_FS: AtomicU64 = AtomicU64::new(0);

/// A thread that is given no FS base has none: not that of the thread that ran before it. There is nothing at address 0.
fn fs_of_a_sibling(env: &'static Env) -> i64 {
    let Ok(program) = Program::new(env, &SIBLINGS) else { return 1 };
    let base = core::ptr::from_ref(&AT_FS).expose_provenance() as u64;
    let mut control = thread_control::Client::new(env.io.caller(), program.control);
    if control.set_fs_base(base).is_err() {
        return 2;
    }
    let child = program.spawn(0, |_| tls::word_at_fs() as i64, 0);
    match child.and_then(|handle| program.finish(handle)) {
        Ok(_) => WENT_ON,
        Err(_) => 3,
    }
}

fn fault_in_a_sibling(env: &'static Env) -> i64 {
    let Ok(program) = Program::new(env, &SIBLINGS) else { return 71 };
    if program.spawn(0, fault_here, 0).is_err() {
        return 72;
    }
    loop {
        work(100);
    }
}

fn exit_here(_: &Child) -> i64 {
    exit(31)
}

fn exit_from_a_sibling(env: &'static Env) -> i64 {
    let Ok(program) = Program::new(env, &SIBLINGS) else { return 71 };
    if program.spawn(0, exit_here, 0).is_err() {
        return 72;
    }
    program.sleep(u64::MAX / 2);
    73
}

fn leave_with(child: &Child) -> i64 {
    child.argument as i64
}

/// A thread that was joined has left before the one that joined it: the process has the code of the
/// last.
fn last_to_leave(env: &'static Env, code: i64) -> i64 {
    let Ok(program) = Program::new(env, &SIBLINGS) else { return 71 };
    let Ok(handle) = program.spawn(0, leave_with, 5) else { return 72 };
    let joined = schema::thread_handle::Client::new(env.io.caller(), handle).join();
    if joined.is_err() {
        return 73;
    }
    let _ = thread_control::Client::new(env.io.caller(), program.control).exit_thread(code);
    WENT_ON
}

/// Yields while the others end: the next in line may be a thread of theirs that was killed there.
fn yield_beside(env: &'static Env) -> i64 {
    for _ in 0..400 {
        if env.io.yield_now().is_err() {
            return 79;
        }
    }
    0
}

/// Goes on while the others end: calls, threads and sleeps work until all are gone.
fn witness(env: &'static Env) -> i64 {
    let Ok(program) = Program::new(env, &SIBLINGS) else { return 71 };
    // Each of these ends when its process does.
    for name in ["gone-1", "gone-2"] {
        let Ok(facet) = env.cap(name, plain_schema::plain::INTERFACE_ID) else { return 72 };
        let called = env.io.run(call(facet, PLAIN, 0, 0), &[], &mut [0; 16]);
        if called.map(|cqe| status_of(&cqe)) != Ok(Status::Disconnected) {
            return 74;
        }
    }
    for round in 0..20 {
        program.sleep(200_000);
        let Ok(handle) = program.spawn(0, |child| child.argument as i64, round) else { return 75 };
        if program.finish(handle) != Ok(round as i64) {
            return 76;
        }
    }
    0
}
