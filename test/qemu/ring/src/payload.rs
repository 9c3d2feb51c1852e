//! Messages by address: every size both ways, addresses that are none, limits.

use abi_types::place::{CAPSET_VADDR, RING_VADDR, STACK_TOP, USER_END};
use abi_types::{CapSlot, CqeFlags, ExceptionKind, INLINE_BYTES, Status};
use capos_rt::now_ns;
use core::sync::atomic::{AtomicU64, Ordering};
use schema::console::WriteParams;
use test_kit::{Outcome, T};
use test_ring::{Raw, raw, sqe};
use test_wild::at;

use crate::Bench;

/// 64 KiB and a little: room for an odd start and for what must not be written.
const WORDS: usize = 8192 + 8;

static OUT: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
static IN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
static BACK: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

fn address(of: &'static [AtomicU64; WORDS]) -> u64 {
    of.as_ptr().expose_provenance() as u64
}

fn fill(memory: &[AtomicU64; WORDS], value: u64) {
    memory.iter().for_each(|word| word.store(value, Ordering::Relaxed));
}

/// Bytes of `found` that differ from `expected`, and bytes around them that were written.
fn wrong(found: u64, expected: u64, length: u64, base: u64, end: u64) -> u64 {
    let differ = (0..length).filter(|&n| at::read8(found + n) != at::read8(expected + n)).count();
    let near = (base..found).chain(found + length..end.min(found + length + 64));
    differ as u64 + near.filter(|&place| at::read8(place) != 0xee).count() as u64
}

pub fn by_address(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, .. } = *t.env;
    let (out, into, back) = (address(&OUT), address(&IN), address(&BACK));
    for (number, word) in (0_u64..).zip(&OUT) {
        word.store(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), Ordering::Relaxed);
    }
    let sizes = [0, 1, 7, 8, 127, 128, 129, 1000, 4095, 4096, 4097, 12_345, 65_535, 65_536];
    raw(t, &env.io, |ring| {
        for (size, odd) in sizes.into_iter().zip([0, 1, 3, 0, 5, 8, 2].into_iter().cycle()) {
            fill(&IN, 0xeeee_eeee_eeee_eeee);
            fill(&BACK, 0xeeee_eeee_eeee_eeee);
            let (from, to, home) = (out + odd, into + (odd ^ 1), back + (odd ^ 3));
            ring.push(sqe::named(sqe::to_memory(sqe::recv(own), to, 65_536), 1));
            let call = sqe::from_memory(sqe::call(first, 9, 0, 0), from, size);
            ring.push(sqe::named(sqe::to_memory(call, home, 65_536), 2));
            ring.dispatch();
            let got = ring.expect(1, Status::Ok, "the receive");
            let said = (got.cqe.length, got.cqe.method, got.cqe.flags);
            ring.eq(said, (size, 9, CqeFlags::BY_ADDRESS), "length, method, where");
            let size = u64::from(size);
            ring.eq(wrong(to, from, size, into, into + 65_600), 0, "bytes of the parameters");
            let answer = sqe::from_memory(sqe::answer(got.cqe.token, 0, 0), to, size as u32);
            ring.push(sqe::named(answer, 3));
            ring.dispatch();
            let got = ring.expect(2, Status::Ok, "the answer");
            ring.eq((got.cqe.length, got.cqe.flags), (size as u32, CqeFlags::BY_ADDRESS), "where");
            ring.expect(3, Status::Ok, "RETURN");
            ring.eq(wrong(home, from, size, back, back + 65_600), 0, "bytes of the results");
        }
        mixed(ring, own, first);
    })
}

