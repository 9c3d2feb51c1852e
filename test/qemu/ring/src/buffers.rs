//! Registered buffers: messages through them, numbers and places that are none, pages that stay, ends that wait.

use abi_types::{CapSlot, CqeFlags, ExceptionKind, Opcode, Sqe, SqeFlags, Status};
use capos_rt::Env;
use capos_rt::caller::call_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use schema::memory_capnp::MemoryAccess;
use schema::{frame_allocator, memory_object, virtual_memory};
use schema_wire::CallError;
use test_bare::program::is_exception;
use test_kit::{Outcome, T, check, check_eq, require_eq, require_ok};
use test_ring::{Raw, borrow, raw, sqe};
use test_wild::at;

use crate::Bench;

const PAGE: u64 = 4096;
/// Where the pages of a buffer are: what goes out, and what comes in and comes back.
const OUT: u64 = 0x5300_0000_0000;
const IN: u64 = OUT + 0x100_0000;
/// Pages of each.
const PAGES: u64 = 17;
/// Where the pages of a memory object are.
const SHARED: u64 = OUT + 0x200_0000;

type Client = virtual_memory::Client<capos_rt::caller::Caller<'static>>;

fn memory(t: &T<'_, Bench>) -> Client {
    virtual_memory::Client::new(t.env.env.io.caller(), t.env.memory)
}

fn map(client: &mut Client, address: u64, pages: u64) -> Result<(), CallError> {
    client.map(address, pages * PAGE, MemoryAccess::Write, true).map(|_| ())
}

fn register(client: &mut Client, address: u64, pages: u64, write: bool) -> Result<u16, CallError> {
    Ok(client.register(address, pages * PAGE, write)?.buffer)
}

/// A payload of so many bytes at an offset of a buffer.
fn from(sqe: Sqe, buffer: u16, offset: u64, length: u32) -> Sqe {
    let flags = sqe.flags | SqeFlags::REGISTERED;
    Sqe { flags, buffer, address: offset, length, ..sqe }
}

/// Room for so many bytes at an offset of a buffer.
fn to(sqe: Sqe, result_buffer: u16, offset: u64, capacity: u32) -> Sqe {
    let flags = sqe.flags | SqeFlags::RESULT_REGISTERED;
    Sqe { flags, result_buffer, result_address: offset, result_capacity: capacity, ..sqe }
}

/// Bytes at two places that differ.
fn differ(one: u64, other: u64, length: u32) -> usize {
    (0..u64::from(length)).filter(|&n| at::read8(one + n) != at::read8(other + n)).count()
}

