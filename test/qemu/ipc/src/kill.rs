//! A peer ends at each point of a call, by `exit` and by a fault.
//!
//! The other side gets one completion, with the right status; nothing hangs; and the peer leaves
//! nothing behind: each peer is the same program with the same threads, so the end of each gives
//! back the same memory, wherever it was.

use abi_types::Status;
use ipc_protocol::{EXIT, FAULT, PING, START, Work};
use test_kit::{Outcome, T, check, require_some};
use test_ring::{Raw, sqe};

use crate::{Bench, SERVICE_BADGE, load, machine, sleep};

/// How long a worker has to get where it is to be.
const SETTLE_NS: u64 = 2_000_000;
/// How often the tester looks whether something is over, a millisecond apart.
const LOOKS: u32 = 5000;

/// Memory in use: frames outside the heap, and bytes of the heap. The heap's own frames are left
/// out, because it keeps an empty page of each size for the next object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    frames: u64,
    heap_bytes: u64,
}

fn memory(ring: &mut Raw<'_>, bench: &Bench) -> Option<Memory> {
    let machine = machine(ring, bench.info)?;
    let frames = machine.frames_total - machine.frames_free - machine.heap_frames;
    Some(Memory { frames, heap_bytes: machine.heap_bytes })
}

/// What became of the call the tester had under way, if any.
const CALL: u64 = 0xca11;

/// Has `peer` do `work`, brings it to the point with `reach`, ends it with `how`, and looks at what
/// is left with `after`.
fn end_at<S>(
    t: &mut T<'_, Bench>,
    peer: usize,
    how: u16,
    work: Work,
    reach: impl FnOnce(&mut Raw<'_>, &Bench) -> S,
    after: impl FnOnce(&mut Raw<'_>, &Bench, S),
) -> Outcome {
    let env = t.env.env;
    let mut given_back = None;
    let expected = t.env.given_back;
    let bench = &*t.env;
    // The closure has the bench, so what is wrong is told afterwards.
    let log = test_ring::borrow(&env.io, |ring| {
        ring.put(1, &[work as u64]);
        ring.ends(sqe::call(bench.commands[peer], START, 1, 8), Status::Ok, "start");
        let state = reach(ring, bench);
        sleep(ring, bench.timer, SETTLE_NS);
        let Some(before) = memory(ring, bench) else { return };
        ring.push(sqe::named(sqe::call(bench.commands[peer], how, 0, 0), 77));
        wait_for(ring, 77, Status::Ok, "told to end");
        for look in 0.. {
            ring.push(sqe::named(sqe::call(bench.commands[peer], PING, 0, 0), 78));
            if take(ring, 78) == Some(Status::Disconnected) {
                break;
            }
            if look == LOOKS {
                return ring.fail(format_args!("the peer does not end"));
            }
            sleep_beside(ring, bench);
        }
        after(ring, bench, state);
        for look in 0.. {
            sleep(ring, bench.timer, 1_000_000);
            let Some(now) = memory(ring, bench) else { return };
            let back = Memory {
                frames: before.frames.wrapping_sub(now.frames),
                heap_bytes: before.heap_bytes.wrapping_sub(now.heap_bytes),
            };
            // The first one has no example: it has a while to give everything back.
            let is_done = expected.map_or(look == 30, |expected| back == expected);
            if is_done || look == LOOKS / 10 {
                given_back = Some(back);
                break;
            }
        }
    });
    log.tell(t);
    let back = require_some!(t, given_back);
    match t.env.given_back {
        None => {
            t.metric("frames given back", back.frames, "frames");
            t.metric("heap given back", back.heap_bytes, "bytes");
            // At least its stack and its threads' kernel stacks.
            check!(t, back.frames > 100 && back.frames < 1 << 20, "{back:?}");
            t.env.given_back = Some(back);
        }
        Some(expected) => check!(t, back == expected, "{back:?}, the first gave {expected:?}"),
    }
    Ok(())
}

/// The status of `user_data`'s completion. The call under way may end meanwhile; `note` keeps it.
fn take(ring: &mut Raw<'_>, user_data: u64) -> Option<Status> {
    loop {
        let got = ring.wait();
        if got.cqe.user_data == user_data {
            return got.status();
        }
        note(ring, got.cqe.user_data, got.status());
        if got.cqe.status == u8::MAX {
            return None;
        }
    }
}

fn wait_for(ring: &mut Raw<'_>, user_data: u64, status: Status, what: &str) {
    let found = take(ring, user_data);
    ring.eq(found, Some(status), what);
}

/// The tester's own call ends while it waits for something else: with the peer, so disconnected.
fn note(ring: &mut Raw<'_>, user_data: u64, status: Option<Status>) {
    ring.eq((user_data, status), (CALL, Some(Status::Disconnected)), "the call under way");
    ENDED.store(true, core::sync::atomic::Ordering::Relaxed);
}

static ENDED: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);

/// The call under way has ended or ends now, as disconnected; once.
fn call_ends(ring: &mut Raw<'_>) {
    if !ENDED.swap(false, core::sync::atomic::Ordering::Relaxed) {
        ring.expect(CALL, Status::Disconnected, "the call under way");
    }
}

fn sleep_beside(ring: &mut Raw<'_>, bench: &Bench) {
    let length = ring.put_params(60, &schema::timer::SleepParams { ns: 1_000_000 });
    ring.push(sqe::named(sqe::call_timer(bench.timer, 1, 60, length), 79));
    wait_for(ring, 79, Status::Ok, "a sleep");
}

/// Both ways to end, each with a peer of its own.
fn both(
    t: &mut T<'_, Bench>,
    point: usize,
    mut test: impl FnMut(&mut T<'_, Bench>, usize, u16) -> Outcome,
) -> Outcome {
    test(t, 2 * point, EXIT)?;
    test(t, 2 * point + 1, FAULT)
}

pub fn caller_that_waits(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 0, |t, peer, how| {
        end_at(
            t,
            peer,
            how,
            Work::Call,
            |ring, bench| {
                for look in 0.. {
                    if load(ring, bench.own) == (1, 0) {
                        break;
                    }
                    if look == LOOKS {
                        return ring.fail(format_args!("the peer does not call"));
                    }
                    sleep(ring, bench.timer, 1_000_000);
                }
            },
            |ring, bench, ()| {
                let found = load(ring, bench.own);
                ring.eq(found, (0, 0), "its call is gone");
                ring.push(sqe::named(sqe::recv(bench.own), 1));
                ring.push(sqe::named(sqe::cancel(1), 2));
                ring.expect(1, Status::Cancelled, "a receive finds nothing");
                ring.expect(2, Status::Ok, "its cancel");
            },
        )
    })
}

pub fn caller_that_is_served(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 1, |t, peer, how| {
        end_at(
            t,
            peer,
            how,
            Work::Call,
            |ring, bench| {
                let call = ring.ends(sqe::named(sqe::recv(bench.own), 1), Status::Ok, "its call");
                ring.eq(call.cqe.badge, peer as u64, "who it is");
                call.cqe.token
            },
            |ring, bench, token| {
                let found = load(ring, bench.own);
                ring.eq(found, (0, 1), "the server still has the call");
                if how == EXIT {
                    ring.ends(sqe::answer(token, 0, 64), Status::Ok, "an answer to nobody");
                } else {
                    // With the next receive at the same time.
                    let both = sqe::then_recv(sqe::answer(token, 0, 0), bench.own);
                    ring.push(sqe::named(both, 1));
                    ring.push(sqe::named(sqe::cancel(1), 2));
                    ring.expect(1, Status::Cancelled, "the receive went on");
                    ring.expect(2, Status::Ok, "its cancel");
                }
                ring.ends(sqe::answer(token, 0, 0), Status::NotFound, "a second answer");
                let found = load(ring, bench.own);
                ring.eq(found, (0, 0), "nothing is left");
            },
        )
    })
}

