//! What happens when.

use crate::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens to a CPU. An epoch tells whether it is still meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The current thread has done what it was doing.
    Finish { cpu: usize, epoch: u64 },
    /// The one-shot timer.
    OneShot { cpu: usize, epoch: u64 },
    /// An interrupt arrives.
    Ipi { cpu: usize },
    /// The CPU has left the stack of the thread before: its stop becomes real.
    Left { cpu: usize, epoch: u64 },
    /// An idle CPU looks again.
    Look { cpu: usize },
}

impl Event {
    /// Where.
    pub(crate) fn cpu(self) -> usize {
        match self {
            Self::Finish { cpu, .. }
            | Self::OneShot { cpu, .. }
            | Self::Ipi { cpu }
            | Self::Left { cpu, .. }
            | Self::Look { cpu } => cpu,
        }
    }
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
