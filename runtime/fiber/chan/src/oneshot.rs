//! One value, from one fiber or thread to another, in one allocation.

use core::cell::Cell;
use core::fmt;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll};

use alloc::sync::Arc;

use fiber_core::Outcome;
use fiber_rt::{Defect, PolledWait, SpinLock, Wait, Waker, What, consume_budget, is_planted, wait};

use crate::error::{RecvError, TryRecvError};

struct State<T> {
    value: Option<T>,
    /// One of the two ends is gone.
    is_over: bool,
    receiver: Cell<*const Wait>,
}

// SAFETY: the wait is only reached under the lock.
unsafe impl<T: Send> Send for State<T> {}

impl<T> State<T> {
    /// Ends the receiver's wait, if it waits.
    fn complete(&mut self, outcome: Outcome) -> Option<Waker> {
        // SAFETY: a linked wait is alive: its waiter unlinks it, or is completed here.
        let wait = unsafe { self.receiver.replace(ptr::null()).as_ref() }?;
        let waker = wait.waker();
        wait.decide(outcome).then_some(waker)
    }
}

/// Sends the value.
pub struct Sender<T>(Arc<SpinLock<State<T>>>);

/// Receives it.
pub struct Receiver<T>(Arc<SpinLock<State<T>>>);

/// A channel for one value.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { value: None, is_over: false, receiver: Cell::new(ptr::null()) };
    let shared = Arc::new(SpinLock::new(state));
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    /// Sends the value, or gives it back if nobody will receive it.
    pub fn send(self, value: T) -> Result<(), T> {
        let sent = self.0.with(|state| {
            if state.is_over {
                return Err(value);
            }
            state.value = Some(value);
            Ok(state.complete(Outcome::Data(0)))
        });
        if let Some(waker) = sent? {
            waker.wake();
        }
        Ok(())
    }

    /// Whether the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.0.with(|state| state.is_over)
    }
}

impl<T> Receiver<T> {
    /// Waits for the value.
    pub fn recv(self) -> Result<T, RecvError> {
        let publish = |wait: &Wait| {
            self.0.with(|state| {
                let waits = is_planted(Defect::LinksWithoutLooking)
                    || state.value.is_none() && !state.is_over;
                if waits {
                    state.receiver.set(wait);
                }
                waits
            })
        };
        let mut value = None;
        let take = |_| {
            value = self.0.with(|state| {
                state.receiver.set(ptr::null());
                state.value.take()
            });
        };
        let outcome = wait(What::Receive, Arc::as_ptr(&self.0).cast(), None, publish, take);
        let value = match outcome {
            None => {
                // One that waited has let others run.
                consume_budget();
                self.0.with(|state| state.value.take())
            }
            // A cancellation that came before the wait may still find the value there.
            Some(_) => value.or_else(|| self.0.with(|state| state.value.take())),
        };
        match (value, outcome) {
            (Some(value), _) => Ok(value),
            (None, Some(Outcome::Cancelled)) => Err(RecvError::Cancelled),
            (None, _) => Err(RecvError::Disconnected),
        }
    }

    /// Waits for the value as a future does, on any executor.
    pub fn recv_async(self) -> RecvFuture<T> {
        RecvFuture { receiver: self, wait: PolledWait::new() }
    }

    /// The value, if it is there.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        consume_budget();
        self.0.with(|state| {
            let is_over = state.is_over;
            state.value.take().ok_or(if is_over {
                TryRecvError::Disconnected
            } else {
                TryRecvError::Empty
            })
        })
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let waker = self.0.with(|state| {
            state.is_over = true;
            state.complete(Outcome::Closed(0))
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let unclaimed = self.0.with(|state| {
            state.is_over = true;
            state.value.take()
        });
        drop(unclaimed);
    }
}

/// What [`Receiver::recv_async`] returns.
#[must_use = "a future does nothing unless it is polled"]
pub struct RecvFuture<T> {
    receiver: Receiver<T>,
    wait: PolledWait,
}

impl<T> Future for RecvFuture<T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved.
        let this = unsafe { self.get_unchecked_mut() };
        let shared = &this.receiver.0;
        // SAFETY: pinned with the future.
        let wait = unsafe { Pin::new_unchecked(&mut this.wait) };
        let outcome = if wait.is_under_way() {
            wait.poll(context)
        } else {
            wait.begin(context, |wait| {
                shared.with(|state| {
                    let waits = state.value.is_none() && !state.is_over;
                    if waits {
                        state.receiver.set(wait);
                    }
                    waits
                })
            })
        };
        match outcome {
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => {
                let value = shared.with(|state| state.value.take());
                Poll::Ready(value.ok_or(RecvError::Disconnected))
            }
        }
    }
}

impl<T> Drop for RecvFuture<T> {
    fn drop(&mut self) {
        let shared = &self.receiver.0;
        // SAFETY: pinned with the future, if it was ever polled.
        let wait = unsafe { Pin::new_unchecked(&mut self.wait) };
        wait.give_up(|_| shared.with(|state| state.receiver.set(ptr::null())));
    }
}

impl<T> fmt::Debug for RecvFuture<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("oneshot::RecvFuture { .. }")
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("oneshot::Sender { .. }")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("oneshot::Receiver { .. }")
    }
}