/// Nothing of the peer can be called any more.
fn is_gone(ring: &mut Raw<'_>, bench: &Bench, peer: usize) {
    for facet in [bench.services[peer], bench.commands[peer]] {
        ring.ends(sqe::call(facet, 0, 0, 0), Status::Disconnected, "a call on what is gone");
    }
}

pub fn receiver(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 2, |t, peer, how| {
        end_at(t, peer, how, Work::Receive, |_, _| (), |ring, bench, ()| is_gone(ring, bench, peer))
    })
}

pub fn server(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 3, |t, peer, how| with_call(t, peer, how, Work::Receive))
}

pub fn after_return(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 4, |t, peer, how| {
        end_at(
            t,
            peer,
            how,
            Work::AnswerOnce,
            |ring, bench| {
                let service = bench.services[peer];
                ring.ends(sqe::call(service, 0, 0, 0), Status::Ok, "the call it answers");
                ring.push(sqe::named(sqe::call(service, 0, 0, 0), CALL));
            },
            |ring, bench, ()| {
                call_ends(ring);
                is_gone(ring, bench, peer);
            },
        )
    })
}

/// With a call of the tester's under way, served or waiting.
fn with_call(t: &mut T<'_, Bench>, peer: usize, how: u16, work: Work) -> Outcome {
    end_at(
        t,
        peer,
        how,
        work,
        |ring, bench| {
            ring.put(2, &[SERVICE_BADGE]);
            ring.push(sqe::named(sqe::call(bench.services[peer], 0, 2, 8), CALL));
        },
        |ring, bench, ()| {
            call_ends(ring);
            is_gone(ring, bench, peer);
        },
    )
}

pub fn sleeping(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 5, |t, peer, how| with_call(t, peer, how, Work::Sleep))
}

pub fn joining(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 6, |t, peer, how| with_call(t, peer, how, Work::Join))
}

pub fn parked(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 7, |t, peer, how| with_call(t, peer, how, Work::Park))
}

pub fn reading(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 8, |t, peer, how| with_call(t, peer, how, Work::Read))
}

pub fn waiting(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 9, |t, peer, how| with_call(t, peer, how, Work::Wait))
}

pub fn running(t: &mut T<'_, Bench>) -> Outcome {
    both(t, 10, |t, peer, how| with_call(t, peer, how, Work::Spin))
}

/// Two peers end in the middle of a stream of calls: one that calls, one that is called.
pub fn calling(t: &mut T<'_, Bench>) -> Outcome {
    end_at(
        t,
        23,
        EXIT,
        Work::CallMany,
        |ring, bench| {
            for number in 0..200 {
                let call = ring.ends(sqe::named(sqe::recv(bench.own), 1), Status::Ok, "a call");
                ring.eq((call.words[0], call.cqe.badge), (number, 23), "the next one");
                ring.ends(sqe::answer(call.cqe.token, 0, 0), Status::Ok, "an answer");
            }
        },
        |ring, bench, ()| {
            let found = load(ring, bench.own);
            ring.eq(found, (0, 0), "its last call is gone");
        },
    )?;
    end_at(
        t,
        24,
        FAULT,
        Work::Serve,
        |ring, bench| {
            for number in 0..200 {
                ring.put(2, &[number]);
                let call = sqe::named(sqe::call(bench.services[24], 0, 2, 8), 1);
                let got = ring.ends(call, Status::Ok, "an answer");
                ring.eq(got.words[0], number, "its word");
            }
        },
        |ring, bench, ()| is_gone(ring, bench, 24),
    )
}
