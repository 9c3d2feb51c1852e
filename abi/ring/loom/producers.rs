//! Two kernel producers complete operations of one ring while its user takes completions.
//!
//! Bound: two producers with one completion each, one user that looks twice and then takes the
//! rest. The producers share the right to post through a lock; the mutant gives each its own.
use abi_ring::{CqProducer, Credit, KernelRing, Outcome, UserRing, Visitor};
use abi_ring_testing::{LIMIT, ModelMemory, Weakness};
use abi_sync::{Arc, Mutex, explore, thread};
use abi_types::{Sqe, Status};

type Ring = KernelRing<ModelMemory>;

/// Posts with the shared right, under its lock.
fn locked(ring: &Ring, cq: &Mutex<CqProducer>, credit: Credit) {
    let mut cq = cq.lock().unwrap();
    let _ = ring.post(&mut cq, credit, &Outcome::plain(Status::Ok));
}

/// Posts with a right of its own.
fn unlocked(ring: &Ring, _cq: &Mutex<CqProducer>, credit: Credit) {
    let _ = ring.post(&mut CqProducer::second(), credit, &Outcome::plain(Status::Ok));
}

fn model(name: &str, post: fn(&Ring, &Mutex<CqProducer>, Credit)) {
    explore(name, move || {
        let memory = ModelMemory::new(2, Weakness::None);
        let (ring, cq) = KernelRing::starting_at(u32::MAX, memory, LIMIT, LIMIT);
        let shared = Arc::new((ring, Mutex::new(cq)));
        let mut user = UserRing::new(shared.0.memory());
        for user_data in 1..=2 {
            user.push(Sqe { user_data, ..Sqe::default() }).unwrap();
        }
        user.publish();
        let mut pass = shared.0.begin(Visitor::Syscall).unwrap();
        let producers = [pass.next(), pass.next()].map(|accepted| {
            let credit = accepted.unwrap().credit;
            let shared = shared.clone();
            thread::spawn(move || post(&shared.0, &shared.1, credit))
        });
        drop(pass);
        let mut got = Vec::new();
        for _ in 0..2 {
            got.extend(user.pop().map(|completion| completion.take().user_data));
        }
        for producer in producers {
            producer.join().unwrap();
        }
        while let Some(completion) = user.pop() {
            got.push(completion.take().user_data);
        }
        got.sort_unstable();
        assert_eq!(got, [1, 2], "each completion arrives once");
        assert_eq!(shared.0.in_flight(), 0);
    });
}

#[test]
fn each_completion_arrives_once() {
    model("producers", locked);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_without_the_lock() {
    model("mutant: no lock", unlocked);
}
