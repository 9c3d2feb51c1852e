//! Attacks by what any program may ask for: threads, facets, sleeps, parks, messages.

use abi_types::{CapSlot, Opcode, Sqe, SqeFlags};
use capos_rt::caller::call;
use capos_rt::now_ns;
use capos_rt::park::{park, unpark_sqe};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::timer::SleepUntilParams;
use schema::{endpoint, thread_control, thread_handle, timer};
use test_bare::raw::Child;
use test_bare::tls;

use crate::{Attacker, OWN, PARK, SIBLINGS, goes_on, slot};

/// A thread whose handle is gone before it runs, and a join by a handle that nobody has. The process may
/// have one sibling at a time: the next one is made when nothing is left of the one before, its stack
/// included.
pub fn handles(attacker: &Attacker) -> u64 {
    if let Some(handle) = attacker.spawn(0, |_| 0) {
        let _ = attacker.io().release(handle);
        let stale = thread_handle::Client::new(attacker.io().caller(), handle).join();
        if stale.is_ok() {
            return 0;
        }
    }
    let _ = attacker.io().yield_now();
    1
}

/// As many facets as there are slots, each with a badge of its own; then each badge is revoked and each
/// slot released.
pub fn facets(attacker: &Attacker) -> u64 {
    let mut slots = [CapSlot::NONE; 64];
    let mut made = 0;
    for (badge, place) in (1000..).zip(&mut slots) {
        let mut own = endpoint::Client::new(attacker.io().caller(), attacker.own);
        let Ok(facet) = own.mint_facet(badge, 0) else { break };
        *place = CapSlot::new(facet.facet_index.into(), facet.facet_generation);
        made += 1;
    }
    for (badge, place) in (1000..).zip(&slots).take(made) {
        let mut own = endpoint::Client::new(attacker.io().caller(), attacker.own);
        let _ = own.revoke_facets(badge);
        let _ = attacker.io().release(*place);
    }
    made as u64
}

/// Every sleep the process may have, all due at the same moment, which is at once.
pub fn sleepers(attacker: &Attacker) -> u64 {
    let params = SleepUntilParams { deadline_ns: now_ns() + 30_000 };
    let mut pending = [const { None }; 16];
    for place in &mut pending {
        *place = attacker.io().start::<timer::methods::SleepUntil>(attacker.timer, &params).ok();
    }
    let mut count = 0;
    for sleep in pending.into_iter().flatten() {
        let _ = attacker.io().wait(sleep, &mut [0; 16]);
        count += 1;
    }
    count
}

static WORD: AtomicU32 = AtomicU32::new(0);

/// Parks whenever it was woken.
fn park_again(child: &Child) -> i64 {
    while goes_on() {
        let now = WORD.load(Ordering::Relaxed);
        let _ = park(&child.io, slot(&PARK), &WORD, now, 1_000_000);
    }
    0
}

/// Wakes all siblings at once, as often as it can, and whoever waits at an address that is another
/// process's, where this one has memory too.
pub fn parkers(attacker: &Attacker, foreign: u64) -> u64 {
    let wake = unpark_sqe(attacker.park, &WORD, u32::MAX);
    let mut rounds = 0;
    attacker.with_siblings(SIBLINGS, park_again, || {
        loop {
            WORD.fetch_add(1, Ordering::Relaxed);
            let _ = attacker.io().run_plain(wake);
            let _ = attacker.io().run_plain(Sqe { arg: foreign, ..wake });
            let _ = attacker.io().yield_now();
            rounds += 1;
            if !goes_on() {
                break;
            }
        }
    });
    rounds
}

pub fn yields(attacker: &Attacker) -> u64 {
    u64::from(attacker.io().yield_now().is_ok())
}

const LARGE_BYTES: u32 = 65_536;
static OUT: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];
static BACK: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];

fn address(of: &[AtomicU64; 8192]) -> u64 {
    of.as_ptr().expose_provenance() as u64
}

/// Receives large messages, and answers with as much.
fn receive_at_length(child: &Child) -> i64 {
    let cap = slot(&OWN).to_bits();
    let into = Sqe {
        flags: SqeFlags::RESULT_BY_ADDRESS,
        cap,
        result_address: address(&BACK),
        result_capacity: LARGE_BYTES,
        ..Sqe::default()
    };
    loop {
        let recv = Sqe { opcode: Opcode::Recv as u8, ..into };
        let Ok(cqe) = child.io.run(recv, &[], &mut [0; 16]) else { return 1 };
        let answer = Sqe {
            opcode: Opcode::Return as u8,
            flags: SqeFlags::BY_ADDRESS,
            arg: cqe.token,
            address: address(&BACK),
            length: LARGE_BYTES,
            ..Sqe::default()
        };
        let _ = child.io.run_plain(answer);
        if cqe.method != 0 {
            return 0;
        }
    }
}

/// The largest messages there are, to a sibling and back.
pub fn messages(attacker: &Attacker) -> u64 {
    let mut rounds = 0;
    attacker.with_siblings(1, receive_at_length, || {
        let mut is_last = false;
        while !is_last {
            is_last = !goes_on();
            let sqe = Sqe {
                flags: SqeFlags::BY_ADDRESS | SqeFlags::RESULT_BY_ADDRESS,
                address: address(&OUT),
                length: LARGE_BYTES,
                result_address: address(&BACK),
                result_capacity: LARGE_BYTES,
                ..call(attacker.to_self, PLAIN, u16::from(is_last), 0)
            };
            let _ = attacker.io().run_plain(sqe);
            rounds += 1;
        }
    });
    rounds
}

/// The selector of user data.
const USER_DATA: u16 = 0x1b;

/// Takes the FS base away from the CPU, which is the observer's too, and leaves selectors behind: at the
/// end of its slice, and at a call that hands the CPU over.
pub fn segments(attacker: &Attacker, fs_base: u64) -> u64 {
    let mut control = thread_control::Client::new(attacker.io().caller(), attacker.by.control);
    if control.set_fs_base(fs_base).is_err() {
        return 0;
    }
    let mut rounds = 0;
    loop {
        tls::load_fs(if rounds % 2 == 0 { USER_DATA } else { 0 });
        tls::load_data_segments(USER_DATA);
        if rounds % 8 == 0 {
            let _ = attacker.io().run(call(attacker.echo, PLAIN, 0, 8), &[rounds], &mut [0; 16]);
        }
        test_bare::program::work(2_000);
        rounds += 1;
        if !goes_on() {
            return rounds;
        }
    }
}

/// Sixteen calls at once to a server that others call too.
pub fn bursts(attacker: &Attacker) -> u64 {
    let mut pending = [const { None }; 16];
    for (number, place) in (0..).zip(&mut pending) {
        *place = attacker.io().submit(call(attacker.echo, PLAIN, 0, 8), &[number]).ok();
    }
    let mut count = 0;
    for echo in pending.into_iter().flatten() {
        let _ = attacker.io().wait(echo, &mut [0; 16]);
        count += 1;
    }
    count
}
