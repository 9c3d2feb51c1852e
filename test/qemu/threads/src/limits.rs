//! What a process may have, and that a refusal changes nothing.

use crate::SIBLINGS;
use abi_types::{CapSlot, ExceptionKind, NEVER};
use capos_rt::park::{park, unpark};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use schema::thread_spawner;
use test_bare::program::{Program, is_exception};
use test_bare::raw::{self, Child};
use test_kit::{Outcome, T, check, check_eq, require, require_ok};

type Test<'a> = T<'a, Program>;

/// As the manifest says.
const RECORDS: usize = 10;
const SLOTS: usize = 40;
const GRANTS: usize = 7;

static GATE: AtomicU32 = AtomicU32::new(0);
static PARK: AtomicU64 = AtomicU64::new(0);
static RUN: AtomicU32 = AtomicU32::new(0);

fn at_gate(child: &Child) -> i64 {
    RUN.fetch_add(1, Ordering::Relaxed);
    let space = CapSlot::from_bits(PARK.load(Ordering::Relaxed));
    while GATE.load(Ordering::Relaxed) == 0 {
        let _ = park(&child.io, space, &GATE, 0, NEVER);
    }
    0
}

fn end_at_once(_: &Child) -> i64 {
    0
}

fn close_gate(shared: &Program) {
    PARK.store(shared.park.to_bits(), Ordering::Relaxed);
    GATE.store(0, Ordering::Relaxed);
    RUN.store(0, Ordering::Relaxed);
}

fn open_gate(shared: &Program) {
    GATE.store(1, Ordering::Relaxed);
    let _ = unpark(shared.io(), shared.park, &GATE, u32::MAX);
}

pub fn bad_starts(t: &mut Test<'_>) -> Outcome {
    let (entry, top) = (raw::child_entry(), SIBLINGS[0].stack_top());
    const KERNEL: u64 = 0xffff_8000_0000_0000;
    const HOLE: u64 = 0x0000_8000_0000_0000;
    let cases = [
        (KERNEL, top, 0, 0, "entry"),
        (HOLE, top, 0, 0, "entry"),
        (u64::MAX, top, 0, 0, "entry"),
        (entry, KERNEL, 0, 0, "stackTop"),
        (entry, HOLE, 0, 0, "stackTop"),
        (entry, top - 8, 0, 0, "stackTop"),
        (entry, top - 1, 0, 0, "stackTop"),
        (entry, top, KERNEL, 0, "fsBase"),
        (entry, top, HOLE, 0, "fsBase"),
        (entry, top, 0, 1, "flags"),
        (entry, top, 0, 1 << 63, "flags"),
    ];
    for (entry, top, fs_base, flags, words) in cases {
        let mut spawner = thread_spawner::Client::new(t.env.io().caller(), t.env.spawner);
        let created = spawner.create(entry, top, 0, fs_base, flags);
        check!(t, is_exception(&created, ExceptionKind::Failed, words), "{created:?}, not {words}");
    }
    // Not one of them is a thread: as many as the profile allows can be made.
    fill(t)
}

/// Makes as many threads as there may be, and ends them.
fn fill(t: &mut Test<'_>) -> Outcome {
    close_gate(t.env);
    let mut handles = [CapSlot::NONE; RECORDS - 1];
    for (number, handle) in handles.iter_mut().enumerate() {
        *handle = require_ok!(t, t.env.spawn(number, at_gate, 0));
    }
    let refused = t.env.spawn(RECORDS, at_gate, 0);
    check!(t, is_exception(&refused, ExceptionKind::Overloaded, "as many threads"), "{refused:?}");
    open_gate(t.env);
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    check_eq!(t, RUN.load(Ordering::Relaxed), RECORDS as u32 - 1);
    Ok(())
}

pub fn records_run_out(t: &mut Test<'_>) -> Outcome {
    // Once to have all rings there are; from then on frames come back as they were.
    fill(t)?;
    t.env.sleep(1_000_000);
    let before = t.env.free_frames();
    for _ in 0..3 {
        fill(t)?;
    }
    // As in the race: the heap keeps what the most at once took.
    let kept = if t.env.cpus() == 1 { 0 } else { 8 };
    let after = t.env.until_frames(before);
    check!(t, before.abs_diff(after) <= kept, "{after} free frames, {before} before");
    Ok(())
}

pub fn slots_run_out(t: &mut Test<'_>) -> Outcome {
    // Handles of threads that were joined take slots and no records.
    let mut handles = [CapSlot::NONE; SLOTS];
    let mut made = 0;
    let refused = loop {
        require!(t, made < SLOTS, "{made} handles in {SLOTS} slots");
        match t.env.spawn(0, end_at_once, 0) {
            Ok(handle) => {
                check_eq!(t, t.env.join(handle), Ok(0));
                handles[made] = handle;
                made += 1;
            }
            refused => break refused,
        }
    };
    check_eq!(t, made, SLOTS - GRANTS);
    let words = "no slot for the handle";
    check!(t, is_exception(&refused, ExceptionKind::Overloaded, words), "{refused:?}");
    for handle in &handles[..made] {
        require_ok!(t, t.env.release(*handle));
    }
    // The refused one holds no record.
    fill(t)
}
