//! Submissions over a real ring, with the kernel's half of it as a model: an operation is pending until
//! somebody completes or cancels it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use abi_ring::{Accepted, CqProducer, Credit, KernelRing, Request, Visitor};
use abi_ring_testing::real_block;
use abi_types::{EnterResult, Status};
use test_property::prelude::*;

use super::super::operation::Operation;
use super::*;

/// Nobody enters through the ring here.
struct NoKernel;

impl Enter for NoKernel {
    fn cap_enter(&mut self, _: u32, _: u64) -> EnterResult {
        EnterResult::new(0, 0)
    }
}

struct World {
    kernel: KernelRing<BlockMemory>,
    cq: CqProducer,
    pending: Vec<Credit>,
    ring: Box<Ring<BlockMemory, NoKernel>>,
    port: Submissions<BlockMemory, NoKernel>,
}

/// An operation that stays pending: a receive, which needs no buffers.
fn pending() -> Box<Operation> {
    Box::new(Operation::new(Sqe { opcode: Opcode::Recv as u8, ..Sqe::default() }, &[]))
}

impl World {
    fn new(entries: u32) -> Self {
        let memory = real_block(entries);
        let (kernel, cq) = KernelRing::new(memory, 4096, 4096);
        let mut ring = Box::new(Ring::new(memory, NoKernel));
        let mut port = Submissions::new();
        port.open(&mut ring, Sqe { opcode: Opcode::Park as u8, ..Sqe::default() });
        Self { kernel, cq, pending: Vec::new(), ring, port }
    }

    fn complete(&mut self, credit: Credit, status: Status) {
        let _ = self.kernel.post(&mut self.cq, credit, &abi_ring::Outcome::plain(status));
    }

    /// The kernel takes what it has a place for.
    fn enter(&mut self) {
        let mut taken = Vec::new();
        {
            let mut pass = self.kernel.begin(Visitor::Syscall).unwrap();
            while let Some(Accepted { credit, request }) = pass.next() {
                taken.push((credit, request));
            }
        }
        for (credit, request) in taken {
            let Ok(Request::Cancel { target }) = request else {
                self.pending.push(credit);
                continue;
            };
            let at = self.pending.iter().position(|pending| pending.user_data() == target);
            let status = match at {
                Some(at) => {
                    let cancelled = self.pending.remove(at);
                    self.complete(cancelled, Status::Cancelled);
                    Status::Ok
                }
                None => Status::NotFound,
            };
            self.complete(credit, status);
        }
    }

    /// As `Port::start`.
    fn start(&mut self, operation: &Operation) {
        if !self.port.backlog.is_empty() || !self.port.begin_for_fiber(&operation.0) {
            operation.0.value.stage.set(Stage::Backlog);
            // SAFETY: in no list, and kept by the test until the end.
            unsafe { self.port.backlog.push(&operation.0) };
        }
    }

    /// As `Port::cancel`, of one that is under way.
    fn cancel(&mut self, operation: &Operation) {
        let node = &operation.0;
        if node.value.stage.get() == Stage::UnderWay && !node.is_linked() {
            // SAFETY: in no list, and kept by the test until the end.
            unsafe { self.port.cancels.push(node) };
            self.port.feed();
        }
    }

    fn take(&mut self) {
        while self.port.take(&mut [None; BATCH]).0 > 0 {}
    }

    /// As `Port::sleep`, until the worker waits or there is something to take; whether it waits.
    fn sleep(&mut self) -> bool {
        for _ in 0..4 {
            if self.kernel.has_completions() {
                return false;
            }
            let leave = self.port.begin_wait();
            self.enter();
            if let Some(leave) = leave {
                let waits = !self.kernel.has_completions();
                if !waits {
                    self.port.end_wait(leave, false);
                }
                return waits;
            }
        }
        panic!("it neither waits nor has anything to take");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // The lists have nodes of the test's.
        self.port.close();
        self.ring.publish();
    }
}

/// A completion was the last to wake the worker, so its PARK is still with the kernel; the operations of
/// its fibers fill the queue, and then one of them is cancelled.
#[test]
fn a_cancel_is_submitted_before_a_wait_that_only_it_can_end() {
    for entries in [4, 8, 16, 32] {
        let mut world = World::new(entries);
        assert!(world.sleep());
        world.port.is_inside = false;
        let operations: Vec<_> = (0..entries).map(|_| pending()).collect();
        operations.iter().for_each(|operation| world.start(operation));
        world.cancel(&operations[0]);
        assert!(!world.port.cancels.is_empty(), "the queue is full");
        assert!(!world.sleep(), "it waits with a CANCEL in its hands");
        world.take();
        assert_eq!(operations[0].0.value.stage.get(), Stage::Done);
    }
}

/// The same for an operation of the worker's own thread, which waits as well.
#[test]
fn a_cancel_is_taken_beside_everything_else_that_is_under_way() {
    for entries in [4, 8, 64] {
        let mut world = World::new(entries);
        let operations: Vec<_> = (0..world.port.fibers).map(|_| pending()).collect();
        operations.iter().for_each(|operation| world.start(operation));
        world.enter();
        let own = pending();
        assert!(world.port.begin(&own.0));
        assert!(world.sleep());
        world.port.is_inside = false;
        world.cancel(&operations[0]);
        world.enter();
        world.take();
        assert_eq!(operations[0].0.value.stage.get(), Stage::Done, "of {entries} entries");
    }
}

