//! Map, unmap, protect, reserve and region, one thread alone.

use crate::{PAGE, Run};
use abi_types::ExceptionKind::{Failed, InvalidArgument};
use abi_types::place::{CAPSET_VADDR, COUNTER_VADDR, RING_VADDR, TIME_VADDR, USER_END};
use capos_rt::memory::{Memory, PAGE_BYTES};
use core::sync::atomic::Ordering;
use schema::memory_capnp::{MemoryAccess, RegionKind};
use test_bare::program::is_exception;
use test_kit::{Outcome, check, check_eq, require_eq, require_ok};
use test_wild::{at, call};

/// Far from everything else.
const FAR: u64 = 0x5000_0000_0000;

pub fn map_touch_unmap(t: &mut Run<'_>) -> Outcome {
    let before = t.env.program.free_frames();
    for pages in [1, 3, 16, 17, 64, 200] {
        let mapped =
            require_ok!(t, t.env.memory().map(0, pages * PAGE, MemoryAccess::Write, false));
        let start = mapped.mapped;
        for page in 0..pages {
            let last = start + page * PAGE + PAGE - 8;
            check_eq!(t, (at::read64(start + page * PAGE), at::read64(last)), (0, 0));
            at::write64(last, page + 1);
        }
        check_eq!(t, at::read64(start + PAGE - 8), 1);
        check_eq!(t, at::read64(start + pages * PAGE - 8), pages);
        require_ok!(t, t.env.memory().unmap(start, pages * PAGE));
        check_eq!(t, t.env.program.until_frames(before), before);
        let again = t.env.memory().unmap(start, pages * PAGE);
        check!(t, is_exception(&again, Failed, "not mapped"));
    }
    // Parts of a mapping go in any order.
    let start =
        require_ok!(t, t.env.memory().map(FAR, 8 * PAGE, MemoryAccess::Write, false)).mapped;
    check_eq!(t, start, FAR);
    for page in [3, 0, 7, 4, 1, 6, 2, 5] {
        require_ok!(t, t.env.memory().unmap(start + page * PAGE, PAGE));
    }
    check_eq!(t, t.env.program.until_frames(before), before);
    Ok(())
}

pub fn fixed_places(t: &mut Run<'_>) -> Outcome {
    let write = MemoryAccess::Write;
    require_eq!(t, require_ok!(t, t.env.memory().map(FAR, 2 * PAGE, write, true)).mapped, FAR);
    at::write64(FAR, 7);
    for (start, pages) in [(FAR, 1), (FAR - PAGE, 2), (FAR + PAGE, 4), (FAR - PAGE, 4)] {
        let refused = t.env.memory().map(start, pages * PAGE, write, true);
        check!(t, is_exception(&refused, Failed, "in use"), "{start:#x}");
    }
    check_eq!(t, at::read64(FAR), 7);
    // Without fixed it is beside what is there; a place that is used up is looked for from below.
    let beside = require_ok!(t, t.env.memory().map(FAR, PAGE, write, false)).mapped;
    check_eq!(t, beside, FAR + 2 * PAGE);
    let below = require_ok!(t, t.env.memory().map(USER_END, PAGE, write, false)).mapped;
    check!(t, (PAGE..FAR).contains(&below), "{below:#x}");
    require_ok!(t, t.env.memory().unmap(below, PAGE));
    require_ok!(t, t.env.memory().unmap(FAR, 3 * PAGE));
    Ok(())
}

pub fn wrong_arguments(t: &mut Run<'_>) -> Outcome {
    let before = t.env.program.free_frames();
    let write = MemoryAccess::Write;
    let wrong = [
        (FAR + 1, PAGE, "multiples"),
        (FAR, PAGE + 1, "multiples"),
        (FAR, 0, "bytes is 0"),
        (0, PAGE, "outside of user memory"),
        (USER_END - PAGE, 2 * PAGE, "outside of user memory"),
        (USER_END, PAGE, "outside of user memory"),
        (0xffff_8000_0000_0000, PAGE, "outside of user memory"),
        (u64::MAX - PAGE + 1, PAGE, "outside of user memory"),
        (PAGE, u64::MAX - PAGE + 1, "outside of user memory"),
        (RING_VADDR, PAGE, "ring arena"),
        (RING_VADDR - PAGE, 2 * PAGE, "ring arena"),
        (CAPSET_VADDR, PAGE, "CapSet"),
        (TIME_VADDR, PAGE, "time page"),
        (COUNTER_VADDR, PAGE, "time page"),
    ];
    for (address, bytes, words) in wrong {
        let map = t.env.memory().map(address, bytes, write, true);
        check!(t, is_exception(&map, InvalidArgument, words), "map {address:#x}, {bytes:#x}");
        let unmap = t.env.memory().unmap(address, bytes);
        check!(t, is_exception(&unmap, InvalidArgument, words), "unmap {address:#x}, {bytes:#x}");
        let protect = t.env.memory().protect(address, bytes, MemoryAccess::Read);
        check!(t, is_exception(&protect, InvalidArgument, words), "protect {address:#x}");
        let reserve = t.env.memory().reserve(address, bytes, true);
        check!(t, is_exception(&reserve, InvalidArgument, words), "reserve {address:#x}");
    }
    let hint = t.env.memory().map(FAR + 8, PAGE, write, false);
    check!(t, is_exception(&hint, InvalidArgument, "multiples"));
    for address in [0, USER_END, RING_VADDR, u64::MAX] {
        let region = t.env.memory().region(address);
        check!(t, is_exception(&region, InvalidArgument, ""), "region {address:#x}");
    }
    // The rest of the process is as it was.
    check_eq!(t, t.env.program.free_frames(), before);
    Ok(())
}

