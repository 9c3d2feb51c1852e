//! Either side ends while the target is in the slot.

use abi_types::{CapSlot, Status};
use capos_rt::Env;
use core::sync::atomic::AtomicU64;
use ipc_protocol::{EXIT_LATER, PING, Work};
use schema::thread_control::ExitThreadParams;
use schema::timer::SleepParams;
use test_kit::{Outcome, T, check_eq, require_ok};
use test_ring::{Raw, borrow, raw, sqe};

use crate::{Bench, start};

/// How often one thread calls and ends in the same entry.
const ENDS: u64 = 50;
const CODE: i64 = 7;

capos_rt::stacks! {
    static STACK: [16384; 1];
}

/// Calls a server and ends, in one entry: the server is in the slot of a CPU whose thread is gone.
fn call_and_end(env: &Env) -> i64 {
    let named = |name| env.caps.named(name).unwrap_or(CapSlot::NONE);
    borrow(&env.io, |ring| {
        ring.put(0, &[1, !1]);
        ring.push(sqe::named(sqe::call(named("s0"), 0, 0, 16), 1));
        let length = ring.put_params(1, &ExitThreadParams { code: CODE });
        ring.push(sqe::named(sqe::call_control(named("control"), EXIT_THREAD, 1, length), 2));
        let _ = ring.dispatch();
    });
    0
}

/// `ThreadControl.exitThread`.
const EXIT_THREAD: u16 = 2;

pub fn caller_ends(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, threads, services, .. } = *t.env;
    for number in 0..ENDS {
        let thread = require_ok!(t, threads.spawn(&env.io, &STACK[0], call_and_end, 0));
        check_eq!(t, require_ok!(t, thread.join(&env.io)), CODE);
        // The server has run, and is there for the next.
        raw(t, &env.io, |ring| {
            ring.put(0, &[number]);
            let call = sqe::named(sqe::call(services[0], 0, 0, 8), number);
            let got = ring.ends(call, Status::Ok, "the next call");
            ring.eq(got.words[0], number, "its word");
        })?;
    }
    Ok(())
}

/// Peers that end, and how long after they were told, from before the call is made to after the
/// entry is over.
const VICTIMS: [(usize, u64); 8] = [
    (4, 20_000),
    (5, 100_000),
    (6, 300_000),
    (7, 700_000),
    (8, 1_500_000),
    (9, 3_000_000),
    (10, 6_000_000),
    (11, 12_000_000),
];

/// What makes an entry long: calls whose parameters are as large as they may be.
const FILLERS: u64 = 48;
const FILLER_BYTES: u32 = 65_536;
static FILLER: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];

const CALL: u64 = 1000;

/// A server's process ends while the server is in the slot of a CPU that is in the kernel for long: the
/// call is answered or disconnected, the slot is empty, and everything goes on.
pub fn target_ends(t: &mut T<'_, Bench>) -> Outcome {
    let env = t.env.env;
    let mut disconnected = 0;
    for (peer, later_ns) in VICTIMS {
        let bench = &*t.env;
        let log = borrow(&env.io, |ring| {
            start(ring, bench, peer, Work::Serve);
            // It has answered a call, and waits for the next.
            ring.ends(sqe::call(bench.services[peer], 0, 0, 0), Status::Ok, "the first call");
            sleep(ring, bench, 1_000_000);
            ring.put(1, &[later_ns]);
            ring.ends(sqe::call(bench.commands[peer], EXIT_LATER, 1, 8), Status::Ok, "told to end");
            disconnected += u64::from(call_in_a_long_entry(ring, bench, peer));
            await_end(ring, bench, peer);
            for service in [bench.services[0], bench.echo] {
                ring.put(0, &[later_ns]);
                let got = ring.ends(sqe::call(service, 0, 0, 8), Status::Ok, "the others answer");
                ring.eq(got.words[0], later_ns, "what they were asked");
            }
        });
        log.tell(t);
    }
    t.metric("calls disconnected", disconnected, "calls");
    Ok(())
}

/// Whether the call was disconnected; otherwise it was answered.
fn call_in_a_long_entry(ring: &mut Raw<'_>, bench: &Bench, peer: usize) -> bool {
    let filler = FILLER.as_ptr().expose_provenance() as u64;
    ring.push(sqe::named(sqe::call(bench.services[peer], 0, 0, 0), CALL));
    for number in 0..FILLERS {
        let call = sqe::from_memory(sqe::call_info(bench.info, 0, 0, 0), filler, FILLER_BYTES);
        ring.push(sqe::named(call, number));
    }
    let _ = ring.dispatch();
    let mut ended = None;
    for _ in 0..=FILLERS {
        let got = ring.wait();
        if got.cqe.user_data == CALL {
            ring.check(ended.is_none(), "the call ends once");
            ended = got.status();
        }
    }
    match ended {
        Some(Status::Disconnected) => true,
        Some(Status::Ok) => false,
        odd => {
            ring.fail(format_args!("the call ended with {odd:?}"));
            false
        }
    }
}

/// How often the tester looks whether a peer is gone, a millisecond apart.
const LOOKS: u32 = 5000;

fn await_end(ring: &mut Raw<'_>, bench: &Bench, peer: usize) {
    for _ in 0..LOOKS {
        let got = ring.one(sqe::named(sqe::call(bench.commands[peer], PING, 0, 0), 1));
        if got.status() == Some(Status::Disconnected) {
            let call = sqe::call(bench.services[peer], 0, 0, 0);
            ring.ends(call, Status::Disconnected, "a call on what is gone");
            return;
        }
        sleep(ring, bench, 1_000_000);
    }
    ring.fail(format_args!("peer {peer} does not end"));
}

fn sleep(ring: &mut Raw<'_>, bench: &Bench, ns: u64) {
    let length = ring.put_params(2, &SleepParams { ns });
    ring.ends(sqe::call_timer(bench.timer, 1, 2, length), Status::Ok, "a sleep");
}
