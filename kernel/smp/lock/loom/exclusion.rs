//! The lock excludes: no update is lost and no access overlaps; without it the model sees both.
use abi_sync::cell::RaceCell;
use abi_sync::{Arc, thread};
use smp_lock::TicketLock;

#[test]
fn no_update_is_lost() {
    abi_sync::model(|| {
        let lock = Arc::new(TicketLock::new(0));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let lock = lock.clone();
                thread::spawn(move || *lock.lock() += 1)
            })
            .collect();
        *lock.lock() += 1;
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(*lock.lock(), 3);
    });
}

struct Open(RaceCell<u32>);
// SAFETY: it is not; that is what the model is to find.
unsafe impl Sync for Open {}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutant_without_lock_is_caught() {
    abi_sync::model(|| {
        let cell = Arc::new(Open(RaceCell::new(0)));
        let other = cell.clone();
        // SAFETY: as above.
        let add = |c: &Open| c.0.with_mut(|v| unsafe { *v += 1 });
        let t = thread::spawn(move || add(&other));
        add(&cell);
        t.join().unwrap();
    });
}
