//! Address spaces: limits, copies, rings, unmapping, and nothing left at the end.

use crate::harness::{CODE, Ended, PAGE, PLENTY, STACK, STACK_PAGES, Setup, slot, whole};
use abi_types::place::{RING_VADDR, TIME_VADDR, USER_END};
use abi_types::{RingBlock, TimePage};
use core::sync::atomic::Ordering;
use core_ledger::{ChargeError, Ledger, Line, Profile};
use core_paging::Access;
use kernel_mm::frames;
use kernel_mm::space::{MAX_COPY_BYTES, MAX_PAGES, NotMapped, SpaceError};
use kernel_mm::stack::KernelStack;
use test_kernel::Env;
use test_kit::{Outcome, T, check, check_eq, require_eq, require_ok};
use user_blob::Program;

/// Frames that are charged.
fn used(ledger: &Ledger) -> u32 {
    ledger.reading(Line::Frames).used
}

pub fn limits(t: &mut T<'_, Env>) -> Outcome {
    let (space, ledger) = (&slot(1).space, &slot(1).ledger);
    check_eq!(t, space.map_new(CODE, 1, Access::Read), Err(SpaceError::Absent));
    require_eq!(t, space.create(ledger), Ok(()));
    check_eq!(t, space.create(ledger), Err(SpaceError::Present));
    for (start, pages) in [
        (0, 1),
        (CODE, 0),
        (CODE + 8, 1),
        (USER_END, 1),
        (USER_END - 4096, 2),
        (0x8000_0000_0000, 1),
        (0xffff_8000_0000_0000, 1),
        (u64::MAX - 4095, 1),
        (CODE, u64::MAX),
        (CODE, MAX_PAGES + 1),
    ] {
        check_eq!(t, space.map_new(start, pages, Access::Read), Err(SpaceError::BadRange));
        check!(t, space.unmap(start, pages).is_err());
    }
    check_eq!(t, space.map_new(USER_END - 4096, 1, Access::Write), Ok(()));
    check_eq!(t, space.map_new(CODE, 4, Access::Write), Ok(()));
    check_eq!(t, space.map_new(CODE - 4096, 2, Access::Write), Err(SpaceError::Occupied));
    check!(t, space.translate(CODE - 4096).is_err(), "a refused mapping left a page");
    check!(t, space.unmap(CODE, 5).is_err());
    while !require_ok!(t, space.destroy(1)).is_done {}
    check!(t, ledger.is_zero(), "a frame is charged that is free");
    Ok(())
}

pub fn copies(t: &mut T<'_, Env>) -> Outcome {
    let (space, ledger) = (&slot(1).space, &slot(1).ledger);
    require_eq!(t, space.create(ledger), Ok(()));
    require_eq!(t, space.map_new(PAGE, 2, Access::Write), Ok(()));
    require_eq!(t, space.map_new(PAGE + 2 * 4096, 1, Access::Read), Ok(()));
    let mut bytes = [0u8; 300];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = i as u8 ^ 0x5a;
    }
    // Lengths and places around words and the page boundary.
    for length in [0, 1, 7, 8, 9, 64, 255, 300] {
        for offset in [0, 1, 5, 3900, 4088, 4095] {
            let mut back = [0u8; 300];
            check_eq!(t, space.copy_out(PAGE + offset, &bytes[..length]), Ok(()));
            check_eq!(t, space.copy_in(&mut back[..length], PAGE + offset), Ok(()));
            check!(t, back[..length] == bytes[..length], "{length} bytes at {offset}");
            check!(t, back[length..].iter().all(|b| *b == 0));
        }
    }
    let end = PAGE + 3 * 4096;
    check_eq!(t, space.copy_out(PAGE + 2 * 4096 - 8, &bytes[..9]), Err(NotMapped));
    check_eq!(t, space.fill(PAGE + 2 * 4096 - 8, &bytes[..9]), Ok(()));
    let mut back = [1u8; 16];
    check_eq!(t, space.copy_in(&mut back, end - 15), Err(NotMapped));
    check_eq!(t, back, [1; 16]);
    for bad in [0, end, 0x7fff_ffff_fffc, 0x8000_0000_0000, 0xffff_8000_0000_0000, u64::MAX - 3] {
        check_eq!(t, space.copy_in(&mut back, bad), Err(NotMapped));
        check_eq!(t, space.copy_out(bad, &back), Err(NotMapped));
        check!(t, space.load_u32(bad & !3).is_err());
    }
    check_eq!(t, space.load_u32(PAGE + 2), Err(NotMapped));
    check_eq!(t, space.copy_out(PAGE + 64, &7u32.to_le_bytes()), Ok(()));
    check_eq!(t, space.load_u32(PAGE + 64), Ok(7));
    static LONG: [u8; MAX_COPY_BYTES + 1] = [0; MAX_COPY_BYTES + 1];
    check_eq!(t, space.copy_out(PAGE, &LONG), Err(NotMapped));
    check_eq!(t, space.copy_out(PAGE + 1, &LONG[1..]), Ok(()));
    while !require_ok!(t, space.destroy(1)).is_done {}
    check_eq!(t, space.copy_in(&mut back, PAGE), Err(NotMapped));
    Ok(())
}