/// B20: every size, through buffers and by address, in each mix of the two.
pub fn messages(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, .. } = *t.env;
    let mut client = memory(t);
    require_ok!(t, map(&mut client, OUT, PAGES));
    require_ok!(t, map(&mut client, IN, PAGES));
    let out = require_ok!(t, register(&mut client, OUT, PAGES, false));
    let into = require_ok!(t, register(&mut client, IN, PAGES, true));
    for word in 0..PAGES * PAGE / 8 {
        at::write64(OUT + word * 8, (word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    let sizes = [0, 1, 8, 129, 1000, 4095, 4096, 4097, 12_345, 65_536];
    raw(t, &env.io, |ring| {
        for ((size, odd), way) in sizes.into_iter().zip([0, 5, 8].into_iter().cycle()).zip(0..) {
            for mix in 0..4_u64 {
                for word in 0..8193 {
                    at::write64(IN + word * 8, 0xeeee_eeee_eeee_eeee);
                }
                let recv = match mix & 1 {
                    0 => to(sqe::recv(own), into, odd, 65_536),
                    _ => sqe::to_memory(sqe::recv(own), IN + odd, 65_536),
                };
                let call = sqe::call(first, 9, 0, 0);
                let call = match mix & 2 {
                    0 => from(call, out, odd + 3, size),
                    _ => sqe::from_memory(call, OUT + odd + 3, size),
                };
                let call = sqe::named(call, 2);
                ring.push(sqe::named(recv, 1));
                ring.push(to(call, into, 0, 128));
                ring.dispatch();
                let got = ring.expect(1, Status::Ok, "the receive");
                let said = (got.cqe.length, got.cqe.method, got.cqe.flags);
                ring.eq(said, (size, 9, CqeFlags::BY_ADDRESS), "length, method, where");
                ring.eq(differ(IN + odd, OUT + odd + 3, size), 0, "bytes of the parameters");
                let behind = at::read8(IN + odd + u64::from(size));
                ring.eq(behind, 0xee, "the byte behind them");
                // Answered from the buffer that cannot be written, into the other.
                let answer = from(sqe::answer(got.cqe.token, 0, 0), out, way, size.min(128));
                ring.push(sqe::named(answer, 3));
                ring.dispatch();
                let got = ring.expect(2, Status::Ok, "the answer");
                ring.eq(got.cqe.length, size.min(128), "its length");
                ring.expect(3, Status::Ok, "RETURN");
                ring.eq(differ(IN, OUT + way, size.min(128)), 0, "bytes of the results");
            }
        }
    })?;
    for buffer in [out, into] {
        check!(t, client.unregister(buffer).is_ok());
    }
    for address in [OUT, IN] {
        check!(t, client.unmap(address, PAGES * PAGE).is_ok());
    }
    Ok(())
}

/// B8: numbers, offsets and lengths that are none, at each operation that may name them.
pub fn wrong(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, timer, .. } = *t.env;
    let mut client = memory(t);
    require_ok!(t, map(&mut client, OUT, 4));
    let reads = require_ok!(t, register(&mut client, OUT, 2, false));
    let writes = require_ok!(t, register(&mut client, OUT + 2 * PAGE, 2, true));
    raw(t, &env.io, |ring| {
        let (call, recv) = (sqe::call(first, 0, 0, 0), sqe::recv(own));
        let answer = sqe::answer(7, 0, 0);
        for number in [7, 31, 32, 33, 0x100, u16::MAX] {
            for one in
                [from(call, number, 0, 1), from(answer, number, 0, 1), to(recv, number, 0, 1)]
            {
                ring.ends(one, Status::InvalidArgument, "a buffer nobody registered");
            }
            ring.ends(to(call, number, 0, 1), Status::InvalidArgument, "room nobody registered");
        }
        for (offset, length) in
            [(8192, 1), (8191, 2), (0, 8193), (1 << 47, 1), (u64::MAX, 1), (u64::MAX - 62, 64)]
        {
            ring.ends(from(call, reads, offset, length), Status::BadAddress, "past the end");
            ring.ends(from(answer, reads, offset, length), Status::BadAddress, "past the end");
            ring.ends(to(call, writes, offset, length), Status::BadAddress, "room past the end");
            ring.ends(to(recv, writes, offset, length), Status::BadAddress, "room past the end");
        }
        ring.ends(to(recv, reads, 0, 8), Status::BadAddress, "room that is not written");
        ring.ends(to(call, reads, 0, 8), Status::BadAddress, "room that is not written");
        let laden = Sqe { transfers: 1, ..from(call, reads, 8184, 8) };
        ring.ends(laden, Status::BadAddress, "a list past the end");
        // Objects of the kernel's take from buffers and give to them.
        let now = call_of::<schema::timer::methods::Now>(timer, 0);
        let got = ring.ends(to(now, writes, 16, 128), Status::Ok, "the clock into a buffer");
        ring.eq(got.cqe.flags, CqeFlags::BY_ADDRESS, "where");
        ring.check(at::read64(OUT + 2 * PAGE + 16) != 0, "a message is there");
        ring.ends(to(now, writes, 8190, 128), Status::BadAddress, "the clock past the end");
    })?;
    for buffer in [reads, writes] {
        check!(t, client.unregister(buffer).is_ok());
        check!(t, is_exception(&client.unregister(buffer), ExceptionKind::Failed, "no buffer"));
    }
    check!(t, client.unmap(OUT, 4 * PAGE).is_ok());
    Ok(())
}

/// B20: pages of a buffer are neither unmapped nor protected, whoever asks; those of a memory object neither.
pub fn pages_stay(t: &mut T<'_, Bench>) -> Outcome {
    use ExceptionKind::{Failed, InvalidArgument, Overloaded};
    let env = t.env.env;
    let mut client = memory(t);
    require_ok!(t, map(&mut client, OUT, 8));
    let mut frames = frame_allocator::Client::new(env.io.caller(), t.env.frames);
    let made = require_ok!(t, frames.create_object(2 * PAGE));
    let slot = CapSlot::new(made.object_index.into(), made.object_generation);
    let mut object = memory_object::Client::new(env.io.caller(), slot);
    require_ok!(t, object.map(SHARED, true, 0, 2 * PAGE, MemoryAccess::Write));
    let own = require_ok!(t, register(&mut client, OUT + PAGE, 2, true));
    let shared = require_ok!(t, register(&mut client, SHARED, 2, true));
    let words = "of a registered buffer";
    for (address, pages) in [(OUT, 8), (OUT + PAGE, 1), (OUT + 2 * PAGE, 2), (SHARED, 1)] {
        check!(t, is_exception(&client.unmap(address, pages * PAGE), Failed, words));
        let read = client.protect(address, pages * PAGE, MemoryAccess::Read);
        check!(t, is_exception(&read, Failed, words));
    }
    check!(t, is_exception(&object.unmap(SHARED, 2 * PAGE), Failed, words));
    check!(t, is_exception(&object.protect(SHARED, PAGE, MemoryAccess::Read), Failed, words));
    // The object's last capability goes, and the buffer has its pages still.
    check!(t, env.io.release(slot).is_ok());
    at::write64(SHARED, 0x1234);
    check!(t, is_exception(&register(&mut client, OUT, 2, false), Failed, words));
    check!(t, is_exception(&register(&mut client, OUT + 7 * PAGE, 2, false), Failed, "not mapped"));
    check!(t, client.protect(OUT + 5 * PAGE, PAGE, MemoryAccess::Read).is_ok());
    check!(t, is_exception(&register(&mut client, OUT + 5 * PAGE, 1, true), Failed, "be written"));
    for (address, bytes) in
        [(OUT + 1, PAGE), (OUT, 0), (OUT, PAGE + 8), (OUT, 257 * PAGE), (0, PAGE)]
    {
        let refused = client.register(address, bytes, false);
        check!(t, is_exception(&refused, InvalidArgument, ""));
    }
    // The profile allows four.
    let more = [5, 6].map(|page| register(&mut client, OUT + page * PAGE, 1, false));
    check!(t, more.iter().all(Result::is_ok));
    let fifth = register(&mut client, OUT, 1, false);
    check!(t, is_exception(&fifth, Overloaded, "registeredBuffers"));
    for buffer in [own, shared].into_iter().chain(more.into_iter().flatten()) {
        check!(t, client.unregister(buffer).is_ok());
    }
    check_eq!(t, at::read64(SHARED), 0x1234);
    check!(t, client.unmap(SHARED, 2 * PAGE).is_ok());
    check!(t, client.unmap(OUT, 8 * PAGE).is_ok());
    Ok(())
}

/// B20: who gives a buffer up is told when the last operation that names it is over, and nothing new names it.
pub fn waits_for_uses(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, memory: slot, .. } = *t.env;
    let mut client = memory(t);
    require_ok!(t, map(&mut client, OUT, 2));
    for way in 0..3 {
        let buffer = require_ok!(t, register(&mut client, OUT, 2, true));
        raw(t, &env.io, |ring| {
            // A call that waits with its parameters and its room there, or a receive.
            let uses = match way {
                0 => to(from(sqe::call(first, 0, 0, 0), buffer, 0, 100), buffer, 4096, 100),
                1 => from(sqe::call(first, 0, 0, 0), buffer, 0, 100),
                _ => to(sqe::recv(own), buffer, 0, 100),
            };
            ring.push(sqe::named(uses, 1));
            let params = virtual_memory::UnregisterParams { buffer };
            let length = ring.put_params(1, &params);
            let call = call_of::<virtual_memory::methods::Unregister>(slot, 0);
            let unregister = Sqe { length, buffer: 1, ..call };
            ring.push(sqe::named(unregister, 2));
            ring.expect_none("both wait");
            ring.ends(to(sqe::recv(own), buffer, 0, 8), Status::InvalidArgument, "a new use");
            let again = ring.one(sqe::named(unregister, 5));
            ring.eq(again.status(), Some(Status::Exception), "given up twice");
            ring.push(sqe::named(sqe::cancel(2), 3));
            ring.expect(3, Status::NotFound, "what is begun is not called off");
            if way == 0 {
                // Delivered and answered through the buffer that is being given up.
                ring.push(sqe::named(sqe::recv(own), 6));
                ring.dispatch();
                let got = ring.expect(6, Status::Ok, "the call");
                ring.put(2, &[0x77]);
                ring.push(sqe::named(sqe::answer(got.cqe.token, 2, 8), 7));
                ring.dispatch();
                ring.expect(1, Status::Ok, "its answer");
                ring.expect(2, Status::Ok, "the buffer's end");
                ring.expect(7, Status::Ok, "RETURN");
                ring.eq(at::read64(OUT + 4096), 0x77, "the answer");
            } else {
                ring.push(sqe::named(sqe::cancel(1), 4));
                ring.expect(1, Status::Cancelled, "the use");
                ring.expect(2, Status::Ok, "the buffer's end");
                ring.expect(4, Status::Ok, "its cancel");
            }
        })?;
        require_eq!(t, client.unregister(buffer).is_err(), true);
        require_ok!(t, client.protect(OUT, PAGE, MemoryAccess::Write));
    }
    check!(t, client.unmap(OUT, 2 * PAGE).is_ok());
    Ok(())
}

