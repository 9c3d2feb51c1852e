//! Publishers against workers that fall asleep: work in a queue is never left alone.
//!
//! The queue is a counter without any order of its own, so that only the fences are at work. A worker
//! that is asleep at the end while work is queued and no wake-up is under way is a lost wake-up.
use Ordering::{Relaxed, SeqCst};
use abi_sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use abi_sync::{Arc, explore, thread};
use fiber_core::{Defect, Idle, Watch, Withdrawal, plant};

const WORKERS: usize = 2;

struct World {
    idle: Idle,
    queue: AtomicU32,
    ran: AtomicU32,
    /// Each worker's wake-up.
    unparked: [AtomicBool; WORKERS],
    asleep: [AtomicBool; WORKERS],
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(),
            queue: AtomicU32::new(0),
            ran: AtomicU32::new(0),
            unparked: std::array::from_fn(|_| AtomicBool::new(false)),
            asleep: std::array::from_fn(|_| AtomicBool::new(false)),
        })
    }

    fn take(&self) -> bool {
        let taken = self.queue.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok();
        if taken {
            self.ran.fetch_add(1, Relaxed);
        }
        taken
    }

    fn unpark(&self, claimed: Option<usize>) {
        if let Some(worker) = claimed {
            self.unparked[worker].store(true, SeqCst);
        }
    }

    fn publish(&self) {
        self.queue.fetch_add(1, Relaxed);
        self.unpark(self.idle.claim_after_publish());
    }

    /// A worker from its search to its sleep: true if it sleeps.
    fn fall_asleep(&self, worker: usize, recheck: bool) -> bool {
        let is_searching = self.idle.begin_search(1);
        if is_searching && self.take() {
            if self.idle.end_search() {
                self.unpark(self.idle.claim_after_publish());
            }
            return false;
        }
        self.idle.announce_sleep(worker, is_searching);
        if recheck && self.queue.load(Relaxed) > 0 {
            match self.idle.withdraw(worker) {
                Withdrawal::Mine => {}
                Withdrawal::Claimed => {
                    while !self.unparked[worker].load(SeqCst) {
                        thread::yield_now();
                    }
                    self.unparked[worker].store(false, SeqCst);
                    let _ = self.idle.end_search();
                }
            }
            self.take();
            return false;
        }
        self.asleep[worker].store(true, Relaxed);
        true
    }

    fn check_end(&self) {
        let awake = (0..WORKERS).any(|w| !self.asleep[w].load(Relaxed));
        let on_its_way = self.unparked.iter().any(|flag| flag.load(SeqCst));
        assert!(self.queue.load(Relaxed) == 0 || awake || on_its_way, "work left alone");
    }
}

fn one_worker(publishers: usize, publish: fn(&World), recheck: bool) {
    let world = World::new();
    world.asleep[1].store(true, Relaxed);
    let threads: Vec<_> = (0..publishers)
        .map(|_| {
            let world = world.clone();
            thread::spawn(move || publish(&world))
        })
        .collect();
    world.fall_asleep(0, recheck);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    world.check_end();
}

#[test]
fn one_publisher_one_worker() {
    explore("sleep against publish", || one_worker(1, World::publish, true));
}

#[test]
fn two_publishers_one_worker() {
    explore("sleep against two publishers", || one_worker(2, World::publish, true));
}

fn two_workers(name: &str, recheck: bool) {
    explore(name, move || {
        let world = World::new();
        let publisher = {
            let world = world.clone();
            thread::spawn(move || world.publish())
        };
        let other = {
            let world = world.clone();
            thread::spawn(move || {
                world.fall_asleep(1, recheck);
            })
        };
        world.fall_asleep(0, recheck);
        publisher.join().unwrap();
        other.join().unwrap();
        world.check_end();
    });
}

#[test]
fn two_workers_one_publisher() {
    two_workers("two sleepers", true);
}

/// A surplus worker drains its queue into the global one and is gone; the other one falls asleep.
fn drain(name: &str, publish: fn(&World)) {
    explore(name, move || {
        let world = World::new();
        world.asleep[1].store(true, Relaxed);
        let draining = {
            let world = world.clone();
            thread::spawn(move || publish(&world))
        };
        world.fall_asleep(0, true);
        draining.join().unwrap();
        world.check_end();
        if world.unparked[0].load(SeqCst) {
            assert!(world.take(), "woken for nothing");
        }
        assert_eq!(world.ran.load(Relaxed) + world.queue.load(Relaxed), 1, "lost in the drain");
    });
}

