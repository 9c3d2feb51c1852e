//! What a process is started with: registers, capabilities, clock, thread-local data.
#![no_std]
#![no_main]
#![feature(thread_local)]

use abi_types::place::{CAPSET_VADDR, RING_VADDR, STACK_TOP};
use abi_types::{CapSlot, InterfaceTag, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::{Env, Error, NoCap, now_ns};
use core::cell::Cell;
use plain_schema::plain;
use schema::{console, endpoint, park_space, system_info, thread_control, thread_spawner, timer};
use test_bare::program::{Program, Sibling};
use test_bare::{entry, tls};
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require_ok};

capos_rt::main!(main);

static SIBLINGS: [Sibling; 2] = [const { Sibling::new() }; 2];

const SUITE: Suite<Program> = Suite::new(&[
    Test::new("start.entry_registers", entry_registers),
    Test::new("start.capset", capset),
    Test::new("start.time_page", time_page),
    Test::new("start.thread_local_data", thread_local_data),
    Test::new("start.stale_slots", stale_slots),
    Test::new("start.no_more_than_the_interface", no_more_than_the_interface),
]);

type Testing<'a> = T<'a, Program>;

fn main(env: &'static Env) -> Result<(), Error> {
    let mut program = Program::new(env, &SIBLINGS)?;
    test_user::run_with(env, &SUITE, &mut program)
}

fn entry_registers(t: &mut Testing<'_>) -> Outcome {
    let found = entry::first();
    check_eq!(t, found.is_written, 1);
    let [rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp] = found.low;
    check_eq!(t, rdi, 0);
    check_eq!(t, (rsi, rdx), (t.env.env.tid.0.into(), t.env.env.pid.0.into()));
    check_eq!(t, rcx, RING_VADDR);
    check_eq!(t, found.high[0], CAPSET_VADDR);
    check_eq!(t, rsp, STACK_TOP);
    check_eq!(t, [rax, rbx, rbp], [0; 3]);
    check_eq!(t, found.high[1..], [0; 7]);
    // Bit 1 is always set, and interrupts are on in user mode.
    check_eq!(t, found.flags, 0x202);
    check_eq!(t, found.segments, [0; 4]);
    check_eq!(t, (found.fcw(), found.fsw_and_tags()), (0x37f, [0; 3]));
    check_eq!(t, found.mxcsr(), 0x1f80);
    check!(t, found.vectors_are_zero(), "vector registers are not clean");
    Ok(())
}

const LONGEST: &str = "a name of forty-four bytes, the longest here";

fn capset(t: &mut Testing<'_>) -> Outcome {
    let expected = [
        ("console", console::INTERFACE_ID),
        ("records", console::INTERFACE_ID),
        ("timer", timer::INTERFACE_ID),
        ("info", system_info::INTERFACE_ID),
        ("spawner", thread_spawner::INTERFACE_ID),
        ("control", thread_control::INTERFACE_ID),
        ("park", park_space::INTERFACE_ID),
        ("own", endpoint::INTERFACE_ID),
        (LONGEST, plain::INTERFACE_ID),
    ];
    let mut before = CapSlot::NONE;
    for (name, interface) in expected {
        let slot = require_ok!(t, t.env.env.caps.find(name, interface));
        check!(t, slot != before && slot.generation() != 0, "{name}: {slot:?}");
        before = slot;
    }
    let missing = t.env.env.caps.find("consol", console::INTERFACE_ID);
    check_eq!(t, missing, Err(NoCap::NotGranted("consol")));
    let other = t.env.env.caps.find("timer", console::INTERFACE_ID);
    check!(t, matches!(other, Err(NoCap::OtherInterface { .. })), "{other:?}");
    Ok(())
}

fn time_page(t: &mut Testing<'_>) -> Outcome {
    let mut timer = timer::Client::new(t.env.io().caller(), t.env.timer);
    for _ in 0..200 {
        let before = now_ns();
        let called = require_ok!(t, timer.now()).ns;
        let after = now_ns();
        check!(t, before <= called && called <= after, "{before}, {called}, {after}");
    }
    Ok(())
}

#[thread_local]
static COUNTED: Cell<u64> = Cell::new(0x1122_3344_5566_7788);
#[thread_local]
static ZERO: Cell<[u64; 40]> = Cell::new([0; 40]);

/// Thread-local data that must lie on a multiple of 64.
#[repr(align(64))]
struct Aligned(Cell<u64>);

#[thread_local]
static ALIGNED: Aligned = Aligned(Cell::new(0x55));

