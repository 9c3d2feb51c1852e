//! One consumer at a time, and none that was replaced.
//!
//! Bounds: `one_consumer`: a syscall, the timer and a poller, one try each, while the poller's
//! ownership is revoked; two SQEs. `hand_over`: a poller that was revoked tries once more while
//! the thread makes another the owner. `sole_consumer`: the thread looks once for its only SQE
//! while a poller tries once and is revoked. Each SQE is consumed exactly once, and a stale poller
//! consumes none. The mutants: a timer that asks no owner, a poller that begins without comparing
//! the generation, and a thread that does not look at the owner.
use abi_ring::{Accepted, Ended, KernelRing, Pass, PollerToken, Refusal, Sole, UserRing, Visitor};
use abi_ring_testing::{LIMIT, ModelMemory, Weakness};
use abi_sync::{Arc, explore, thread};
use abi_types::Sqe;

type Ring = KernelRing<ModelMemory>;

fn ring_with(sqes: u64) -> Arc<Ring> {
    let memory = ModelMemory::new(2, Weakness::None);
    let (ring, _cq) = KernelRing::new(memory, LIMIT, LIMIT);
    let mut user = UserRing::new(ring.memory());
    for user_data in 1..=sqes {
        user.push(Sqe { user_data, ..Sqe::default() }).unwrap();
    }
    user.publish();
    Arc::new(ring)
}

/// What one SQE of a pass was.
fn one(pass: Result<Pass<'_, ModelMemory>, Refusal>) -> Vec<u64> {
    let Ok(mut pass) = pass else { return Vec::new() };
    pass.next().into_iter().map(|Accepted { credit, .. }| credit.user_data()).collect()
}

fn consumers(name: &str, timer: fn(&Ring) -> Vec<u64>) {
    explore(name, move || {
        let ring = ring_with(2);
        let token = ring.begin(Visitor::Syscall).unwrap().hand_over().unwrap();
        let id = token.id();
        let poller = {
            let ring = ring.clone();
            thread::spawn(move || one(ring.begin_poll(&token)))
        };
        let timer = {
            let ring = ring.clone();
            thread::spawn(move || timer(&ring))
        };
        let ended = ring.revoke(id);
        assert_ne!(ended, Ended::Stale);
        let mut taken = one(ring.begin(Visitor::Syscall));
        taken.extend(poller.join().unwrap());
        taken.extend(timer.join().unwrap());
        // The owner is gone by now, whoever carried it out; the rest is the thread's.
        while let Some(rest) = one(ring.begin(Visitor::Syscall)).pop() {
            taken.push(rest);
        }
        taken.sort_unstable();
        assert_eq!(taken, [1, 2], "each SQE is consumed once");
    });
}

#[test]
fn one_consumer() {
    consumers("owner", |ring| one(ring.begin(Visitor::Timer)));
}

#[test]
#[should_panic(expected = "each SQE is consumed once")]
fn mutant_that_asks_no_owner() {
    consumers("mutant: asks nobody", |ring| {
        ring.take_unasked().into_iter().map(|taken| taken.credit.user_data()).collect()
    });
}

/// The thread consumes its only SQE without a mark, if it finds that nobody else does.
fn sole_consumer(name: &str, look: fn(&Ring) -> Option<Sole<'_, ModelMemory>>) {
    explore(name, move || {
        let ring = ring_with(1);
        let token = ring.begin(Visitor::Syscall).unwrap().hand_over().unwrap();
        let id = token.id();
        let poller = {
            let ring = ring.clone();
            thread::spawn(move || one(ring.begin_poll(&token)))
        };
        let revoker = {
            let ring = ring.clone();
            thread::spawn(move || assert_ne!(ring.revoke(id), Ended::Stale))
        };
        let mut taken: Vec<u64> = look(&ring)
            .map(|sole| {
                let user_data = sole.head().user_data();
                sole.take(user_data).user_data()
            })
            .into_iter()
            .collect();
        taken.extend(poller.join().unwrap());
        revoker.join().unwrap();
        taken.extend(one(ring.begin(Visitor::Syscall)));
        assert_eq!(taken, [1], "the SQE is consumed once");
    });
}

#[test]
fn the_only_sqe_has_one_consumer() {
    sole_consumer("sole", Ring::sole);
}

#[test]
#[should_panic(expected = "the SQE is consumed once")]
fn mutant_sole_without_a_look_at_the_owner() {
    sole_consumer("mutant: sole, no owner", Ring::sole_of_any_owner);
}

fn stale_poller(name: &str, begin: fn(&Ring, &PollerToken) -> bool) {
    explore(name, move || {
        let ring = ring_with(2);
        let old = ring.begin(Visitor::Syscall).unwrap().hand_over().unwrap();
        assert_eq!(ring.revoke(old.id()), Ended::Now);
        let late = {
            let ring = ring.clone();
            thread::spawn(move || assert!(!begin(&ring, &old), "a stale poller began a pass"))
        };
        let pass = ring.begin(Visitor::Syscall);
        if let Ok(pass) = pass {
            let new = pass.hand_over().unwrap();
            assert_eq!(one(ring.begin_poll(&new)), [1]);
            assert_eq!(ring.release(new), Ended::Now);
        }
        late.join().unwrap();
    });
}

#[test]
fn a_stale_poller_consumes_nothing() {
    stale_poller("hand-over", |ring, token| ring.begin_poll(token).is_ok());
}

#[test]
#[should_panic(expected = "a stale poller began a pass")]
fn mutant_without_generation() {
    stale_poller("mutant: no generation", |ring, _| ring.begin_poll_of_any_generation().is_ok());
}