capos_rt::stacks! {
    static STACKS: [16384; 2];
}
/// Not 0: the threads are to end.
static STOP: AtomicU32 = AtomicU32::new(0);
static TALKS: AtomicU64 = AtomicU64::new(0);

/// Sends itself messages through buffer 0, whatever becomes of it.
fn talk(env: &Env) -> i64 {
    let (Ok(own), Ok(first)) = (
        env.cap("own", schema::endpoint::INTERFACE_ID),
        env.cap("first", test_ring::plain::INTERFACE_ID),
    ) else {
        return -1;
    };
    let log = borrow(&env.io, |ring| {
        while STOP.load(Ordering::Acquire) == 0 {
            talk_once(ring, own, first);
            // With one CPU nobody else would run for a slice.
            ring.ends(sqe::plain(Opcode::Yield), Status::Ok, "YIELD");
        }
    });
    log.failures() as i64
}

fn talk_once(ring: &mut Raw<'_>, own: CapSlot, first: CapSlot) {
    ring.push(sqe::named(to(sqe::recv(own), 0, 4096, 4096), 1));
    ring.push(sqe::named(from(sqe::call(first, 0, 0, 0), 0, 1, 4000), 2));
    ring.push(sqe::named(sqe::cancel(1), 3));
    ring.push(sqe::named(sqe::cancel(2), 4));
    let mut token = 0;
    let mut ended = 0_u32;
    while ended < 4 {
        let got = ring.wait();
        ended += 1;
        match (got.cqe.user_data, got.status()) {
            (1, Some(Status::Ok)) => token = got.cqe.token,
            (1, Some(Status::InvalidArgument | Status::Cancelled | Status::BadAddress)) => {}
            (2, Some(Status::InvalidArgument | Status::Cancelled | Status::Ok)) => {}
            (2, Some(Status::BadAddress | Status::Overloaded)) => {}
            (3 | 4, Some(Status::Ok | Status::NotFound)) => {}
            other => ring.fail(format_args!("a message ended as {other:?}")),
        }
    }
    if token != 0 {
        TALKS.fetch_add(1, Ordering::Relaxed);
        let answered = ring.one(sqe::answer(token, 0, 0));
        let known = [Some(Status::Ok), Some(Status::NotFound)];
        ring.check(known.contains(&answered.status()), "RETURN");
    }
}

