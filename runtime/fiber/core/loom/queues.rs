//! Push, pop and steal: each fiber comes out once, complete; none is lost when half is given away.
use abi_sync::{Arc, CheckedCell, explore, thread};
use fiber_core::{Defect, LifoSlot, RunQueue, plant};

type Item = usize;

/// A fiber.
fn item(number: usize) -> *mut Item {
    Box::leak(Box::new(number))
}

/// What came out, as what it is compared by.
fn open(item: *mut Item) -> usize {
    item.addr()
}

struct Bag(Vec<usize>);

impl Bag {
    fn check(mut self, pushed: &[usize]) {
        self.0.sort_unstable();
        let mut pushed = pushed.to_vec();
        pushed.sort_unstable();
        assert_eq!(self.0, pushed, "each comes out once");
    }
}

fn steal_against_pop<const N: usize>(thieves: usize) {
    let queue = Arc::new(RunQueue::<Item, N>::new());
    let items: Vec<_> = (0..3).map(item).collect();
    assert!(queue.push(items[0]).is_ok() && queue.push(items[1]).is_ok());
    let threads: Vec<_> = (0..thieves)
        .map(|_| {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut taken = Vec::new();
                queue.take_half(|item| taken.push(open(item)));
                taken
            })
        })
        .collect();
    let mut bag = Bag(Vec::new());
    bag.0.extend(queue.pop().map(open));
    let pushed = queue.push(items[2]).is_ok();
    bag.0.extend(queue.pop().map(open));
    for thread in threads {
        bag.0.extend(thread.join().unwrap());
    }
    while let Some(item) = queue.pop() {
        bag.0.push(open(item));
    }
    let count = if pushed { 3 } else { 2 };
    let addresses: Vec<_> = items[..count].iter().map(|&item| open(item)).collect();
    bag.check(&addresses);
}

#[test]
fn one_thief_against_the_owner() {
    explore("steal against pop", || steal_against_pop::<4>(1));
}

#[test]
fn two_thieves_against_the_owner() {
    explore("two thieves", || steal_against_pop::<4>(2));
}

/// A queue of two, so that slots are reused while a thief reads them.
#[test]
fn slots_come_round() {
    explore("slots come round", || steal_against_pop::<2>(1));
}

/// A queue that is full gives half away, as the owner does when it spills into the global queue,
/// while a thief takes from it.
fn overflow<const N: usize>() {
    let queue = Arc::new(RunQueue::<Item, N>::new());
    let items: Vec<_> = (0..3).map(item).collect();
    assert!(queue.push(items[0]).is_ok() && queue.push(items[1]).is_ok());
    let thief = {
        let queue = queue.clone();
        thread::spawn(move || {
            let mut taken = Vec::new();
            queue.take_half(|item| taken.push(open(item)));
            taken
        })
    };
    let mut bag = Bag(Vec::new());
    while queue.push(items[2]).is_err() {
        queue.take_half(|item| bag.0.push(open(item)));
    }
    bag.0.extend(thief.join().unwrap());
    while let Some(item) = queue.pop() {
        bag.0.push(open(item));
    }
    bag.check(&items.into_iter().map(open).collect::<Vec<_>>());
}

#[test]
fn overflow_against_steal() {
    explore("overflow against steal", overflow::<2>);
}

/// What was written before a push is there after a steal.
fn publication() {
    let world = Arc::new((RunQueue::<u32, 2>::new(), CheckedCell::new(0)));
    let thief = {
        let world = world.clone();
        thread::spawn(move || {
            world.0.take_half(|_| assert_eq!(world.1.get(), 7));
        })
    };
    world.1.update(|value| *value = 7);
    assert!(world.0.push(Box::leak(Box::new(0))).is_ok());
    thief.join().unwrap();
}

#[test]
fn a_stolen_fiber_is_complete() {
    explore("publication", publication);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_push_without_release_is_caught() {
    plant(Defect::PushRelaxed);
    explore("mutant: push without release", publication);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_steal_without_acquire_is_caught() {
    plant(Defect::StealRelaxed);
    explore("mutant: steal without acquire", publication);
}

#[test]
#[should_panic(expected = "each comes out once")]
fn mutant_plain_pop_gives_twice() {
    plant(Defect::PopStores);
    explore("mutant: plain pop", || steal_against_pop::<4>(1));
}

#[test]
#[should_panic(expected = "each comes out once")]
fn mutant_plain_steal_gives_twice_to_two_thieves() {
    plant(Defect::StealStores);
    explore("mutant: plain steal", || steal_against_pop::<4>(2));
}

#[test]
#[should_panic(expected = "each comes out once")]
fn mutant_plain_steal_gives_twice_when_the_queue_overflows() {
    plant(Defect::StealStores);
    explore("mutant: plain steal, overflow", overflow::<2>);
}

/// The slot is written again before the thief reads it; a larger queue does not show it.
#[test]
#[should_panic(expected = "each comes out once")]
fn mutant_late_read_finds_the_next_round() {
    plant(Defect::StealReadsLate);
    explore("late read, larger queue", || steal_against_pop::<4>(1));
    explore("mutant: late read", || steal_against_pop::<2>(1));
}

/// The slot: the owner puts twice and takes, a thief takes.
fn slot_gives_each_once() {
    let slot = Arc::new(LifoSlot::<Item>::new());
    let (a, b) = (item(0), item(1));
    let thief = {
        let slot = slot.clone();
        thread::spawn(move || slot.take().map(open))
    };
    let mut bag = Bag(Vec::new());
    assert!(slot.put(a).is_none());
    bag.0.extend(slot.put(b).map(open));
    bag.0.extend(slot.take().map(open));
    bag.0.extend(thief.join().unwrap());
    bag.0.extend(slot.take().map(open));
    bag.check(&[a.addr(), b.addr()]);
}

#[test]
fn lifo_slot_gives_each_once() {
    explore("LIFO slot", slot_gives_each_once);
}

/// The owner takes without a swap, as if nobody stole.
#[test]
#[should_panic(expected = "each comes out once")]
fn mutant_slot_taken_without_a_swap_gives_twice() {
    plant(Defect::TakeStores);
    explore("mutant: take without a swap", slot_gives_each_once);
}

/// What was written before a put is there after a take: of the first fiber, and of one that displaces
/// another.
fn slot_publication() {
    let world = Arc::new((LifoSlot::<Item>::new(), [CheckedCell::new(0), CheckedCell::new(0)]));
    let items = [item(0), item(1)];
    let first = open(items[0]);
    let thief = {
        let world = world.clone();
        thread::spawn(move || {
            if let Some(item) = world.0.take() {
                let number = usize::from(open(item) != first);
                assert_eq!(world.1[number].get(), 7);
            }
        })
    };
    for (number, item) in items.into_iter().enumerate() {
        world.1[number].update(|value| *value = 7);
        let _ = world.0.put(item);
    }
    thief.join().unwrap();
}

#[test]
fn a_fiber_taken_from_the_slot_is_complete() {
    explore("slot publication", slot_publication);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_put_without_release_is_caught() {
    plant(Defect::PutRelaxed);
    explore("mutant: put without release", slot_publication);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_displacement_without_release_is_caught() {
    plant(Defect::DisplaceRelaxed);
    explore("mutant: displacement without release", slot_publication);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_take_without_acquire_is_caught() {
    plant(Defect::TakeRelaxed);
    explore("mutant: take without acquire", slot_publication);
}