/// Of operations that do not end by themselves as many as the ring has entries are beside each other, and what
/// is kept beside them.
#[test]
fn each_entry_has_an_operation_under_way() {
    for entries in [LEAST_ENTRIES, 8, 32] {
        let mut world = World::new(entries);
        let operations: Vec<_> = (0..entries).map(|_| pending()).collect();
        for operation in &operations {
            world.start(operation);
            // The worker comes to the kernel between any two.
            assert!(world.sleep());
            world.port.is_inside = false;
            assert_eq!(operation.0.value.stage.get(), Stage::UnderWay, "of {entries} entries");
        }
        let last = world.pending.pop().unwrap();
        world.complete(last, Status::Ok);
        world.take();
        let done = operations.iter().filter(|it| it.0.value.stage.get() == Stage::Done);
        assert_eq!(done.count(), 1, "of {entries} entries");
    }
}

/// What finds no place goes elsewhere, or is begun when there is one; what it completes with comes back.
#[test]
fn the_backlog_is_begun_in_turn_or_given_up() {
    let mut world = World::new(4);
    let operations: Vec<_> = (0..7).map(|_| pending()).collect();
    operations.iter().for_each(|operation| world.start(operation));
    assert!(world.sleep());
    world.port.is_inside = false;
    let first = world.pending.remove(0);
    world.complete(first, Status::NotFound);
    world.take();
    let cqe = operations[0].completion(&mut [0; INLINE_WORDS]);
    assert_eq!(cqe.status, Status::NotFound as u8);
    let stage = |at: usize| operations[at].0.value.stage.get();
    assert_eq!([stage(0), stage(4), stage(5)], [Stage::Done, Stage::UnderWay, Stage::Backlog]);
    assert_eq!(world.port.give_up(&mut [None]), 1);
    assert_eq!([stage(4), stage(5), stage(6)], [Stage::UnderWay, Stage::New, Stage::Backlog]);
    let second = world.pending.remove(0);
    world.complete(second, Status::Ok);
    assert!(!world.port.has_room(), "one waits for it");
    world.take();
    assert_eq!((stage(6), world.port.has_room()), (Stage::UnderWay, false));
    world.enter();
    let third = world.pending.pop().unwrap();
    world.complete(third, Status::Ok);
    world.take();
    assert!(world.port.has_room());
    assert_eq!(world.port.give_up(&mut [None; BATCH]), 0);
}

/// The ring goes back without the worker's PARK.
#[test]
fn a_last_wait_ends_the_park() {
    let mut world = World::new(LEAST_ENTRIES);
    assert!(world.port.begin_last_wait().is_none(), "there is none yet");
    assert!(world.sleep());
    world.port.is_inside = false;
    let leave = world.port.begin_last_wait().unwrap();
    world.enter();
    world.port.end_wait(leave, false);
    world.take();
    assert!(world.pending.is_empty() && !world.port.is_armed);
    assert!(world.port.begin_last_wait().is_none());
}

#[derive(Clone, Debug)]
enum Step {
    Start,
    Cancel(prop::sample::Index),
    Complete(prop::sample::Index),
    /// The timer has the kernel look at the queue.
    Pass,
    Take,
    Sleep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Start),
        3 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        1 => any::<prop::sample::Index>().prop_map(Step::Complete),
        1 => Just(Step::Pass),
        1 => Just(Step::Take),
        2 => Just(Step::Sleep),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Whatever happened before, a worker that waits has submitted all it could.
    #[test]
    fn who_waits_has_submitted_everything(entries in 2u32..6, steps in steps()) {
        let mut world = World::new(1 << entries);
        let mut operations: Vec<Box<Operation>> = Vec::new();
        for step in steps {
            match step {
                Step::Start => {
                    operations.push(pending());
                    world.start(operations.last().unwrap());
                }
                Step::Cancel(at) if !operations.is_empty() => {
                    world.cancel(&operations[at.index(operations.len())]);
                }
                Step::Complete(at) if !world.pending.is_empty() => {
                    let at = at.index(world.pending.len());
                    let credit = world.pending.remove(at);
                    world.complete(credit, Status::Ok);
                }
                Step::Cancel(_) | Step::Complete(_) => {}
                Step::Pass => world.enter(),
                Step::Take => world.take(),
                Step::Sleep => {
                    if world.sleep() {
                        let stages = || operations.iter().map(|it| it.0.value.stage.get());
                        let under_way = stages().filter(|stage| *stage == Stage::UnderWay).count();
                        let waiting = stages().filter(|stage| *stage == Stage::Backlog).count();
                        prop_assert!(world.port.cancels.is_empty(), "a CANCEL is left");
                        prop_assert!(waiting == 0 || under_way == world.port.fibers, "a place is free");
                        prop_assert_eq!(world.pending.len(), under_way + 1, "the kernel has all");
                        world.port.is_inside = false;
                    }
                }
            }
        }
    }
}
