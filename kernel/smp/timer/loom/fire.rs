//! A deadline that fires on one CPU while the owner of its operation gives it up on another, begins the next in
//! the same place, and goes away with its block.
//!
//! The model is what `kernel_ops` does with a cell: its completion lock, and the arming that bounds it.

use abi_sync::{Arc, Mutex, thread};
use smp_timer::{Deadlines, Owner, Timers};

/// What is under a thread's completion lock: its block of timers, and the arming that bounds its operation.
struct Ring {
    timers: Option<Timers>,
    bound: Option<u32>,
}

struct World {
    deadlines: [Deadlines; 2],
    ring: Mutex<Ring>,
    /// Which armings were served.
    served: Mutex<Vec<u32>>,
}

/// Whether who serves a deadline asks for its arming.
type Asks = bool;

impl World {
    fn new() -> Arc<Self> {
        let ring = Ring { timers: Some(Timers::new(1).unwrap()), bound: None };
        let deadlines = [Deadlines::new(0), Deadlines::new(1)];
        Arc::new(Self { deadlines, ring: Mutex::new(ring), served: Mutex::new(Vec::new()) })
    }

    /// The owner begins an operation that a deadline bounds, on a CPU.
    fn begin(&self, cpu: usize, arming: u32, deadline_ns: u64) {
        let mut ring = self.ring.lock().unwrap();
        ring.bound = Some(arming);
        let owner = Owner { thread: 0, number: 0, arming };
        let timer = ring.timers.as_ref().unwrap().get(0).unwrap();
        assert!(self.deadlines[cpu].arm(timer, owner, deadline_ns).is_ok(), "it is armed nowhere");
    }

    /// The owner's operation is over before its time; `false` if its deadline was served.
    fn give_up(&self) -> bool {
        let mut ring = self.ring.lock().unwrap();
        let is_ours = ring.bound.take().is_some();
        if is_ours {
            let timer = ring.timers.as_ref().unwrap().get(0).unwrap();
            timer.stop(|cpu| self.deadlines.get(usize::from(cpu)));
        }
        is_ours
    }

    /// The deadlines of a CPU are served.
    fn expire(&self, cpu: usize, now_ns: u64, asks: Asks) {
        while let Some(expired) = self.deadlines[cpu].pop_expired(now_ns) {
            let mut ring = self.ring.lock().unwrap();
            let is_meant = ring.bound == Some(expired.owner.arming) || !asks;
            if ring.timers.is_some() && ring.bound.is_some() && is_meant {
                let bound = ring.bound.take().unwrap();
                self.served.lock().unwrap().push(bound);
            }
        }
    }
}

fn fires_while_given_up(asks: Asks) {
    abi_sync::model(move || {
        let world = World::new();
        world.begin(0, 1, 10);
        let other = world.clone();
        let fires = thread::spawn(move || other.expire(0, 10, asks));
        let is_given_up = world.give_up();
        // The next operation in the same place, from another CPU, with all the time in the world.
        world.begin(1, 2, 1_000);
        fires.join().unwrap();
        let served = world.served.lock().unwrap().clone();
        assert!(!served.contains(&2), "a deadline was served long before its time");
        assert_eq!(served.contains(&1), !is_given_up, "an operation ends exactly once");
        assert!(world.give_up(), "the second is still there");
        assert!(world.deadlines.iter().all(Deadlines::is_empty), "a deadline is left");
    });
}

#[test]
fn an_operation_given_up_while_its_deadline_fires_ends_once() {
    fires_while_given_up(true);
}

#[test]
#[should_panic(expected = "a deadline was served long before its time")]
fn a_mutant_that_does_not_ask_for_the_arming_is_caught() {
    fires_while_given_up(false);
}

#[test]
fn the_owner_ends_while_its_deadline_fires() {
    abi_sync::model(|| {
        let world = World::new();
        world.begin(0, 1, 10);
        let other = world.clone();
        let fires = thread::spawn(move || other.expire(0, 10, true));
        let is_given_up = world.give_up();
        // The thread is taken apart: its ring goes, and the block with it.
        let timers = world.ring.lock().unwrap().timers.take();
        drop(timers);
        fires.join().unwrap();
        let served = world.served.lock().unwrap().len();
        assert_eq!(served + usize::from(is_given_up), 1, "an operation ends exactly once");
        assert!(world.deadlines[0].is_empty(), "a deadline is left");
    });
}

/// The end of a thread: whether its timers are disarmed before their block goes.
fn ends(disarms: bool) {
    abi_sync::model(move || {
        let world = World::new();
        world.begin(0, 1, 10);
        let other = world.clone();
        let fires = thread::spawn(move || other.expire(0, 5, true));
        if disarms {
            world.give_up();
        }
        let timers = world.ring.lock().unwrap().timers.take();
        drop(timers);
        fires.join().unwrap();
        assert_eq!(world.deadlines[0].check_invariants(), Ok(()));
        assert!(world.deadlines[0].is_empty(), "a deadline is left");
    });
}

#[test]
fn a_block_goes_when_nothing_of_it_is_armed() {
    ends(true);
}

/// The block stays in memory then, which is why this is found as a deadline and not as a crash.
#[test]
#[should_panic(expected = "a deadline is left")]
fn a_mutant_that_lets_the_block_go_armed_is_caught() {
    ends(false);
}
