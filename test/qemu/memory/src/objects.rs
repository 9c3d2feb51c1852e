//! Memory objects: one process alone, and with others that map, park in, make and leave one.

use crate::{PAGE, Run};
use abi_types::ExceptionKind::{self, Disconnected, Failed, InvalidArgument, Overloaded};
use abi_types::{CapSlot, Opcode, Sqe, Status, TransferMode};
use capos_rt::caller::Caller;
use capos_rt::io::status_of;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use memory_peer::{Ask, MADE_AT, MAGIC, play};
use schema::memory_capnp::{MemoryAccess, RegionKind};
use schema::{frame_allocator, memory_object};
use schema_wire::CallError;
use test_bare::program::is_exception;
use test_bare::raw::Child;
use test_kit::{Outcome, check, check_eq, require, require_eq, require_ok, require_some};
use test_wild::{at, call};

const FAR: u64 = 0x5000_0000_0000;
/// Where the other process maps what is here at [`FAR`].
const THERE: u64 = 0x4000_0000_0000;
const WRITE: MemoryAccess = MemoryAccess::Write;
const READ: MemoryAccess = MemoryAccess::Read;

fn frames(t: &Run<'_>) -> frame_allocator::Client<Caller<'static>> {
    frame_allocator::Client::new(t.env.program.io().caller(), t.env.frames)
}

fn object(t: &Run<'_>, slot: CapSlot) -> memory_object::Client<Caller<'static>> {
    memory_object::Client::new(t.env.program.io().caller(), slot)
}

fn create(t: &Run<'_>, pages: u64) -> Result<CapSlot, CallError> {
    let made = frames(t).create_object(pages * PAGE)?;
    Ok(CapSlot::new(made.object_index.into(), made.object_generation))
}

/// Asks another process, with an object if one goes along; the first word of its answer, and the object that came with it.
fn ask(
    t: &Run<'_>,
    whom: CapSlot,
    ask: Ask,
    words: &[u64],
    with: Option<(CapSlot, TransferMode)>,
) -> Option<(u64, CapSlot)> {
    let mut payload = [0; 6];
    payload.iter_mut().zip(words).for_each(|(place, word)| *place = *word);
    if let Some((slot, mode)) = with {
        [payload[4], payload[5]] = [slot.to_bits(), u64::from(mode as u32)];
    }
    let sqe = Sqe {
        opcode: Opcode::Call as u8,
        cap: whom.to_bits(),
        interface: test_ring::sqe::call(whom, 0, 0, 0).interface,
        method: ask as u16,
        length: 32,
        transfers: u16::from(with.is_some()),
        result_transfers: 1,
        ..Sqe::default()
    };
    let mut answer = [0; 16];
    let cqe = t.env.program.io().run(sqe, &payload, &mut answer).ok()?;
    let came = if cqe.transfers() == 1 { CapSlot::from_bits(answer[1]) } else { CapSlot::NONE };
    (status_of(&cqe) == Status::Ok).then_some((answer[0], came))
}

/// The same of a process that only says a word.
fn say(t: &Run<'_>, whom: CapSlot, what: Ask, words: &[u64]) -> Option<u64> {
    ask(t, whom, what, words, None).map(|(said, _)| said)
}

/// What a peer says of a refusal.
fn kind(kind: ExceptionKind) -> Option<u64> {
    Some(1 + kind as u64)
}

pub fn arguments(t: &mut Run<'_>) -> Outcome {
    crate::siblings::twice(t, each_method)
}

fn each_method(t: &mut Run<'_>) -> Outcome {
    let usage = require_ok!(t, frames(t).usage());
    for bytes in [0, 1, PAGE - 1, PAGE + 1, (1 << 30) + PAGE, u64::MAX] {
        let made = frames(t).create_object(bytes);
        check!(t, is_exception(&made, InvalidArgument, ""), "{bytes:#x}");
    }
    let slot = require_ok!(t, create(t, 5));
    let used = require_ok!(t, frames(t).usage());
    check_eq!(t, (used.used, used.limit), (usage.used + 6, usage.limit));
    let mapped = require_ok!(t, object(t, slot).map(FAR, true, 0, 5 * PAGE, WRITE));
    require_eq!(t, mapped.mapped, FAR);
    for page in 0..5 {
        check_eq!(t, (at::read64(FAR + page * PAGE), at::read64(FAR + page * PAGE + 4088)), (0, 0));
        at::write64(FAR + page * PAGE, page + 1);
    }
    // Somewhere else, a part of it, and without a place.
    let part = require_ok!(t, object(t, slot).map(FAR, false, 2 * PAGE, 2 * PAGE, READ)).mapped;
    check_eq!(t, (part, at::read64(part), at::read64(part + PAGE)), (FAR + 5 * PAGE, 3, 4));
    at::write64(FAR + 3 * PAGE, 77);
    check_eq!(t, at::read64(part + PAGE), 77);
    let region = require_ok!(t, t.env.memory().region(part + PAGE)).region;
    check_eq!(t, (region.kind, region.object_offset), (RegionKind::Object, 2 * PAGE));
    let told = require_ok!(t, object(t, slot).info());
    check_eq!(t, (told.bytes, told.mapped_pages), (5 * PAGE, 7));
    check!(t, told.can_write && told.can_execute);
    for (address, offset, bytes, kind) in [
        (FAR + 8 * PAGE, 1, PAGE, InvalidArgument),
        (FAR + 8 * PAGE, 5 * PAGE, PAGE, InvalidArgument),
        (FAR + 8 * PAGE, 4 * PAGE, 2 * PAGE, InvalidArgument),
        (FAR + 8 * PAGE, u64::MAX - PAGE + 1, PAGE, InvalidArgument),
        (FAR + 8 * PAGE, 0, PAGE + 1, InvalidArgument),
        (FAR + 8 * PAGE, 0, 0, InvalidArgument),
        (0, 0, PAGE, InvalidArgument),
        (FAR + 1, 0, PAGE, InvalidArgument),
        (FAR, 0, PAGE, Failed),
    ] {
        let refused = object(t, slot).map(address, true, offset, bytes, READ);
        check!(t, is_exception(&refused, kind, ""), "{address:#x} {offset:#x} {bytes:#x}");
    }
    // What is not this object's.
    require_ok!(t, t.env.memory().map(FAR + 8 * PAGE, PAGE, WRITE, true));
    let refused = object(t, slot).unmap(FAR + 8 * PAGE, PAGE);
    check!(t, is_exception(&refused, Failed, "not of this"));
    let refused = object(t, slot).protect(FAR + 8 * PAGE, PAGE, READ);
    check!(t, is_exception(&refused, Failed, "not of this"));
    let refused = object(t, slot).unmap(FAR + 7 * PAGE, PAGE);
    check!(t, is_exception(&refused, Failed, "not mapped"));
    require_ok!(t, t.env.memory().unmap(FAR + 8 * PAGE, PAGE));
    require_ok!(t, object(t, slot).protect(FAR, PAGE, READ));
    check_eq!(t, at::read64(FAR), 1);
    require_ok!(t, object(t, slot).unmap(FAR, 2 * PAGE));
    require_ok!(t, t.env.memory().unmap(FAR + 2 * PAGE, 5 * PAGE));
    check_eq!(t, require_ok!(t, object(t, slot).info()).mapped_pages, 0);
    require_ok!(t, t.env.program.release(slot));
    let gone = object(t, slot).info();
    check!(t, matches!(gone, Err(CallError::Status(Status::Disconnected))), "{:?}", gone);
    check_eq!(t, require_ok!(t, frames(t).usage()).used, usage.used);
    Ok(())
}

/// A facet allows what it allows; no page is writable and executable; code is written by one mapping and run by another.
pub fn facets(t: &mut Run<'_>) -> Outcome {
    crate::siblings::twice(t, each_facet)
}

fn each_facet(t: &mut Run<'_>) -> Outcome {
    let slot = require_ok!(t, create(t, 1));
    let made = require_ok!(t, object(t, slot).restrict(false, true));
    let runner = CapSlot::new(made.facet_index.into(), made.facet_generation);
    let told = require_ok!(t, object(t, runner).info());
    check!(t, !told.can_write && told.can_execute);
    let refused = object(t, runner).map(FAR, true, 0, PAGE, WRITE);
    check!(t, is_exception(&refused, Failed, "facet"));
    require_ok!(t, object(t, slot).map(FAR, true, 0, PAGE, WRITE));
    at::write64(FAR, 0xb8 | 43 << 8 | 0xc3 << 40);
    require_ok!(t, object(t, runner).map(FAR + PAGE, true, 0, PAGE, MemoryAccess::Execute));
    check_eq!(t, call(FAR + PAGE), 43);
    for by in [runner, slot] {
        let refused = object(t, by).protect(FAR + PAGE, PAGE, WRITE);
        check!(t, is_exception(&refused, Failed, "facet"));
    }
    let refused = t.env.memory().protect(FAR + PAGE, PAGE, WRITE);
    check!(t, is_exception(&refused, Failed, "facet"));
    let narrower = require_ok!(t, object(t, runner).restrict(true, false));
    let reader = CapSlot::new(narrower.facet_index.into(), narrower.facet_generation);
    let told = require_ok!(t, object(t, reader).info());
    check!(t, !told.can_write && !told.can_execute, "of a narrower one nothing wider is made");
    for slot in [slot, runner, reader] {
        require_ok!(t, t.env.program.release(slot));
    }
    check_eq!(t, call(FAR + PAGE), 43);
    require_ok!(t, t.env.memory().unmap(FAR, 2 * PAGE));
    Ok(())
}

/// C11: an object in two processes, at different addresses, is the same memory.
pub fn same_bytes(t: &mut Run<'_>) -> Outcome {
    crate::siblings::twice(t, shared)
}

fn shared(t: &mut Run<'_>) -> Outcome {
    let peer = t.env.peer;
    // More pages than one index has.
    let (pages, last) = (520, 519 * PAGE);
    let slot = require_ok!(t, create(t, pages));
    require_ok!(t, object(t, slot).map(FAR, true, 0, pages * PAGE, WRITE));
    let copy = Some((slot, TransferMode::Copy));
    require_some!(t, ask(t, peer, Ask::Keep, &[], copy));
    require_eq!(t, say(t, peer, Ask::Map, &[THERE, 0, pages * PAGE, 1]), Some(0));
    for offset in [0, 8, 511 * PAGE, 512 * PAGE, last, last + 4088] {
        at::write64(FAR + offset, offset + 1);
        check_eq!(t, say(t, peer, Ask::Read, &[THERE + offset]), Some(offset + 1));
        check_eq!(t, say(t, peer, Ask::Write, &[THERE + offset, offset + 2]), Some(0));
        check_eq!(t, at::read64(FAR + offset), offset + 2);
    }
    check_eq!(t, require_ok!(t, object(t, slot).info()).mapped_pages, 2 * pages);
    // Given up here, it is there as long as it is mapped there.
    require_ok!(t, object(t, slot).unmap(FAR, pages * PAGE));
    require_ok!(t, t.env.program.release(slot));
    check_eq!(t, say(t, peer, Ask::Read, &[THERE + last]), Some(last + 2));
    check_eq!(t, say(t, peer, Ask::Drop, &[]), Some(0));
    check_eq!(t, say(t, peer, Ask::Read, &[THERE]), Some(2));
    // By a capability that is gone; of another object; then as what it is.
    check_eq!(t, say(t, peer, Ask::Unmap, &[THERE, PAGE]), Some(u64::MAX));
    let other = require_ok!(t, create(t, 1));
    require_some!(t, ask(t, peer, Ask::Keep, &[], Some((other, TransferMode::Move))));
    check_eq!(t, say(t, peer, Ask::Unmap, &[THERE, PAGE]), kind(Failed));
    check_eq!(t, say(t, peer, Ask::Drop, &[]), Some(0));
    require_eq!(t, say(t, peer, Ask::UnmapOwn, &[THERE, pages * PAGE]), Some(0));
    Ok(())
}

/// K3: threads of two processes wake each other at a word that has another address in each; a word of a process's own at
/// that address is nobody else's.
pub fn ping_pong(t: &mut Run<'_>) -> Outcome {
    let peer = t.env.peer;
    let slot = require_ok!(t, create(t, 2));
    require_ok!(t, object(t, slot).map(FAR, true, PAGE, PAGE, WRITE));
    require_some!(t, ask(t, peer, Ask::Keep, &[], Some((slot, TransferMode::Copy))));
    let there = THERE + 0x1000_0000;
    require_eq!(t, say(t, peer, Ask::Map, &[there, 0, 2 * PAGE, 1]), Some(0));
    const GAMES: u64 = 200;
    require_eq!(t, say(t, peer, Ask::Play, &[there + PAGE + 8, GAMES]), Some(0));
    check!(t, play(t.env.program.io(), t.env.program.park, FAR + 8, GAMES, 0));
    // It answers again when its last round is over.
    require_eq!(t, say(t, peer, Ask::Read, &[there + PAGE + 8]), Some(2 * GAMES));
    check_eq!(t, at::read64(FAR + 8), 2 * GAMES);
    require_eq!(t, say(t, peer, Ask::Unmap, &[there, 2 * PAGE]), Some(0));
    require_eq!(t, say(t, peer, Ask::Drop, &[]), Some(0));
    require_ok!(t, object(t, slot).unmap(FAR, PAGE));
    require_ok!(t, t.env.program.release(slot));
    Ok(())
}

static STOP: AtomicBool = AtomicBool::new(false);
static TIMER: AtomicU64 = AtomicU64::new(0);
static GOOD: AtomicU32 = AtomicU32::new(0);
static REFUSED: AtomicU32 = AtomicU32::new(0);
static WRONG: AtomicU32 = AtomicU32::new(0);

/// Calls whose results go to a page of an object that comes and goes.
fn caller(child: &Child) -> i64 {
    let timer = CapSlot::from_bits(TIMER.load(Ordering::Relaxed));
    while !STOP.load(Ordering::Acquire) {
        let counter = match crate::pointers::status(&child.io, crate::pointers::now_to(timer, FAR))
        {
            Status::Ok => &GOOD,
            Status::BadAddress => &REFUSED,
            _ => &WRONG,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    0
}

/// M9: an object's page is unmapped, and the object freed, while siblings' calls write there.
pub fn unmapped_under_calls(t: &mut Run<'_>) -> Outcome {
    let mut before = 0;
    for turn in 0..2 {
        STOP.store(false, Ordering::Relaxed);
        [&GOOD, &REFUSED, &WRONG].iter().for_each(|count| count.store(0, Ordering::Relaxed));
        TIMER.store(t.env.program.timer.to_bits(), Ordering::Relaxed);
        let mut handles = [CapSlot::NONE; 2];
        for (number, handle) in handles.iter_mut().enumerate() {
            *handle = require_ok!(t, t.env.program.spawn(number, caller, 0));
        }
        let mut rounds = 0;
        while rounds < 100
            || GOOD.load(Ordering::Relaxed) < 20
            || REFUSED.load(Ordering::Relaxed) < 20
        {
            rounds += 1;
            require!(t, rounds < 2000, "the callers do not come to it");
            let slot = require_ok!(t, create(t, 1));
            require_ok!(t, object(t, slot).map(FAR, true, 0, PAGE, WRITE));
            if rounds % 2 == 0 {
                t.env.program.yield_now();
            }
            require_ok!(t, t.env.program.release(slot));
            require_ok!(t, t.env.memory().unmap(FAR, PAGE));
            if rounds % 2 == 1 {
                t.env.program.yield_now();
            }
        }
        STOP.store(true, Ordering::Release);
        for handle in handles {
            check_eq!(t, t.env.program.finish(handle), Ok(0));
        }
        check_eq!(t, WRONG.load(Ordering::Relaxed), 0);
        if turn == 0 {
            before = t.env.program.settled_frames();
        }
    }
    check_eq!(t, t.env.program.settled_frames(), before);
    Ok(())
}

/// The profile's frames and the machine's run out, and nothing is lost.
pub fn exhausted(t: &mut Run<'_>) -> Outcome {
    // The other process has few frames.
    check_eq!(t, say(t, t.env.peer, Ask::Make, &[4000 * PAGE]), kind(Overloaded));
    let before = t.env.program.settled_frames();
    let slot = require_ok!(t, create(t, 3000));
    require_some!(t, ask(t, t.env.peer, Ask::Keep, &[], Some((slot, TransferMode::Copy))));
    let mapped = say(t, t.env.peer, Ask::Map, &[THERE + (1 << 30), 0, PAGE, 1]);
    // Who maps a page pays for the object.
    check_eq!(t, mapped, kind(Overloaded));
    check_eq!(t, say(t, t.env.peer, Ask::Drop, &[]), Some(0));
    require_ok!(t, t.env.program.release(slot));
    check_eq!(t, t.env.program.settled_frames(), before);
    for _ in 0..2 {
        let mut made = [CapSlot::NONE; 40];
        let mut count = 0;
        let refused = loop {
            match create(t, 1000) {
                Ok(slot) => made[count] = slot,
                refused => break refused,
            }
            count += 1;
            require!(t, count < made.len(), "the machine has no end");
        };
        check!(t, is_exception(&refused, Overloaded, "memory"), "{:?}", refused);
        check!(t, count > 1, "{count} objects");
        for slot in &made[..count] {
            require_ok!(t, t.env.program.release(*slot));
        }
        check_eq!(t, t.env.program.settled_frames(), before);
    }
    Ok(())
}

/// ADR 300: an object's maker ends. What is mapped stays; what is not is gone, with everything it took.
pub fn maker_ends(t: &mut Run<'_>) -> Outcome {
    let maker = t.env.maker;
    let (said, slot) = require_some!(t, ask(t, maker, Ask::Make, &[3 * PAGE], None));
    require_eq!(t, said, 0);
    require_ok!(t, object(t, slot).map(FAR, true, 0, PAGE, READ));
    let (said, other) = require_some!(t, ask(t, maker, Ask::Make, &[5 * PAGE], None));
    // It maps both at one place, which is in use.
    check_eq!(t, Some(said), kind(Failed));
    check_eq!(t, at::read64(FAR), MAGIC);
    check_eq!(t, say(t, maker, Ask::Write, &[MADE_AT, MAGIC + 1]), Some(0));
    check_eq!(t, at::read64(FAR), MAGIC + 1);
    let with_both = t.env.program.free_frames();
    check!(t, ask(t, maker, Ask::Exit, &[], None).is_none(), "it ends without an answer");
    // The reaper takes what the maker mapped one object after the other, on whatever CPU.
    let mut rounds = 0;
    while object(t, other).info().is_ok()
        || object(t, slot).info().is_ok_and(|info| info.mapped_pages > 1)
    {
        rounds += 1;
        require!(t, rounds < 2000, "the objects stay");
        t.env.program.sleep(100_000);
    }
    check!(t, is_exception(&object(t, other).info(), Disconnected, "gone"));
    check!(t, is_exception(&object(t, other).map(0, false, 0, PAGE, READ), Disconnected, "gone"));
    check_eq!(t, at::read64(FAR), MAGIC + 1);
    check_eq!(t, require_ok!(t, object(t, slot).info()).mapped_pages, 1);
    t.env.program.settled_frames();
    check!(t, t.env.program.free_frames() >= with_both + 6);
    let usage = require_ok!(t, frames(t).usage()).used;
    require_ok!(t, object(t, slot).unmap(FAR, PAGE));
    check!(t, require_ok!(t, frames(t).usage()).used + 4 <= usage);
    check!(t, is_exception(&object(t, slot).info(), Disconnected, "gone"));
    for slot in [slot, other] {
        require_ok!(t, t.env.program.release(slot));
    }
    Ok(())
}