fn thread_local_data(t: &mut Testing<'_>) -> Outcome {
    check_eq!(t, COUNTED.get(), 0x1122_3344_5566_7788);
    check_eq!(t, ZERO.get(), [0; 40]);
    check_eq!(t, ALIGNED.0.get(), 0x55);
    let at = core::ptr::from_ref(&ALIGNED).addr();
    check!(t, at.is_multiple_of(64), "aligned data at {at:#x}");
    COUNTED.set(1);
    check_eq!(t, COUNTED.get(), 1);
    // The thread pointer leads to itself.
    let mut control = thread_control::Client::new(t.env.io().caller(), t.env.control);
    let fs_base = require_ok!(t, control.get_fs_base()).fs_base;
    check_eq!(t, tls::word_at_fs(), fs_base);
    // A sibling is started with what it is given and nothing else.
    let handle = require_ok!(t, t.env.spawn(0, own_fs_base, t.env.control.to_bits()));
    check_eq!(t, t.env.finish(handle), Ok(0));
    Ok(())
}

fn own_fs_base(child: &test_bare::raw::Child) -> i64 {
    let control = CapSlot::from_bits(child.argument);
    let found = thread_control::Client::new(child.io.caller(), control).get_fs_base();
    found.map_or(-1, |found| found.fs_base as i64)
}

fn status_of_call(t: &Testing<'_>, slot: CapSlot, tag: InterfaceTag, method: u16) -> Status {
    let called = t.env.io().run(call(slot, tag, method, 0), &[], &mut [0; 16]);
    called.map_or_else(|status| status, |cqe| status_of(&cqe))
}

/// A call of a Timer.
fn call_status(t: &Testing<'_>, slot: CapSlot, method: u16) -> Status {
    status_of_call(t, slot, timer::INTERFACE_TAG, method)
}

fn stale_slots(t: &mut Testing<'_>) -> Outcome {
    const NOW: u16 = 0;
    let timer = t.env.timer;
    check_eq!(t, call_status(t, timer, NOW), Status::Ok);
    let stale = [
        CapSlot::NONE,
        CapSlot::new(timer.index(), timer.generation() + 1),
        CapSlot::new(timer.index(), timer.generation().wrapping_sub(1)),
        CapSlot::new(timer.index(), u32::MAX),
        CapSlot::new(63, 1),
        CapSlot::new(64, 1),
        CapSlot::new(u32::MAX, 1),
        CapSlot::from_bits(u64::MAX),
    ];
    for slot in stale {
        let found = call_status(t, slot, NOW);
        check!(t, found == Status::Disconnected, "{slot:?}: {found:?}");
        check_eq!(t, t.env.release(slot), Err(Status::Disconnected));
    }
    // What stands in a slot that was used before has another generation.
    let (first, second) = (spawn_and_join(t)?, spawn_and_join(t)?);
    check!(t, first != second, "{first:?} names two threads");
    if first.index() == second.index() {
        check!(t, first.generation() != second.generation(), "{first:?}, {second:?}");
    }
    check_eq!(t, call_status(t, first, 1), Status::Disconnected);
    Ok(())
}

/// The name a handle had that is given back.
fn spawn_and_join(t: &mut Testing<'_>) -> Result<CapSlot, test_kit::Ended> {
    match t.env.spawn(1, |_| 0, 0).and_then(|handle| t.env.finish(handle).map(|_| handle)) {
        Ok(handle) => Ok(handle),
        Err(error) => {
            t.fail(format_args!("no thread: {error:?}"))?;
            Ok(CapSlot::NONE)
        }
    }
}

fn no_more_than_the_interface(t: &mut Testing<'_>) -> Outcome {
    let console = require_ok!(t, t.env.env.cap("console", console::INTERFACE_ID));
    let own = require_ok!(t, t.env.env.cap("own", endpoint::INTERFACE_ID));
    let caps = [
        (t.env.timer, timer::INTERFACE_TAG, 4),
        (t.env.info, system_info::INTERFACE_TAG, 2),
        (t.env.spawner, thread_spawner::INTERFACE_TAG, 1),
        (t.env.control, thread_control::INTERFACE_TAG, 3),
        (t.env.park, park_space::INTERFACE_TAG, 0),
        (console, console::INTERFACE_TAG, 2),
        (own, endpoint::INTERFACE_TAG, 3),
    ];
    for (slot, tag, methods) in caps {
        for method in [methods, methods + 1, 100, u16::MAX] {
            let found = status_of_call(t, slot, tag, method);
            check!(t, found == Status::Unimplemented, "{slot:?} method {method}: {found:?}");
        }
        // Nor by another interface's number.
        let found = status_of_call(t, slot, plain::INTERFACE_TAG, 0);
        check!(t, found == Status::WrongInterface, "{slot:?}: {found:?}");
    }
    Ok(())
}
