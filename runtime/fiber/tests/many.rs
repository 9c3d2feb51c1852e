//! A million fibers at once, and ten million one after the other, without growth of memory.
use fiber::channel::bounded;
use fiber::{Runtime, nursery, yield_now};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const LIVE: usize = 1_000_000;
const CYCLES: usize = 10_000_000;
const PAGE: usize = 4096;
/// What a fiber may take that has hardly used its stack: two pages of it, its frame, and what the
/// channel knows of it.
const MOST_BYTES: usize = 2 * PAGE + 1024;

/// Both look at the memory of the whole process, so they run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * PAGE
}

#[test]
fn a_million_fibers_live_at_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime =
        Runtime::builder().workers(2).stack_bytes(16 << 10).on_stall(|_| {}).build().unwrap();
    runtime.run(|| {
        let (tx, rx) = bounded::<()>(0);
        let arrived = AtomicUsize::new(0);
        let before = resident();
        nursery(|n| {
            for i in 0..LIVE {
                n.spawn(|| {
                    arrived.fetch_add(1, Ordering::Relaxed);
                    assert!(rx.recv().is_err());
                });
                if i % 1000 == 0 {
                    yield_now().unwrap();
                }
            }
            // Each has been on its stack, and waits there.
            while arrived.load(Ordering::Relaxed) < LIVE {
                yield_now().unwrap();
            }
            assert_eq!(n.live(), LIVE);
            let bytes = (resident() - before) / LIVE;
            println!("{LIVE} fibers: {bytes} bytes each");
            assert!(bytes >= PAGE, "{bytes} bytes are no stack");
            assert!(bytes < MOST_BYTES, "{bytes} bytes each");
            tx.close();
        });
    });
}

#[test]
fn ten_million_spawns_and_joins_do_not_grow() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Runtime::builder().workers(2).on_stall(|_| {}).build().unwrap();
    let cycles = |count: usize| {
        runtime.run(|| {
            nursery(|n| (0..count).for_each(|i| assert_eq!(n.spawn(move || i).join().unwrap(), i)));
        });
    };
    cycles(100_000);
    let before = (resident(), runtime.stats().stacks);
    cycles(CYCLES);
    let after = (resident(), runtime.stats().stacks);
    println!("{before:?} {after:?}");
    assert!(after.0 < before.0 + (8 << 20), "{before:?} {after:?}");
    assert!(after.1 <= before.1 + 256, "{before:?} {after:?}");
}
