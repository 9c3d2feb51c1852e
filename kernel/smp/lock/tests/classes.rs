//! Lock classes: every pair of them, in both orders; counting; threads as CPUs.

use smp_lock::{LockClass, Tally, TicketLock, Watch, tally, watch};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

thread_local! {
    /// The CPU this thread stands for.
    static CPU: Cell<Option<usize>> = const { Cell::new(None) };
}

thread_local! {
    /// The clock of the CPU this thread stands for.
    static TICKS: Cell<u64> = const { Cell::new(0) };
}

static WATCH: Watch = Watch { cpu: || CPU.get(), ticks: || TICKS.get() };

/// The counts are of the whole program, so tests take turns.
static ALONE: Mutex<()> = Mutex::new(());

fn on_cpu<R>(cpu: usize, body: impl FnOnce() -> R) -> R {
    watch(&WATCH);
    CPU.set(Some(cpu));
    let result = body();
    CPU.set(None);
    result
}

fn lock(class: LockClass) -> TicketLock<u32> {
    TicketLock::with_class(class, 0)
}

/// S2, design: endpoint, context, queue, completion queue, with the others between them; each before the next,
/// none twice, and a shared one before all.
#[test]
fn each_pair_is_taken_in_one_order_only() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for (at, outer_class) in LockClass::ORDERED.into_iter().enumerate() {
        for (inner_at, inner_class) in LockClass::ORDERED.into_iter().enumerate() {
            let allowed = on_cpu(at, || {
                let (outer, inner) = (lock(outer_class), lock(inner_class));
                let _held = outer.lock();
                catch_unwind(AssertUnwindSafe(|| *inner.lock() += 1)).is_ok()
            });
            assert_eq!(allowed, at < inner_at, "{inner_class:?} inside {outer_class:?}");
        }
    }
}

/// The position of a class is the bit that says it is held.
#[test]
fn the_order_is_the_one_of_the_numbers() {
    for (at, class) in LockClass::ORDERED.into_iter().enumerate() {
        assert_eq!(class as usize, at);
    }
    assert_eq!(LockClass::Unclassed as usize, LockClass::ORDERED.len());
}

#[test]
fn the_error_names_both_classes() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let message = on_cpu(20, || {
        let (queue, endpoint) = (lock(LockClass::Queue), lock(LockClass::Endpoint));
        let _held = queue.lock();
        let error = catch_unwind(AssertUnwindSafe(|| drop(endpoint.lock()))).unwrap_err();
        error.downcast_ref::<String>().unwrap().clone()
    });
    assert!(message.contains("Endpoint") && message.contains("Queue"), "{message}");
}

#[test]
fn a_released_lock_is_no_longer_held_whatever_the_order() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    on_cpu(21, || {
        let (context, queue, cq) =
            (lock(LockClass::Context), lock(LockClass::Queue), lock(LockClass::Cq));
        let first = context.lock();
        let second = queue.lock();
        drop(first);
        let third = cq.lock();
        drop(second);
        drop(third);
        *context.lock() += 1;
        *queue.lock() += 1;
    });
}

#[test]
fn what_one_cpu_holds_does_not_bind_another() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (cq, endpoint) = (lock(LockClass::Cq), lock(LockClass::Endpoint));
    on_cpu(22, || {
        let _held = cq.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| on_cpu(23, || *endpoint.lock() += 1));
        });
    });
}

/// Locks without a class, and CPUs nobody knows, are left alone.
#[test]
fn unclassed_locks_and_unknown_cpus_are_not_checked() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    on_cpu(24, || {
        let (plain, cq) = (TicketLock::new(1), lock(LockClass::Cq));
        let _held = cq.lock();
        assert_eq!(*plain.lock(), 1);
    });
    for cpu in [128, usize::MAX] {
        on_cpu(cpu, || {
            let (queue, other) = (lock(LockClass::Queue), lock(LockClass::Queue));
            let _held = queue.lock();
            *other.lock() += 1;
        });
    }
}

/// What is only tried for cannot be waited for, so any order is right; it is held all the same.
#[test]
fn a_lock_that_is_tried_for_has_no_order_but_a_place_in_it() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    on_cpu(28, || {
        let (cq, queue, endpoint) =
            (lock(LockClass::Cq), lock(LockClass::Queue), lock(LockClass::Endpoint));
        let held = cq.lock();
        let tried = queue.try_lock().expect("it is free");
        drop(held);
        catch_unwind(AssertUnwindSafe(|| drop(lock(LockClass::Queue).lock()))).unwrap_err();
        drop(tried);
        drop(endpoint.lock());
    });
}

fn taken(class: LockClass) -> u64 {
    tally(class).expect("a build that counts").taken
}

/// S2: what is asked after a mix is the count of those that are global.
#[test]
fn acquisitions_are_counted_per_class() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = LockClass::ORDERED.map(taken);
    for cpu in [25, 26] {
        on_cpu(cpu, || {
            let (endpoint, queue) = (lock(LockClass::Endpoint), lock(LockClass::Queue));
            for _ in 0..10 {
                let _held = endpoint.lock();
                *queue.lock() += 1;
            }
        });
    }
    on_cpu(27, || *lock(LockClass::Global).lock() += 1);
    let after = LockClass::ORDERED.map(taken);
    let counted: Vec<u64> =
        after.iter().zip(before).map(|(after, before)| after - before).collect();
    let expected = |class| match class {
        LockClass::Global => 1,
        LockClass::Endpoint | LockClass::Queue => 20,
        _ => 0,
    };
    assert_eq!(counted, LockClass::ORDERED.map(expected));
}

/// The longest of several holds counts, on whichever CPU, and whoever came while one was held has waited.
#[test]
fn holds_are_timed_and_waits_are_counted() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let class = LockClass::TimePage;
    let before = tally(class).expect("a build that counts");
    assert_eq!(before.longest, 0, "no other test holds one of these");
    for (cpu, ticks) in [(29, 7), (30, 40), (31, 13)] {
        on_cpu(cpu, || {
            let lock = lock(class);
            let held = lock.lock();
            TICKS.set(TICKS.get() + ticks);
            drop(held);
            TICKS.set(TICKS.get() + 1000);
        });
    }
    let after = tally(class).expect("a build that counts");
    assert_eq!(after, Tally { taken: before.taken + 3, waited: before.waited, longest: 40 });
    // Whether the other comes while it is held is a matter of luck: several tries.
    let shared = lock(class);
    let has_waited = (0..1000).any(|_| {
        let held = shared.lock();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| on_cpu(32, || *shared.lock() += 1));
            (0..100).for_each(|_| std::thread::yield_now());
            drop(held);
            other.join().expect("it gets the lock");
        });
        tally(class).is_some_and(|tally| tally.waited > before.waited)
    });
    assert!(has_waited);
}
