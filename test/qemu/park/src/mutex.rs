//! A lock built on PARK and UNPARK, under contention.

use abi_types::{CapSlot, NEVER};
use capos_rt::Io;
use capos_rt::park::{park, unpark};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use test_bare::program::Program;
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_ok};

type Test<'a> = T<'a, Program>;

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// The lock of Drepper's "Futexes are tricky", second form.
static LOCK: AtomicU32 = AtomicU32::new(FREE);
static SPACE: AtomicU64 = AtomicU64::new(0);
/// Guarded by the lock; in two halves, so that two inside at once show.
static GUARDED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static TORN: AtomicU32 = AtomicU32::new(0);
static PARKS: AtomicU32 = AtomicU32::new(0);

fn space() -> CapSlot {
    CapSlot::from_bits(SPACE.load(Ordering::Relaxed))
}

fn lock(io: &Io) -> bool {
    // Acquire pairs with the release in `unlock`.
    let taken = LOCK.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
    if taken.is_ok() {
        return true;
    }
    // Acquire, as above.
    while LOCK.swap(CONTENDED, Ordering::Acquire) != FREE {
        PARKS.fetch_add(1, Ordering::Relaxed);
        if park(io, space(), &LOCK, CONTENDED, NEVER).is_err() {
            return false;
        }
    }
    true
}

fn unlock(io: &Io) -> bool {
    // Release pairs with the acquires in `lock`.
    LOCK.swap(FREE, Ordering::Release) != CONTENDED || unpark(io, space(), &LOCK, 1).is_ok()
}

const THREADS: usize = 6;

fn contend(child: &Child) -> i64 {
    for round in 0..child.argument {
        if !lock(&child.io) {
            return 1;
        }
        let [low, high] = [&GUARDED[0], &GUARDED[1]].map(|half| half.load(Ordering::Relaxed));
        if low != high {
            TORN.fetch_add(1, Ordering::Relaxed);
        }
        GUARDED[0].store(low + 1, Ordering::Relaxed);
        // Now and then the holder lets others come and find it held: the first one until one has.
        if round % 16 == 0 {
            loop {
                if child.io.yield_now().is_err() {
                    return 2;
                }
                if PARKS.load(Ordering::Relaxed) > 0 {
                    break;
                }
            }
        }
        GUARDED[1].store(low + 1, Ordering::Relaxed);
        if !unlock(&child.io) {
            return 3;
        }
    }
    0
}

fn run(t: &mut Test<'_>, rounds: u64) -> Outcome {
    SPACE.store(t.env.park.to_bits(), Ordering::Relaxed);
    GUARDED.iter().for_each(|half| half.store(0, Ordering::Relaxed));
    let mut handles = [CapSlot::NONE; THREADS];
    for (number, handle) in handles.iter_mut().enumerate() {
        *handle = require_ok!(t, t.env.spawn(number, contend, rounds));
    }
    for handle in handles {
        check_eq!(t, t.env.finish(handle), Ok(0));
    }
    check_eq!(t, GUARDED[1].load(Ordering::Relaxed), THREADS as u64 * rounds);
    check_eq!(t, TORN.load(Ordering::Relaxed), 0);
    check_eq!(t, LOCK.load(Ordering::Relaxed), FREE);
    Ok(())
}

pub fn mutex(t: &mut Test<'_>) -> Outcome {
    // 10⁵ in all where CPUs race, fewer where an instruction is counted.
    let rounds = if t.env.cpus() == 1 { 1_000 } else { 17_000 };
    run(t, rounds)?;
    let parks = PARKS.load(Ordering::Relaxed);
    check!(t, parks > 0, "nobody ever waited");
    t.metric("waits", parks.into(), "");
    Ok(())
}

pub fn nothing_allocated(t: &mut Test<'_>) -> Outcome {
    let before = t.env.free_frames();
    let word = AtomicU32::new(1);
    for _ in 0..200 {
        require_ok!(t, park(t.env.io(), t.env.park, &word, 1, 1_000));
        require_ok!(t, unpark(t.env.io(), t.env.park, &word, 1));
    }
    check_eq!(t, t.env.free_frames(), before);
    Ok(())
}