/// By address on one side, inline on the other, both ways.
fn mixed(ring: &mut Raw<'_>, own: CapSlot, first: CapSlot) {
    let (out, into) = (address(&OUT), address(&IN));
    for size in [0, 5, 64, 128] {
        ring.push(sqe::named(sqe::recv(own), 1));
        ring.push(sqe::named(sqe::from_memory(sqe::call(first, 0, 0, 0), out, size), 2));
        ring.dispatch();
        let got = ring.expect(1, Status::Ok, "inline from memory");
        let same = (0..size).all(|n| got.bytes()[n as usize] == at::read8(out + u64::from(n)));
        ring.check(same && got.cqe.length == size && got.cqe.flags == 0, "the bytes");
        let whole = size.next_multiple_of(8) as usize;
        let spare = &zerocopy::IntoBytes::as_bytes(&got.words[..])[size as usize..whole];
        ring.check(spare.iter().all(|byte| *byte == 0), "the rest of the last word");
        ring.put(1, &got.words);
        ring.push(sqe::named(sqe::answer(got.cqe.token, 1, size), 3));
        ring.dispatch();
        ring.expect(2, Status::Ok, "answered inline");
        ring.expect(3, Status::Ok, "RETURN");
        ring.put(2, &[0x1122_3344_5566_7788; 16]);
        fill(&IN, 0);
        ring.push(sqe::named(sqe::call(first, 0, 2, size), 2));
        ring.push(sqe::named(sqe::to_memory(sqe::recv(own), into, 4096), 1));
        ring.dispatch();
        let got = ring.expect(1, Status::Ok, "to memory from inline");
        let sum = (0..256).filter(|&n| at::read8(into + n) != 0).count();
        ring.eq((sum as u32, got.cqe.length), (size, size), "the bytes");
        ring.push(sqe::named(sqe::answer(got.cqe.token, 0, 0), 3));
        ring.dispatch();
        ring.expect(2, Status::Ok, "answered");
        ring.expect(3, Status::Ok, "RETURN");
    }
}

/// Addresses nobody can read; the last two are mapped where they begin.
const UNREADABLE: [u64; 8] = [
    0,
    0x1000,
    USER_END - 8,
    0x8000_0000_0000_0000,
    0xffff_8000_0000_0000,
    0xffff_ffff_8000_0000,
    u64::MAX - 7,
    STACK_TOP - 16,
];

pub fn bad_addresses(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, .. } = *t.env;
    raw(t, &env.io, |ring| {
        let inline = sqe::call(first, 0, 0, 0);
        for bad in UNREADABLE {
            // The caller's parameters, with a receiver waiting and without.
            ring.push(sqe::named(sqe::recv(own), 1));
            ring.push(sqe::named(sqe::from_memory(inline, bad, 64), 2));
            ring.dispatch();
            ring.expect(2, Status::BadAddress, "parameters for a receiver that waits");
            ring.push(sqe::named(sqe::cancel(1), 3));
            ring.expect(1, Status::Cancelled, "the receiver went on waiting");
            ring.expect(3, Status::Ok, "its cancel");
            ring.push(sqe::named(sqe::from_memory(inline, bad, 64), 2));
            ring.push(sqe::named(inline, 4));
            ring.push(sqe::named(sqe::recv(own), 1));
            ring.dispatch();
            ring.expect(2, Status::BadAddress, "parameters of a call that waited");
            let next = ring.expect(1, Status::Ok, "the receiver takes the next call");
            // The server's results: the call stays unanswered.
            let token = next.cqe.token;
            let answer = sqe::from_memory(sqe::answer(token, 0, 0), bad, 64);
            ring.ends(answer, Status::BadAddress, "results that cannot be read");
            let answer = sqe::then_recv(answer, own);
            ring.ends(answer, Status::BadAddress, "the same with a receive");
            ring.push(sqe::named(sqe::answer(token, 0, 0), 5));
            ring.dispatch();
            ring.expect(4, Status::Ok, "answered after all");
            ring.expect(5, Status::Ok, "RETURN");
        }
        for bad in UNREADABLE.into_iter().chain([CAPSET_VADDR, CAPSET_VADDR + 4090]) {
            // The receiver's room: it drops out, the call goes on waiting.
            ring.push(sqe::named(sqe::to_memory(sqe::recv(own), bad, 64), 1));
            ring.push(sqe::named(sqe::call(first, 3, 0, 64), 2));
            ring.dispatch();
            ring.expect(1, Status::BadAddress, "room that cannot be written");
            ring.push(sqe::named(sqe::to_memory(sqe::recv(own), bad, 64), 1));
            ring.dispatch();
            ring.expect(1, Status::BadAddress, "the same for a call that waits");
            ring.push(sqe::named(sqe::recv(own), 1));
            ring.dispatch();
            let call = ring.expect(1, Status::Ok, "the call is still there");
            ring.eq((call.cqe.method, call.cqe.badge), (3, 1), "as it was made");
            ring.push(sqe::named(sqe::answer(call.cqe.token, 0, 0), 3));
            ring.dispatch();
            ring.expect(2, Status::Ok, "answered");
            ring.expect(3, Status::Ok, "RETURN");
            // The caller's room: it is told, the server is done.
            ring.push(sqe::named(sqe::to_memory(inline, bad, 64), 2));
            ring.push(sqe::named(sqe::recv(own), 1));
            ring.dispatch();
            let call = ring.expect(1, Status::Ok, "the call");
            ring.push(sqe::named(sqe::answer(call.cqe.token, 0, 64), 3));
            ring.dispatch();
            ring.expect(2, Status::BadAddress, "results that cannot be written");
            ring.expect(3, Status::Ok, "RETURN");
        }
    })
}

