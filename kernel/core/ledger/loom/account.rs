//! CPUs that charge, release and close at once: the limit holds, a zero after closing is final,
//! and whoever sees it comes after the last use. The mutants keep the same books differently.

use abi_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use abi_sync::{Arc, CheckedCell, thread};
use core_ledger::{CapSlots, Frames, Ledger, Line, Profile};

const PROFILE: Profile = Profile {
    cap_slots: 1,
    threads: 0,
    kernel_stack_pages: 0,
    frames: 2,
    sleep_waiters: 0,
    kernel_bytes: 0,
    registered_buffers: 0,
    ring_entries: 64,
    ring_scratch_limit_bytes: 4096,
    in_flight_call_limit: 32,
    endpoint_queue_limit: 32,
};

/// Two CPUs want the last slot while a third looks.
#[test]
fn the_last_one_is_charged_once() {
    abi_sync::model(|| {
        let ledger = Arc::new(Ledger::new(&PROFILE));
        let holders = Arc::new(AtomicU32::new(0));
        let (other, others) = (ledger.clone(), holders.clone());
        let t = thread::spawn(move || hold_one(&other, &others));
        hold_one(&ledger, &holders);
        t.join().unwrap();
        assert!(ledger.is_settled(), "something stayed behind");
    });
}

fn hold_one(ledger: &Ledger, holders: &AtomicU32) {
    if let Ok(reserved) = ledger.reserve(CapSlots, 1) {
        let charge = reserved.commit();
        assert_eq!(holders.fetch_add(1, Ordering::Relaxed), 0, "two hold the only slot");
        assert!(ledger.reading(Line::CapSlots).used <= 1);
        holders.fetch_sub(1, Ordering::Relaxed);
        charge.release();
    }
}

/// The mutant checks the limit and then adds.
#[test]
#[should_panic(expected = "two hold the only slot")]
fn a_mutant_that_checks_and_then_charges_is_caught() {
    abi_sync::model(|| {
        let used = Arc::new(AtomicU32::new(0));
        let holders = Arc::new(AtomicU32::new(0));
        let hold = |used: &AtomicU32, holders: &AtomicU32| {
            if used.load(Ordering::Acquire) == 0 {
                used.fetch_add(1, Ordering::Acquire);
                assert_eq!(holders.fetch_add(1, Ordering::Relaxed), 0, "two hold the only slot");
                holders.fetch_sub(1, Ordering::Relaxed);
                used.fetch_sub(1, Ordering::Release);
            }
        };
        let (other, others) = (used.clone(), holders.clone());
        let t = thread::spawn(move || hold(&other, &others));
        hold(&used, &holders);
        t.join().unwrap();
    });
}

/// What a charge pays for is used up to its release; whoever charges it next, or sees the
/// account closed and at zero, comes after.
#[test]
fn what_was_released_is_no_longer_used() {
    abi_sync::model(|| {
        let ledger = Arc::new(Ledger::new(&PROFILE));
        let thing = Arc::new(CheckedCell::new(0));
        let (other, others) = (ledger.clone(), thing.clone());
        let t = thread::spawn(move || use_one(&other, &others));
        use_one(&ledger, &thing);
        ledger.close();
        if ledger.is_zero() {
            thing.update(|value| *value = 0);
        }
        t.join().unwrap();
    });
}

fn use_one(ledger: &Ledger, thing: &CheckedCell<u32>) {
    if let Ok(reserved) = ledger.reserve(CapSlots, 1) {
        let charge = reserved.commit();
        thing.update(|value| *value += 1);
        charge.release();
    }
}

/// The mutant gives back without ordering what was done before.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutant_that_releases_without_order_is_caught() {
    abi_sync::model(|| {
        let used = Arc::new(AtomicU32::new(0));
        let thing = Arc::new(CheckedCell::new(0));
        let use_one = |used: &AtomicU32, thing: &CheckedCell<u32>| {
            if used.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                thing.update(|value| *value += 1);
                used.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let (other, others) = (used.clone(), thing.clone());
        let t = thread::spawn(move || use_one(&other, &others));
        use_one(&used, &thing);
        t.join().unwrap();
    });
}

/// Exit meets a charge: once closed and zero, it stays zero, and nobody holds anything.
#[test]
fn zero_after_closing_is_final() {
    abi_sync::model(|| {
        let ledger = Arc::new(Ledger::new(&PROFILE));
        let holds = Arc::new(AtomicBool::new(false));
        let (other, others) = (ledger.clone(), holds.clone());
        let t = thread::spawn(move || {
            if let Ok(reserved) = other.reserve(Frames, 2) {
                let charge = reserved.commit();
                others.store(true, Ordering::Relaxed);
                others.store(false, Ordering::Relaxed);
                charge.release();
            }
        });
        ledger.close();
        if ledger.is_zero() {
            assert!(!holds.load(Ordering::Relaxed), "a charge outlives the account");
            assert!(ledger.reserve(Frames, 1).is_err());
        }
        t.join().unwrap();
        assert!(ledger.is_zero());
    });
}

/// The mutant looks at a closed mark that is not part of the count.
#[test]
#[should_panic(expected = "a charge outlives the account")]
fn a_mutant_with_the_mark_beside_the_count_is_caught() {
    abi_sync::model(|| {
        let used = Arc::new(AtomicU32::new(0));
        let closed = Arc::new(AtomicBool::new(false));
        let holds = Arc::new(AtomicBool::new(false));
        let (u, c, h) = (used.clone(), closed.clone(), holds.clone());
        let t = thread::spawn(move || {
            if !c.load(Ordering::SeqCst) {
                u.fetch_add(1, Ordering::SeqCst);
                h.store(true, Ordering::SeqCst);
                h.store(false, Ordering::SeqCst);
                u.fetch_sub(1, Ordering::SeqCst);
            }
        });
        closed.store(true, Ordering::SeqCst);
        if used.load(Ordering::SeqCst) == 0 {
            assert!(!holds.load(Ordering::SeqCst), "a charge outlives the account");
        }
        t.join().unwrap();
    });
}
