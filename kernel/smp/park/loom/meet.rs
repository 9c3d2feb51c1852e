//! Park against unpark, timeout and exit: no wake is lost, and a wait ends exactly once.
use abi_sync::atomic::{AtomicU32, Ordering};
use abi_sync::{Arc, Room, thread};
use core_park::{Key, Parked, WaiterRef};
use smp_park::ParkTable;

const KEY: Key = Key::private(1, 64);

struct World {
    table: ParkTable<2>,
    /// The word user space waits on; relaxed, as user space may be.
    word: AtomicU32,
    completions: AtomicU32,
}

impl World {
    fn new() -> Arc<Self> {
        let table = ParkTable::new(Room::of(Box::leak(Box::new_uninit_slice(2))), [3, 5]);
        assert!(table.reach(1) && !table.reach(2), "two, and no place for a third");
        Arc::new(Self { table, word: AtomicU32::new(0), completions: AtomicU32::new(0) })
    }

    fn complete(&self) {
        self.completions.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits while the word is 0.
    fn park(&self) -> Option<WaiterRef> {
        let is_expected = |_| Ok::<_, ()>(self.word.load(Ordering::Relaxed) == 0);
        match self.table.park(0, KEY, None, 0, is_expected).unwrap() {
            Parked::Waiting { waiter, .. } => Some(waiter),
            _ => {
                self.complete();
                None
            }
        }
    }

    /// The mutant: looks at the word before it takes the key's lock.
    fn park_after_looking(&self) {
        if self.word.load(Ordering::Relaxed) != 0 {
            self.complete();
            return;
        }
        let _ = self.table.park(0, KEY, None, 0, |_| Ok::<_, ()>(true)).unwrap();
    }

    fn wake(&self) {
        self.word.store(1, Ordering::Relaxed);
        self.table.unpark(KEY, 1, |_| self.complete());
    }

    fn check(&self) {
        self.table.check_invariants().unwrap();
        assert_eq!(self.completions.load(Ordering::Relaxed), 1, "a wait ends exactly once");
    }
}

fn park_meets_unpark(park: fn(&World)) {
    abi_sync::model(move || {
        let world = World::new();
        let other = world.clone();
        let waker = thread::spawn(move || other.wake());
        park(&world);
        waker.join().unwrap();
        world.check();
    });
}

#[test]
fn no_wake_is_lost_between_compare_and_park() {
    park_meets_unpark(|w| {
        w.park();
    });
}

#[test]
#[should_panic(expected = "a wait ends exactly once")]
fn a_mutant_that_compares_outside_the_lock_is_caught() {
    park_meets_unpark(World::park_after_looking);
}

fn ends_race(end: fn(&World, WaiterRef)) {
    abi_sync::model(move || {
        let world = World::new();
        let waiter = world.park().unwrap();
        let (a, b) = (world.clone(), world.clone());
        let waker = thread::spawn(move || a.wake());
        let timeout = thread::spawn(move || end(&b, waiter));
        // Exit of the thread races with both.
        if world.table.unlink(waiter) {
            world.complete();
        }
        waker.join().unwrap();
        timeout.join().unwrap();
        world.check();
        assert!(!world.table.unlink(waiter), "nothing is left linked");
    });
}

#[test]
fn wake_timeout_and_exit_claim_once() {
    ends_race(|w, waiter| {
        if w.table.unlink(waiter) {
            w.complete();
        }
    });
}

#[test]
#[should_panic(expected = "a wait ends exactly once")]
fn a_mutant_timeout_that_completes_without_claiming_is_caught() {
    ends_race(|w, waiter| {
        let _ = w.table.unlink(waiter);
        w.complete();
    });
}

/// A timeout of the first wait is late: the thread waits again by then, at `second`.
fn late_timeout(second: Key, end: fn(&World, WaiterRef) -> bool) {
    abi_sync::model(move || {
        let world = World::new();
        let first = world.park().unwrap();
        let b = world.clone();
        let timeout = thread::spawn(move || {
            if end(&b, first) {
                b.complete();
            }
        });
        // Woken, the thread waits again.
        world.table.unpark(KEY, 1, |_| world.complete());
        let again = world.table.park(0, second, None, 0, |_| Ok::<_, ()>(true));
        timeout.join().unwrap();
        if let Ok(Parked::Waiting { waiter, .. }) = again {
            assert!(world.table.unlink(waiter), "the second wait is untouched");
        }
        world.check();
    });
}

#[test]
fn a_late_timeout_does_not_end_the_next_wait() {
    late_timeout(KEY, |world, first| world.table.unlink(first));
}

#[test]
fn a_late_timeout_does_not_end_the_next_wait_elsewhere() {
    late_timeout(Key::shared(9, 8), |world, first| world.table.unlink(first));
}

/// It ends whatever wait the thread is in.
#[test]
#[should_panic(expected = "the second wait is untouched")]
fn a_mutant_timeout_of_any_ticket_is_caught() {
    late_timeout(KEY, |world, first| {
        let second = WaiterRef { ticket: first.ticket + 1, ..first };
        world.table.unlink(first) || world.table.unlink(second)
    });
}