pub fn pinned(t: &mut T<'_, Env>) -> Outcome {
    let (space, ledger) = (&slot(1).space, &slot(1).ledger);
    require_eq!(t, space.create(ledger), Ok(()));
    let before = frames::counts().free;
    let layout = RingBlock::new(64).expect("a power of two");
    let block = require_ok!(t, space.pin(RING_VADDR, layout.size()));
    check_eq!(t, block.pages(), (layout.size() as u64).div_ceil(4096));
    // What one side writes the other reads, at the last word too.
    let last = block.words().len() - 1;
    block.words()[last].store(0x1122_3344, Ordering::Relaxed);
    check_eq!(t, space.load_u32(RING_VADDR + last as u64 * 8), Ok(0x1122_3344));
    check_eq!(t, space.copy_out(RING_VADDR, &9u64.to_le_bytes()), Ok(()));
    check_eq!(t, block.words()[0].load(Ordering::Relaxed), 9);
    check!(t, space.pin(RING_VADDR + 4096, 4096).is_err(), "two blocks at one place");
    check!(t, space.destroy(1).is_err(), "a pinned block went away");
    // Its frames, and three tables; and the root is charged.
    check_eq!(t, before - frames::counts().free, block.pages() + 3);
    check_eq!(t, u64::from(used(ledger)), block.pages() + 4);
    let too_small = require_ok!(t, space.pin(RING_VADDR + (1 << 20), 4096));
    check!(t, too_small.into_ring(layout).is_none());
    let ring = block.into_ring(layout);
    check!(t, ring.is_some());
    drop(ring);
    while !require_ok!(t, space.destroy(1)).is_done {}
    check!(t, ledger.is_zero(), "a frame is charged that is free");
    Ok(())
}

pub fn unmap(t: &mut T<'_, Env>) -> Outcome {
    let (space, ledger) = (&slot(1).space, &slot(1).ledger);
    require_eq!(t, space.create(ledger), Ok(()));
    let before = frames::counts().free;
    require_eq!(t, space.map_new(PAGE, MAX_PAGES, Access::Write), Ok(()));
    let narrowed = require_ok!(t, space.protect(PAGE, 2, Access::Read));
    check!(t, narrowed.is_flushed(), "nobody has the space loaded");
    check_eq!(t, narrowed.release().ok(), Some(0));
    check_eq!(t, space.copy_out(PAGE, &[1]), Err(NotMapped));
    check_eq!(t, space.copy_out(PAGE + 2 * 4096, &[1]), Ok(()));
    let detached = require_ok!(t, space.unmap(PAGE, MAX_PAGES));
    // The pages and three tables.
    check_eq!(t, detached.count() as u64, MAX_PAGES + 3);
    // Charged until they are free.
    check_eq!(t, u64::from(used(ledger)), MAX_PAGES + 4);
    check_eq!(t, detached.release().ok(), Some(MAX_PAGES as usize + 3));
    check_eq!(t, used(ledger), 1);
    check_eq!(t, frames::counts().free, before);
    while !require_ok!(t, space.destroy(1)).is_done {}
    check!(t, ledger.is_zero(), "a frame is charged that is free");
    Ok(())
}

