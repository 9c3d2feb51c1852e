//! Mutex and condition variable: one holder, no lost hand-over, no lost notification.
use abi_sync::{Arc, CheckedCell, explore, thread};
use fiber_rt::{Condvar, Defect, ModelFiber, Mutex, plant, shield};

/// Each holder writes plain memory: two at once are found.
fn exclusion(threads: usize) {
    let world = Arc::new((Mutex::new(()), CheckedCell::new(0)));
    let add = |world: &(Mutex<()>, CheckedCell<u32>)| {
        let guard = world.0.lock();
        world.1.update(|value| *value += 1);
        drop(guard);
    };
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let world = world.clone();
            thread::spawn(move || add(&world))
        })
        .collect();
    add(&world);
    others.into_iter().for_each(|other| other.join().unwrap());
    let _guard = world.0.lock();
    assert_eq!(world.1.get(), threads as u32);
}

#[test]
fn two_lock() {
    explore("two lock", || exclusion(2));
}

#[test]
fn three_lock() {
    explore("three lock", || exclusion(3));
}

#[test]
#[should_panic]
fn mutant_unlock_and_hand_over_has_two_holders() {
    plant(Defect::UnlocksAndHandsOver);
    explore("mutant: unlock and hand over", || exclusion(3));
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_link_without_looking_waits_for_ever() {
    plant(Defect::LinksWithoutLooking);
    explore("mutant: link without looking", || exclusion(2));
}

/// One that is cancelled at any moment locks within a shield of its own.
fn shielded_exclusion() {
    let world = Arc::new((Mutex::new(()), CheckedCell::new(0)));
    let add = |world: &(Mutex<()>, CheckedCell<u32>)| {
        shield(|| {
            let _guard = world.0.lock();
            world.1.update(|value| *value += 1);
        });
    };
    let (fiber, ended) = {
        let world = world.clone();
        ModelFiber::spawn(move || add(&world))
    };
    let canceller = thread::spawn(move || fiber.cancel());
    add(&world);
    ended.join().unwrap();
    canceller.join().unwrap();
    let _guard = world.0.lock();
    assert_eq!(world.1.get(), 2);
}

#[test]
fn a_cancelled_fiber_in_a_shield_waits_for_the_lock() {
    explore("cancelled, locks in a shield", shielded_exclusion);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_shield_masks_nothing_and_the_lock_is_never_had() {
    plant(Defect::ShieldsNothing);
    explore("mutant: shield masks nothing", shielded_exclusion);
}

fn notification() {
    let world = Arc::new((Mutex::new(false), Condvar::new()));
    let other = {
        let world = world.clone();
        thread::spawn(move || {
            *world.0.lock() = true;
            world.1.notify_one();
        })
    };
    let mut guard = world.0.lock();
    while !*guard {
        world.1.wait(&mut guard).unwrap();
    }
    drop(guard);
    other.join().unwrap();
}

#[test]
fn a_notification_is_not_lost() {
    explore("condvar", notification);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_unlock_before_linking_loses_a_notification() {
    plant(Defect::UnlocksBeforeLinking);
    explore("mutant: unlock before linking", notification);
}
