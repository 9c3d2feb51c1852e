//! Submission and completion between one user and one kernel consumer that run at once.
//!
//! Bound: a queue of 1 SQE and 2 CQEs, three SQEs with a payload each, so that every place is
//! used again; the preemptions the build rule allows. Both sides give up after a few looks
//! that find nothing; the user takes what is left once the kernel's thread is done.
//!
//! Entries and inline slots are plain data in the model: an access that the index words do not
//! order ends the model. The mutants leave one order out each.
use abi_ring::{Accepted, CqProducer, KernelRing, Outcome, UserRing, Visitor};
use abi_ring_testing::{LIMIT, ModelMemory, Weakness};
use abi_sync::{Arc, explore, thread};
use abi_types::{RingWord, Sqe, Status};

const MESSAGES: u64 = 3;

/// A look at the ring by its consumer: everything there is completed, with its payload.
fn serve(ring: &KernelRing<ModelMemory>, cq: &mut CqProducer) {
    let mut pass = ring.begin(Visitor::Syscall).unwrap();
    while let Some(Accepted { credit, request }) = pass.next() {
        request.unwrap();
        let outcome = Outcome { length: 8, ..Outcome::plain(Status::Ok) };
        let _ = ring.post_from_slot(cq, credit, &outcome, ring, 0);
    }
}

fn model(name: &str, weakness: Weakness) {
    explore(name, move || {
        let memory = ModelMemory::new(1, weakness);
        let (ring, mut cq) = KernelRing::starting_at(u32::MAX - 1, memory, LIMIT, LIMIT);
        let ring = Arc::new(ring);
        let kernel = {
            let ring = ring.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    serve(&ring, &mut cq);
                    thread::yield_now();
                }
                cq
            })
        };
        let mut user = UserRing::new(ring.memory());
        let (mut sent, mut got) = (0, 0);
        let step = |user: &mut UserRing<&ModelMemory>, sent: &mut u64, got: &mut u64| {
            // The one slot is the user's while nothing is under way.
            if *sent == *got && *sent < MESSAGES {
                user.write_inline(0, &[100 + *sent]);
                user.push(Sqe { user_data: *sent, ..Sqe::default() }).unwrap();
                user.publish();
                *sent += 1;
            }
            if let Some(completion) = user.pop() {
                assert_eq!(completion.cqe().user_data, *got);
                assert_eq!(completion.inline_word(0), 100 + *got, "a payload is its own");
                *got += 1;
            }
        };
        for _ in 0..2 {
            step(&mut user, &mut sent, &mut got);
            thread::yield_now();
        }
        let mut cq = kernel.join().unwrap();
        while got < MESSAGES {
            step(&mut user, &mut sent, &mut got);
            serve(&ring, &mut cq);
        }
        assert!(user.pop().is_none());
    });
}

#[test]
fn every_message_arrives_once_and_whole() {
    model("publication", Weakness::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_tail_published_without_release() {
    model("mutant: SqTail", Weakness::Unreleased(RingWord::SqTail));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_tail_read_without_acquire() {
    model("mutant: SqTail", Weakness::Unacquired(RingWord::SqTail));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_completion_published_without_release() {
    model("mutant: CqTail", Weakness::Unreleased(RingWord::CqTail));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_completion_read_without_acquire() {
    model("mutant: CqTail", Weakness::Unacquired(RingWord::CqTail));
}
