//! Five workers share what there is to run, and some of them go: nothing is lost, run twice or left
//! alone.
//!
//! The runtime's worker in small, over the real queues, slots and sleepers: it looks at its slot, its
//! queue and the global queue, steals, and falls asleep as the runtime's does. What runs are
//! numbers that make two others each. An execution in which work is left alone ends with every
//! thread asleep, which the model calls a deadlock.
use std::collections::VecDeque;
use std::ptr::without_provenance_mut;

use abi_sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use abi_sync::{Arc, Mutex, explore, thread};
use fiber_core::{Idle, LifoSlot, RunQueue, Withdrawal};

const WORKERS: usize = 5;
/// Workers that stay.
const NEEDED: u32 = 2;
/// Comes from outside, one after the other.
const ROOTS: usize = 4;
/// Numbers of a root: 1 makes 2 and 3, these make 4 to 7.
const TREE: usize = 7;
/// Random schedules of a model.
const SCHEDULES: u64 = 1500;

/// What a worker does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// Falls asleep without another look.
    SleepsAtOnce,
    /// Leaves its slot behind when it goes.
    ForgetsTheSlot,
    /// Tells nobody of what it leaves when it goes.
    GoesSilently,
    /// Takes what it looks at without taking it out.
    StealsACopy,
}

/// A fiber, by its number.
type Item = u32;

#[derive(Default)]
struct Worker {
    queue: RunQueue<Item, 4>,
    lifo: LifoSlot<Item>,
    park_word: AtomicU32,
    thread: Mutex<Option<thread::Thread>>,
}

struct World {
    workers: [Worker; WORKERS],
    global: Mutex<VecDeque<usize>>,
    idle: Idle,
    live: AtomicU32,
    left: AtomicU32,
    ran: Vec<AtomicU32>,
    is_over: AtomicBool,
    flaw: Flaw,
}

fn pointer(number: usize) -> *mut Item {
    without_provenance_mut(number)
}

impl World {
    fn new(flaw: Flaw) -> Arc<Self> {
        Arc::new(Self {
            workers: std::array::from_fn(|_| Worker::default()),
            global: Mutex::new(VecDeque::new()),
            idle: Idle::new(),
            live: AtomicU32::new(WORKERS as u32),
            left: AtomicU32::new((ROOTS * TREE) as u32),
            ran: (0..ROOTS * 8).map(|_| AtomicU32::new(0)).collect(),
            is_over: AtomicBool::new(false),
            flaw,
        })
    }

    fn unpark(&self, worker: usize) {
        self.workers[worker].park_word.store(1, SeqCst);
        if let Some(thread) = &*self.workers[worker].thread.lock().unwrap() {
            thread.unpark();
        }
    }

    fn notify(&self) {
        if let Some(worker) = self.idle.claim_after_publish() {
            self.unpark(worker);
        }
    }

    fn inject(&self, number: usize) {
        self.global.lock().unwrap().push_back(number);
        self.notify();
    }

    fn push(&self, me: usize, number: usize) {
        let queue = &self.workers[me].queue;
        if queue.push(pointer(number)).is_err() {
            let mut global = self.global.lock().unwrap();
            queue.take_half(|item| global.push_back(item.addr()));
            global.push_back(number);
            drop(global);
            self.notify();
        }
        if self.idle.could_help() {
            self.notify();
        }
    }

    /// Runs a number: makes its two others, one for the slot and one for the queue.
    fn run(&self, me: usize, number: usize) {
        assert_eq!(self.ran[number].fetch_add(1, SeqCst), 0, "run twice");
        let (root, place) = (number / 8 * 8, number % 8);
        if 2 * place <= TREE {
            if let Some(displaced) = self.workers[me].lifo.put(pointer(root + 2 * place)) {
                self.push(me, displaced.addr());
            }
            self.push(me, root + 2 * place + 1);
        }
        if self.left.fetch_sub(1, SeqCst) == 1 {
            self.is_over.store(true, SeqCst);
            (0..WORKERS).for_each(|worker| self.unpark(worker));
        }
    }

    fn steal(&self, me: usize) -> Option<usize> {
        for victim in (1..WORKERS).map(|step| &self.workers[(me + step) % WORKERS]) {
            let mut first = None;
            victim.queue.take_half(|item| match first {
                None => first = Some(item.addr()),
                Some(_) => assert!(self.workers[me].queue.push(item).is_ok(), "there is room"),
            });
            if self.flaw == Flaw::StealsACopy
                && let Some(number) = first
            {
                self.inject(number);
            }
            if first.is_some() {
                return first;
            }
        }
        None
    }

