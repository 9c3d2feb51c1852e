//! Points in time, and the end that came before its time.

use core::ops::{Add, AddAssign, Sub, SubAssign};
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

    /// How long after `earlier` it is; nothing if it is before, as in `std`.
    pub fn duration_since(self, earlier: Self) -> Duration {
        self.since(earlier)
    }

    /// How long after `earlier` it is, unless it is before.
    pub fn checked_duration_since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }

    /// So long after it, if the clock ever gets there.
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        self.0.checked_add(u64::try_from(duration.as_nanos()).ok()?).map(Self)
    }

    /// So long before it, if the clock was ever there.
    pub fn checked_sub(self, duration: Duration) -> Option<Self> {
        self.0.checked_sub(u64::try_from(duration.as_nanos()).ok()?).map(Self)
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

/// The end of time is as far as it goes.
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// The beginning of the clock is as far as it goes.
impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, duration: Duration) -> Self {
        self.checked_sub(duration).unwrap_or(Self(0))
    }
}

/// The beginning of the clock is as far as it goes.
impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// As [`duration_since`](Instant::duration_since).
impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn moments_and_durations_add_up() {
        let (early, second) = (Instant::from_ns(5), Duration::from_secs(1));
        let late = early + second;
        assert_eq!((late - early, early - late), (second, Duration::ZERO));
        assert_eq!((late.duration_since(early), late.since(early)), (second, second));
        assert_eq!((late - second, early - second), (early, Instant::from_ns(0)));
        assert_eq!(early.checked_duration_since(late), None);
        assert_eq!(late.checked_duration_since(early), Some(second));
        assert_eq!(
            (early.checked_add(second), early.checked_add(Duration::MAX)),
            (Some(late), None)
        );
        assert_eq!((late.checked_sub(second), early.checked_sub(second)), (Some(early), None));
        assert_eq!(early + Duration::MAX, Instant::from_ns(u64::MAX));
        let mut moved = early;
        moved += second;
        assert_eq!(moved, late);
        moved -= second;
        assert_eq!(moved, early);
    }
}
