//! A sleep as a future, by the timers of a runtime.

use core::pin::Pin;
use core::sync::atomic::Ordering;
use core::task::{Context, Poll};
use core::time::Duration;

use alloc::sync::Arc;

use fiber_core::Outcome;

use crate::polled::PolledWait;
use crate::runtime::{Runtime, Shared};
use crate::time::{Cancelled, Instant};
use crate::worker::current_fiber;

/// Waits until a point in time; `Cancelled` if its runtime ends before.
#[must_use = "a future does nothing unless it is polled"]
pub struct Sleep {
    until: Instant,
    /// Whose timers it has.
    shared: Option<Arc<Shared>>,
    wait: PolledWait,
}

impl Sleep {
    /// A sleep by the timers of the runtime it is made in, or else first polled in.
    pub fn new(until: Instant) -> Self {
        Self { until, shared: current_shared(), wait: PolledWait::new() }
    }

    /// When it ends.
    pub fn until(&self) -> Instant {
        self.until
    }
}

impl Runtime {
    /// A sleep by this runtime's timers, for an executor of any kind.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(Instant::now() + duration)
    }

    /// As [`sleep`](Self::sleep), until then.
    pub fn sleep_until(&self, until: Instant) -> Sleep {
        Sleep { until, shared: Some(self.shared.clone()), wait: PolledWait::new() }
    }
}

/// The runtime of the fiber that runs.
fn current_shared() -> Option<Arc<Shared>> {
    let shared = current_fiber()?.shared.load(Ordering::Relaxed);
    // SAFETY: a fiber's runtime is there while it runs.
    Some(unsafe { Shared::kept(shared) })
}

impl Future for Sleep {
    type Output = Result<(), Cancelled>;

    /// # Panics
    /// If it was neither made by a runtime nor in a fiber, and is polled where no fiber runs.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved.
        let this = unsafe { self.get_unchecked_mut() };
        let until = this.until;
        // SAFETY: pinned with the future.
        let wait = unsafe { Pin::new_unchecked(&mut this.wait) };
        let outcome = if wait.is_under_way() {
            wait.poll(context)
        } else {
            if Instant::now() >= until {
                return Poll::Ready(Ok(()));
            }
            if this.shared.is_none() {
                this.shared = current_shared();
            }
            let shared = this.shared.as_deref();
            assert!(shared.is_some(), "a sleep has the timers of a runtime: see Runtime::sleep");
            wait.begin(context, |wait| {
                shared.is_some_and(|shared| {
                    let timer = wait.timer();
                    timer.set_wake(wait);
                    // SAFETY: the timer is its frame's, and out of the wheel before the wait ends:
                    // taken out by whoever fires it, below, or by `drop`.
                    unsafe { shared.insert_timer(timer, until.as_ns()) };
                    // A runtime fires all timers when it has ended. This one came in time, or sees
                    // that it has: the wheel's lock orders the two.
                    let is_over = shared.is_shutdown.load(Ordering::Relaxed);
                    if is_over {
                        shared.timers.remove(timer);
                    }
                    !is_over
                })
            })
        };
        match outcome {
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) if Instant::now() >= until => Poll::Ready(Ok(())),
            Poll::Ready(_) => Poll::Ready(Err(Cancelled)),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let (wait, shared) = (&mut self.wait, self.shared.as_deref());
        let timer = wait.timer();
        // SAFETY: pinned with the future, if it was ever polled.
        unsafe { Pin::new_unchecked(wait) }.give_up(|outcome| {
            // Whoever fired it took it out of the wheel before deciding so.
            if let (Some(shared), Some(timer)) = (shared, timer)
                && outcome != Outcome::Timeout
            {
                shared.timers.remove(timer);
            }
        });
    }
}

impl core::fmt::Debug for Sleep {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "Sleep {{ until: {:?} }}", self.until)
    }
}
