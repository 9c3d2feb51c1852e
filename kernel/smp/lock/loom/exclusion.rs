//! Turns exclude: no update is lost and no access overlaps; a protocol that publishes its turn
//! too weakly is seen.
use abi_sync::atomic::{AtomicU32, Ordering};
use abi_sync::cell::RaceCell;
use abi_sync::{Arc, thread};
use smp_lock::Turn;

struct Shared<T> {
    turn: T,
    cell: RaceCell<u32>,
}
// SAFETY: the cell is accessed in turn; whether that suffices is what the models find out.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn add(&self) {
        // SAFETY: as above.
        self.cell.with_mut(|v| unsafe { *v += 1 });
    }

    fn get(&self) -> u32 {
        // SAFETY: as above.
        self.cell.with(|v| unsafe { *v })
    }
}

#[test]
fn no_update_is_lost() {
    abi_sync::model(|| {
        let shared = Arc::new(Shared { turn: Turn::new(), cell: RaceCell::new(0) });
        let other = shared.clone();
        let t = thread::spawn(move || {
            let _turn = other.turn.wait();
            other.add();
        });
        {
            let _turn = shared.turn.wait();
            shared.add();
        }
        t.join().unwrap();
        assert_eq!(shared.get(), 2);
    });
}

#[test]
fn one_that_only_tries_excludes_others_too() {
    abi_sync::model(|| {
        let shared = Arc::new(Shared { turn: Turn::new(), cell: RaceCell::new(0) });
        let other = shared.clone();
        let t = thread::spawn(move || match other.turn.try_wait() {
            Some(_turn) => {
                other.add();
                1
            }
            None => 0,
        });
        {
            let _turn = shared.turn.wait();
            shared.add();
        }
        let tried = t.join().unwrap();
        assert_eq!(shared.get(), 1 + tried);
    });
}

/// The mutant: looks for its turn without taking over what was done in the one before.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutant_that_tries_with_a_relaxed_load_is_caught() {
    abi_sync::model(|| {
        let shared = Arc::new(Shared { turn: Weak::default(), cell: RaceCell::new(0) });
        let other = shared.clone();
        let t = thread::spawn(move || {
            let number = other.turn.serving.load(Ordering::Relaxed);
            let next = number + 1;
            let turn = &other.turn.next;
            if turn.compare_exchange(number, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                other.add();
                other.turn.serving.store(next, Ordering::Release);
            }
        });
        let number = shared.turn.next.fetch_add(1, Ordering::Relaxed);
        while shared.turn.serving.load(Ordering::Acquire) != number {
            abi_sync::spin_hint();
        }
        shared.add();
        shared.turn.serving.store(number + 1, Ordering::Release);
        t.join().unwrap();
    });
}

/// The mutant: ends its turn with a store that orders nothing before it.
#[derive(Default)]
struct Weak {
    next: AtomicU32,
    serving: AtomicU32,
}

impl Weak {
    fn turn(&self, f: impl FnOnce()) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        while self.serving.load(Ordering::Acquire) != number {
            abi_sync::spin_hint();
        }
        f();
        self.serving.store(number + 1, Ordering::Relaxed);
    }
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutant_with_a_relaxed_hand_over_is_caught() {
    abi_sync::model(|| {
        let shared = Arc::new(Shared { turn: Weak::default(), cell: RaceCell::new(0) });
        let other = shared.clone();
        let t = thread::spawn(move || other.turn.turn(|| other.add()));
        shared.turn.turn(|| shared.add());
        t.join().unwrap();
    });
}
