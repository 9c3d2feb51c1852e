//! What a process may use.

use crate::Line;

/// The limits of one process: the seven counted lines, and four that bound a single ring or
/// endpoint and are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Capability table slots.
    pub cap_slots: u32,
    /// Thread records.
    pub threads: u32,
    /// Kernel-stack pages of all threads together.
    pub kernel_stack_pages: u32,
    /// Page frames.
    pub frames: u32,
    /// Pending sleeps.
    pub sleep_waiters: u32,
    /// Submission queue entries per thread, a power of two.
    pub ring_entries: u32,
    /// Parameters or results of one call.
    pub ring_scratch_limit_bytes: u32,
    /// Unanswered calls per endpoint, 1 to 32.
    pub in_flight_call_limit: u32,
    /// Waiting calls per endpoint, 1 to 32.
    pub endpoint_queue_limit: u32,
    /// Bytes of the kernel's heap.
    pub kernel_bytes: u32,
    /// Registered buffers.
    pub registered_buffers: u32,
}

/// A limit that is not counted: a child's must not be larger than its spawner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Submission queue entries per thread.
    RingEntries,
    /// Parameters or results of one call.
    RingScratchBytes,
    /// Unanswered calls per endpoint.
    InFlightCalls,
    /// Waiting calls per endpoint.
    EndpointQueue,
}

impl Profile {
    /// Nothing at all: what a record without a process may use.
    pub const NONE: Self = Self {
        cap_slots: 0,
        threads: 0,
        kernel_stack_pages: 0,
        frames: 0,
        sleep_waiters: 0,
        ring_entries: 0,
        ring_scratch_limit_bytes: 0,
        in_flight_call_limit: 0,
        endpoint_queue_limit: 0,
        kernel_bytes: 0,
        registered_buffers: 0,
    };

    /// The limit of a counted line.
    #[inline]
    pub const fn counted(&self, line: Line) -> u32 {
        match line {
            Line::CapSlots => self.cap_slots,
            Line::Threads => self.threads,
            Line::KernelStackPages => self.kernel_stack_pages,
            Line::Frames => self.frames,
            Line::SleepWaiters => self.sleep_waiters,
            Line::KernelBytes => self.kernel_bytes,
            Line::RegisteredBuffers => self.registered_buffers,
        }
    }

    /// The counted lines of both, the smaller of each; the rest is nothing.
    pub(crate) fn at_most(&self, other: &Self) -> Self {
        let line = |line| self.counted(line).min(other.counted(line));
        Self {
            cap_slots: line(Line::CapSlots),
            threads: line(Line::Threads),
            kernel_stack_pages: line(Line::KernelStackPages),
            frames: line(Line::Frames),
            sleep_waiters: line(Line::SleepWaiters),
            kernel_bytes: line(Line::KernelBytes),
            registered_buffers: line(Line::RegisteredBuffers),
            ..Self::NONE
        }
    }

    /// The first uncounted limit that is larger than in `other`.
    pub fn first_above(&self, other: &Self) -> Option<Limit> {
        [
            (Limit::RingEntries, self.ring_entries, other.ring_entries),
            (
                Limit::RingScratchBytes,
                self.ring_scratch_limit_bytes,
                other.ring_scratch_limit_bytes,
            ),
            (Limit::InFlightCalls, self.in_flight_call_limit, other.in_flight_call_limit),
            (Limit::EndpointQueue, self.endpoint_queue_limit, other.endpoint_queue_limit),
        ]
        .into_iter()
        .find_map(|(limit, mine, theirs)| (mine > theirs).then_some(limit))
    }
}