    fn has_work(&self) -> bool {
        !self.global.lock().unwrap().is_empty()
            || self.workers.iter().any(|worker| !worker.queue.is_empty())
    }

    fn own(&self, me: usize) -> Option<usize> {
        let Worker { queue, lifo, .. } = &self.workers[me];
        lifo.take().or_else(|| queue.pop()).map(|item| item.addr())
    }

    fn take_global(&self) -> Option<usize> {
        self.global.lock().unwrap().pop_front()
    }

    /// The next to run; `None` when all is over.
    fn pick(&self, me: usize) -> Option<usize> {
        let mut is_searching = false;
        loop {
            if self.is_over.load(SeqCst) {
                return None;
            }
            let mut found = self.own(me).or_else(|| self.take_global());
            if found.is_none() {
                let limit = (self.live.load(SeqCst) / 2).max(1);
                is_searching = is_searching || self.idle.begin_search(limit);
                if is_searching {
                    found = self.steal(me).or_else(|| self.take_global());
                }
            }
            if found.is_some() {
                if is_searching && self.idle.end_search() && self.has_work() {
                    self.notify();
                }
                return found;
            }
            is_searching = self.sleep(me, is_searching);
        }
    }

    fn sleep(&self, me: usize, is_searching: bool) -> bool {
        let park_word = &self.workers[me].park_word;
        self.idle.announce_sleep(me, is_searching);
        let looks = self.flaw != Flaw::SleepsAtOnce;
        if !(looks && self.has_work()) && !self.is_over.load(SeqCst) {
            while park_word.load(SeqCst) == 0 {
                thread::park();
            }
        }
        let is_claimed = self.idle.withdraw(me) == Withdrawal::Claimed;
        if is_claimed {
            while park_word.load(SeqCst) == 0 {
                thread::yield_now();
            }
            park_word.store(0, SeqCst);
        }
        is_claimed
    }

    /// One worker too many hands over what it has, and goes.
    fn drain(&self, me: usize) {
        let mut drained = 0;
        let slot = match self.flaw {
            Flaw::ForgetsTheSlot => None,
            _ => self.workers[me].lifo.take().map(|item| item.addr()),
        };
        let queue = || self.workers[me].queue.pop().map(|item| item.addr());
        for number in slot.into_iter().chain(std::iter::from_fn(queue)) {
            self.global.lock().unwrap().push_back(number);
            drained += 1;
        }
        if drained > 0 && self.flaw != Flaw::GoesSilently {
            self.notify();
        }
    }

    fn retires(&self) -> bool {
        let fewer = |live: u32| (live > NEEDED).then(|| live - 1);
        self.live.fetch_update(SeqCst, SeqCst, fewer).is_ok()
    }

    fn work(&self, me: usize) {
        *self.workers[me].thread.lock().unwrap() = Some(thread::current());
        while let Some(number) = self.pick(me) {
            self.run(me, number);
            // In the middle of its work, which is the worst moment; one with each root, so that
            // nobody comes by after the last one.
            let is_time = me >= NEEDED as usize && number / 8 > me - NEEDED as usize;
            if is_time && self.retires() {
                return self.drain(me);
            }
        }
    }
}

fn all_is_run(flaw: Flaw) {
    let world = World::new(flaw);
    let start = |me| {
        let world = world.clone();
        thread::spawn(move || world.work(me))
    };
    let workers: Vec<_> = (0..WORKERS).map(start).collect();
    for root in 0..ROOTS {
        world.inject(root * 8 + 1);
        // Long enough for workers to run out of work: the next root comes when they fall asleep.
        (0..100 * root).for_each(|_| thread::yield_now());
    }
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    for root in 0..ROOTS {
        for place in 1..=TREE {
            assert_eq!(world.ran[root * 8 + place].load(SeqCst), 1, "run once");
        }
    }
}

#[test]
fn nothing_is_left_alone_by_workers_that_come_and_go() {
    explore("five workers", &[], SCHEDULES, || all_is_run(Flaw::None));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_sleep_without_a_last_look() {
    explore("mutant: no last look", &[], SCHEDULES, || all_is_run(Flaw::SleepsAtOnce));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_drain_that_forgets_the_slot() {
    explore("mutant: slot forgotten", &[], SCHEDULES, || all_is_run(Flaw::ForgetsTheSlot));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_drain_that_tells_nobody() {
    explore("mutant: silent drain", &[], SCHEDULES, || all_is_run(Flaw::GoesSilently));
}

#[test]
#[should_panic(expected = "run twice")]
fn mutant_steal_of_a_copy() {
    explore("mutant: stolen copy", &[], SCHEDULES, || all_is_run(Flaw::StealsACopy));
}
