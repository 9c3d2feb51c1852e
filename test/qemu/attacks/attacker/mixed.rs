//! Attacks that combine several: what is pending when a thread or a process ends, what has no room.

use abi_types::{NEVER, Opcode, Sqe};
use capos_rt::caller::call;
use capos_rt::exit;
use capos_rt::park::park;
use capos_rt::ring::NOP;
use core::sync::atomic::{AtomicU32, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::endpoint::{MintFacetParams, RevokeFacetsParams};
use schema::timer;
use schema::timer::SleepParams;
use schema_wire::Encode;
use test_bare::fault;
use test_bare::program::work;
use test_bare::raw::Child;
use zerocopy::IntoBytes;

use crate::{
    Attacker, ECHO, HOUR_NS, OWN, PARK, SIBLINGS, TIMER, TO_SELF, drain, goes_on, raw, slot, stay,
};

static WORD: AtomicU32 = AtomicU32::new(0);

/// Leaves sleeps, a receive, a call to its own process and one to another behind.
fn leave_pending(child: &Child) {
    for _ in 0..3 {
        let params = SleepParams { ns: HOUR_NS };
        if let Ok(pending) = child.io.start::<timer::methods::Sleep>(slot(&TIMER), &params) {
            child.io.forget(pending);
        }
    }
    let recv = Sqe { opcode: Opcode::Recv as u8, cap: slot(&OWN).to_bits(), ..NOP };
    for sqe in [recv, call(slot(&TO_SELF), PLAIN, 0, 0), call(slot(&ECHO), PLAIN, 0, 0)] {
        if let Ok(pending) = child.io.submit(sqe, &[]) {
            child.io.forget(pending);
        }
    }
    child.io.flush();
}

fn end_with_pending(child: &Child) -> i64 {
    leave_pending(child);
    0
}

/// Threads that end in the middle of everything.
pub fn pending_ends(attacker: &Attacker) -> u64 {
    attacker.with_siblings(4, end_with_pending, || ())
}

/// Facets are made, and revoked, by operations whose completions have no room: what could not be done is
/// done when there is.
pub fn full_facets(attacker: &Attacker) -> u64 {
    const FACETS: u64 = 20;
    attacker.io().with_ring(|ring| {
        let mut words = [0_u64; 16];
        for number in 0..FACETS {
            let mint = MintFacetParams { badge: 5000 + number, interface_id: 0 };
            let length = mint.encode(words.as_mut_bytes()).unwrap_or(0);
            ring.write_inline(number as u16, &words[..length.div_ceil(8)]);
            let sqe = call(attacker.own, schema::endpoint::INTERFACE_TAG, 0, length as u32);
            let _ = ring.push(Sqe { user_data: raw(number), buffer: number as u16, ..sqe });
        }
        // The rest of the completion queue, and more.
        for number in 0..200 {
            if ring.push(Sqe { user_data: raw(1000 + number), ..NOP }).is_err() {
                let _ = ring.enter(0, 0);
            }
        }
        let mut slots = [0; FACETS as usize];
        let mut made = 0;
        loop {
            let mut taken = 0;
            while let Some(completion) = ring.pop() {
                let (number, word) = (completion.cqe().user_data, completion.inline_word(1));
                let _ = completion.take();
                if let Some(place) = slots.get_mut((number & !(1 << 63)) as usize) {
                    *place = word;
                    made += 1;
                }
                taken += 1;
            }
            if taken == 0 {
                break;
            }
            let _ = ring.enter(0, 0);
        }
        for number in 0..FACETS {
            let revoke = RevokeFacetsParams { badge: 5000 + number };
            let length = revoke.encode(words.as_mut_bytes()).unwrap_or(0);
            ring.write_inline(number as u16, &words[..length.div_ceil(8)]);
            let sqe = call(attacker.own, schema::endpoint::INTERFACE_TAG, 1, length as u32);
            let _ = ring.push(Sqe { user_data: raw(number), buffer: number as u16, ..sqe });
        }
        let _ = ring.enter(0, 0);
        // A facet's slot is its index and generation, as the results have them.
        for word in slots {
            let (index, generation) = (word as u16, (word >> 32) as u32);
            let cap = abi_types::CapSlot::new(index.into(), generation).to_bits();
            let _ = ring.push(Sqe { opcode: Opcode::Release as u8, cap, user_data: raw(1), ..NOP });
        }
        let _ = ring.enter(0, 0);
        drain(ring);
        made.max(1)
    })
}

fn call_and_end(child: &Child) -> i64 {
    if let Ok(pending) = child.io.submit(call(slot(&ECHO), PLAIN, 0, 8), &[child.argument]) {
        child.io.forget(pending);
    }
    child.io.flush();
    0
}

/// Callers of a foreign server that end before the answer, and calls that are cancelled at once.
pub fn lost_calls(attacker: &Attacker) -> u64 {
    attacker.with_siblings(4, call_and_end, || {
        attacker.io().with_ring(|ring| {
            for number in 0..16 {
                let _ =
                    ring.push(Sqe { user_data: raw(number), ..call(attacker.echo, PLAIN, 0, 0) });
                let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: raw(number), ..NOP };
                let _ = ring.push(Sqe { user_data: raw(100 + number), ..cancel });
            }
            let mut left = 32;
            while left > 0 {
                let _ = ring.enter(1, NEVER);
                left -= drain(ring).min(left);
            }
        });
    })
}

fn wait_for_a_moment(child: &Child) -> i64 {
    while goes_on() {
        if child.argument.is_multiple_of(2) {
            let _ = park(&child.io, slot(&PARK), &WORD, 0, 5_000);
        } else {
            let _ = timer::Client::new(child.io.caller(), slot(&TIMER)).sleep(5_000);
        }
    }
    0
}

/// Waits that end at once, of many threads.
pub fn timeouts(attacker: &Attacker) -> u64 {
    attacker.with_siblings(SIBLINGS, wait_for_a_moment, || ())
}

fn be_in_the_middle(child: &Child) -> i64 {
    leave_pending(child);
    match child.argument % 4 {
        0 => {
            let _ = park(&child.io, slot(&PARK), &WORD, 0, NEVER);
        }
        1 => {
            while goes_on() {
                work(100);
            }
        }
        2 => stay(child),
        _ => {
            let _ = timer::Client::new(child.io.caller(), slot(&TIMER)).sleep(HOUR_NS);
        }
    }
    0
}

/// Ends with siblings that park, compute, yield and sleep, each with more pending.
pub fn end(attacker: &Attacker) -> u64 {
    for number in 0..SIBLINGS {
        let _ = attacker.spawn(number, be_in_the_middle);
    }
    for _ in 0..20 {
        let _ = attacker.io().yield_now();
    }
    WORD.store(1, Ordering::Relaxed);
    exit(0)
}

/// Ends by a fault, which the kernel reports at length.
pub fn fault(_: &Attacker) -> u64 {
    fault::undefined();
    0
}

/// *trace*: everything is recorded, marks fill the buffers, and all of it is read, started anew and stopped.
pub fn trace(attacker: &Attacker) -> u64 {
    let client = || schema::trace::Client::new(attacker.io().large(), attacker.trace);
    let started = client().start(0xff);
    for value in 0..100 {
        let _ = client().mark(value);
    }
    for position in [0, 30, 60, 2047, u64::MAX] {
        let _ = client().read(0, position, u32::MAX);
    }
    let _ = client().start(1);
    let _ = client().stop();
    u64::from(started.is_ok())
}
