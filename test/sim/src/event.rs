//! What happens when.

use crate::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens to the machine. An epoch tells whether it is still meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The current thread has done what it was doing.
    Finish { cpu: usize, epoch: u64 },
    /// The one-shot timer.
    OneShot { cpu: usize, epoch: u64 },
    /// An interrupt arrives.
    Ipi { cpu: usize },
    /// The context after a blocked thread has its own stack: the wait becomes real.
    Commit { slot: u32, generation: u32 },
    /// An idle CPU that found only threads on their way off other CPUs looks again.
    Look { cpu: usize },
}

/// Events to come, nearest first. Of simultaneous ones chance decides.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(u64, u32, u64, Event)>>,
    sequence: u64,
}

impl Events {
    pub(crate) fn push(&mut self, at_ns: u64, event: Event, rng: &mut Rng) {
        self.sequence += 1;
        self.heap.push(Reverse((at_ns, rng.number() as u32, self.sequence, event)));
    }

    pub(crate) fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.0.0)
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.heap.pop().map(|entry| entry.0.3)
    }
}
