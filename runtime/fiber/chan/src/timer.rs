//! Receivers that deliver points in time.

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use alloc::sync::Arc;

use fiber_core::Outcome;
use fiber_rt::{Instant, What, consume_budget, wait};

#[cfg(not(loom))]
use {
    crate::error::RecvError,
    core::pin::Pin,
    core::task::{Context, Poll},
    fiber_rt::Sleep,
};

use crate::chan::Ended;
use crate::ends::{Flavor, Receiver};

/// No time at all.
const NEVER: u64 = u64::MAX;

/// Where the values of a timer's receiver come from.
pub(crate) trait Source<T>: Send + Sync {
    /// When the next value is there; `NEVER` if none ever will be.
    fn next_ns(&self) -> u64;
    /// Takes the value that is there at `now_ns`, as its time.
    fn take(&self, now_ns: u64) -> Option<u64>;
    /// Puts back what was taken and is not wanted.
    fn put_back(&self, time_ns: u64);
    /// The value for a time that was taken.
    fn value(&self, time_ns: u64) -> T;
    /// Whether a value is there.
    fn is_due(&self, now_ns: u64) -> bool {
        self.next_ns() <= now_ns
    }
}

/// Once, then never again; or at every period.
struct Clock {
    next_ns: AtomicU64,
    period_ns: Option<u64>,
}

impl Source<Instant> for Clock {
    fn next_ns(&self) -> u64 {
        self.next_ns.load(Ordering::Relaxed)
    }

    fn take(&self, now_ns: u64) -> Option<u64> {
        let next = |next: u64| {
            // A receiver that comes late gets one value, not all it missed.
            let after = self.period_ns.map_or(NEVER, |period| now_ns.saturating_add(period));
            (next <= now_ns && next != NEVER).then_some(after)
        };
        self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()
    }

    fn put_back(&self, time_ns: u64) {
        self.next_ns.fetch_min(time_ns, Ordering::Relaxed);
    }

    fn value(&self, time_ns: u64) -> Instant {
        Instant::from_ns(time_ns)
    }
}

fn receiver(next_ns: u64, period_ns: Option<u64>) -> Receiver<Instant> {
    let clock = Clock { next_ns: AtomicU64::new(next_ns), period_ns };
    Receiver { flavor: Flavor::Timer(Arc::new(clock)) }
}

/// A receiver of one value, the time, after `duration`.
pub fn after(duration: Duration) -> Receiver<Instant> {
    at(Instant::now() + duration)
}

/// A receiver of one value, the time, at `when`.
pub fn at(when: Instant) -> Receiver<Instant> {
    receiver(when.as_ns(), None)
}

/// A receiver of the time at every period.
pub fn tick(period: Duration) -> Receiver<Instant> {
    let period_ns = u64::try_from(period.as_nanos()).unwrap_or(NEVER);
    receiver((Instant::now() + period).as_ns(), Some(period_ns))
}

/// A receiver of nothing, ever.
pub const fn never<T>() -> Receiver<T> {
    Receiver { flavor: Flavor::Never }
}

pub(crate) fn try_recv<T>(source: &dyn Source<T>) -> Option<T> {
    source.take(Instant::now().as_ns()).map(|time_ns| source.value(time_ns))
}

pub(crate) fn recv<T>(
    source: Option<&dyn Source<T>>,
    deadline_ns: Option<u64>,
) -> Result<T, Ended> {
    consume_budget();
    loop {
        let mut until_ns = deadline_ns;
        if let Some(source) = source {
            if let Some(value) = try_recv(source) {
                return Ok(value);
            }
            let next_ns = source.next_ns();
            if next_ns != NEVER {
                until_ns = Some(until_ns.map_or(next_ns, |deadline| deadline.min(next_ns)));
            }
        }
        match wait(What::Timer, ptr::null(), until_ns, |_| true, |_| {}) {
            Some(Outcome::Cancelled) => return Err(Ended::Cancelled),
            _ if deadline_ns.is_some_and(|deadline| Instant::now().as_ns() >= deadline) => {
                return source.and_then(try_recv).ok_or(Ended::Timeout);
            }
            _ => {}
        }
    }
}

/// A receiver of one value, there when a model says so: in a model time stands still.
#[cfg(loom)]
pub fn told() -> (Tell, Receiver<Instant>) {
    let told = Arc::new(Tell::default());
    (Tell(told.0.clone()), Receiver { flavor: Flavor::Timer(told) })
}

/// Says that it is time, for a model.
#[cfg(loom)]
#[derive(Clone, Debug, Default)]
pub struct Tell(Arc<abi_sync::atomic::AtomicU64>);

#[cfg(loom)]
impl Tell {
    /// It is time.
    pub fn tell(&self) {
        self.0.store(1, Ordering::Relaxed);
    }
}

#[cfg(loom)]
impl Source<Instant> for Tell {
    fn next_ns(&self) -> u64 {
        NEVER
    }

    fn take(&self, _now_ns: u64) -> Option<u64> {
        self.0.compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed).ok().map(|_| 0)
    }

    fn put_back(&self, _time_ns: u64) {
        self.tell();
    }

    fn value(&self, time_ns: u64) -> Instant {
        Instant::from_ns(time_ns)
    }

    fn is_due(&self, _now_ns: u64) -> bool {
        self.0.load(Ordering::Relaxed) == 1
    }
}

/// As `recv`, for a future; `sleep` is where it waits.
#[cfg(not(loom))]
pub(crate) fn poll_recv<T>(
    source: &dyn Source<T>,
    mut sleep: Pin<&mut Option<Sleep>>,
    context: &mut Context<'_>,
) -> Poll<Result<T, RecvError>> {
    loop {
        if let Some(value) = try_recv(source) {
            sleep.set(None);
            return Poll::Ready(Ok(value));
        }
        let next_ns = source.next_ns();
        if next_ns == NEVER {
            return Poll::Pending;
        }
        if sleep.as_ref().as_pin_ref().is_none_or(|sleep| sleep.until().as_ns() != next_ns) {
            sleep.set(Some(Sleep::new(Instant::from_ns(next_ns))));
        }
        match sleep.as_mut().as_pin_mut().map(|sleep| sleep.poll(context)) {
            Some(Poll::Pending) => return Poll::Pending,
            Some(Poll::Ready(Err(_))) => return Poll::Ready(Err(RecvError::Disconnected)),
            Some(Poll::Ready(Ok(()))) | None => sleep.set(None),
        }
    }
}