pub fn teardown(t: &mut T<'_, Env>) -> Outcome {
    // A run before, so that the stack is one of the spare ones and the time page is there.
    check_eq!(t, whole(Program::Registers, Setup::default(), |_| ()), Ok(Ended::Exit(7)));
    let before = (frames::counts().free, KernelStack::spare_count());
    for _ in 0..10 {
        let slot = slot(0);
        require_eq!(t, slot.load(Program::Registers, Setup::default()), Ok(()));
        let ring = require_ok!(t, slot.ring());
        let mut time = [0u8; size_of::<TimePage>()];
        check_eq!(t, slot.space.copy_in(&mut time, TIME_VADDR), Ok(()));
        check!(t, time.iter().any(|b| *b != 0), "the time page is empty");
        check_eq!(t, slot.space.copy_out(TIME_VADDR, &time), Err(NotMapped));
        check_eq!(t, slot.run(), Ended::Exit(7));
        drop(ring);
        let freed = require_ok!(t, slot.unload());
        let code = (user_blob::code().len() as u64).div_ceil(4096);
        check_eq!(t, freed.pages, code + 1 + STACK_PAGES + 9);
        check!(t, STACK > PAGE);
        check_eq!(t, (frames::counts().free, KernelStack::spare_count()), before);
        check!(t, slot.ledger.is_zero(), "a frame is charged that is free");
    }
    check_eq!(t, frames::check_invariants(), Ok(()));
    Ok(())
}

pub fn fails_at_every_allocation(t: &mut T<'_, Env>) -> Outcome {
    let before = (frames::counts().free, KernelStack::spare_count());
    for successes in 0..200 {
        let slot = slot(0);
        frames::fail_after(Some(successes));
        let loaded = slot.load(Program::Registers, Setup::default());
        let ring = if loaded.is_ok() { slot.ring().err() } else { Some("not tried") };
        frames::fail_after(None);
        if loaded.is_ok() {
            check_eq!(t, slot.run(), Ended::Exit(7));
            check!(t, slot.unload().is_ok());
        } else if slot.space.map_new(0x1000, 1, Access::Read) != Err(SpaceError::Absent) {
            while !require_ok!(t, slot.space.destroy(64)).is_done {}
        }
        require_eq!(t, (frames::counts().free, KernelStack::spare_count()), before);
        require_eq!(t, used(&slot.ledger), 0);
        if ring.is_none() {
            t.metric("allocations", successes, "allocations");
            return Ok(());
        }
    }
    t.fail(format_args!("a process takes more than 200 allocations"))
}

/// A process is loaded with accounts of each size: what is not paid for is not taken.
pub fn accounts_of_every_size(t: &mut T<'_, Env>) -> Outcome {
    let slot = slot(0);
    let before = (frames::counts().free, KernelStack::spare_count());
    let mut refused = 0;
    for frames_allowed in 0..200 {
        slot.ledger.close();
        let profile = Profile { frames: frames_allowed, ..Profile::NONE };
        require_eq!(t, slot.ledger.reopen(&profile), Ok(()));
        let loaded = slot.load(Program::Registers, Setup::default());
        let ring = if loaded.is_ok() { slot.ring().ok() } else { None };
        let is_whole = ring.is_some();
        check!(t, used(&slot.ledger) <= frames_allowed);
        drop(ring);
        if loaded.is_ok() {
            if is_whole {
                check_eq!(t, slot.run(), Ended::Exit(7));
            }
            check!(t, slot.unload().is_ok());
        } else if slot.space.map_new(0x1000, 1, Access::Read) != Err(SpaceError::Absent) {
            while !require_ok!(t, slot.space.destroy(64)).is_done {}
        }
        refused += u32::from(!is_whole);
        require_eq!(t, (frames::counts().free, KernelStack::spare_count()), before);
        require_eq!(t, used(&slot.ledger), 0);
        if is_whole {
            // One frame less was not enough.
            check_eq!(t, refused, frames_allowed);
            t.metric("frames of a process", frames_allowed.into(), "frames");
            break;
        }
    }
    slot.ledger.close();
    require_eq!(t, slot.ledger.reopen(&PLENTY), Ok(()));
    // The refusal says which line, and how far it was.
    let (space, ledger) = (&slot.space, &slot.ledger);
    require_eq!(t, space.create(ledger), Ok(()));
    let most = PLENTY.frames - 5;
    for _ in 0..u64::from(most) / MAX_PAGES {
        let at = PAGE + u64::from(used(ledger)) * 4096;
        require_eq!(t, space.map_new(at, MAX_PAGES, Access::Write), Ok(()));
    }
    let full = space.map_new(PAGE + (1 << 30), MAX_PAGES, Access::Write);
    let is_exhausted =
        matches!(full, Err(SpaceError::Account(ChargeError::Exhausted { line: Line::Frames, .. })));
    check!(t, is_exhausted, "{full:?}");
    while !require_ok!(t, space.destroy(64)).is_done {}
    check!(t, ledger.is_zero());
    Ok(())
}
