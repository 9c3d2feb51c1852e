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
    pub const NONE: Self = Self { index: 0, generation: 0 };
}

/// How much may pile up at one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls that wait for a receiver.
    pub queued: u32,
    /// Calls being served, together with receives that wait for one: each will be served.
    pub in_flight: u32,
}

/// The record of an endpoint.
///
/// Receivers and callers never wait at the same time: whoever comes second is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub(crate) generation: u32,
    pub(crate) is_open: bool,
    pub(crate) limits: Limits,
    pub(crate) receivers: Queue,
    pub(crate) callers: Queue,
    /// Records that are Delivered or Abandoned here.
    pub(crate) in_flight: u32,
}

impl Endpoint {
    /// An endpoint that has never been opened.
    pub const UNUSED: Self = Self {
        generation: 0,
        is_open: false,
        limits: Limits { queued: 0, in_flight: 0 },
        receivers: Queue::EMPTY,
        callers: Queue::EMPTY,
        in_flight: 0,
    };

    /// Whether one more receive fits.
    #[inline]
    pub(crate) fn may_receive(&self) -> bool {
        self.in_flight.saturating_add(self.receivers.length) < self.limits.in_flight
    }
}