pub fn too_large(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, .. } = *t.env;
    let (out, into) = (address(&OUT), address(&IN));
    raw(t, &env.io, |ring| {
        ring.push(sqe::named(sqe::recv(own), 1));
        ring.push(sqe::named(sqe::from_memory(sqe::call(first, 0, 0, 0), out, 129), 2));
        ring.dispatch();
        ring.expect(2, Status::ParamsTooLarge, "more than an inline slot takes");
        // The same receiver takes what fits; its own answer is bounded by the caller's room.
        ring.push(sqe::named(sqe::call(first, 0, 0, 16), 3));
        ring.dispatch();
        let call = ring.expect(1, Status::Ok, "the receiver went on waiting");
        let answer = sqe::from_memory(sqe::answer(call.cqe.token, 0, 0), out, 129);
        ring.ends(answer, Status::ResultTooLarge, "more than the caller's slot takes");
        let answer = sqe::then_recv(answer, own);
        ring.ends(answer, Status::ResultTooLarge, "the same with a receive");
        ring.expect_none("nothing was transferred");
        let refuse = sqe::refuse(call.cqe.token, ExceptionKind::Failed, 0, 0);
        ring.push(sqe::named(refuse, 4));
        ring.dispatch();
        let told = ring.expect(3, Status::Exception, "an exception without a word");
        ring.eq((told.cqe.method, told.cqe.length), (0, 0), "its kind");
        ring.expect(4, Status::Ok, "RETURN");
        // Rooms in memory, to the byte.
        ring.push(sqe::named(sqe::to_memory(sqe::recv(own), into, 15), 1));
        ring.push(sqe::named(sqe::call(first, 0, 0, 16), 2));
        ring.dispatch();
        ring.expect(2, Status::ParamsTooLarge, "a byte too much");
        let call = sqe::to_memory(sqe::call(first, 0, 0, 15), into, 9);
        ring.push(sqe::named(call, 2));
        ring.dispatch();
        let call = ring.expect(1, Status::Ok, "as much as fits");
        let answer = sqe::answer(call.cqe.token, 0, 10);
        ring.ends(answer, Status::ResultTooLarge, "a byte too much");
        ring.push(sqe::named(sqe::answer(call.cqe.token, 0, 9), 3));
        ring.dispatch();
        ring.expect(2, Status::Ok, "as much as fits");
        ring.expect(3, Status::Ok, "RETURN");
    })
}

