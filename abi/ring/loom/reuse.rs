//! Places are used again only when the other side is done with them: credits and `sq_head`.
//!
//! Bound: a queue of 1 SQE and 2 CQEs, four NOPs; the user pushes and pops while the kernel
//! consumes and completes, a fixed number of tries each, then the rest one after the other.
//!
//! A CQE written over one that is still being read, or an SQE over one, is a race on plain
//! data and ends the model. The mutants: each of the two orders left out, and a kernel that
//! believes every completion to be taken.
use abi_ring::{Accepted, CqProducer, KernelRing, Outcome, UserRing, Visitor};
use abi_ring_testing::{LIMIT, ModelMemory, Weakness};
use abi_sync::{Arc, explore, thread};
use abi_types::{RingWord, Sqe, Status};

const NOPS: u64 = 4;

fn serve(ring: &KernelRing<ModelMemory>, cq: &mut CqProducer) {
    let mut pass = ring.begin(Visitor::Syscall).unwrap();
    while let Some(Accepted { credit, .. }) = pass.next() {
        let _ = ring.post(cq, credit, &Outcome::plain(Status::Ok));
    }
}

fn model(name: &str, weakness: Weakness) {
    explore(name, move || {
        let memory = ModelMemory::new(1, weakness);
        let (ring, mut cq) = KernelRing::starting_at(u32::MAX - 1, memory, LIMIT, LIMIT);
        // Two completions wait: the next one needs a place that is given back first.
        let (mut sent, mut got) = (0, 0);
        let ring = Arc::new(ring);
        let mut user = UserRing::new(ring.memory());
        for _ in 0..2 {
            user.push(Sqe { user_data: sent, ..Sqe::default() }).unwrap();
            user.publish();
            serve(&ring, &mut cq);
            sent += 1;
        }
        user.push(Sqe { user_data: sent, ..Sqe::default() }).unwrap();
        user.publish();
        sent += 1;
        let kernel = {
            let ring = ring.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    serve(&ring, &mut cq);
                }
                cq
            })
        };
        let step = |user: &mut UserRing<&ModelMemory>, sent: &mut u64, got: &mut u64| {
            if let Some(completion) = user.pop() {
                assert_eq!(completion.cqe().user_data, *got, "nothing lost, nothing doubled");
                *got += 1;
            }
            let sqe = Sqe { user_data: *sent, ..Sqe::default() };
            if *sent < NOPS && user.push(sqe).is_ok() {
                user.publish();
                *sent += 1;
            }
        };
        for _ in 0..2 {
            step(&mut user, &mut sent, &mut got);
        }
        let mut cq = kernel.join().unwrap();
        while got < NOPS {
            step(&mut user, &mut sent, &mut got);
            serve(&ring, &mut cq);
            ring.check_invariants().unwrap();
        }
    });
}

#[test]
fn no_place_is_used_by_two() {
    model("reuse", Weakness::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_sqe_given_back_without_release() {
    model("mutant: SqHead", Weakness::Unreleased(RingWord::SqHead));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_sqe_taken_back_without_acquire() {
    model("mutant: SqHead", Weakness::Unacquired(RingWord::SqHead));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_cqe_given_back_without_release() {
    model("mutant: CqHead", Weakness::Unreleased(RingWord::CqHead));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_cqe_taken_back_without_acquire() {
    model("mutant: CqHead", Weakness::Unacquired(RingWord::CqHead));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_without_credits() {
    model("mutant: credits", Weakness::Credits);
}