pub fn protect(t: &mut Run<'_>) -> Outcome {
    require_ok!(t, t.env.memory().map(FAR, 4 * PAGE, MemoryAccess::Write, true));
    at::write64(FAR + PAGE, 11);
    require_ok!(t, t.env.memory().protect(FAR + PAGE, 2 * PAGE, MemoryAccess::Read));
    check_eq!(t, at::read64(FAR + PAGE), 11);
    let region = require_ok!(t, t.env.memory().region(FAR + PAGE)).region;
    check_eq!(t, (region.address, region.bytes), (FAR + PAGE, 2 * PAGE));
    check_eq!(t, (region.kind, region.access), (RegionKind::Own, MemoryAccess::Read));
    at::write64(FAR, 1);
    at::write64(FAR + 3 * PAGE, 1);
    let hole = t.env.memory().protect(FAR, 5 * PAGE, MemoryAccess::Read);
    check!(t, is_exception(&hole, Failed, "not mapped"));
    at::write64(FAR, 2);
    require_ok!(t, t.env.memory().protect(FAR, 4 * PAGE, MemoryAccess::Write));
    at::write64(FAR + PAGE, 12);
    let whole = require_ok!(t, t.env.memory().region(FAR)).region;
    check_eq!(t, (whole.address, whole.bytes), (FAR, 4 * PAGE));
    require_ok!(t, t.env.memory().unmap(FAR, 4 * PAGE));
    Ok(())
}

pub fn code(t: &mut Run<'_>) -> Outcome {
    for answer in [42_u32, 43, 44] {
        require_ok!(t, t.env.memory().map(FAR, PAGE, MemoryAccess::Write, true));
        // mov eax, answer; ret
        at::write64(FAR, 0xb8 | u64::from(answer) << 8 | 0xc3 << 40);
        require_ok!(t, t.env.memory().protect(FAR, PAGE, MemoryAccess::Execute));
        check_eq!(t, call(FAR), u64::from(answer));
        require_ok!(t, t.env.memory().unmap(FAR, PAGE));
    }
    Ok(())
}

pub fn reserve(t: &mut Run<'_>) -> Outcome {
    let before = t.env.program.free_frames();
    // More than the machine has, for nothing.
    let large = 1 << 40;
    require_eq!(t, require_ok!(t, t.env.memory().reserve(FAR, large, true)).reserved, FAR);
    check_eq!(t, t.env.program.free_frames(), before);
    let again = t.env.memory().reserve(FAR + PAGE, PAGE, true);
    check!(t, is_exception(&again, Failed, "in use"));
    let beside = require_ok!(t, t.env.memory().reserve(FAR, PAGE, false)).reserved;
    check_eq!(t, beside, FAR + large);
    let protect = t.env.memory().protect(FAR, PAGE, MemoryAccess::Read);
    check!(t, is_exception(&protect, Failed, "not mapped"));
    require_ok!(t, t.env.memory().map(FAR + 5 * PAGE, 2 * PAGE, MemoryAccess::Write, true));
    at::write64(FAR + 5 * PAGE, 1);
    for (address, kind, bytes) in [
        (FAR, RegionKind::Reserved, 5 * PAGE),
        (FAR + 6 * PAGE, RegionKind::Own, 2 * PAGE),
        (FAR + 7 * PAGE, RegionKind::Reserved, large + PAGE - 7 * PAGE),
    ] {
        let region = require_ok!(t, t.env.memory().region(address)).region;
        check_eq!(t, (region.kind, region.bytes), (kind, bytes));
    }
    require_ok!(t, t.env.memory().unmap(FAR, large + PAGE));
    check_eq!(t, t.env.program.until_frames(before), before);
    Ok(())
}

pub fn regions(t: &mut Run<'_>) -> Outcome {
    // The program's own parts are regions like any other.
    let code = regions as fn(&mut Run<'_>) -> Outcome as usize as u64;
    let local = 0_u64;
    let stack = core::ptr::from_ref(&local).expose_provenance() as u64;
    for (address, access) in [(code, MemoryAccess::Execute), (stack, MemoryAccess::Write)] {
        let region = require_ok!(t, t.env.memory().region(address)).region;
        check_eq!(t, (region.kind, region.access), (RegionKind::Own, access));
        check!(t, (region.address..region.address + region.bytes).contains(&address));
    }
    let free = require_ok!(t, t.env.memory().region(FAR)).region;
    check_eq!(t, free.kind, RegionKind::Free);
    check!(t, free.address < FAR && free.address + free.bytes > FAR);
    require_ok!(t, t.env.memory().map(FAR, PAGE, MemoryAccess::Read, true));
    let below = require_ok!(t, t.env.memory().region(FAR - 1)).region;
    check_eq!(t, (below.address, below.bytes), (free.address, FAR - free.address));
    require_ok!(t, t.env.memory().unmap(FAR, PAGE));
    Ok(())
}

pub fn runtime(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let memory = Memory::from_slot(t.env.memory);
    let mut pages = require_ok!(t, memory.map(io, 2 * PAGE_BYTES));
    check!(t, pages.bytes().iter().all(|byte| *byte == 0));
    check_eq!(t, pages.words().len(), 1024);
    pages.words()[1023].store(5, Ordering::Relaxed);
    check_eq!(t, pages.bytes()[8184], 5);
    check_eq!(t, at::read64(pages.address() + 8184), 5);
    require_ok!(t, memory.unmap(io, pages));
    Ok(())
}
