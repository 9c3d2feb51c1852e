//! What there is runs out: each refusal says so, changes nothing, and everything comes back.

use crate::{PAGE, Run};
use abi_types::ExceptionKind::Overloaded;
use schema::memory_capnp::MemoryAccess;
use test_bare::program::is_exception;
use test_kit::{Outcome, check, check_eq, require, require_ok};
use test_wild::at;

const FAR: u64 = 0x5000_0000_0000;

pub fn regions(t: &mut Run<'_>) -> Outcome {
    let mut made = 0;
    let refused = loop {
        match t.env.memory().reserve(FAR + 2 * made * PAGE, PAGE, true) {
            Ok(_) => made += 1,
            refused => break refused,
        }
        require!(t, made < 10_000, "there is no limit");
    };
    check!(t, is_exception(&refused, Overloaded, "regions"), "{:?}", refused);
    check!(t, made > 600, "{made} regions");
    // With one more page two regions are one.
    for n in 0..made {
        require_ok!(t, t.env.memory().unmap(FAR + 2 * n * PAGE, PAGE));
    }
    t.metric("regions", made, "regions");
    Ok(())
}

/// Bytes that are mapped at a time: more pages than one step takes.
const CHUNK: u64 = 1 << 20;

pub fn machine(t: &mut Run<'_>) -> Outcome {
    let before = t.env.program.free_frames();
    for _ in 0..2 {
        let mut mapped = 0;
        let refused = loop {
            match t.env.memory().map(FAR + mapped, CHUNK, MemoryAccess::Write, true) {
                Ok(_) => mapped += CHUNK,
                refused => break refused,
            }
            at::write64(FAR + mapped - 8, mapped);
        };
        check!(t, is_exception(&refused, Overloaded, "memory"), "{:?}", refused);
        check!(t, mapped > CHUNK, "{mapped:#x} bytes");
        // Half a chunk was taken back; single pages are left, and go to nobody.
        check!(t, t.env.program.free_frames() < 2 * CHUNK / PAGE);
        for end in (CHUNK..=mapped).step_by(CHUNK as usize) {
            check_eq!(t, at::read64(FAR + end - 8), end);
        }
        require_ok!(t, t.env.memory().unmap(FAR, mapped));
        check_eq!(t, t.env.program.until_frames(before), before);
    }
    Ok(())
}
