//! Two CPUs: an idle one comes for work, is told of it, and a thread is ended that runs on another one.

use abi_types::{CapSlot, Opcode, Sqe, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::now_ns;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_bare::program::{Program, work};
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_ok};

use crate::peer::{ECHO, END};

type Test<'a> = T<'a, Program>;

/// How long a thread runs while another waits.
const SLICE_NS: u64 = 10_000_000;
/// A thread that has a CPU to itself never loses it for as long; with two CPUs emulated in turn the other
/// one's share of the clock counts too.
const OWN_CPU_GAP_NS: u64 = SLICE_NS / 10;
const HOGS: usize = 3;

/// When gaps begin to count, and which hogs are to end.
static FROM_NS: AtomicU64 = AtomicU64::new(u64::MAX);
static IS_OVER: [AtomicU32; HOGS] = [const { AtomicU32::new(0) }; HOGS];
static GAP_NS: [AtomicU64; HOGS] = [const { AtomicU64::new(0) }; HOGS];

/// Computes until it is told to end, and notes the longest time without a CPU.
fn hog(child: &Child) -> i64 {
    let number = child.argument as usize;
    let mut last = now_ns();
    while IS_OVER[number].load(Ordering::Relaxed) == 0 {
        work(400);
        core::hint::spin_loop();
        let now = now_ns();
        if last >= FROM_NS.load(Ordering::Relaxed) {
            GAP_NS[number].fetch_max(now - last, Ordering::Relaxed);
        }
        last = now;
    }
    0
}

/// Three threads on two CPUs, then one ends: whichever it is, the CPU that is free takes one of the
/// others, and both have a CPU to themselves.
pub fn idle_cpu_steals(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() != 2 {
        return t.skip("two CPUs, for three threads");
    }
    let mut longest = 0;
    for first in 0..HOGS {
        FROM_NS.store(u64::MAX, Ordering::Relaxed);
        let mut handles = [CapSlot::NONE; HOGS];
        for (number, handle) in handles.iter_mut().enumerate() {
            IS_OVER[number].store(0, Ordering::Relaxed);
            GAP_NS[number].store(0, Ordering::Relaxed);
            *handle = require_ok!(t, t.env.spawn(number, hog, number as u64));
        }
        t.env.sleep(SLICE_NS * 4);
        IS_OVER[first].store(1, Ordering::Relaxed);
        check_eq!(t, t.env.finish(handles[first]), Ok(0));
        // The thread that waited may have to wait for this one to sleep.
        FROM_NS.store(now_ns() + 1_000_000, Ordering::Relaxed);
        t.env.sleep(SLICE_NS * 8);
        FROM_NS.store(u64::MAX, Ordering::Relaxed);
        for (number, handle) in handles.into_iter().enumerate().filter(|(n, _)| *n != first) {
            IS_OVER[number].store(1, Ordering::Relaxed);
            check_eq!(t, t.env.finish(handle), Ok(0));
            let gap = GAP_NS[number].load(Ordering::Relaxed);
            check!(t, gap > 0, "hog {number} never ran after {first} ended");
            check!(t, gap <= OWN_CPU_GAP_NS, "hog {number} waited {gap} ns after {first} ended");
            longest = gap.max(longest);
        }
    }
    t.metric("longest gap", longest, "ns");
    Ok(())
}

static ENDPOINT: AtomicU64 = AtomicU64::new(0);
static HEARD: AtomicU32 = AtomicU32::new(0);
const CALLS: u32 = 20;

/// Receives calls and answers them, and says how many there were.
fn listen(child: &Child) -> i64 {
    let cap = ENDPOINT.load(Ordering::Relaxed);
    for number in 1..=CALLS {
        let recv = Sqe { opcode: Opcode::Recv as u8, cap, ..Sqe::default() };
        let Ok(cqe) = child.io.run(recv, &[], &mut [0; 16]) else { return 1 };
        // Release pairs with the acquire in `idle_cpu_is_told`.
        HEARD.store(number, Ordering::Release);
        let answer = Sqe { opcode: Opcode::Return as u8, arg: cqe.token, ..Sqe::default() };
        if child.io.run_plain(answer) != Ok((Status::Ok, 0)) {
            return 2;
        }
    }
    0
}

/// A caller that does not wait keeps its CPU, and its server was to run there: the idle CPU is told, and
/// has the server run at once.
pub fn idle_cpu_is_told(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() == 1 {
        return t.skip("needs two CPUs");
    }
    let own = require_ok!(t, t.env.env.cap("own", schema::endpoint::INTERFACE_ID));
    let facet = require_ok!(t, t.env.env.cap("self", plain_schema::plain::INTERFACE_ID));
    ENDPOINT.store(own.to_bits(), Ordering::Relaxed);
    HEARD.store(0, Ordering::Relaxed);
    let server = require_ok!(t, t.env.spawn(0, listen, 0));
    let mut longest = 0;
    for number in 1..=CALLS {
        // The server waits by then, and its CPU is idle.
        t.env.sleep(300_000);
        let pending = require_ok!(t, t.env.io().submit(call(facet, PLAIN, 0, 0), &[]));
        t.env.io().flush();
        let from = now_ns();
        while HEARD.load(Ordering::Acquire) < number && now_ns() - from < SLICE_NS * 4 {
            work(50);
            core::hint::spin_loop();
        }
        let waited = now_ns() - from;
        check!(t, waited <= SLICE_NS / 10, "call {number} was received after {waited} ns");
        longest = waited.max(longest);
        check_eq!(t, status_of(&t.env.io().wait(pending, &mut [0; 16])), Status::Ok);
    }
    check_eq!(t, t.env.finish(server), Ok(0));
    t.metric("longest wait of a server", longest, "ns");
    Ok(())
}

/// How soon a process is gone whose last thread computes on another CPU: its end is told by an
/// interrupt, not by the end of a slice, which a thread that is alone does not have.
const GONE_NS: u64 = 2_000_000;

pub fn kill_interrupts(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() == 1 {
        return t.skip("needs two CPUs");
    }
    let mut longest = 0;
    for name in ["spinner0", "spinner1", "spinner2"] {
        let facet = require_ok!(t, t.env.env.cap(name, plain_schema::plain::INTERFACE_ID));
        let mut words = [0; 16];
        let mut spins = 0;
        // The first one makes it compute; from then on it counts.
        for _ in 0..100 {
            let cqe = require_ok!(t, t.env.io().run(call(facet, PLAIN, ECHO, 0), &[], &mut words));
            check_eq!(t, status_of(&cqe), Status::Ok);
            if words[0] > spins && spins > 0 {
                break;
            }
            spins = words[0];
            t.env.sleep(100_000);
        }
        check!(t, words[0] > 0, "{name} does not compute");
        let from = now_ns();
        let end = require_ok!(t, t.env.io().submit(call(facet, PLAIN, END, 0), &[]));
        // Ends when nothing is left that could receive it, or when it has waited for too long.
        let last = Sqe { arg: from + 20 * GONE_NS, ..call(facet, PLAIN, ECHO, 0) };
        let cqe = require_ok!(t, t.env.io().run(last, &[], &mut words));
        let took = now_ns() - from;
        check_eq!(t, status_of(&cqe), Status::Disconnected);
        check_eq!(t, status_of(&t.env.io().wait(end, &mut words)), Status::Disconnected);
        check!(t, took <= GONE_NS, "{name} was gone after {took} ns");
        longest = took.max(longest);
    }
    t.metric("longest end", longest, "ns");
    Ok(())
}
