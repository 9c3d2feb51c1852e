//! Reclaim against use: an object is never reused while a CPU in the kernel reads it.
use abi_sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use abi_sync::cell::RaceCell;
use abi_sync::{Arc, thread};
use smp_reclaim::Quiescence;

const GONE: usize = 0;

/// A place where an object can be found, and the object.
struct World<Q> {
    quiescence: Q,
    place: AtomicUsize,
    object: RaceCell<u32>,
}
// SAFETY: the cell is written only when its grace period is over; whether that suffices is what
// the models find out.
unsafe impl<Q: Sync> Sync for World<Q> {}

impl<Q> World<Q> {
    fn new(quiescence: Q) -> Arc<Self> {
        Arc::new(Self { quiescence, place: AtomicUsize::new(1), object: RaceCell::new(5) })
    }

    fn read(&self) {
        if self.place.load(Ordering::Relaxed) != GONE {
            // SAFETY: as above.
            let value = self.object.with(|object| unsafe { *object });
            assert_eq!(value, 5);
        }
    }

    fn reuse(&self) {
        // SAFETY: as above.
        self.object.with_mut(|object| unsafe { *object = 9 });
    }
}

#[test]
fn an_object_is_reused_after_its_last_reader_left() {
    abi_sync::model(|| {
        let world = World::new(Quiescence::<2>::new());
        let reader = world.clone();
        let t = thread::spawn(move || {
            for _ in 0..2 {
                reader.quiescence.enter(0);
                reader.read();
                reader.quiescence.exit(0);
            }
        });
        world.place.store(GONE, Ordering::Relaxed);
        let grace = world.quiescence.begin();
        // A bounded number of looks: a model has no end of time.
        for _ in 0..2 {
            if world.quiescence.is_over(grace) {
                world.reuse();
                break;
            }
            abi_sync::spin_hint();
        }
        t.join().unwrap();
        assert!(world.quiescence.is_over(grace), "the last reader left");
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutant_that_does_not_wait_is_caught() {
    abi_sync::model(|| {
        let world = World::new(Quiescence::<2>::new());
        let reader = world.clone();
        let t = thread::spawn(move || {
            reader.quiescence.enter(0);
            reader.read();
            reader.quiescence.exit(0);
        });
        world.place.store(GONE, Ordering::Relaxed);
        let _ = world.quiescence.begin();
        world.reuse();
        t.join().unwrap();
    });
}

/// The protocol on a plain word, with its fences as parameters.
fn with_fences(enter_fence: bool, begin_fence: bool) {
    let full = |wanted: bool| {
        if wanted {
            fence(Ordering::SeqCst);
        }
    };
    abi_sync::model(move || {
        let world = World::new(AtomicU64::new(0));
        let reader = world.clone();
        let t = thread::spawn(move || {
            reader.quiescence.store(1, Ordering::Relaxed);
            full(enter_fence);
            reader.read();
            reader.quiescence.store(0, Ordering::Release);
        });
        world.place.store(GONE, Ordering::Relaxed);
        full(begin_fence);
        if world.quiescence.load(Ordering::Acquire) == 0 {
            world.reuse();
        }
        t.join().unwrap();
    });
}

#[test]
fn both_fences_suffice() {
    with_fences(true, true);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutant_entry_without_fence_is_caught() {
    with_fences(false, true);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutant_reclaimer_without_fence_is_caught() {
    with_fences(true, false);
}

/// A CPU that left and came back is seen by its second entry alone.
fn with_entry(order: Ordering) {
    abi_sync::model(move || {
        let world = World::new(AtomicU64::new(0));
        let reader = world.clone();
        let t = thread::spawn(move || {
            reader.quiescence.store(1, Ordering::Release);
            fence(Ordering::SeqCst);
            reader.read();
            reader.quiescence.store(0, Ordering::Release);
            reader.quiescence.store(2, order);
        });
        world.place.store(GONE, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if world.quiescence.load(Ordering::Acquire) != 1 {
            world.reuse();
        }
        t.join().unwrap();
    });
}

#[test]
fn a_release_entry_covers_the_visit_before() {
    with_entry(Ordering::Release);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutant_with_a_relaxed_entry_is_caught() {
    with_entry(Ordering::Relaxed);
}