/// B20: threads send messages through a buffer that is given up, unmapped, mapped and registered again.
pub fn races(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, threads, .. } = *t.env;
    let mut client = memory(t);
    STOP.store(0, Ordering::Release);
    require_ok!(t, map(&mut client, OUT, 2));
    require_eq!(t, register(&mut client, OUT, 2, true).ok(), Some(0));
    let one = require_ok!(t, threads.spawn(&env.io, &STACKS[0], talk, 0));
    let other = require_ok!(t, threads.spawn(&env.io, &STACKS[1], talk, 0));
    for _ in 0..150 {
        // Somebody talks in between.
        let before = TALKS.load(Ordering::Relaxed);
        for _ in 0..1000 {
            if TALKS.load(Ordering::Relaxed) > before {
                break;
            }
            let _ = env.io.yield_now();
        }
        check!(t, client.unregister(0).is_ok());
        check!(t, client.unmap(OUT, 2 * PAGE).is_ok());
        require_ok!(t, map(&mut client, OUT, 2));
        require_eq!(t, register(&mut client, OUT, 2, true).ok(), Some(0));
    }
    STOP.store(1, Ordering::Release);
    check_eq!(t, require_ok!(t, one.join(&env.io)), 0);
    check_eq!(t, require_ok!(t, other.join(&env.io)), 0);
    check!(t, TALKS.load(Ordering::Relaxed) > 0);
    t.metric("messages through a buffer that comes and goes", TALKS.load(Ordering::Relaxed), "");
    check!(t, client.unregister(0).is_ok() && client.unmap(OUT, 2 * PAGE).is_ok());
    Ok(())
}
