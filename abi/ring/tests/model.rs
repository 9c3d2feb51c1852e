//! Both halves against a slow and obvious model: three queues and a count.
use std::collections::VecDeque;

use abi_ring::*;
use abi_ring_testing::{LIMIT, PlainMemory, real_block};
use abi_types::limits::{RING_BATCH_SQPOLL, RING_BATCH_TIMER};
use abi_types::{Opcode, RingWord, Sqe, Status};
use test_property::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    /// The user pushes a NOP, or a CALL.
    Push { call: bool },
    /// The user publishes what it pushed.
    Publish,
    /// The user takes completions.
    Pop(u8),
    /// A consumer runs a pass; what it takes completes at once, or later.
    Pass { by: By, at_once: bool },
    /// The kernel completes the pending operation at this position.
    Complete(u8),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Thread,
    Timer,
    Poller,
    Borrower,
}

fn step() -> impl Strategy<Value = Step> {
    let by = prop_oneof![Just(By::Thread), Just(By::Timer), Just(By::Poller), Just(By::Borrower)];
    prop_oneof![
        4 => (0..8).prop_map(|n| Step::Push { call: n == 0 }),
        2 => Just(Step::Publish),
        2 => (0_u8..6).prop_map(Step::Pop),
        2 => (by, any::<bool>()).prop_map(|(by, at_once)| Step::Pass { by, at_once }),
        2 => any::<u8>().prop_map(Step::Complete),
    ]
}

/// What a ring is, without indices.
#[derive(Default)]
struct Model {
    pushed: VecDeque<(u64, bool)>,
    published: VecDeque<(u64, bool)>,
    pending: Vec<u64>,
    done: VecDeque<u64>,
}

fn run(memory: impl Memory, start: u32, polled: bool, steps: Vec<Step>) {
    let entries = memory.block().sq_entries();
    let (ring, mut cq) = KernelRing::starting_at(start, memory, LIMIT, LIMIT);
    let mut user = UserRing::new(ring.memory());
    let token = polled.then(|| ring.begin(Visitor::Syscall).unwrap().hand_over().unwrap());
    let (sq_size, cq_size) = (entries as usize, 2 * entries as usize);
    let mut model = Model::default();
    let mut credits: Vec<Credit> = Vec::new();
    let mut next = 0;
    for step in steps {
        match step {
            Step::Push { call } => {
                let full = model.pushed.len() + model.published.len() == sq_size;
                let opcode = if call { Opcode::Call } else { Opcode::Nop } as u8;
                let sqe = Sqe { opcode, user_data: next, ..Sqe::default() };
                assert_eq!(user.push(sqe).is_err(), full);
                if !full {
                    model.pushed.push_back((next, call));
                    next += 1;
                }
            }
            Step::Publish => {
                user.publish();
                model.published.append(&mut model.pushed);
            }
            Step::Pop(count) => {
                for _ in 0..count {
                    let got = user.pop().map(|completion| completion.take().user_data);
                    assert_eq!(got, model.done.pop_front());
                }
            }
            Step::Pass { by, at_once } => {
                let pass = match (by, &token) {
                    (By::Thread, _) => ring.begin(Visitor::Syscall),
                    (By::Timer, _) => ring.begin(Visitor::Timer),
                    (By::Poller, Some(token)) => ring.begin_poll(token),
                    (By::Poller, None) => continue,
                    (By::Borrower, _) => ring.borrow(),
                };
                let allowed = polled == matches!(by, By::Poller | By::Borrower);
                assert_eq!(pass.is_ok(), allowed);
                let Ok(mut pass) = pass else { continue };
                let limit = match by {
                    By::Thread => entries,
                    By::Timer => RING_BATCH_TIMER,
                    By::Poller | By::Borrower => RING_BATCH_SQPOLL,
                };
                let own_thread = matches!(by, By::Thread | By::Borrower);
                let mut taken = 0;
                // What the model says this pass does next.
                let verdict = loop {
                    let promised = model.pending.len() + model.done.len();
                    let verdict = match model.published.front() {
                        None => Some(Stop::Drained),
                        Some(_) if promised == cq_size && taken < limit => Some(Stop::CqFull),
                        Some(_) if taken == limit => Some(Stop::Limit),
                        Some((_, true)) if !own_thread => Some(Stop::ThreadOwned),
                        Some(_) => None,
                    };
                    if let Some(verdict) = verdict {
                        break verdict;
                    }
                    let (user_data, _) = model.published.pop_front().unwrap();
                    let Accepted { credit, request } = pass.next().unwrap();
                    assert_eq!(credit.user_data(), user_data);
                    assert!(request.is_ok());
                    taken += 1;
                    if at_once {
                        model.done.push_back(user_data);
                        let posted = ring.post(&mut cq, credit, &Outcome::plain(Status::Ok));
                        assert_eq!(posted.count as usize, model.done.len());
                    } else {
                        model.pending.push(user_data);
                        credits.push(credit);
                    }
                };
                assert!(pass.next().is_none());
                assert_eq!(pass.stop(), verdict);
            }
            Step::Complete(position) => {
                if credits.is_empty() {
                    continue;
                }
                let position = usize::from(position) % credits.len();
                model.done.push_back(model.pending.remove(position));
                let credit = credits.remove(position);
                let posted = ring.post(&mut cq, credit, &Outcome::plain(Status::Ok));
                assert_eq!(posted.count as usize, model.done.len());
            }
        }
        ring.check_invariants().unwrap();
        assert_eq!(ring.count() as usize, model.done.len());
        assert_eq!(user.completions() as usize, model.done.len());
        assert_eq!(ring.in_flight() as usize, model.pending.len());
        assert_eq!(user.unconsumed() as usize, model.pushed.len() + model.published.len());
        assert!(model.pending.len() + model.done.len() <= cq_size);
        assert_eq!(ring.memory().load_relaxed(RingWord::SqEntries), entries);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_ring_is_three_queues(
        shift in 0_u32..4,
        // Near the wrap of the indices, or anywhere.
        start in prop_oneof![(0_u32..40).prop_map(|n| u32::MAX - n), any::<u32>()],
        polled in any::<bool>(),
        steps in prop::collection::vec(step(), 0..200),
    ) {
        run(PlainMemory::zeroed(1 << shift), start, polled, steps.clone());
        run(real_block(1 << shift), start, polled, steps);
    }
}
