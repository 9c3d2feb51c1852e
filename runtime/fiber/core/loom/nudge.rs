//! Who wants something submitted against a worker that waits in the kernel: the wait ends, or has not
//! begun.
//!
//! The port is a lock with what is to be submitted; the kernel's PARK is a lock with whether the worker
//! waits, which compares the word as the kernel does.
use abi_sync::{Arc, Mutex, explore, thread};
use fiber_core::{Defect, WakeWord, plant};

#[derive(Default)]
struct Port {
    wanted: u32,
    submitted: u32,
    is_inside: bool,
}

#[derive(Default)]
struct World {
    word: WakeWord,
    port: Mutex<Port>,
    is_parked: Mutex<bool>,
}

impl World {
    /// The worker goes to wait: true if it does.
    fn wait(&self) -> bool {
        self.word.take_nudge();
        {
            let mut port = self.port.lock().unwrap();
            port.submitted = port.wanted;
            port.is_inside = true;
        }
        let mut is_parked = self.is_parked.lock().unwrap();
        *is_parked = self.word.is_quiet();
        *is_parked
    }

    /// Somebody else wants one more submitted.
    fn want(&self) {
        let is_inside = {
            let mut port = self.port.lock().unwrap();
            port.wanted += 1;
            port.is_inside
        };
        if is_inside && self.word.nudge() {
            *self.is_parked.lock().unwrap() = false;
        }
    }
}

fn one_waits(others: usize) {
    let world = Arc::new(World::default());
    let threads: Vec<_> = (0..others)
        .map(|_| {
            let world = world.clone();
            thread::spawn(move || world.want())
        })
        .collect();
    // At most as often as there is somebody to end a wait.
    for _ in 0..=others {
        if world.wait() {
            break;
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let port = world.port.lock().unwrap();
    let is_parked = *world.is_parked.lock().unwrap();
    assert!(!is_parked || port.submitted == port.wanted, "it waits and has not submitted");
}

#[test]
fn one_that_waits_submits_what_another_wants() {
    explore("nudge", || one_waits(1));
}

#[test]
fn one_that_waits_submits_what_two_others_want() {
    explore("two nudges", || one_waits(2));
}

#[test]
#[should_panic(expected = "it waits and has not submitted")]
fn mutant_an_unpark_alone_comes_too_early() {
    plant(Defect::NudgesByUnparkAlone);
    explore("mutant: unpark alone", || one_waits(1));
}
