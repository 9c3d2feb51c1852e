//! One endpoint of a service: two queues and its limits.

use crate::queue::Queue;

/// Names an endpoint of a service; a closed one is never mistaken for its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl EndpointKey {
    /// Names no endpoint.
    pub const NONE: Self = Self { index: u32::MAX, generation: 0 };
}

/// How much may pile up at one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls that wait for a receiver.
    pub queued: u32,
    /// Calls being served, together with receives that wait for one: each will be served.
    pub in_flight: u32,
}

/// How busy an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Calls that wait for a receiver.
    pub queued: u32,
    /// Calls that were received and are not answered.
    pub in_flight: u32,
    /// What there may be of each.
    pub limits: Limits,
}

/// The record of an endpoint.
///
/// Receivers and callers never wait at the same time: the second to come is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Odd while open, and stepped when it opens and when it closes: a key holds an odd one,
    /// so one compare finds a closed endpoint and an earlier one.
    pub(crate) generation: u32,
    pub(crate) limits: Limits,
    pub(crate) receivers: Queue,
    pub(crate) callers: Queue,
    /// Records that are Delivered or Abandoned here.
    pub(crate) in_flight: u32,
    /// Its callers have more than one badge.
    pub(crate) is_shared: bool,
    /// It was closed, and those that wait are being told.
    pub(crate) is_ending: bool,
}

impl Endpoint {
    /// An endpoint that has never been opened.
    pub const UNUSED: Self = Self {
        generation: 0,
        limits: Limits { queued: 0, in_flight: 0 },
        receivers: Queue::EMPTY,
        callers: Queue::EMPTY,
        in_flight: 0,
        is_shared: false,
        is_ending: false,
    };

    /// The generation of its latest opening.
    pub(crate) fn opening(&self) -> u32 {
        if self.is_open() { self.generation } else { self.generation.wrapping_sub(1) }
    }

    /// Whether anyone can call it.
    pub(crate) fn is_open(&self) -> bool {
        self.generation % 2 == 1
    }

    /// Opens it, unless its generations are used up or somebody still waits at the last one.
    pub(crate) fn open(&mut self, limits: Limits) -> Option<u32> {
        let generation = self.generation.checked_add(1)?;
        if self.is_open() || self.is_ending || generation == u32::MAX {
            return None;
        }
        *self = Self { generation, limits, ..Self::UNUSED };
        Some(generation)
    }

    /// Closes it; its queues stay as they are.
    pub(crate) fn close(&mut self) {
        if self.is_open() {
            self.generation = self.generation.wrapping_add(1);
        }
    }

    /// Whether one more receive fits.
    #[inline]
    pub(crate) fn may_receive(&self) -> bool {
        self.in_flight.saturating_add(self.receivers.length) < self.limits.in_flight
    }
}
