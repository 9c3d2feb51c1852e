//! What each thread has for itself: FS base, vector registers, entry registers.

use crate::SIBLINGS;
use abi_types::place::CAPSET_VADDR;
use abi_types::{CapSlot, ExceptionKind, RingBlock};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use schema::thread_control;
use test_bare::program::{Program, is_exception};
use test_bare::raw::{Child, Run};
use test_bare::{tls, vectors};
use test_kit::{Outcome, T, check, check_eq, require_ok, require_some};

type Test<'a> = T<'a, Program>;

static CONTROL: AtomicU64 = AtomicU64::new(0);

fn end_at_once(_: &Child) -> i64 {
    3
}

pub fn entry_registers(t: &mut Test<'_>) -> Outcome {
    // Vector registers of this thread are not zero: a child must not see them.
    check_eq!(t, vectors::hold(0x55, 1, 0, vectors::has_avx()), 0);
    let run = Run { main: end_at_once, argument: 0, fs_base: 0 };
    let handle = require_ok!(t, SIBLINGS[0].start(t.env.io(), t.env.by(), run));
    check_eq!(t, t.env.finish(handle), Ok(3));
    let found = SIBLINGS[0].registers();
    check_eq!(t, found.is_written, 1);
    let [rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp] = found.low;
    check_eq!(t, rdi, SIBLINGS[0].start_address());
    check!(t, rsi != u64::from(t.env.env.tid.0), "the child has its parent's number");
    check_eq!(t, rdx, u64::from(t.env.env.pid.0));
    let entries = t.env.io().with_ring(|ring| ring.sq_entries());
    let block = require_some!(t, RingBlock::new(entries));
    let is_ring = |number| rcx == block.address(number);
    check!(t, (1..16).any(is_ring), "{rcx:#x} is no place of a ring of {block:?}");
    check_eq!(t, found.high[0], CAPSET_VADDR);
    check_eq!(t, rsp, SIBLINGS[0].stack_top());
    check_eq!(t, [rax, rbx, rbp], [0; 3]);
    check_eq!(t, found.high[1..], [0; 7]);
    // Bit 1 is always set, and interrupts are on in user mode.
    check_eq!(t, found.flags, 0x202);
    check_eq!(t, (found.fcw(), found.fsw_and_tags()), (0x37f, [0; 3]));
    check_eq!(t, found.mxcsr(), 0x1f80);
    check!(t, found.vectors_are_zero(), "vector registers of another thread");
    Ok(())
}

fn set(io: &capos_rt::Io, fs_base: u64) -> bool {
    let control = CapSlot::from_bits(CONTROL.load(Ordering::Relaxed));
    thread_control::Client::new(io.caller(), control).set_fs_base(fs_base).is_ok()
}

fn get(io: &capos_rt::Io) -> u64 {
    let control = CapSlot::from_bits(CONTROL.load(Ordering::Relaxed));
    thread_control::Client::new(io.caller(), control).get_fs_base().map_or(u64::MAX, |f| f.fs_base)
}

static WORDS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

fn address_of(word: &AtomicU64) -> u64 {
    core::ptr::from_ref(word).expose_provenance() as u64
}

pub fn fs_base(t: &mut Test<'_>) -> Outcome {
    CONTROL.store(t.env.control.to_bits(), Ordering::Relaxed);
    let io = t.env.io();
    let before = get(io);
    WORDS[0].store(0x1111, Ordering::Relaxed);
    WORDS[1].store(0x2222, Ordering::Relaxed);
    for (word, value) in [(0, 0x1111), (1, 0x2222), (0, 0x1111)] {
        check!(t, set(io, address_of(&WORDS[word])));
        // In effect when the call is complete, without a switch in between.
        check_eq!(t, tls::word_at_fs(), value);
        check_eq!(t, get(io), address_of(&WORDS[word]));
    }
    for bad in [0x0000_8000_0000_0000, 0xffff_8000_0000_0000, u64::MAX, 1 << 63] {
        let mut control = thread_control::Client::new(io.caller(), t.env.control);
        let refused = control.set_fs_base(bad);
        let words = "not a user address";
        check!(t, is_exception(&refused, ExceptionKind::InvalidArgument, words), "{refused:?}");
        check_eq!(t, tls::word_at_fs(), 0x1111);
    }
    check!(t, set(io, before));
    Ok(())
}

static READY: AtomicU32 = AtomicU32::new(0);
const ROUNDS: u32 = 300;