/// The deadline travels in the last word of the receiver's slot, which the payload must leave free.
pub fn deadline_word(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, own, first, .. } = *t.env;
    let (out, into) = (address(&OUT), address(&IN));
    let at_ns = now_ns() + (1 << 45);
    fill(&OUT, 0x5555_5555_5555_5555);
    raw(t, &env.io, |ring| {
        ring.put(0, &[0x5555_5555_5555_5555; 16]);
        let mut inline = sqe::call(first, 0, 0, 121);
        inline.arg = at_ns;
        ring.ends(inline, Status::ParamsTooLarge, "inline, a byte too much");
        let mut memory = sqe::from_memory(sqe::call(first, 0, 0, 0), out, 128);
        memory.arg = at_ns;
        ring.push(sqe::named(sqe::recv(own), 1));
        for length in [121, 127, 128] {
            memory.length = length;
            ring.ends(memory, Status::ParamsTooLarge, "from memory into a slot");
        }
        for length in [0, 8, 113, 120] {
            for call in [abi_types::Sqe { length, ..inline }, abi_types::Sqe { length, ..memory }] {
                ring.push(sqe::named(call, 2));
                ring.dispatch();
                let got = ring.expect(1, Status::Ok, "the receive");
                ring.eq(got.cqe.flags, CqeFlags::DEADLINE, "says that there is one");
                ring.eq((got.cqe.length, got.words[15]), (length, at_ns), "the deadline");
                let whole = length as usize / 8;
                ring.check(got.words[..whole].iter().all(|w| *w == !0 / 3), "the payload");
                let answer = sqe::answer(got.cqe.token, 0, 0);
                ring.push(sqe::named(sqe::then_recv(answer, own), 1));
                ring.dispatch();
                ring.expect(2, Status::Ok, "answered");
            }
        }
        ring.push(sqe::named(sqe::cancel(1), 3));
        ring.expect(1, Status::Cancelled, "the last receive");
        ring.expect(3, Status::Ok, "its cancel");
        // Into memory the payload is whole and the slot has the deadline.
        ring.push(sqe::named(sqe::to_memory(sqe::recv(own), into, 4096), 1));
        memory.length = 4096;
        ring.push(sqe::named(memory, 2));
        ring.dispatch();
        let got = ring.expect(1, Status::Ok, "into memory");
        ring.eq(got.cqe.flags, CqeFlags::DEADLINE | CqeFlags::BY_ADDRESS, "both");
        ring.eq((got.words[15], at::read64(into + 4088)), (at_ns, !0 / 3), "both there");
        ring.push(sqe::named(sqe::answer(got.cqe.token, 0, 0), 3));
        ring.dispatch();
        ring.expect(2, Status::Ok, "answered");
        ring.expect(3, Status::Ok, "RETURN");
        // A deadline that has passed ends the call before anybody sees it.
        inline.arg = 1;
        inline.length = 0;
        ring.push(sqe::named(sqe::recv(own), 1));
        ring.ends(inline, Status::DeadlineExpired, "too late, with a receiver");
        ring.push(sqe::named(sqe::cancel(1), 3));
        ring.expect(1, Status::Cancelled, "the receiver saw nothing");
        ring.expect(3, Status::Ok, "its cancel");
        ring.ends(inline, Status::DeadlineExpired, "too late, without one");
        // One that passes while the call waits.
        inline.arg = now_ns() + 200_000;
        ring.push(sqe::named(inline, 4));
        ring.expect(4, Status::DeadlineExpired, "while it waited");
        ring.check(now_ns() >= inline.arg, "not before");
    })
}

/// Calls the kernel serves, with parameters and results in memory.
pub fn object_buffers(t: &mut T<'_, Bench>) -> Outcome {
    let Bench { env, info, console, timer, .. } = *t.env;
    let (out, into) = (address(&OUT), address(&IN));
    raw(t, &env.io, |ring| {
        let machine = sqe::call_info(info, 0, 0, 0);
        let inline = ring.ends(machine, Status::Ok, "inline");
        let got = ring.ends(sqe::to_memory(machine, into + 3, 512), Status::Ok, "into memory");
        ring.eq((got.cqe.length, got.cqe.flags), (inline.cqe.length, 1), "length, where");
        let first = u64::from_le_bytes(core::array::from_fn(|n| at::read8(into + 3 + n as u64)));
        ring.eq(first, inline.words[0], "the message's root");
        for capacity in [0, 8, inline.cqe.length - 1] {
            let small = sqe::to_memory(machine, into, capacity);
            ring.ends(small, Status::ResultTooLarge, "room too small");
        }
        // An exception would have to fit as well.
        let exact = sqe::to_memory(machine, into, INLINE_BYTES as u32);
        ring.ends(exact, Status::Ok, "room for an inline slot");
        let counters = sqe::call_info(info, 1, 0, 0);
        ring.ends(counters, Status::ResultTooLarge, "more than an inline slot takes");
        for bad in UNREADABLE {
            let call = sqe::to_memory(machine, bad, 512);
            ring.ends(call, Status::BadAddress, "results of the kernel's");
            let call = sqe::from_memory(sqe::call_console(console, 0, 0, 0), bad, 64);
            ring.ends(call, Status::BadAddress, "parameters for the kernel");
        }
        // A whole 64 KiB of parameters is read and understood as what it is.
        fill(&OUT, 0);
        let length = ring.put_params(0, &WriteParams { bytes: b"" });
        let got =
            ring.ends(sqe::call_console(console, 0, 0, length), Status::Ok, "nothing to write");
        ring.eq(got.results().map(|r: schema::console::WriteResults| r.written), Some(0), "none");
        let call = sqe::from_memory(sqe::call_timer(timer, 0, 0, 0), out, 65_536);
        ring.one(call);
        // The ring block itself is as good a place as any.
        let block = sqe::to_memory(machine, RING_VADDR + 0x2200, 128);
        let got = ring.one(block);
        ring.check(got.status() == Some(Status::Ok), "results into the ring block");
    })
}
