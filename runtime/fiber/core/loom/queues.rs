//! Push, pop and steal: each fiber comes out once, complete; none is lost when half is given away.
use abi_sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use abi_sync::{Arc, CheckedCell, explore, thread};
use fiber_core::{LifoSlot, RunQueue};
use std::ptr::null_mut;

type Item = usize;

/// A fiber.
fn item(number: usize) -> *mut Item {
    Box::leak(Box::new(number))
}

/// What came out, as what it is compared by.
fn open(item: *mut Item) -> usize {
    item.addr()
}

trait Queue: Send + Sync + 'static {
    fn new() -> Self;
    fn push(&self, item: *mut Item) -> bool;
    fn pop(&self) -> Option<*mut Item>;
    fn steal(&self, keep: &mut dyn FnMut(*mut Item));
}

impl<const N: usize> Queue for RunQueue<Item, N> {
    fn new() -> Self {
        RunQueue::new()
    }
    fn push(&self, item: *mut Item) -> bool {
        RunQueue::push(self, item).is_ok()
    }
    fn pop(&self) -> Option<*mut Item> {
        RunQueue::pop(self)
    }
    fn steal(&self, keep: &mut dyn FnMut(*mut Item)) {
        self.take_half(keep);
    }
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

fn steal_against_pop<Q: Queue>(thieves: usize) {
    let queue = Arc::new(Q::new());
    let items: Vec<_> = (0..3).map(item).collect();
    assert!(queue.push(items[0]) && queue.push(items[1]));
    let threads: Vec<_> = (0..thieves)
        .map(|_| {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut taken = Vec::new();
                queue.steal(&mut |item| taken.push(open(item)));
                taken
            })
        })
        .collect();
    let mut bag = Bag(Vec::new());
    bag.0.extend(queue.pop().map(open));
    let pushed = queue.push(items[2]);
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
    explore("steal against pop", || steal_against_pop::<RunQueue<Item, 4>>(1));
}

#[test]
fn two_thieves_against_the_owner() {
    explore("two thieves", || steal_against_pop::<RunQueue<Item, 4>>(2));
}

/// A queue of two, so that slots are reused while a thief reads them.
#[test]
fn slots_come_round() {
    explore("slots come round", || steal_against_pop::<RunQueue<Item, 2>>(1));
}

/// A queue that is full gives half away, as the owner does when it spills into the global queue,
/// while a thief takes from it.
fn overflow<Q: Queue>() {
    let queue = Arc::new(Q::new());
    let items: Vec<_> = (0..3).map(item).collect();
    assert!(queue.push(items[0]) && queue.push(items[1]));
    let thief = {
        let queue = queue.clone();
        thread::spawn(move || {
            let mut taken = Vec::new();
            queue.steal(&mut |item| taken.push(open(item)));
            taken
        })
    };
    let mut bag = Bag(Vec::new());
    while !queue.push(items[2]) {
        queue.steal(&mut |item| bag.0.push(open(item)));
    }
    bag.0.extend(thief.join().unwrap());
    while let Some(item) = queue.pop() {
        bag.0.push(open(item));
    }
    bag.check(&items.into_iter().map(open).collect::<Vec<_>>());
}

#[test]
fn overflow_against_steal() {
    explore("overflow against steal", overflow::<RunQueue<Item, 2>>);
}

/// What was written before a push is there after a steal.
fn publication(publish: fn(&RunQueue<u32, 2>, &AtomicPtr<u32>, *mut u32)) {
    explore("publication", move || {
        let world = Arc::new((
            RunQueue::<u32, 2>::new(),
            CheckedCell::new(0),
            AtomicPtr::<u32>::new(null_mut()),
        ));
        let thief = {
            let world = world.clone();
            thread::spawn(move || {
                let mut seen = !world.2.load(Ordering::Relaxed).is_null();
                world.0.take_half(|_| seen = true);
                if seen {
                    assert_eq!(world.1.get(), 7);
                }
            })
        };
        world.1.update(|value| *value = 7);
        publish(&world.0, &world.2, Box::leak(Box::new(0u32)));
        thief.join().unwrap();
    });
}