/// Looks at its own word again and again, with others in between; odd ones move their base.
fn look_at_fs(child: &Child) -> i64 {
    let own = child.argument;
    READY.fetch_add(1, Ordering::Relaxed);
    while READY.load(Ordering::Relaxed) < 6 {
        let _ = child.io.yield_now();
    }
    for round in 0..ROUNDS {
        if tls::word_at_fs() != own {
            return 1;
        }
        if own % 2 == 1 && round == ROUNDS / 2 && !set(&child.io, get(&child.io)) {
            return 2;
        }
        if child.io.yield_now().is_err() {
            return 3;
        }
    }
    0
}

pub fn fs_base_of_siblings(t: &mut Test<'_>) -> Outcome {
    CONTROL.store(t.env.control.to_bits(), Ordering::Relaxed);
    READY.store(0, Ordering::Relaxed);
    let mut handles = [CapSlot::NONE; 6];
    for (number, handle) in handles.iter_mut().enumerate() {
        WORDS[number].store(number as u64, Ordering::Relaxed);
        let fs_base = address_of(&WORDS[number]);
        let run = Run { main: look_at_fs, argument: number as u64, fs_base };
        *handle = require_ok!(t, SIBLINGS[number].start(t.env.io(), t.env.by(), run));
    }
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    Ok(())
}

/// The selector of user data.
const USER_DATA: u16 = 0x1b;
static IS_OVER: AtomicU32 = AtomicU32::new(0);

/// Takes its own FS base away and leaves selectors behind, again and again; every other time it stops
/// in the kernel, else at the end of its slice.
fn spoil_segments(child: &Child) -> i64 {
    let selector = child.argument as u16;
    while IS_OVER.load(Ordering::Relaxed) == 0 {
        tls::load_fs(selector);
        tls::load_data_segments(USER_DATA);
        READY.store(1, Ordering::Relaxed);
        for _ in 0..2_000 {
            core::hint::spin_loop();
        }
        if READY.fetch_add(1, Ordering::Relaxed) % 2 == 1 && child.io.yield_now().is_err() {
            return 1;
        }
    }
    0
}

/// Looks at its own word and selectors while the other one runs in between.
fn watch_segments(child: &Child) -> i64 {
    while READY.load(Ordering::Relaxed) == 0 {
        let _ = child.io.yield_now();
    }
    let mut result = 0;
    for round in 0..100_u32 {
        if tls::word_at_fs() != child.argument {
            result = 2;
        } else if tls::selectors() != [0; 4] {
            result = 3;
        } else if round % 4 != 0 && child.io.yield_now().is_err() {
            result = 4;
        }
        if result != 0 {
            break;
        }
        for _ in 0..10_000 {
            core::hint::spin_loop();
        }
    }
    IS_OVER.store(1, Ordering::Relaxed);
    result
}

/// One thread loads segment registers, which takes nothing from the next one on its CPU and tells it
/// nothing, though both were given the same FS base.
pub fn segments_of_siblings(t: &mut Test<'_>) -> Outcome {
    WORDS[0].store(0x7777, Ordering::Relaxed);
    let fs_base = address_of(&WORDS[0]);
    // A null load leaves no selector behind and still clears the base on some CPUs.
    for selector in [USER_DATA, 0, 3] {
        READY.store(0, Ordering::Relaxed);
        IS_OVER.store(0, Ordering::Relaxed);
        let victim = Run { main: watch_segments, argument: 0x7777, fs_base };
        let victim = require_ok!(t, SIBLINGS[0].start(t.env.io(), t.env.by(), victim));
        let spoiler = Run { main: spoil_segments, argument: u64::from(selector), fs_base };
        let spoiler = require_ok!(t, SIBLINGS[1].start(t.env.io(), t.env.by(), spoiler));
        check_eq!(t, t.env.finish(victim), Ok(0));
        check_eq!(t, t.env.finish(spoiler), Ok(0));
    }
    Ok(())
}

fn hold_vectors(child: &Child) -> i64 {
    READY.fetch_add(1, Ordering::Relaxed);
    while READY.load(Ordering::Relaxed) < 4 {
        let _ = child.io.yield_now();
    }
    let avx = vectors::has_avx();
    // Long enough for slices to end, then with entries: a switch from an interrupt and one from a
    // syscall keep registers on different ways.
    let wrong = vectors::hold(child.argument + 1, 4_000_000, 300, avx);
    i64::from(wrong)
}

pub fn vectors(t: &mut Test<'_>) -> Outcome {
    READY.store(0, Ordering::Relaxed);
    let mut handles = [CapSlot::NONE; 4];
    for (number, handle) in handles.iter_mut().enumerate() {
        *handle = require_ok!(t, t.env.spawn(number, hold_vectors, number as u64));
    }
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    t.metric("with AVX", u64::from(vectors::has_avx()), "");
    Ok(())
}
