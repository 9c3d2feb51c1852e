//! A fiber's end as a future.

use core::pin::Pin;
use core::task::{Context, Poll};

use fiber_core::Outcome;

use crate::handle::{Handle, JoinError};
use crate::polled::PolledWait;

/// Waits for a fiber's end, on any executor, and takes its result. Dropping it leaves the fiber to its
/// scope, as dropping the handle does.
#[must_use = "a future does nothing unless it is polled"]
pub struct Join<'scope, T> {
    /// Until the result has been taken.
    handle: Option<Handle<'scope, T>>,
    wait: PolledWait,
}

impl<'scope, T> IntoFuture for Handle<'scope, T> {
    type Output = Result<T, JoinError>;
    type IntoFuture = Join<'scope, T>;

    fn into_future(self) -> Join<'scope, T> {
        Join { handle: Some(self), wait: PolledWait::new() }
    }
}

impl<T> Future for Join<'_, T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved that others may look at.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: pinned with the future.
        let wait = unsafe { Pin::new_unchecked(&mut this.wait) };
        let outcome = match &this.handle {
            Some(handle) if !handle.is_void => {
                if wait.is_under_way() {
                    wait.poll(context)
                } else {
                    let publish = |wait: &_| handle.scope().link_joiner(handle.frame, wait);
                    wait.begin(context, publish)
                }
            }
            _ => return Poll::Ready(Err(JoinError::Cancelled)),
        };
        match (outcome, this.handle.take()) {
            // SAFETY: the fiber has ended, and its frame is no longer the scope's.
            (Poll::Ready(_), Some(handle)) => Poll::Ready(unsafe { handle.take_result() }),
            (_, handle) => {
                this.handle = handle;
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Join<'_, T> {
    fn drop(&mut self) {
        let Some(handle) = &self.handle else { return };
        // SAFETY: pinned with the future, if it was ever polled.
        let wait = unsafe { Pin::new_unchecked(&mut self.wait) };
        let outcome = wait.give_up(|outcome| {
            if outcome != Outcome::Data(0) {
                handle.scope().unlink_joiner(handle.frame);
            }
        });
        if let (Some(Outcome::Data(_)), Some(handle)) = (outcome, self.handle.take()) {
            // SAFETY: the fiber has ended, and its frame is no longer the scope's.
            unsafe { handle.drop_result() };
        }
    }
}

impl<T> core::fmt::Debug for Join<'_, T> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "Join {{ {:?} }}", self.handle)
    }
}
