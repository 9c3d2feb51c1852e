//! Pointers that the kernel is given, at pages that come and go.

use crate::{PAGE, Run};
use abi_types::{CapSlot, Opcode, Sqe, SqeFlags, Status};
use capos_rt::Io;
use schema::memory_capnp::MemoryAccess;
use schema::timer::methods::Now;
use schema_wire::Method;
use test_kit::{Outcome, check_eq, require_ok};
use test_wild::at;

/// Far from everything else, before the end of a table.
const FAR: u64 = 0x5000_001f_e000;

/// A call of `Timer.now` whose results go to an address.
pub fn now_to(timer: CapSlot, address: u64) -> Sqe {
    Sqe {
        opcode: Opcode::Call as u8,
        flags: SqeFlags::RESULT_BY_ADDRESS,
        cap: timer.to_bits(),
        method: Now::ORDINAL,
        interface: Now::INTERFACE.to_bits(),
        result_address: address,
        result_capacity: 128,
        ..Sqe::default()
    }
}

/// What came of an operation.
pub fn status(io: &Io, sqe: Sqe) -> Status {
    io.run_plain(sqe).map_or_else(|status| status, |(status, _)| status)
}

pub fn results(t: &mut Run<'_>) -> Outcome {
    let (io, timer) = (t.env.program.io(), t.env.program.timer);
    check_eq!(t, status(io, now_to(timer, FAR)), Status::BadAddress);
    require_ok!(t, t.env.memory().map(FAR, 2 * PAGE, MemoryAccess::Write, true));
    // A result across the page boundary, which is a boundary of tables as well.
    for address in [FAR, FAR + PAGE - 8, FAR + 2 * PAGE - 32] {
        check_eq!(t, status(io, now_to(timer, address)), Status::Ok);
    }
    let across = FAR + PAGE - 8;
    for access in [MemoryAccess::Read, MemoryAccess::Execute] {
        require_ok!(t, t.env.memory().protect(FAR + PAGE, PAGE, access));
        let words = (at::read64(across), at::read64(FAR + PAGE));
        check_eq!(t, status(io, now_to(timer, across)), Status::BadAddress);
        check_eq!(t, (at::read64(across), at::read64(FAR + PAGE)), words);
        check_eq!(t, status(io, now_to(timer, FAR)), Status::Ok);
    }
    require_ok!(t, t.env.memory().unmap(FAR + PAGE, PAGE));
    check_eq!(t, status(io, now_to(timer, across)), Status::BadAddress);
    check_eq!(t, status(io, now_to(timer, FAR)), Status::Ok);
    require_ok!(t, t.env.memory().map(FAR + PAGE, PAGE, MemoryAccess::Write, true));
    check_eq!(t, status(io, now_to(timer, across)), Status::Ok);
    require_ok!(t, t.env.memory().unmap(FAR, 2 * PAGE));
    Ok(())
}

fn park_at(space: CapSlot, address: u64, opcode: Opcode) -> Sqe {
    // Expected 0 for PARK with no time to wait; at most one to be woken for UNPARK.
    let count = if opcode == Opcode::Unpark { 1 } else { 0 };
    Sqe {
        opcode: opcode as u8,
        cap: space.to_bits(),
        arg: address,
        address: count,
        ..Sqe::default()
    }
}

pub fn park_words(t: &mut Run<'_>) -> Outcome {
    let (io, park) = (t.env.program.io(), t.env.program.park);
    let word = FAR + PAGE + 8;
    let both = |word| {
        (
            status(io, park_at(park, word, Opcode::Park)),
            status(io, park_at(park, word, Opcode::Unpark)),
        )
    };
    let bad = (Status::BadAddress, Status::BadAddress);
    check_eq!(t, both(word), bad);
    for access in [MemoryAccess::Write, MemoryAccess::Read, MemoryAccess::Execute] {
        require_ok!(t, t.env.memory().map(FAR + PAGE, PAGE, access, true));
        check_eq!(t, both(word), (Status::TimedOut, Status::Ok));
        // The last word of the page, and the first of the page that is not there.
        check_eq!(t, both(FAR + 2 * PAGE - 4), (Status::TimedOut, Status::Ok));
        check_eq!(t, both(FAR + 2 * PAGE), bad);
        check_eq!(t, both(FAR + PAGE - 4), bad);
        require_ok!(t, t.env.memory().unmap(FAR + PAGE, PAGE));
        check_eq!(t, both(word), bad);
    }
    require_ok!(t, t.env.memory().reserve(FAR + PAGE, PAGE, true));
    check_eq!(t, both(word), bad);
    require_ok!(t, t.env.memory().unmap(FAR + PAGE, PAGE));
    Ok(())
}