#[test]
fn drain_against_sleep() {
    drain("drain against sleep", World::publish);
}

/// One sleeper, two claims: it is claimed once.
fn two_claims() {
    let world = World::new();
    world.idle.announce_sleep(0, false);
    let other = {
        let world = world.clone();
        thread::spawn(move || world.idle.claim().is_some())
    };
    let mine = world.idle.claim().is_some();
    assert!(mine ^ other.join().unwrap(), "claimed once");
    assert_eq!(world.idle.searchers(), 1);
}

#[test]
fn a_sleeper_is_claimed_once() {
    explore("two claims", two_claims);
}

#[test]
#[should_panic(expected = "claimed once")]
fn mutant_claim_by_look_and_store_claims_twice() {
    plant(Defect::ClaimStores);
    explore("mutant: look and store", two_claims);
}

#[test]
#[should_panic(expected = "work left alone")]
fn mutant_sleep_without_a_last_look() {
    explore("mutant: no last look", || one_worker(1, World::publish, false));
}

#[test]
#[should_panic(expected = "work left alone")]
fn mutant_two_sleepers_without_a_last_look() {
    two_workers("mutant: no last look, two", false);
}

#[test]
#[should_panic(expected = "work left alone")]
fn mutant_publisher_without_a_fence() {
    plant(Defect::PublishesWithoutAFence);
    explore("mutant: no fence", || one_worker(1, World::publish, true));
}

#[test]
#[should_panic(expected = "work left alone")]
fn mutant_two_publishers_without_a_fence() {
    plant(Defect::PublishesWithoutAFence);
    explore("mutant: no fence, two", || one_worker(2, World::publish, true));
}

#[test]
#[should_panic(expected = "work left alone")]
fn mutant_sleeper_without_a_fence() {
    plant(Defect::SleepsWithoutAFence);
    explore("mutant: sleep without a fence", || one_worker(1, World::publish, true));
}

#[test]
#[should_panic(expected = "work left alone")]
fn mutant_sleeper_that_counts_as_searching() {
    plant(Defect::SearchesInItsSleep);
    explore("mutant: searching in its sleep", || one_worker(1, World::publish, true));
}

/// Looks for sleepers before its push.
fn look_then_push(world: &World) {
    fence(SeqCst);
    let claimed = world.idle.claim_after_publish();
    world.queue.fetch_add(1, Relaxed);
    world.unpark(claimed);
}

#[test]
#[should_panic(expected = "work left alone")]
fn mutant_look_for_sleepers_before_the_push() {
    explore("mutant: look, then push", || one_worker(1, look_then_push, true));
}

#[test]
#[should_panic(expected = "work left alone")]
fn mutant_drain_that_notifies_first() {
    drain("mutant: notify, then drain", look_then_push);
}

/// A worker wakes while the watcher, who has seen all asleep, goes to sleep as well: it is woken.
fn watch() {
    let world = Arc::new((Idle::new(), Watch::new()));
    world.0.announce_sleep(0, false);
    let watcher = {
        let world = world.clone();
        thread::spawn(move || {
            world.1.announce();
            world.0.sleepers() == 1
        })
    };
    let _ = world.0.withdraw(0);
    let is_woken = world.1.is_asleep();
    let sleeps = watcher.join().unwrap();
    assert!(is_woken || !sleeps, "nobody watches");
}

#[test]
fn a_worker_that_wakes_wakes_the_watcher() {
    explore("watch", watch);
}

#[test]
#[should_panic(expected = "nobody watches")]
fn mutant_watcher_without_a_fence() {
    plant(Defect::AnnouncesWithoutAFence);
    explore("mutant: watcher without a fence", watch);
}

#[test]
#[should_panic(expected = "nobody watches")]
fn mutant_worker_without_a_fence_before_its_look() {
    plant(Defect::WakesWithoutAFence);
    explore("mutant: wake without a fence", watch);
}
