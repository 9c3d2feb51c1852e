//! Attacks on what is known to be open: see `docs/book/attacks.md`.

use abi_types::{NEVER, Opcode, Sqe, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::now_ns;
use capos_rt::ring::NOP;
use core::sync::atomic::{AtomicU32, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::console::{ReadParams, WriteParams};
use schema::thread_handle;
use schema::timer::SleepParams;
use schema_wire::Encode;
use test_bare::raw::{Child, Main, Run};
use zerocopy::IntoBytes;

use crate::sizes::{STACKS, crowd};
use crate::{Attacker, HOUR_NS, OWN, TO_SELF, UNTIL_NS, drain, goes_on, raw, slot};

/// How often a read is begun: more often than a machine has pending operations; then as many sleeps as a process may
/// have.
const READS: u64 = 4_080;
const SLEEPS: u64 = 16;

/// Begins a console read and cancels it, again and again; the last one stays for as long as the attack.
pub fn console_reads(attacker: &Attacker) -> u64 {
    let io = attacker.io();
    io.with_ring(|ring| {
        let mut words = [0_u64; 16];
        let length = ReadParams { capacity: 8 }.encode(words.as_mut_bytes()).unwrap_or(0);
        ring.write_inline(0, &words[..length.div_ceil(8)]);
        let read = Sqe {
            user_data: raw(1),
            ..call(attacker.console, schema::console::INTERFACE_TAG, 1, length as u32)
        };
        let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: raw(1), user_data: raw(2), ..NOP };
        let _ = ring.push(read);
        for _ in 0..READS {
            let _ = ring.push(cancel);
            let _ = ring.push(read);
            let _ = ring.enter(0, 0);
            drain(ring);
        }
        let length = SleepParams { ns: HOUR_NS }.encode(words.as_mut_bytes()).unwrap_or(0);
        ring.write_inline(1, &words[..length.div_ceil(8)]);
        for number in 0..SLEEPS {
            let sleep = call(attacker.timer, schema::timer::INTERFACE_TAG, 1, length as u32);
            let _ = ring.push(Sqe { user_data: raw(10 + number), buffer: 1, ..sleep });
        }
        let _ = ring.enter(0, 0);
        let until_ns = UNTIL_NS.load(Ordering::Relaxed);
        let _ = ring.enter(u32::MAX, until_ns.saturating_sub(now_ns()));
        // A sleep that was refused has said so by now.
        let refused = drain(ring);
        for number in 0..SLEEPS {
            let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: raw(10 + number), ..NOP };
            let _ = ring.push(Sqe { user_data: raw(2), ..cancel });
        }
        let _ = ring.push(cancel);
        let _ = ring.enter(0, 0);
        drain(ring);
        READS - refused.min(READS)
    })
}

/// Eight writes of 64 newlines in one entry.
pub fn newlines(attacker: &Attacker) -> u64 {
    attacker.io().with_ring(|ring| {
        let mut words = [0_u64; 16];
        let length = WriteParams { bytes: &[b'\n'; 64] }.encode(words.as_mut_bytes()).unwrap_or(0);
        ring.write_inline(0, &words[..length.div_ceil(8)]);
        for number in 0..8 {
            let write = call(attacker.console, schema::console::INTERFACE_TAG, 0, length as u32);
            let _ = ring.push(Sqe { user_data: raw(number), ..write });
        }
        let _ = ring.enter(0, 0);
        drain(ring)
    })
}

/// Calls that may wait at an endpoint, receives that may, and calls that may be received and not answered.
const PARTIES: usize = 32;

/// Makes a thread for each party, lets `meanwhile` run, and joins them; how many ended as they should.
fn with_parties(attacker: &Attacker, main: Main, meanwhile: impl FnOnce()) -> u64 {
    let mut handles = [None; PARTIES];
    for (stack, handle) in STACKS.iter().zip(&mut handles) {
        let run = Run { main, argument: 0, fs_base: 0 };
        *handle = stack.start(attacker.io(), attacker.by, run).ok();
    }
    // They have all run, and wait.
    while goes_on() && WAITING.load(Ordering::Relaxed) < PARTIES as u32 {
        let _ = attacker.io().yield_now();
    }
    let _ = attacker.io().yield_now();
    meanwhile();
    let mut ended = 0;
    for handle in handles.into_iter().flatten() {
        let joined = thread_handle::Client::new(attacker.io().caller(), handle).join();
        ended += u64::from(joined.is_ok_and(|joined| joined.exit_code == 0));
        let _ = attacker.io().release(handle);
    }
    WAITING.store(0, Ordering::Relaxed);
    ended
}

/// Threads that are about to wait.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// Waits for what must not come; 0 if it was told so.
fn wait_in_vain(child: &Child, sqe: Sqe) -> i64 {
    WAITING.fetch_add(1, Ordering::Relaxed);
    let ended = child.io.run(sqe, &[], &mut [0; 16]);
    i64::from(!ended.is_ok_and(|cqe| status_of(&cqe) == Status::Disconnected))
}

fn receive_in_vain(child: &Child) -> i64 {
    wait_in_vain(child, Sqe { opcode: Opcode::Recv as u8, cap: slot(&OWN).to_bits(), ..NOP })
}

fn call_in_vain(child: &Child) -> i64 {
    wait_in_vain(child, call(slot(&TO_SELF), PLAIN, 0, 0))
}

/// Closes an endpoint where as many threads wait as may; how many that were.
pub fn close(attacker: &Attacker) -> u64 {
    let ended = with_parties(attacker, receive_in_vain, || {
        let _ = attacker.io().release(attacker.own);
    });
    stay(attacker);
    ended
}

/// Does nothing more until the time is over.
fn stay(attacker: &Attacker) {
    while goes_on() {
        attacker.io().with_ring(|ring| {
            let _ = ring.enter(u32::MAX, 50_000);
        });
    }
}

/// Receives as many calls as it may, and ends without an answer.
fn receive_and_end(child: &Child) -> i64 {
    child.io.with_ring(|ring| {
        for number in 0..PARTIES as u64 {
            let recv = Sqe { opcode: Opcode::Recv as u8, cap: slot(&OWN).to_bits(), ..NOP };
            let _ = ring.push(Sqe { user_data: raw(number), ..recv });
        }
        let mut received = 0;
        while received < PARTIES as u64 {
            let _ = ring.enter(1, NEVER);
            received += drain(ring);
        }
    });
    0
}

/// A thread ends that has received calls of as many threads as it may, all of which wait.
pub fn receiver_ends(attacker: &Attacker) -> u64 {
    with_parties(attacker, call_in_vain, || {
        attacker.with_siblings(1, receive_and_end, || ());
    })
}

/// Makes threads until it may not, which stay for good; how many there are.
pub fn threads(attacker: &Attacker) -> u64 {
    crowd(attacker, STACKS.len() as u64)
}

/// As many calls to the observer's endpoint as it takes; they stay there to the end.
pub fn queue(attacker: &Attacker) -> u64 {
    attacker.io().with_ring(|ring| {
        for number in 0..40 {
            let _ =
                ring.push(Sqe { user_data: raw(number), ..call(attacker.observer, PLAIN, 0, 0) });
        }
        let _ = ring.enter(0, 0);
    });
    stay(attacker);
    attacker.io().with_ring(|ring| {
        for number in 0..40 {
            let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: raw(number), ..NOP };
            let _ = ring.push(Sqe { user_data: raw(100), ..cancel });
        }
        let _ = ring.enter(0, 0);
        drain(ring)
    })
}