#[test]
fn a_stolen_fiber_is_complete() {
    publication(|queue, _, item| assert_eq!(queue.push(item), Ok(())));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_publication_without_release_is_caught() {
    publication(|_, slot, item| slot.store(item, Ordering::Relaxed));
}

/// The slot: the owner puts twice and takes, a thief takes.
#[test]
fn lifo_slot_gives_each_once() {
    explore("LIFO slot", || {
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
    });
}

/// The owner takes without a swap, as if nobody stole.
#[test]
#[should_panic(expected = "each comes out once")]
fn mutant_slot_taken_without_a_swap_gives_twice() {
    explore("mutant: take without a swap", || {
        let slot = Arc::new(AtomicPtr::new(item(0)));
        let expected = slot.load(Ordering::Relaxed).addr();
        let take = |slot: &AtomicPtr<Item>| {
            let item = slot.load(Ordering::SeqCst);
            slot.store(null_mut(), Ordering::SeqCst);
            (!item.is_null()).then_some(open(item))
        };
        let thief = {
            let slot = slot.clone();
            thread::spawn(move || take(&slot))
        };
        let mut bag = Bag(take(&slot).into_iter().collect());
        bag.0.extend(thief.join().unwrap());
        bag.check(&[expected]);
    });
}

/// What a queue does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    /// The owner takes without a compare-and-swap.
    PlainPop,
    /// A thief takes without a compare-and-swap.
    PlainSteal,
    /// A thief takes a slot first and reads it then.
    ReadsLate,
}

/// A queue of `N` with a flaw, one at a time, all orders as strong as can be.
struct Flawed<const FLAW: u8, const N: usize> {
    head: AtomicU64,
    tail: AtomicU64,
    slots: [AtomicPtr<Item>; N],
}

impl<const FLAW: u8, const N: usize> Flawed<FLAW, N> {
    const FLAW: Flaw = [Flaw::PlainPop, Flaw::PlainSteal, Flaw::ReadsLate][FLAW as usize];

    fn at(&self, index: u64) -> &AtomicPtr<Item> {
        &self.slots[index as usize % N]
    }

    /// Takes the oldest.
    fn take(&self, is_plain: bool, reads_late: bool) -> Option<*mut Item> {
        let head = self.head.load(Ordering::SeqCst);
        if head >= self.tail.load(Ordering::SeqCst) {
            return None;
        }
        let early = self.at(head).load(Ordering::SeqCst);
        if is_plain {
            self.head.store(head + 1, Ordering::SeqCst);
        } else {
            let order = Ordering::SeqCst;
            self.head.compare_exchange(head, head + 1, order, order).ok()?;
        }
        Some(if reads_late { self.at(head).load(Ordering::SeqCst) } else { early })
    }
}

impl<const FLAW: u8, const N: usize> Queue for Flawed<FLAW, N> {
    fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            slots: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
        }
    }
    fn push(&self, item: *mut Item) -> bool {
        let tail = self.tail.load(Ordering::SeqCst);
        if tail - self.head.load(Ordering::SeqCst) >= N as u64 {
            return false;
        }
        self.at(tail).store(item, Ordering::SeqCst);
        self.tail.store(tail + 1, Ordering::SeqCst);
        true
    }
    fn pop(&self) -> Option<*mut Item> {
        self.take(Self::FLAW == Flaw::PlainPop, false)
    }
    fn steal(&self, keep: &mut dyn FnMut(*mut Item)) {
        let taken = self.take(Self::FLAW == Flaw::PlainSteal, Self::FLAW == Flaw::ReadsLate);
        taken.into_iter().for_each(keep);
    }
}

#[test]
#[should_panic(expected = "each comes out once")]
fn mutant_plain_pop_gives_twice() {
    explore("mutant: plain pop", || steal_against_pop::<Flawed<0, 4>>(1));
}

#[test]
#[should_panic(expected = "each comes out once")]
fn mutant_plain_steal_gives_twice_to_two_thieves() {
    explore("mutant: plain steal", || steal_against_pop::<Flawed<1, 4>>(2));
}

/// The slot is written again before the thief reads it; a larger queue does not show it.
#[test]
#[should_panic(expected = "each comes out once")]
fn mutant_late_read_finds_the_next_round() {
    explore("late read, larger queue", || steal_against_pop::<Flawed<2, 4>>(1));
    explore("mutant: late read", || steal_against_pop::<Flawed<2, 2>>(1));
}

#[test]
#[should_panic(expected = "each comes out once")]
fn mutant_plain_steal_gives_twice_when_the_queue_overflows() {
    explore("mutant: plain steal, overflow", overflow::<Flawed<1, 2>>);
}
