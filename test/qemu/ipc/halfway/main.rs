//! Processes that end while a thread of theirs is halfway through a long operation of the kernel.
//!
//! Long operations give way at preemption points. A thread that was killed there finishes what it began
//! before it dies: the other side of a message gets its completion, a thread that is being made is made
//! or not, memory that only the operation knows of is given back. So each process here ends, whatever
//! it was halfway through, and each gives back the same memory.
#![no_std]
#![no_main]

use abi_types::{CapSlot, Status};
use capos_rt::Env;
use core::sync::atomic::{AtomicU64, Ordering};
use ipc_protocol::{EXIT_LATER, PING, START, Work};
use schema::system_info::MachineResults;
use schema::timer::SleepParams;
use test_kit::{Outcome, Suite, T, Test, check, require_some};
use test_ring::{Raw, borrow, sqe};

capos_rt::main!(main);

/// Peers the manifest starts.
const PEERS: usize = 25;
/// When a peer ends after it was told, one peer each: within a slice or some slices of the start.
const LATER_NS: [u64; 5] = [3_010_000, 5_533_000, 11_271_000, 17_919_000, 29_387_000];
/// How often the tester looks whether something is over, a millisecond apart.
const LOOKS: u32 = 3000;
const LARGE_BYTES: u32 = 65_536;

/// User data of what is under way.
const TELL: u64 = 1;
const LARGE: u64 = 2;
const CANCEL: u64 = 3;

static OUT: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];
static IN: [AtomicU64; 8192] = [const { AtomicU64::new(0) }; 8192];

/// What the tests share.
struct Bench {
    env: &'static Env,
    timer: CapSlot,
    info: CapSlot,
    own: CapSlot,
    echo: CapSlot,
    commands: [CapSlot; PEERS],
    services: [CapSlot; PEERS],
    /// What each peer gives back: frames outside the heap and bytes of the heap. The first one is no
    /// example: it leaves spare kernel stacks behind, which those after it use.
    given_back: Option<(u64, u64)>,
    is_first: bool,
}

const SUITE: Suite<Bench> = Suite::new(&[
    Test::new("halfway.answer", answer),
    Test::new("halfway.call", call),
    Test::new("halfway.thread", thread),
    Test::new("halfway.kernel_call", kernel_call),
    Test::new("halfway.nobody_else_runs", nobody_else_runs),
]);

fn main(env: &'static Env) {
    let named = |name: &str| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let numbered = |letter: u8, peer: usize| {
        let name = [letter, b'0' + (peer / 10) as u8, b'0' + (peer % 10) as u8];
        let short = [letter, name[2]];
        let name = if peer < 10 { &short[..] } else { &name[..] };
        named(core::str::from_utf8(name).unwrap_or_default())
    };
    let mut bench = Bench {
        env,
        timer: named("timer"),
        info: named("info"),
        own: named("t"),
        echo: named("echo"),
        commands: core::array::from_fn(|peer| numbered(b'c', peer)),
        services: core::array::from_fn(|peer| numbered(b's', peer)),
        given_back: None,
        is_first: true,
    };
    test_user::run_with(env, &SUITE, &mut bench)
}

