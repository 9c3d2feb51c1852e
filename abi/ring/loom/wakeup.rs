//! A poller that falls asleep against a producer that publishes: never both at rest with work.
//!
//! Bound: one SQE, one try each. The producer ends by entering or not; the poller by sleeping
//! or finding work. The mutants leave out the fences, the second look, and the announcement's
//! place before it.
use abi_ring::{Accepted, KernelRing, PollerToken, Sleep, UserRing, Visitor};
use abi_ring_testing::{LIMIT, ModelMemory, Weakness};
use abi_sync::{Arc, explore, thread};
use abi_types::Sqe;

type Ring = KernelRing<ModelMemory>;

fn poll(ring: &Ring, token: &PollerToken) -> usize {
    let mut pass = ring.begin_poll(token).unwrap();
    std::iter::from_fn(|| pass.next()).map(|Accepted { credit, .. }| credit.user_data()).count()
}

fn model(name: &str, weakness: Weakness, sleep: fn(&Ring, &PollerToken) -> Sleep) {
    explore(name, move || {
        let (ring, _cq) = KernelRing::new(ModelMemory::new(2, weakness), LIMIT, LIMIT);
        let ring = Arc::new(ring);
        let token = ring.begin(Visitor::Syscall).unwrap().hand_over().unwrap();
        let poller = {
            let ring = ring.clone();
            thread::spawn(move || {
                let mut taken = poll(&ring, &token);
                if sleep(&ring, &token) == Sleep::Work {
                    taken += poll(&ring, &token);
                }
                taken
            })
        };
        let mut user = UserRing::new(ring.memory());
        user.push(Sqe::default()).unwrap();
        let enters = user.publish_polled();
        let taken = poller.join().unwrap();
        assert!(taken == 1 || enters, "an SQE lies there and nobody looks");
    });
}

#[test]
fn somebody_looks() {
    model("wakeup", Weakness::None, |ring, token| ring.fall_asleep(token).unwrap());
}

#[test]
#[should_panic(expected = "nobody looks")]
fn mutant_without_fences() {
    model("mutant: no fences", Weakness::Fences, |ring, token| ring.fall_asleep(token).unwrap());
}

#[test]
#[should_panic(expected = "nobody looks")]
fn mutant_without_the_second_look() {
    model("mutant: no second look", Weakness::None, |ring, token| {
        let _ = ring.fall_asleep(token).unwrap();
        Sleep::Now
    });
}

#[test]
#[should_panic(expected = "nobody looks")]
fn mutant_that_looks_before_it_announces() {
    model("mutant: look first", Weakness::None, |ring, token| {
        let work = ring.work_after_fence();
        let _ = ring.fall_asleep(token).unwrap();
        if work { Sleep::Work } else { Sleep::Now }
    });
}
