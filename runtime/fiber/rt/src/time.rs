//! Points in time, and the end that came before its time.

use core::ops::Add;
use core::time::Duration;

#[cfg(not(loom))]
use crate::substrate::Substrate;

/// The fiber has been cancelled: it is to end soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl core::fmt::Display for Cancelled {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("the fiber has been cancelled")
    }
}

impl core::error::Error for Cancelled {}

/// A point in time of the substrate's clock, which never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// This moment.
    pub fn now() -> Self {
        #[cfg(not(loom))]
        return Self(crate::substrate::Sys::now_ns());
        // Time stands still in a model.
        #[cfg(loom)]
        Self(0)
    }

    /// How long ago it was; nothing if it is to come.
    pub fn elapsed(self) -> Duration {
        Self::now().since(self)
    }

    /// How long after `earlier` it is; nothing if it is before.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment of a reading of the clock.
    pub fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// The clock's reading.
    pub fn as_ns(self) -> u64 {
        self.0
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}