/// Has each of five peers do `work` until it ends, `meanwhile` for as long as it lives, and looks at
/// what is left.
fn each(
    t: &mut T<'_, Bench>,
    row: usize,
    work: Work,
    mut meanwhile: impl FnMut(&mut Raw<'_>, &Bench, usize),
) -> Outcome {
    for (number, later_ns) in LATER_NS.into_iter().enumerate() {
        let peer = row * LATER_NS.len() + number;
        let bench = &*t.env;
        let mut back = None;
        let log = borrow(&bench.env.io, |ring| {
            let Some(before) = memory(ring, bench) else { return };
            ring.put(1, &[work as u64]);
            ring.ends(sqe::call(bench.commands[peer], START, 1, 8), Status::Ok, "start");
            ring.put(1, &[later_ns]);
            let tell = sqe::named(sqe::call(bench.commands[peer], EXIT_LATER, 1, 8), TELL);
            ring.ends(tell, Status::Ok, "told to end");
            meanwhile(ring, bench, peer);
            await_end(ring, bench, peer);
            let got = ring.ends(sqe::call(bench.echo, 0, 1, 8), Status::Ok, "the others answer");
            ring.eq(got.words[0], later_ns, "what they were asked");
            back = settle(ring, bench, before);
        });
        log.tell(t);
        let back = require_some!(t, back);
        match t.env.given_back {
            None if t.env.is_first => t.env.is_first = false,
            None => {
                t.metric("frames given back", back.0, "frames");
                t.metric("heap given back", back.1, "bytes");
                check!(t, back.0 > 50 && back.0 < 1 << 20, "{back:?}");
                t.env.given_back = Some(back);
            }
            Some(expected) => {
                check!(t, back == expected, "peer {peer}: {back:?}, the first gave {expected:?}");
            }
        }
    }
    Ok(())
}

fn memory(ring: &mut Raw<'_>, bench: &Bench) -> Option<(u64, u64)> {
    let got = ring.ends(sqe::named(sqe::call_info(bench.info, 0, 0, 0), 9), Status::Ok, "machine");
    let MachineResults { machine } = got.results()?;
    let frames = machine.frames_total - machine.frames_free - machine.heap_frames;
    Some((frames, machine.heap_bytes))
}

/// What has been given back since `before`, once it is what it should be or does not change any more.
fn settle(ring: &mut Raw<'_>, bench: &Bench, before: (u64, u64)) -> Option<(u64, u64)> {
    for look in 0.. {
        sleep(ring, bench, 1_000_000);
        let now = memory(ring, bench)?;
        let back = (before.0.wrapping_sub(now.0), before.1.wrapping_sub(now.1));
        let is_done = bench.given_back.map_or(look == 50, |expected| back == expected);
        if is_done || look == LOOKS / 10 {
            return Some(back);
        }
    }
    None
}

fn sleep(ring: &mut Raw<'_>, bench: &Bench, ns: u64) {
    let length = ring.put_params(2, &SleepParams { ns });
    ring.ends(sqe::named(sqe::call_timer(bench.timer, 1, 2, length), 8), Status::Ok, "a sleep");
}

fn await_end(ring: &mut Raw<'_>, bench: &Bench, peer: usize) {
    for _ in 0..LOOKS {
        let got = ring.one(sqe::named(sqe::call(bench.commands[peer], PING, 0, 0), 7));
        match got.status() {
            Some(Status::Disconnected) => return,
            None => break,
            _ => sleep(ring, bench, 1_000_000),
        }
    }
    ring.fail(format_args!("peer {peer} does not end"));
}

/// A server is halfway through the answer to a large call.
fn answer(t: &mut T<'_, Bench>) -> Outcome {
    each(t, 0, Work::EchoLarge, |ring, bench, peer| {
        let (out, back) = (OUT.as_ptr().expose_provenance(), IN.as_ptr().expose_provenance());
        let call =
            sqe::from_memory(sqe::call(bench.services[peer], 0, 0, 0), out as u64, LARGE_BYTES);
        let call = sqe::named(sqe::to_memory(call, back as u64, LARGE_BYTES), LARGE);
        for number in 0.. {
            OUT[0].store(number, Ordering::Relaxed);
            let got = ring.one(call);
            match got.status() {
                Some(Status::Ok) => {
                    ring.eq(IN[0].load(Ordering::Relaxed), number, "the answer's first word");
                }
                Some(Status::Disconnected) => return,
                odd => return ring.fail(format_args!("a call ended with {odd:?}")),
            }
        }
    })
}

/// A client is halfway through a large call.
fn call(t: &mut T<'_, Bench>) -> Outcome {
    each(t, 1, Work::CallLarge, |ring, bench, peer| {
        let to = IN.as_ptr().expose_provenance() as u64;
        let receive = |sqe| sqe::named(sqe::to_memory(sqe, to, LARGE_BYTES), LARGE);
        ring.push(receive(sqe::recv(bench.own)));
        ring.push(sqe::named(sqe::call(bench.commands[peer], PING, 0, 0), TELL));
        loop {
            let got = ring.wait();
            match (got.cqe.user_data, got.status()) {
                (LARGE, Some(Status::Ok)) => {
                    let next = sqe::then_recv(sqe::answer(got.cqe.token, 0, 0), bench.own);
                    ring.push(receive(next));
                }
                (TELL, Some(Status::Disconnected)) => break,
                odd => return ring.fail(format_args!("{odd:?}")),
            }
        }
        // The receive is there for others: it completes with what came last, or can be taken back.
        ring.push(sqe::named(sqe::cancel(LARGE), CANCEL));
        let (mut is_cancelled, mut is_open) = (None, true);
        while is_cancelled.is_none() || is_open {
            let got = ring.wait();
            match (got.cqe.user_data, got.status()) {
                (CANCEL, status) => is_cancelled = Some(status),
                (LARGE, Some(Status::Cancelled)) => is_open = false,
                (LARGE, Some(Status::Ok)) => {
                    is_open = false;
                    ring.push(sqe::named(sqe::answer(got.cqe.token, 0, 0), TELL));
                }
                (TELL, Some(Status::Ok)) => {}
                odd => return ring.fail(format_args!("{odd:?}")),
            }
        }
        let _ = ring.dispatch();
        while let Some(got) = ring.pop() {
            ring.eq(got.status(), Some(Status::Ok), "an answer to nobody");
        }
    })
}

/// A thread is halfway through making another.
fn thread(t: &mut T<'_, Bench>) -> Outcome {
    each(t, 2, Work::Spawn, |_, _, _| ())
}

/// A thread is halfway through a call that the kernel serves, with a copy of the parameters.
fn kernel_call(t: &mut T<'_, Bench>) -> Outcome {
    each(t, 3, Work::Batch, |ring, bench, peer| {
        // Somebody else has to want the CPU for it to give way.
        loop {
            let got = ring.one(sqe::named(sqe::call(bench.services[peer], 0, 0, 0), LARGE));
            if got.status() == Some(Status::Disconnected) {
                return;
            }
        }
    })
}

/// The same while nobody else wants its CPU: the interrupt that is to end it comes in the kernel.
fn nobody_else_runs(t: &mut T<'_, Bench>) -> Outcome {
    each(t, 4, Work::Batch, |_, _, _| ())
}
